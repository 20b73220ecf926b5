//! Functions on numbers of the type numeric.
//!
//! Invariant: a result without room is an error.

use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, Decimal256Array, Float64Array, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DECIMAL256_MAX_PRECISION, DataType, Decimal256Type, Field, FieldRef, Float32Type, Float64Type, Int64Type, i256,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::digits::{self, Cut};
use super::{EXACT, NUMERIC, WHOLE, is_decimal};
use crate::check::scope::is_zero;

/// An operation on numbers of which one is a decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum DecimalOperation {
    Add,
    Subtract,
    Multiply,
    Divide,
    /// The rest of a division, with the sign of the dividend.
    Rest,
    /// Drops digits; the number of those that stay is a second operand.
    Cut(Cut),
    Absolute,
    Sign,
    /// Makes a decimal of any number or text.
    Exact,
    /// Makes a double.
    Double,
    /// Makes a text; the number of its digits behind the point may be a second operand.
    Text,
}

/// Returns the call of an operation.
pub(super) fn call(operation: DecimalOperation, operands: Vec<Expr>) -> Expr {
    let function = ScalarUDF::new_from_impl(Numeric {
        operation,
        signature: Signature::any(operands.len(), Volatility::Immutable),
    });
    Expr::ScalarFunction(ScalarFunction::new_udf(function.into(), operands))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Numeric {
    operation: DecimalOperation,
    signature: Signature,
}

/// Returns the type of a result: as wide as its operands, and [`EXACT`] if one is a decimal of the statement.
fn kind_of(operation: DecimalOperation, operands: &[DataType]) -> DataType {
    let whole = |kind: &DataType| *kind == WHOLE || !is_decimal(kind);
    let given = |kind: &DataType| is_decimal(kind) && *kind != WHOLE && *kind != NUMERIC;
    let numbers = match operation {
        // The number of digits says nothing about the type.
        DecimalOperation::Cut(_) => &operands[..operands.len().min(1)],
        _ => operands,
    };
    match operation {
        DecimalOperation::Double => DataType::Float64,
        DecimalOperation::Text => DataType::Utf8,
        DecimalOperation::Exact => EXACT,
        _ if numbers.iter().any(given) => EXACT,
        DecimalOperation::Divide => NUMERIC,
        _ if numbers.iter().all(whole) => WHOLE,
        _ => NUMERIC,
    }
}

impl ScalarUDFImpl for Numeric {
    fn name(&self) -> &'static str {
        match self.operation {
            DecimalOperation::Add => "numeric_add",
            DecimalOperation::Subtract => "numeric_subtract",
            DecimalOperation::Multiply => "numeric_multiply",
            DecimalOperation::Divide => "numeric_divide",
            DecimalOperation::Rest => "numeric_rest",
            DecimalOperation::Cut(Cut::Round) => "numeric_round",
            DecimalOperation::Cut(Cut::Truncate) => "numeric_truncate",
            DecimalOperation::Cut(Cut::Floor) => "numeric_floor",
            DecimalOperation::Cut(Cut::Ceil) => "numeric_ceil",
            DecimalOperation::Absolute => "numeric_absolute",
            DecimalOperation::Sign => "numeric_sign",
            DecimalOperation::Exact => "numeric_exact",
            DecimalOperation::Double => "numeric_double",
            DecimalOperation::Text => "numeric_text",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(kind_of(self.operation, arguments))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let kinds: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Field::new(self.name(), self.return_type(&kinds)?, nullable).into())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let result = self.rows(&args.args, rows)?;
        Ok(if constant {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)
        } else {
            ColumnarValue::Array(result)
        })
    }
}

