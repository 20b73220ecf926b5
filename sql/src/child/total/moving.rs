//! Sums and averages of doubles over a frame that moves.
//!
//! Invariant: a row that left the frame has no effect on later sums. To subtract it would leave the digits that were rounded
//! away while it was there.

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::Float64Type;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Accumulator;

/// The values of a frame as a queue of two stacks, so that their total takes constant time on average. All calls have
/// the same function, which joins two totals.
#[derive(Debug)]
pub(in crate::child) struct Queue<T> {
    /// Totals of each of the older values and all older ones that came after it; the oldest is last.
    older: Vec<T>,
    newer: Vec<T>,
    /// Total of `newer`.
    total: Option<T>,
}

impl<T: Copy> Queue<T> {
    pub(in crate::child) const fn new() -> Self {
        Self {
            older: Vec::new(),
            newer: Vec::new(),
            total: None,
        }
    }

    /// Adds a value.
    pub(in crate::child) fn push(&mut self, value: T, join: impl Fn(T, T) -> T) {
        self.newer.push(value);
        self.total = Some(self.total.map_or(value, |total| join(total, value)));
    }

    /// Forgets the oldest value.
    pub(in crate::child) fn forget(&mut self, join: impl Fn(T, T) -> T) {
        if self.older.is_empty() {
            let mut total = None;
            while let Some(value) = self.newer.pop() {
                let joined = total.map_or(value, |total| join(total, value));
                total = Some(joined);
                self.older.push(joined);
            }
            self.total = None;
        }
        self.older.pop();
    }

    /// Returns the total of all values, or `None` if there are none.
    pub(in crate::child) fn total(&self, join: impl Fn(T, T) -> T) -> Option<T> {
        match (self.older.last().copied(), self.total) {
            (Some(older), Some(newer)) => Some(join(older, newer)),
            (older, newer) => older.or(newer),
        }
    }

    pub(in crate::child) const fn len(&self) -> usize {
        self.older.len() + self.newer.len()
    }

    /// Returns the size of the values in bytes.
    pub(in crate::child) const fn size(&self) -> usize {
        (self.older.capacity() + self.newer.capacity()) * size_of::<T>()
    }
}

/// A sum or an average.
#[derive(Debug)]
pub(super) struct MovingTotal {
    average: bool,
    frame: Queue<f64>,
}

impl MovingTotal {
    pub(super) const fn new(average: bool) -> Self {
        Self {
            average,
            frame: Queue::new(),
        }
    }
}

fn given(values: &[ArrayRef]) -> impl Iterator<Item = f64> {
    let doubles = values.first().map(AsArray::as_primitive::<Float64Type>);
    doubles.into_iter().flatten().flatten()
}

fn plus(one: f64, other: f64) -> f64 {
    one + other
}

impl Accumulator for MovingTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        given(values).for_each(|value| self.frame.push(value, plus));
        Ok(())
    }

    /// Forgets rows, which leave in the order in which they came.
    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        given(values).for_each(|_| self.frame.forget(plus));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        #[expect(clippy::cast_precision_loss, reason = "a count is far below 2^53")]
        let count = self.frame.len() as f64;
        let total = self.frame.total(plus);
        Ok(ScalarValue::Float64(
            total.map(|sum| if self.average { sum / count } else { sum }),
        ))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.frame.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(not_combined())
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Err(not_combined())
    }
}

/// Returns the error of a plan that splits a frame.
pub(in crate::child) fn not_combined() -> DataFusionError {
    DataFusionError::Plan("a total over a moving frame is not combined with another".to_owned())
}
