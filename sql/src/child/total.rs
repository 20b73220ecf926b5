//! `sum` and `avg` of integers and decimals, as `PostgreSQL` computes them: exactly.
//!
//! Invariant: a sum never wraps. One of integers or of decimals of the statement has room for every number of rows; a
//! result without room is an error.

mod groups;
pub(super) mod moving;
mod single;

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray as _, Decimal256Array, Int64Array};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal256Type, Field, FieldRef, Int64Type, i256,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::utils::take_function_args;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::average::Avg;
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature, Volatility};

use self::groups::GroupTotals;
use self::moving::MovingTotal;
use self::single::{DistinctTotal, SingleTotal};
use super::numeric::digits;
use super::numeric::{EXACT, NUMERIC, WHOLE, beyond, is_decimal};

/// Returns the engine's function with exact results for integers and decimals: its `sum`.
pub(super) fn sum() -> impl AggregateUDFImpl {
    Exactly {
        average: false,
        engine: Sum::new(),
        signature: Signature::user_defined(Volatility::Immutable),
    }
}

/// As [`sum()`], its `avg`.
pub(super) fn average() -> impl AggregateUDFImpl {
    Exactly {
        average: true,
        engine: Avg::new(),
        signature: Signature::user_defined(Volatility::Immutable),
    }
}

/// Digits that a sum of decimals has more than they.
const EXTRA_SUM_DIGITS: u8 = 10;

/// Last step of an aggregate, which makes its result of a sum and a count.
#[derive(Clone, Debug)]
struct Finish {
    average: bool,
    /// Scale of the sum.
    scale: u8,
    kind: DataType,
}

impl Finish {
    /// Returns the result for a group, or null for one without values.
    fn of(&self, sum: i256, count: i64) -> std::result::Result<Option<i256>, ArrowError> {
        if count == 0 {
            return Ok(None);
        }
        let value = if self.average {
            digits::quotient((sum, self.scale), (i256::from(count), 0))
        } else {
            Some(sum)
        };
        value.ok_or_else(beyond).map(Some)
    }

    /// Returns results of the type of the function.
    fn array(&self, values: Decimal256Array) -> Result<ArrayRef> {
        let wide = values.with_data_type(match (&self.kind, self.average) {
            (DataType::Decimal256(..), _) => self.kind.clone(),
            _ => DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale(self.scale)),
        });
        // A narrower type has no room for some sums, which is an error of the cast.
        Ok(if *wide.data_type() == self.kind {
            Arc::new(wide)
        } else {
            let beyond = |_| ArrowError::ArithmeticOverflow("a sum of decimals has more than 38 digits".to_owned());
            let options = CastOptions {
                safe: false,
                ..CastOptions::default()
            };
            cast_with_options(&wide, &self.kind, &options).map_err(beyond)?
        })
    }
}

fn scale(scale: u8) -> i8 {
    i8::try_from(scale).unwrap_or_default()
}

/// The engine's `sum` or `avg` for doubles and times, and exact ones for integers and decimals.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Exactly<Engine> {
    average: bool,
    engine: Engine,
    signature: Signature,
}

fn is_exact(kind: &DataType) -> bool {
    *kind == DataType::Int64 || is_decimal(kind)
}

impl<Engine: AggregateUDFImpl> Exactly<Engine> {
    fn finish(&self, args: &AccumulatorArgs<'_>) -> Option<(DataType, Finish)> {
        let kind = args.expr_fields.first()?.data_type().clone();
        is_exact(&kind).then(|| {
            let finish = Finish {
                average: self.average,
                scale: scale_of(&kind),
                kind: args.return_type().clone(),
            };
            (kind, finish)
        })
    }
}

fn scale_of(kind: &DataType) -> u8 {
    match kind {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => scale.unsigned_abs(),
        _ => 0,
    }
}

/// Returns the type of intermediate sums.
fn wide(kind: &DataType) -> DataType {
    DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale(scale_of(kind)))
}