impl Numeric {
    fn rows(&self, args: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let kinds: Vec<DataType> = args.iter().map(ColumnarValue::data_type).collect();
        let result = kind_of(self.operation, &kinds);
        let Some(first) = args.first() else {
            return Err(DataFusionError::Plan("an operation on numbers has operands".to_owned()));
        };
        if self.operation == DecimalOperation::Exact {
            return exact(first, rows);
        }
        let one = DecimalOperand::of(first)?;
        match self.operation {
            DecimalOperation::Double => {
                let double = |row| one.get(row).map(|value| digits::double(value, one.scale));
                return Ok(Arc::new((0..rows).map(double).collect::<Float64Array>()));
            }
            DecimalOperation::Text => {
                let fixed = args.get(1).map(|fixed| KeptDigits::of(fixed, rows)).transpose()?;
                let text = |row| {
                    let fixed = fixed.as_ref().and_then(|fixed| fixed.get(row));
                    one.get(row).map(|value| digits::text(value, one.scale, fixed))
                };
                return Ok(Arc::new((0..rows).map(text).collect::<StringArray>()));
            }
            DecimalOperation::Cut(how) => {
                let kept = args.get(1).map(|kept| KeptDigits::of(kept, rows)).transpose()?;
                return decimals(rows, &result, |row| {
                    let kept = kept.as_ref().map_or(Some(0), |kept| kept.get(row));
                    Ok(one.get(row).zip(kept).map(|(value, kept)| {
                        // More digits are kept than there can be, or less.
                        let kept = kept.clamp(-1_000, 1_000);
                        digits::cut(value, one.scale, kept, how).and_then(|cut| one.scaled(cut, &result))
                    }))
                });
            }
            DecimalOperation::Absolute => {
                let absolute = |value: i256| value.checked_abs().and_then(|value| one.scaled(value, &result));
                return decimals(rows, &result, |row| Ok(one.get(row).map(absolute)));
            }
            DecimalOperation::Sign => {
                let sign = |value: i256| digits::rescaled(value.signum(), 0, scale_of(&result));
                return decimals(rows, &result, |row| Ok(one.get(row).map(sign)));
            }
            _ => {}
        }
        let Some(second) = args.get(1) else {
            return Err(DataFusionError::Plan(
                "an operation on numbers has two operands".to_owned(),
            ));
        };
        let other = DecimalOperand::of(second)?;
        let to = scale_of(&result);
        decimals(rows, &result, |row| {
            let Some((left, right)) = one.get(row).zip(other.get(row)) else {
                return Ok(None);
            };
            let zero = right == i256::ZERO;
            if zero && matches!(self.operation, DecimalOperation::Divide | DecimalOperation::Rest) {
                return Err(ArrowError::DivideByZero);
            }
            Ok(Some(binary(
                self.operation,
                (left, one.scale),
                (right, other.scale),
                to,
            )))
        })
    }
}

fn binary(operation: DecimalOperation, one: (i256, u8), other: (i256, u8), to: u8) -> Option<i256> {
    let both = || digits::rescaled(one.0, one.1, to).zip(digits::rescaled(other.0, other.1, to));
    match operation {
        DecimalOperation::Add => both().and_then(|(one, other)| one.checked_add(other)),
        DecimalOperation::Subtract => both().and_then(|(one, other)| one.checked_sub(other)),
        DecimalOperation::Rest => both().and_then(|(one, other)| one.checked_rem(other)),
        DecimalOperation::Multiply => digits::product(one, other, to),
        _ => digits::quotient(one, other),
    }
}

/// Returns the scale of a decimal type.
pub(in crate::child) const fn scale_of(kind: &DataType) -> u8 {
    match kind {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => scale.unsigned_abs(),
        _ => 0,
    }
}

/// A row's result: null, or a value with room or without.
type Found = std::result::Result<Option<Option<i256>>, ArrowError>;

fn decimals(rows: usize, kind: &DataType, of: impl Fn(usize) -> Found) -> Result<ArrayRef> {
    let checked = |row| match of(row) {
        Ok(Some(None)) => Err(beyond()),
        Ok(found) => Ok(found.flatten()),
        Err(error) => Err(error),
    };
    let values = (0..rows)
        .map(checked)
        .collect::<std::result::Result<Decimal256Array, _>>()?;
    Ok(Arc::new(values.with_data_type(kind.clone())))
}

/// The error of a number without room.
pub(in crate::child) fn beyond() -> ArrowError {
    ArrowError::ArithmeticOverflow("a number has more than 40 digits before the point".to_owned())
}

/// A column of decimals or integers.
struct DecimalOperand {
    values: Decimal256Array,
    /// Tells that `value` is the one of all rows.
    constant: bool,
    value: Option<i256>,
    scale: u8,
}

