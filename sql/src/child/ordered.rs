//! Aggregates over ordered values: percentiles and the most frequent value.
//!
//! Invariant: a percentile between two values is interpolated with all digits of a double.

mod quantile;
mod sorted;

use std::sync::Arc;

use datafusion::arrow::array::{AsArray as _, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Schema};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, GroupsAccumulator, Signature, Volatility,
};

use self::quantile::{GroupQuantiles, QuantileParameters, Quantiles};
use self::sorted::SortedValues;

/// Returns `percentile_cont(fraction) WITHIN GROUP (ORDER BY value)`, which interpolates.
pub(super) fn percentile_cont() -> AggregateUDF {
    AggregateUDF::new_from_impl(OrderedAggregate::new(OrderedKind::Between, &["quantile_cont"]))
}

/// Returns `percentile_disc(fraction) WITHIN GROUP (ORDER BY value)`, which is one of the values.
pub(super) fn percentile_disc() -> AggregateUDF {
    AggregateUDF::new_from_impl(OrderedAggregate::new(OrderedKind::One, &[]))
}

/// Returns `mode() WITHIN GROUP (ORDER BY value)`.
pub(super) fn mode() -> AggregateUDF {
    AggregateUDF::new_from_impl(OrderedAggregate::new(OrderedKind::Most, &[]))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum OrderedKind {
    Between,
    One,
    Most,
}

/// The fractions that a call asks for.
#[derive(Clone, Debug)]
struct Fractions {
    /// None is null.
    values: Vec<Option<f64>>,
    /// They are an array, and so is the result.
    list: bool,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OrderedAggregate {
    kind: OrderedKind,
    aliases: Vec<String>,
    signature: Signature,
}

impl OrderedAggregate {
    fn new(kind: OrderedKind, aliases: &[&str]) -> Self {
        Self {
            kind,
            aliases: aliases.iter().map(|&alias| alias.to_owned()).collect(),
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }

    fn quantile(&self, args: &AccumulatorArgs<'_>) -> Result<QuantileParameters> {
        Ok(QuantileParameters {
            fractions: self.fractions(args)?,
            descending: is_descending(args),
            distinct: args.is_distinct,
            result: args.return_type().clone(),
        })
    }

    fn fractions(&self, args: &AccumulatorArgs<'_>) -> Result<Fractions> {
        let problem = || {
            DataFusionError::Plan(format!(
                "{}() takes a number from 0 to 1, or an array of them",
                self.name()
            ))
        };
        let fraction = args.exprs.get(1).ok_or_else(problem)?;
        let nothing = RecordBatch::new_empty(Arc::new(Schema::empty()));
        let Ok(ColumnarValue::Scalar(fraction)) = fraction.evaluate(&nothing) else {
            return Err(problem());
        };
        let list = matches!(fraction.data_type(), DataType::List(_));
        let fraction = fraction.to_array()?;
        let values = if list {
            fraction.as_list::<i32>().value(0)
        } else {
            fraction
        };
        let values = cast(&values, &DataType::Float64)?;
        let values: Vec<Option<f64>> = values.as_primitive::<Float64Type>().iter().collect();
        match values.iter().flatten().find(|value| !(0.0..=1.0).contains(*value)) {
            Some(value) => Err(DataFusionError::Plan(format!(
                "percentile value {value} is not between 0 and 1"
            ))),
            None => Ok(Fractions { values, list }),
        }
    }
}

fn is_descending(args: &AccumulatorArgs<'_>) -> bool {
    args.order_bys.first().is_some_and(|order| order.options.descending)
}

impl AggregateUDFImpl for OrderedAggregate {
    fn name(&self) -> &'static str {
        match self.kind {
            OrderedKind::Between => "percentile_cont",
            OrderedKind::One => "percentile_disc",
            OrderedKind::Most => "mode",
        }
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let (value, rest) = match (self.kind, arguments) {
            (OrderedKind::Most, [value]) => (value, None),
            (OrderedKind::Between | OrderedKind::One, [value, fraction]) => (value, Some(fraction)),
            _ => {
                let form = if self.kind == OrderedKind::Most {
                    "mode()"
                } else {
                    "percentile_…(fraction)"
                };
                let problem = format!("write {form} WITHIN GROUP (ORDER BY value)");
                return Err(DataFusionError::Plan(problem));
            }
        };
        let value = match (self.kind, value) {
            (OrderedKind::Between, kind) if kind.is_numeric() || kind.is_null() => DataType::Float64,
            (OrderedKind::Between, DataType::Duration(_)) | (OrderedKind::One | OrderedKind::Most, _) => value.clone(),
            (OrderedKind::Between, other) => {
                let problem = format!("percentile_cont() takes numbers and differences of times, not {other}");
                return Err(DataFusionError::Plan(problem));
            }
        };
        let fraction = rest.map(|kind| match kind {
            DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
                DataType::new_list(DataType::Float64, true)
            }
            _ => DataType::Float64,
        });
        Ok(std::iter::once(value).chain(fraction).collect())
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let value = match (self.kind, arguments.first()) {
            (OrderedKind::Between, Some(DataType::Duration(unit))) => DataType::Duration(*unit),
            (OrderedKind::Between, _) => DataType::Float64,
            (_, Some(value)) => value.clone(),
            (_, None) => DataType::Null,
        };
        Ok(match arguments.get(1) {
            Some(DataType::List(_)) => DataType::new_list(value, true),
            _ => value,
        })
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let kind = match (self.kind, args.input_fields.first()) {
            (OrderedKind::One | OrderedKind::Most, Some(field)) => field.data_type().clone(),
            _ => DataType::Float64,
        };
        let name = format!("{}[values]", args.name);
        Ok(vec![
            Field::new_list(name, Field::new_list_field(kind, true), true).into(),
        ])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let kind = args
            .expr_fields
            .first()
            .map_or(DataType::Null, |field| field.data_type().clone());
        Ok(match self.kind {
            OrderedKind::Between => Box::new(Quantiles::new(self.quantile(&args)?)),
            OrderedKind::One => Box::new(SortedValues::new(
                kind,
                is_descending(&args),
                Some(self.fractions(&args)?),
            )),
            OrderedKind::Most => Box::new(SortedValues::new(kind, is_descending(&args), None)),
        })
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        self.kind == OrderedKind::Between
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(GroupQuantiles::new(self.quantile(&args)?)))
    }
}
