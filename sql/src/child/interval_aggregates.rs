//! Sums, means and extremes of intervals.
//!
//! Invariant: a sum adds months, days and times apart, and an extreme compares by length. While a statement is planned
//! one function stands for both, that of intervals and the engine's; [`in_place_of`] then chooses.

use std::collections::BTreeMap;
use std::collections::btree_map::OccupiedEntry;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type, IntervalMonthDayNanoType};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Expr, Signature, Volatility};

use super::temporal::{INTERVAL, OUT_OF_RANGE, from_engine, to_engine};
use crate::time::interval::{Interval, OutOfRange};

/// An aggregate of intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum IntervalAggregate {
    Min,
    Max,
    Sum,
    Mean,
}

/// Returns the call of an aggregate of intervals.
pub(super) fn call(of: IntervalAggregate, interval: Expr) -> Expr {
    let function = Arc::new(AggregateUDF::new_from_impl(Intervals::new(of)));
    Expr::AggregateFunction(AggregateFunction::new_udf(
        function,
        vec![interval],
        false,
        None,
        Vec::new(),
        None,
    ))
}

/// Returns the function that is called instead of `function`: that of intervals, or the one that [`either`] wrapped.
pub(super) fn in_place_of(function: &AggregateUDF, interval: bool) -> Option<Arc<AggregateUDF>> {
    let either = (function.inner().as_ref() as &dyn std::any::Any).downcast_ref::<EitherAggregate>();
    if !interval {
        return either.map(|either| Arc::clone(&either.other));
    }
    let of = match function.name() {
        "min" => IntervalAggregate::Min,
        "max" => IntervalAggregate::Max,
        "sum" => IntervalAggregate::Sum,
        "avg" => IntervalAggregate::Mean,
        _ => return None,
    };
    Some(Arc::new(AggregateUDF::new_from_impl(Intervals::new(of))))
}

/// Returns a function that also takes intervals, if there is one of this name.
pub(super) fn either(function: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
    if !matches!(function.name(), "sum" | "avg") {
        return function;
    }
    Arc::new(AggregateUDF::new_from_impl(EitherAggregate {
        aliases: function.aliases().to_vec(),
        other: function,
        signature: Signature::variadic_any(Volatility::Immutable),
    }))
}

/// A function of the engine that also takes intervals. It is planned and never run.
#[derive(Debug, PartialEq, Eq, Hash)]
struct EitherAggregate {
    other: Arc<AggregateUDF>,
    aliases: Vec<String>,
    signature: Signature,
}

impl AggregateUDFImpl for EitherAggregate {
    fn name(&self) -> &str {
        self.other.name()
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let fields: Vec<FieldRef> = arguments
            .iter()
            .map(|kind| Arc::new(Field::new("argument", kind.clone(), true)))
            .collect();
        Ok(self.return_field(&fields)?.data_type().clone())
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        match arguments {
            [of] if matches!(of.data_type(), DataType::Interval(_)) => {
                Ok(Arc::new(Field::new(self.name(), INTERVAL, true)))
            }
            _ => self
                .other
                .return_field(&fields_with_udf(arguments, self.other.as_ref())?),
        }
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Err(DataFusionError::Plan(format!(
            "{}() is not supported here",
            self.name()
        )))
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.other.inner().supports_null_handling_clause()
    }
}

/// An aggregate of intervals as a function of the engine.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Intervals {
    of: IntervalAggregate,
    signature: Signature,
}

