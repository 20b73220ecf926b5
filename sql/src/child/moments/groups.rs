//! Results of many groups at once.

use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, BooleanArray, Float64Array, Int64Array};
use datafusion::error::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};

use super::{Moments, MomentsFunction, STATE_FIELDS, pairs, states};

/// A function of the pairs of each group.
#[derive(Debug)]
pub(super) struct GroupMoments {
    function: MomentsFunction,
    groups: Vec<Moments>,
}

impl GroupMoments {
    pub(super) const fn new(function: MomentsFunction) -> Self {
        Self {
            function,
            groups: Vec::new(),
        }
    }
}

/// Returns the columns that [`STATE_FIELDS`] names.
fn columns(groups: &[Moments]) -> Vec<ArrayRef> {
    let column = |index: usize| -> ArrayRef {
        let values = groups.iter().map(|moments| moments.state()[index]);
        Arc::new(Float64Array::from_iter_values(values))
    };
    (0..STATE_FIELDS.len()).map(column).collect()
}

fn passes(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl GroupsAccumulator for GroupMoments {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.groups.resize(total, Moments::default());
        for (row, (pair, group)) in pairs(values)?.zip(groups).enumerate() {
            if let Some((y, x)) = pair
                && passes(filter, row)
            {
                self.groups[*group] = self.groups[*group].with(Moments::of(y, x));
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, columns: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.groups.resize(total, Moments::default());
        for (moments, group) in states(columns)?.zip(groups) {
            self.groups[*group] = self.groups[*group].with(moments);
        }
        Ok(())
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let groups = emit.take_needed(&mut self.groups);
        if self.function == MomentsFunction::Count {
            #[expect(clippy::cast_possible_truncation, reason = "they are numbers of rows")]
            let counts = groups.iter().map(|moments| moments.count as i64);
            return Ok(Arc::new(Int64Array::from_iter_values(counts)));
        }
        let results = groups.into_iter().map(|moments| {
            let result = moments.result(self.function)?;
            // A double has one zero.
            Ok(result.map(|result| result + 0.0))
        });
        Ok(Arc::new(results.collect::<Result<Float64Array>>()?))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(columns(&emit.take_needed(&mut self.groups)))
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows = pairs(values)?.enumerate().map(|(row, pair)| match pair {
            Some((y, x)) if passes(filter, row) => Moments::of(y, x),
            _ => Moments::default(),
        });
        Ok(columns(&rows.collect::<Vec<_>>()))
    }

    fn size(&self) -> usize {
        self.groups.capacity() * size_of::<Moments>()
    }
}
