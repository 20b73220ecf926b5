//! `sum` of integers that fails if the result leaves 64 bits.
//!
//! Invariant: intermediate sums have 128 bits, which no number of rows overflows.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray as _, BooleanArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Field, FieldRef, Int64Type, UInt64Type,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature};

/// Type of intermediate sums of integers.
const WIDE_DECIMAL: DataType = DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0);

/// The engine's `sum`, with checked sums of integers.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct CheckedSum {
    sum: Sum,
}

/// Returns the field of the intermediate sum for a result of this type.
fn kept(result: &FieldRef) -> FieldRef {
    if is_whole(result.data_type()) {
        Arc::new(Field::new(result.name(), WIDE_DECIMAL, true))
    } else {
        Arc::clone(result)
    }
}

const fn is_whole(kind: &DataType) -> bool {
    matches!(kind, DataType::Int64 | DataType::UInt64)
}

// The engine's accumulator adds in the type of the return field, so that is replaced.
fn widened<'a>(args: &AccumulatorArgs<'a>) -> AccumulatorArgs<'a> {
    AccumulatorArgs {
        return_field: kept(&args.return_field),
        ..args.clone()
    }
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &'static str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        self.sum.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.sum.return_type(arguments)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let result = args.return_type().clone();
        let sum = self.sum.accumulator(widened(&args))?;
        Ok(if is_whole(&result) {
            Box::new(Narrowed { sum, result })
        } else {
            sum
        })
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let return_field = kept(&args.return_field);
        self.sum.state_fields(StateFieldsArgs { return_field, ..args })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.sum.groups_accumulator_supported(widened(&args))
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        let result = args.return_type().clone();
        let sums = self.sum.create_groups_accumulator(widened(&args))?;
        Ok(if is_whole(&result) {
            Box::new(NarrowedGroups { sums, result })
        } else {
            sums
        })
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            let problem = "sum(DISTINCT …) over a moving frame is not supported".to_owned();
            return Err(DataFusionError::Plan(problem));
        }
        let result = args.return_type().clone();
        let sum = self.sum.create_sliding_accumulator(widened(&args))?;
        Ok(if is_whole(&result) {
            Box::new(Narrowed { sum, result })
        } else {
            sum
        })
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// Casts the arguments of a call to the type of intermediate sums.
fn wide(values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    let wide = values.iter().map(|values| cast(values, &WIDE_DECIMAL));
    Ok(wide.collect::<std::result::Result<_, _>>()?)
}

/// Casts sums to the type of the result.
fn narrow(sums: &ArrayRef, result: &DataType) -> Result<ArrayRef> {
    let sums = sums.as_primitive::<Decimal128Type>();
    let outside = |sum: i128| ArrowError::ArithmeticOverflow(format!("the sum {sum} is beyond 64 bits"));
    Ok(match result {
        DataType::UInt64 => {
            Arc::new(sums.try_unary::<_, UInt64Type, _>(|sum| u64::try_from(sum).ok().ok_or_else(|| outside(sum)))?)
        }
        _ => Arc::new(sums.try_unary::<_, Int64Type, _>(|sum| i64::try_from(sum).ok().ok_or_else(|| outside(sum)))?),
    })
}

/// Accumulator that adds in [`WIDE_DECIMAL`] and fails if the result is outside of its type.
#[derive(Debug)]
struct Narrowed {
    sum: Box<dyn Accumulator>,
    result: DataType,
}

impl Accumulator for Narrowed {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sum.update_batch(&wide(values)?)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.sum.evaluate()?.to_array()?;
        ScalarValue::try_from_array(&narrow(&sum, &self.result)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.sum.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.sum.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.sum.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sum.retract_batch(&wide(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.sum.supports_retract_batch()
    }
}

/// [`Narrowed`] for many groups at once.
struct NarrowedGroups {
    sums: Box<dyn GroupsAccumulator>,
    result: DataType,
}

impl GroupsAccumulator for NarrowedGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.sums.update_batch(&wide(values)?, groups, filter, total)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        narrow(&self.sums.evaluate(emit)?, &self.result)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        self.sums.state(emit)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.sums.merge_batch(states, groups, total)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.sums.convert_to_state(&wide(values)?, filter)
    }

    fn size(&self) -> usize {
        self.sums.size()
    }
}
