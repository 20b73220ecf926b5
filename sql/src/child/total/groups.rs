//! Totals of many groups at once.

use std::fmt::Debug;
use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, BooleanArray, Decimal256Array, Int64Array};
use datafusion::arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType, Int64Type, i256};
use datafusion::error::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};

use super::{Finish, beyond, scale, state_of, widened};

/// An integer in which values are added.
pub(super) trait SumInteger: Copy + Default + Debug + Send + Sync + 'static {
    fn plus(self, other: Self) -> Option<Self>;
    fn wide(self) -> i256;
    fn of_wide(wide: i256) -> Option<Self>;
    /// Calls `add` with each value of a column that counts, and its group.
    fn each(
        values: &ArrayRef,
        groups: &[usize],
        filter: Option<&BooleanArray>,
        add: impl FnMut(usize, Self) -> Result<()>,
    ) -> Result<()>;
}

impl SumInteger for i128 {
    fn plus(self, other: Self) -> Option<Self> {
        self.checked_add(other)
    }

    fn wide(self) -> i256 {
        i256::from_i128(self)
    }

    fn of_wide(wide: i256) -> Option<Self> {
        wide.to_i128()
    }

    fn each(
        values: &ArrayRef,
        groups: &[usize],
        filter: Option<&BooleanArray>,
        mut add: impl FnMut(usize, Self) -> Result<()>,
    ) -> Result<()> {
        let values = values.as_primitive::<Int64Type>();
        if values.null_count() == 0 && filter.is_none() {
            return groups
                .iter()
                .zip(values.values())
                .try_for_each(|(group, value)| add(*group, Self::from(*value)));
        }
        counted(groups, filter, |row| values.is_valid(row))
            .try_for_each(|(row, group)| add(group, Self::from(values.value(row))))
    }
}

impl SumInteger for i256 {
    fn plus(self, other: Self) -> Option<Self> {
        self.checked_add(other)
    }

    fn wide(self) -> i256 {
        self
    }

    fn of_wide(wide: i256) -> Option<Self> {
        Some(wide)
    }

    fn each(
        values: &ArrayRef,
        groups: &[usize],
        filter: Option<&BooleanArray>,
        mut add: impl FnMut(usize, Self) -> Result<()>,
    ) -> Result<()> {
        let values = widened(values)?;
        counted(groups, filter, |row| values.is_valid(row)).try_for_each(|(row, group)| add(group, values.value(row)))
    }
}

/// Returns the rows that are valid and pass the filter, with their groups.
fn counted(
    groups: &[usize],
    filter: Option<&BooleanArray>,
    valid: impl Fn(usize) -> bool,
) -> impl Iterator<Item = (usize, usize)> {
    let passes = move |row| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
    let rows = groups.iter().copied().enumerate();
    rows.filter(move |(row, _)| valid(*row) && passes(*row))
}

/// Sums and counts of groups.
#[derive(Debug)]
pub(super) struct GroupTotals<S> {
    sums: Vec<S>,
    counts: Vec<i64>,
    finish: Finish,
}

impl<S: SumInteger> GroupTotals<S> {
    pub(super) const fn new(finish: Finish) -> Self {
        Self {
            sums: Vec::new(),
            counts: Vec::new(),
            finish,
        }
    }

    fn grow(&mut self, total: usize) {
        self.sums.resize(total, S::default());
        self.counts.resize(total, 0);
    }

    fn state_arrays(&self, sums: impl IntoIterator<Item = S>, counts: Vec<i64>) -> Vec<ArrayRef> {
        let sums: Decimal256Array = sums.into_iter().map(|sum| Some(sum.wide())).collect();
        let kind = DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale(self.finish.scale));
        vec![Arc::new(sums.with_data_type(kind)), Arc::new(Int64Array::from(counts))]
    }
}

impl<S: SumInteger> GroupsAccumulator for GroupTotals<S> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.grow(total);
        let (sums, counts) = (&mut self.sums, &mut self.counts);
        S::each(&values[0], groups, filter, |group, value| {
            sums[group] = sums[group].plus(value).ok_or_else(beyond)?;
            counts[group] += 1;
            Ok(())
        })
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.grow(total);
        let (sums, counts) = state_of(states)?;
        for (row, group) in groups.iter().enumerate() {
            if sums.is_valid(row) && counts.is_valid(row) {
                let sum = S::of_wide(sums.value(row)).and_then(|sum| self.sums[*group].plus(sum));
                self.sums[*group] = sum.ok_or_else(beyond)?;
                self.counts[*group] += counts.value(row);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let (sums, counts) = (emit.take_needed(&mut self.sums), emit.take_needed(&mut self.counts));
        let results = sums
            .into_iter()
            .zip(counts)
            .map(|(sum, count)| self.finish.of(sum.wide(), count));
        let values = results.collect::<std::result::Result<Decimal256Array, _>>()?;
        self.finish.array(values)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let (sums, counts) = (emit.take_needed(&mut self.sums), emit.take_needed(&mut self.counts));
        Ok(self.state_arrays(sums, counts))
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows: Vec<usize> = (0..values[0].len()).collect();
        let (mut sums, mut counts) = (vec![S::default(); rows.len()], vec![0; rows.len()]);
        S::each(&values[0], &rows, filter, |row, value| {
            sums[row] = value;
            counts[row] = 1;
            Ok(())
        })?;
        Ok(self.state_arrays(sums, counts))
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<S>() + self.counts.capacity() * size_of::<i64>()
    }
}
