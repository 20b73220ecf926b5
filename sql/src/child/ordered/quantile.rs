//! Interpolated percentiles.

use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, BooleanArray, Float64Array, ListArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::Fractions;

/// Parameters of a percentile.
#[derive(Clone, Debug)]
pub(super) struct QuantileParameters {
    pub(super) fractions: Fractions,
    pub(super) descending: bool,
    pub(super) distinct: bool,
    pub(super) result: DataType,
}

impl QuantileParameters {
    /// Returns the percentiles, or nothing of a group without values.
    fn of(&self, values: &mut Vec<f64>) -> Vec<Option<f64>> {
        if self.distinct {
            values.sort_unstable_by(f64::total_cmp);
            values.dedup();
        }
        let fractions = self.fractions.values.iter();
        fractions
            .map(|fraction| fraction.and_then(|fraction| self.one(values, fraction)))
            .collect()
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a position among the values is a small number"
    )]
    fn one(&self, values: &mut [f64], fraction: f64) -> Option<f64> {
        let last = values.len().checked_sub(1)?;
        let position = fraction * last as f64;
        let (below, above) = (position.floor(), position.ceil());
        let mut nth = |position: f64| {
            let ascending = (position as usize).min(last);
            let index = if self.descending { last - ascending } else { ascending };
            *values.select_nth_unstable_by(index, f64::total_cmp).1
        };
        let low = nth(below);
        if below.total_cmp(&above).is_eq() {
            return Some(low);
        }
        let high = nth(above);
        Some((high - low).mul_add(position - below, low))
    }

    /// Returns the results of several groups.
    fn array(&self, groups: impl Iterator<Item = Vec<f64>>) -> Result<ArrayRef> {
        let (mut found, mut lengths, mut empty) = (Vec::new(), Vec::new(), Vec::new());
        for mut values in groups {
            empty.push(!values.is_empty());
            let results = self.of(&mut values);
            lengths.push(results.len());
            found.extend(results);
        }
        let item = match &self.result {
            DataType::List(item) => item.data_type(),
            other => other,
        };
        let found: ArrayRef = Arc::new(Float64Array::from(found));
        let found = match item {
            DataType::Float64 => found,
            // A difference of times is a whole number of its unit.
            item => {
                let rounded = found
                    .as_primitive::<Float64Type>()
                    .unary::<_, Float64Type>(f64::round_ties_even);
                cast(&cast(&rounded, &DataType::Int64)?, item)?
            }
        };
        if !self.fractions.list {
            return Ok(found);
        }
        let field = Arc::new(Field::new_list_field(item.clone(), true));
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(Arc::new(ListArray::try_new(field, offsets, found, Some(empty.into()))?))
    }
}

/// Returns the values of a column that are not null.
fn doubles(values: &ArrayRef) -> Result<Float64Array> {
    let values = match values.data_type() {
        DataType::Float64 => Arc::clone(values),
        DataType::Duration(_) => cast(&cast(values, &DataType::Int64)?, &DataType::Float64)?,
        _ => cast(values, &DataType::Float64)?,
    };
    Ok(values.as_primitive::<Float64Type>().clone())
}

fn lists(groups: impl Iterator<Item = Vec<f64>>) -> Result<ArrayRef> {
    let (mut all, mut lengths) = (Vec::new(), Vec::new());
    for values in groups {
        lengths.push(values.len());
        all.extend(values);
    }
    let field = Arc::new(Field::new_list_field(DataType::Float64, true));
    let values = Arc::new(Float64Array::from(all));
    Ok(Arc::new(ListArray::try_new(
        field,
        OffsetBuffer::from_lengths(lengths),
        values,
        None,
    )?))
}

/// The values of one group.
#[derive(Debug)]
pub(super) struct Quantiles {
    values: Vec<f64>,
    asked: QuantileParameters,
}

impl Quantiles {
    pub(super) const fn new(asked: QuantileParameters) -> Self {
        Self {
            values: Vec::new(),
            asked,
        }
    }
}

impl Accumulator for Quantiles {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.extend(doubles(&values[0])?.iter().flatten());
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        // A window asks again after more rows, so the values are kept.
        let result = self.asked.array(std::iter::once(self.values.clone()))?;
        ScalarValue::try_from_array(&result, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = lists(std::iter::once(std::mem::take(&mut self.values)))?;
        Ok(vec![ScalarValue::try_from_array(&values, 0)?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for values in states[0].as_list::<i32>().iter().flatten() {
            self.values
                .extend(values.as_primitive::<Float64Type>().iter().flatten());
        }
        Ok(())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<f64>()
    }
}

/// The values of many groups.
#[derive(Debug)]
pub(super) struct GroupQuantiles {
    groups: Vec<Vec<f64>>,
    asked: QuantileParameters,
}

impl GroupQuantiles {
    pub(super) const fn new(asked: QuantileParameters) -> Self {
        Self {
            groups: Vec::new(),
            asked,
        }
    }
}

impl GroupsAccumulator for GroupQuantiles {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.groups.resize_with(total, Vec::new);
        let values = doubles(&values[0])?;
        for (row, (value, group)) in values.iter().zip(groups).enumerate() {
            let passes = filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
            if let (Some(value), true) = (value, passes) {
                self.groups[*group].push(value);
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.groups.resize_with(total, Vec::new);
        for (values, group) in states[0].as_list::<i32>().iter().zip(groups) {
            if let Some(values) = values {
                self.groups[*group].extend(values.as_primitive::<Float64Type>().iter().flatten());
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        self.asked.array(emit.take_needed(&mut self.groups).into_iter())
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![lists(emit.take_needed(&mut self.groups).into_iter())?])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = doubles(&values[0])?;
        let rows = values.iter().enumerate().map(|(row, value)| {
            let passes = filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
            value.filter(|_| passes).into_iter().collect()
        });
        Ok(vec![lists(rows)?])
    }

    fn size(&self) -> usize {
        let values: usize = self.groups.iter().map(Vec::capacity).sum();
        values * size_of::<f64>() + self.groups.capacity() * size_of::<Vec<f64>>()
    }
}
