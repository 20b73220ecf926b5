//! Sums and averages of doubles over a frame that moves.
//!
//! Invariant: a row that left the frame has no effect on later sums. To subtract it would leave the digits that were rounded
//! away while it was there.

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::Float64Type;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Accumulator;

/// The values of a frame as a queue of two stacks, so that a sum takes constant time on average.
#[derive(Debug)]
pub(super) struct MovingTotal {
    average: bool,
    /// Sums of each of the older values and all older ones that came after it; the oldest is last.
    older: Vec<f64>,
    newer: Vec<f64>,
    /// Sum of `newer`.
    sum: f64,
}

impl MovingTotal {
    pub(super) const fn new(average: bool) -> Self {
        Self {
            average,
            older: Vec::new(),
            newer: Vec::new(),
            sum: 0.0,
        }
    }

    /// Forgets the oldest value.
    fn forget(&mut self) {
        if self.older.is_empty() {
            let mut sum = 0.0;
            while let Some(value) = self.newer.pop() {
                sum += value;
                self.older.push(sum);
            }
            self.sum = 0.0;
        }
        self.older.pop();
    }
}

fn given(values: &[ArrayRef]) -> impl Iterator<Item = f64> {
    let doubles = values.first().map(AsArray::as_primitive::<Float64Type>);
    doubles.into_iter().flatten().flatten()
}

impl Accumulator for MovingTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in given(values) {
            self.newer.push(value);
            self.sum += value;
        }
        Ok(())
    }

    /// Forgets rows, which leave in the order in which they came.
    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        given(values).for_each(|_| self.forget());
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let count = self.older.len() + self.newer.len();
        if count == 0 {
            return Ok(ScalarValue::Float64(None));
        }
        let sum = self.older.last().copied().unwrap_or(0.0) + self.sum;
        #[expect(clippy::cast_precision_loss, reason = "a count is far below 2^53")]
        let count = count as f64;
        Ok(ScalarValue::Float64(Some(if self.average { sum / count } else { sum })))
    }

    fn size(&self) -> usize {
        size_of_val(self) + (self.older.capacity() + self.newer.capacity()) * size_of::<f64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(not_combined())
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Err(not_combined())
    }
}

fn not_combined() -> DataFusionError {
    DataFusionError::Plan("a sum over a moving frame is not combined with another".to_owned())
}