impl DecimalOperand {
    fn of(value: &ColumnarValue) -> Result<Self> {
        let (array, constant) = match value {
            ColumnarValue::Array(array) => (Arc::clone(array), false),
            ColumnarValue::Scalar(scalar) => (scalar.to_array()?, true),
        };
        let array = if array.data_type().is_floating() {
            exact(&ColumnarValue::Array(array), 0)?
        } else {
            array
        };
        let scale = scale_of(array.data_type());
        let values = match array.data_type() {
            DataType::Decimal256(_, _) => array,
            _ => cast(
                &array,
                &DataType::Decimal256(DECIMAL256_MAX_PRECISION, i8::try_from(scale).unwrap_or_default()),
            )?,
        };
        let values = values.as_primitive::<Decimal256Type>().clone();
        if !constant {
            return Ok(Self {
                values,
                constant,
                value: None,
                scale,
            });
        }
        // A literal such as 2.0 divides faster as 2.
        let value = values
            .is_valid(0)
            .then(|| digits::without_zeros(values.value(0), scale));
        Ok(Self {
            values,
            constant,
            value: value.map(|(value, _)| value),
            scale: value.map_or(scale, |(_, scale)| scale),
        })
    }

    fn get(&self, row: usize) -> Option<i256> {
        if self.constant {
            self.value
        } else {
            self.values.is_valid(row).then(|| self.values.value(row))
        }
    }

    fn scaled(&self, value: i256, kind: &DataType) -> Option<i256> {
        digits::rescaled(value, self.scale, scale_of(kind))
    }
}

/// Returns the texts of decimals, as `Utf8`.
pub(in crate::child) fn texts(decimals: &ArrayRef) -> Result<ArrayRef> {
    let operand = DecimalOperand::of(&ColumnarValue::Array(Arc::clone(decimals)))?;
    let text = |row| operand.get(row).map(|value| digits::text(value, operand.scale, None));
    Ok(Arc::new((0..decimals.len()).map(text).collect::<StringArray>()))
}

/// Number of digits behind the point that are kept, for each row.
struct KeptDigits(ArrayRef);

impl KeptDigits {
    fn of(value: &ColumnarValue, rows: usize) -> Result<Self> {
        Ok(Self(cast(&value.to_array(rows)?, &DataType::Int64)?))
    }

    fn get(&self, row: usize) -> Option<i64> {
        let kept = self.0.as_primitive::<Int64Type>();
        kept.is_valid(row).then(|| kept.value(row))
    }
}

/// Reads numbers and texts as decimals.
fn exact(of: &ColumnarValue, rows: usize) -> Result<ArrayRef> {
    let array = of.to_array(rows)?;
    let none = |shown: &dyn std::fmt::Display| {
        DataFusionError::Execution(format!("`{shown}` is no number of at most 40 digits before the point"))
    };
    let values: Decimal256Array = match array.data_type() {
        DataType::Float32 => {
            let read = |single: f32| digits::of_single(single).ok_or_else(|| none(&single));
            let singles = array.as_primitive::<Float32Type>().iter();
            singles
                .map(|single| single.map(read).transpose())
                .collect::<Result<_>>()?
        }
        DataType::Float16 | DataType::Float64 => {
            let doubles = cast(&array, &DataType::Float64)?;
            let doubles = doubles.as_primitive::<Float64Type>();
            let read = |double: f64| digits::of_double(double).ok_or_else(|| none(&double));
            doubles
                .iter()
                .map(|double| double.map(read).transpose())
                .collect::<Result<_>>()?
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let texts = cast(&array, &DataType::Utf8)?;
            let read = |text: &str| {
                let value = digits::read(text).ok_or_else(|| none(&text))?;
                if value == i256::ZERO && !is_zero(text) {
                    let problem = format!(
                        "`{}` has more than 36 digits behind the point before those that count",
                        text.trim()
                    );
                    return Err(DataFusionError::Execution(problem));
                }
                Ok(value)
            };
            let texts = texts.as_string::<i32>().iter();
            texts.map(|text| text.map(read).transpose()).collect::<Result<_>>()?
        }
        DataType::Null => (0..array.len()).map(|_| None::<i256>).collect(),
        kind if kind.is_integer() || is_decimal(kind) => {
            let operand = DecimalOperand::of(&ColumnarValue::Array(Arc::clone(&array)))?;
            return decimals(array.len(), &EXACT, |row| {
                Ok(operand.get(row).map(|value| operand.scaled(value, &EXACT)))
            });
        }
        other => {
            let problem = format!("a value of the type {other} cannot be cast to numeric");
            return Err(DataFusionError::Plan(problem));
        }
    };
    Ok(Arc::new(values.with_data_type(EXACT)))
}