impl<Engine: AggregateUDFImpl + Eq + std::hash::Hash> AggregateUDFImpl for Exactly<Engine> {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn aliases(&self) -> &[String] {
        self.engine.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let [kind] = take_function_args(self.name(), arguments)?;
        Ok(vec![match kind {
            kind if kind.is_integer() => DataType::Int64,
            kind if kind.is_floating() => DataType::Float64,
            DataType::Null => DataType::Int64,
            kind if is_decimal(kind) => kind.clone(),
            DataType::Duration(_) => kind.clone(),
            DataType::Interval(_) if !self.average => kind.clone(),
            other => {
                let problem = format!("{}() takes numbers and differences of times, not {other}", self.name());
                return Err(DataFusionError::Plan(problem));
            }
        }])
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let [kind] = take_function_args(self.name(), arguments)?;
        Ok(match kind {
            kind if kind.is_integer() || kind.is_null() => {
                if self.average {
                    NUMERIC
                } else {
                    WHOLE
                }
            }
            kind if *kind == WHOLE || *kind == NUMERIC => {
                if self.average {
                    NUMERIC
                } else {
                    kind.clone()
                }
            }
            kind if is_decimal(kind) && self.average => EXACT,
            DataType::Decimal128(precision, scale) => {
                DataType::Decimal128((precision + EXTRA_SUM_DIGITS).min(DECIMAL128_MAX_PRECISION), *scale)
            }
            kind if is_decimal(kind) => kind.clone(),
            kind if kind.is_floating() => DataType::Float64,
            _ => return self.engine.return_type(arguments),
        })
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match self.finish(&args) {
            None => self.engine.accumulator(args),
            Some((_, finish)) if args.is_distinct => Ok(Box::new(DistinctTotal::new(finish))),
            Some((_, finish)) => Ok(Box::new(SingleTotal::new(finish))),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let kind = args.input_fields.first().map(|field| field.data_type().clone());
        let Some(kind) = kind.filter(is_exact) else {
            return self.engine.state_fields(args);
        };
        let named = |part: &str| format!("{}[{part}]", args.name);
        Ok(if args.is_distinct {
            let item = Field::new_list_field(wide(&kind), true);
            vec![Field::new_list(named("distinct"), item, true).into()]
        } else {
            vec![
                Field::new(named("sum"), wide(&kind), true).into(),
                Field::new(named("count"), DataType::Int64, true).into(),
            ]
        })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        match self.finish(&args) {
            None => self.engine.groups_accumulator_supported(args),
            Some(_) => !args.is_distinct,
        }
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        match self.finish(&args) {
            None => self.engine.create_groups_accumulator(args),
            // Integers are added in 128 bits, which no number of rows overflows.
            Some((DataType::Int64, finish)) => Ok(Box::new(GroupTotals::<i128>::new(finish))),
            Some((_, finish)) => Ok(Box::new(GroupTotals::<i256>::new(finish))),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            let problem = format!("{}(DISTINCT …) over a moving frame is not supported", self.name());
            return Err(DataFusionError::Plan(problem));
        }
        match self.finish(&args) {
            None if args
                .expr_fields
                .first()
                .is_some_and(|field| *field.data_type() == DataType::Float64) =>
            {
                Ok(Box::new(MovingTotal::new(self.average)))
            }
            None => self.engine.create_sliding_accumulator(args),
            Some((_, finish)) => Ok(Box::new(SingleTotal::new(finish))),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// Returns the values of a column of integers or decimals of 256 bits.
fn widened(values: &ArrayRef) -> Result<Decimal256Array> {
    let kind = wide(values.data_type());
    let values = if *values.data_type() == kind {
        Arc::clone(values)
    } else {
        cast(values, &kind)?
    };
    Ok(values.as_primitive::<Decimal256Type>().clone())
}

/// The two columns of intermediate results.
fn state_of(states: &[ArrayRef]) -> Result<(&Decimal256Array, &Int64Array)> {
    let [sums, counts] = states else {
        return Err(DataFusionError::Plan("an intermediate sum has a count".to_owned()));
    };
    Ok((
        sums.as_primitive::<Decimal256Type>(),
        counts.as_primitive::<Int64Type>(),
    ))
}