impl Intervals {
    fn new(of: IntervalAggregate) -> Self {
        Self {
            of,
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl AggregateUDFImpl for Intervals {
    fn name(&self) -> &'static str {
        match self.of {
            IntervalAggregate::Min => "min",
            IntervalAggregate::Max => "max",
            IntervalAggregate::Sum => "sum",
            IntervalAggregate::Mean => "avg",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(INTERVAL)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(match self.of {
            IntervalAggregate::Min | IntervalAggregate::Max => Box::new(ExtremeInterval {
                greatest: self.of == IntervalAggregate::Max,
                ..ExtremeInterval::default()
            }),
            IntervalAggregate::Sum | IntervalAggregate::Mean if args.is_distinct => {
                let problem = "the sum and the mean of different intervals are not supported: select them first";
                return Err(DataFusionError::Plan(problem.to_owned()));
            }
            IntervalAggregate::Sum | IntervalAggregate::Mean => Box::new(IntervalSum {
                mean: self.of == IntervalAggregate::Mean,
                ..IntervalSum::default()
            }),
        })
    }

    /// Returns an accumulator that can forget rows.
    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(match self.of {
            IntervalAggregate::Min | IntervalAggregate::Max => Box::new(ExtremeInterval {
                greatest: self.of == IntervalAggregate::Max,
                slides: true,
                ..ExtremeInterval::default()
            }),
            IntervalAggregate::Sum | IntervalAggregate::Mean => self.accumulator(args)?,
        })
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let field = |part: &str, kind| Arc::new(Field::new(format!("{}[{part}]", args.name), kind, true));
        Ok(match self.of {
            IntervalAggregate::Min | IntervalAggregate::Max => vec![field("interval", INTERVAL)],
            IntervalAggregate::Sum | IntervalAggregate::Mean => {
                let parts = ["months", "days", "micros", "count"];
                parts.map(|part| field(part, DataType::Int64)).to_vec()
            }
        })
    }
}

fn out_of_range(_: OutOfRange) -> DataFusionError {
    DataFusionError::Execution(OUT_OF_RANGE.to_owned())
}

fn beyond() -> DataFusionError {
    out_of_range(OutOfRange)
}

fn given(values: &[ArrayRef]) -> impl Iterator<Item = Interval> {
    let intervals = values.first().map(AsArray::as_primitive::<IntervalMonthDayNanoType>);
    intervals.into_iter().flatten().flatten().map(from_engine)
}

fn scalar(interval: Option<Interval>) -> Result<ScalarValue> {
    let converted = interval
        .map(|interval| to_engine(interval).ok_or_else(beyond))
        .transpose()?;
    Ok(ScalarValue::IntervalMonthDayNano(converted))
}

/// The least or the greatest interval. Of equal ones the last is kept.
#[derive(Debug, Default)]
struct ExtremeInterval {
    greatest: bool,
    /// If true, every length is kept, so that rows can be forgotten.
    slides: bool,
    /// The rows of each length, with one of their intervals.
    lengths: BTreeMap<i64, (u64, Interval)>,
}

impl ExtremeInterval {
    fn found(&self) -> Option<Interval> {
        let end = if self.greatest {
            self.lengths.last_key_value()
        } else {
            self.lengths.first_key_value()
        };
        end.map(|(_, (_, interval))| *interval)
    }
}

impl Accumulator for ExtremeInterval {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for interval in given(values) {
            let length = interval.length().map_err(out_of_range)?;
            let (rows, shown) = self.lengths.entry(length).or_insert((0, interval));
            *rows += 1;
            *shown = interval;
            if !self.slides && self.lengths.len() > 1 {
                let end = if self.greatest {
                    self.lengths.first_entry()
                } else {
                    self.lengths.last_entry()
                };
                end.map(OccupiedEntry::remove);
            }
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for interval in given(values) {
            let length = interval.length().map_err(out_of_range)?;
            if let Some((rows, _)) = self.lengths.get_mut(&length) {
                *rows -= 1;
                if *rows == 0 {
                    self.lengths.remove(&length);
                }
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        self.slides
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        scalar(self.found())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.lengths.len() * size_of::<(i64, (u64, Interval))>() * 2
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}

/// The sum or the mean of intervals.
#[derive(Debug, Default)]
struct IntervalSum {
    mean: bool,
    months: i64,
    days: i64,
    micros: i64,
    count: i64,
}

impl IntervalSum {
    fn add(&mut self, [months, days, micros, count]: [i64; 4]) -> Result<()> {
        let sum = |one: i64, other: i64| one.checked_add(other).ok_or_else(beyond);
        self.months = sum(self.months, months)?;
        self.days = sum(self.days, days)?;
        self.micros = sum(self.micros, micros)?;
        self.count = sum(self.count, count)?;
        Ok(())
    }
}

impl Accumulator for IntervalSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let mut given = given(values);
        given.try_for_each(|of| self.add([of.months.into(), of.days.into(), of.micros, 1]))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let mut given = given(values);
        given.try_for_each(|of| self.add([-i64::from(of.months), -i64::from(of.days), -of.micros, -1]))
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.count == 0 {
            return scalar(None);
        }
        let narrow = |part: i64| i32::try_from(part).ok().ok_or_else(beyond);
        let sum = Interval {
            months: narrow(self.months)?,
            days: narrow(self.days)?,
            micros: self.micros,
        };
        #[expect(clippy::cast_precision_loss, reason = "a count is far below 2^53")]
        let result = if self.mean {
            sum.divided(self.count as f64).map_err(out_of_range)?
        } else {
            sum
        };
        scalar(Some(result))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let parts = [self.months, self.days, self.micros, self.count];
        Ok(parts.map(|part| ScalarValue::Int64(Some(part))).to_vec())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [months, days, micros, count] = states else {
            return Err(DataFusionError::Plan("a sum of intervals has four parts".to_owned()));
        };
        let column = |states: &ArrayRef| states.as_primitive::<Int64Type>().clone();
        let (months, days, micros, count) = (column(months), column(days), column(micros), column(count));
        let rows = months
            .values()
            .iter()
            .zip(days.values())
            .zip(micros.values())
            .zip(count.values());
        for (((months, days), micros), count) in rows {
            self.add([*months, *days, *micros, *count])?;
        }
        Ok(())
    }
}
