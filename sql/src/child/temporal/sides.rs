//! Operands of operations on many rows: a column, or one value for all rows.
//!
//! Invariant: no value of a column is boxed, and a value for all rows is not repeated.

use datafusion::arrow::array::{AsArray as _, Int64Array, PrimitiveArray};
use datafusion::arrow::compute::kernels::arity::{try_binary, try_unary};
use datafusion::arrow::datatypes::{ArrowPrimitiveType, Int64Type, TimestampMicrosecondType};
use datafusion::arrow::error::ArrowError;
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;

use super::TextKind;
use super::operands::to_micros;

/// Timestamps in microseconds.
#[derive(Debug)]
pub(super) enum ComparedTimes {
    Rows(Int64Array),
    One(Option<i64>),
}

impl ComparedTimes {
    /// Reads an operand. A text is a time of this kind.
    pub(super) fn of(operand: &ColumnarValue, kind: TextKind) -> Result<Self> {
        let (array, one) = match operand {
            ColumnarValue::Array(array) => (to_micros(array, kind)?, false),
            ColumnarValue::Scalar(value) => (to_micros(&value.to_array()?, kind)?, true),
        };
        let times = array
            .as_primitive::<TimestampMicrosecondType>()
            .reinterpret_cast::<Int64Type>();
        Ok(if one {
            Self::One(times.iter().next().flatten())
        } else {
            Self::Rows(times)
        })
    }

    /// Applies a function to the rows of two operands.
    pub(super) fn with<T: ArrowPrimitiveType>(
        &self,
        other: &Self,
        function: impl Fn(i64, i64) -> std::result::Result<T::Native, ArrowError>,
    ) -> Result<PrimitiveArray<T>> {
        Ok(match (self, other) {
            (Self::Rows(left), Self::Rows(right)) => try_binary(left, right, function)?,
            (Self::Rows(left), Self::One(Some(right))) => try_unary(left, |left| function(left, *right))?,
            (Self::One(Some(left)), Self::Rows(right)) => try_unary(right, |right| function(*left, right))?,
            (Self::Rows(rows), Self::One(None)) | (Self::One(None), Self::Rows(rows)) => {
                PrimitiveArray::new_null(rows.len())
            }
            (Self::One(left), Self::One(right)) => {
                let found = left
                    .zip(*right)
                    .map(|(left, right)| function(left, right))
                    .transpose()?;
                std::iter::once(found).collect()
            }
        })
    }
}
