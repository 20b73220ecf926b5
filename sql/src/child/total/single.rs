//! Totals of one group, or of a frame of a window.

use std::collections::HashSet;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, Decimal256Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType, Decimal256Type, Int64Type, i256};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;

use super::{Finish, beyond, scale, state_of, widened};

fn evaluated(finish: &Finish, sum: i256, count: i64) -> Result<ScalarValue> {
    let value = finish.of(sum, count)?;
    // The usual type needs no array, which counts where each row has a frame of its own.
    if let DataType::Decimal256(precision, scale) = finish.kind {
        return Ok(ScalarValue::Decimal256(value, precision, scale));
    }
    let value: Decimal256Array = [value].into_iter().collect();
    ScalarValue::try_from_array(&finish.array(value)?, 0)
}

fn wide_of(finish: &Finish) -> DataType {
    DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale(finish.scale))
}

/// The sum and the count of values.
#[derive(Debug)]
pub(super) struct SingleTotal {
    sum: i256,
    count: i64,
    finish: Finish,
}

impl SingleTotal {
    pub(super) const fn new(finish: Finish) -> Self {
        Self {
            sum: i256::ZERO,
            count: 0,
            finish,
        }
    }

    /// Adds the sum of a column, which is negated if the column leaves the frame.
    fn add(&mut self, values: &ArrayRef, sign: i64) -> Result<()> {
        let counted = i64::try_from(values.len() - values.null_count()).unwrap_or_default();
        let sum = if *values.data_type() == DataType::Int64 {
            let values = values.as_primitive::<Int64Type>();
            let sum: i128 = if values.null_count() == 0 {
                values.values().iter().map(|value| i128::from(*value)).sum()
            } else {
                values.iter().flatten().map(i128::from).sum()
            };
            i256::from_i128(sum)
        } else {
            let values = widened(values)?;
            let mut present = values.iter().flatten();
            present.try_fold(i256::ZERO, i256::checked_add).ok_or_else(beyond)?
        };
        let moved = if sign < 0 {
            self.sum.checked_sub(sum)
        } else {
            self.sum.checked_add(sum)
        };
        self.sum = moved.ok_or_else(beyond)?;
        self.count += sign * counted;
        Ok(())
    }
}

impl Accumulator for SingleTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0], 1)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0], -1)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        evaluated(&self.finish, self.sum, self.count)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let sum = ScalarValue::Decimal256(Some(self.sum), DECIMAL256_MAX_PRECISION, scale(self.finish.scale));
        Ok(vec![sum, ScalarValue::Int64(Some(self.count))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (sums, counts) = state_of(states)?;
        let sum = sums.iter().flatten().try_fold(self.sum, i256::checked_add);
        self.sum = sum.ok_or_else(beyond)?;
        self.count += counts.iter().flatten().sum::<i64>();
        Ok(())
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The different values of a group.
#[derive(Debug)]
pub(super) struct DistinctTotal {
    values: HashSet<i256>,
    finish: Finish,
}

impl DistinctTotal {
    pub(super) fn new(finish: Finish) -> Self {
        Self {
            values: HashSet::new(),
            finish,
        }
    }
}

impl Accumulator for DistinctTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.extend(widened(&values[0])?.iter().flatten());
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.values.iter().copied().try_fold(i256::ZERO, i256::checked_add);
        let count = i64::try_from(self.values.len()).unwrap_or(i64::MAX);
        evaluated(&self.finish, sum.ok_or_else(beyond)?, count)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let kind = wide_of(&self.finish);
        let values = self
            .values
            .iter()
            .map(|value| ScalarValue::Decimal256(Some(*value), DECIMAL256_MAX_PRECISION, scale(self.finish.scale)));
        let values: Vec<ScalarValue> = values.collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list(&values, &kind, true))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let kind = wide_of(&self.finish);
        for values in states[0].as_list::<i32>().iter().flatten() {
            let values = cast(&values, &kind)?;
            self.values
                .extend(values.as_primitive::<Decimal256Type>().iter().flatten());
        }
        Ok(())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<i256>()
    }
}
