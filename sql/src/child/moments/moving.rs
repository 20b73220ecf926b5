//! Results over a frame that moves.

use datafusion::arrow::array::ArrayRef;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;

use super::{Moments, MomentsFunction, pairs};
use crate::child::total::moving::{Queue, not_combined};

/// A function of the pairs of a frame.
#[derive(Debug)]
pub(super) struct MovingMoments {
    function: MomentsFunction,
    frame: Queue<Moments>,
}

impl MovingMoments {
    pub(super) const fn new(function: MomentsFunction) -> Self {
        Self {
            function,
            frame: Queue::new(),
        }
    }
}

impl Accumulator for MovingMoments {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for (y, x) in pairs(values)?.flatten() {
            self.frame.push(Moments::of(y, x), Moments::with);
        }
        Ok(())
    }

    /// Forgets rows, which leave in the order in which they came.
    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for _ in pairs(values)?.flatten() {
            self.frame.forget(Moments::with);
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let total = self.frame.total(Moments::with).unwrap_or_default();
        total.scalar(self.function)
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
