//! Aggregates that return one of the values of a group.

use datafusion::arrow::array::{Array, ArrayRef, AsArray as _, UInt32Array, new_empty_array};
use datafusion::arrow::compute::{SortOptions, concat, filter, is_not_null, partition, sort_to_indices, take};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;

use super::Fractions;

/// The values of a group, without nulls.
#[derive(Debug)]
pub(super) struct SortedValues {
    values: Vec<ArrayRef>,
    kind: DataType,
    descending: bool,
    /// None asks for the most frequent value.
    fractions: Option<Fractions>,
}

impl SortedValues {
    pub(super) const fn new(kind: DataType, descending: bool, fractions: Option<Fractions>) -> Self {
        Self {
            values: Vec::new(),
            kind,
            descending,
            fractions,
        }
    }

    fn all(&self) -> Result<ArrayRef> {
        let arrays: Vec<_> = self.values.iter().map(AsRef::as_ref).collect();
        Ok(if arrays.is_empty() {
            new_empty_array(&self.kind)
        } else {
            concat(&arrays)?
        })
    }

    fn add(&mut self, values: &ArrayRef) -> Result<()> {
        if !values.is_empty() && values.null_count() < values.len() {
            self.values.push(filter(values, &is_not_null(values)?)?);
        }
        Ok(())
    }
}

/// Returns the most frequent of sorted values, of several the first.
fn most_frequent(sorted: &ArrayRef) -> Result<ScalarValue> {
    let mut best = 0..0;
    for range in partition(&[std::sync::Arc::clone(sorted)])?.ranges() {
        if range.len() > best.len() {
            best = range;
        }
    }
    ScalarValue::try_from_array(sorted, best.start)
}

impl Accumulator for SortedValues {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for values in states[0].as_list::<i32>().iter().flatten() {
            self.add(&values)?;
        }
        Ok(())
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a position among the values is a small number"
    )]
    fn evaluate(&mut self) -> Result<ScalarValue> {
        let all = self.all()?;
        let list = self.fractions.as_ref().is_some_and(|fractions| fractions.list);
        if all.is_empty() {
            let none = ScalarValue::try_from(&self.kind)?;
            return if list {
                ScalarValue::try_from(&DataType::new_list(self.kind.clone(), true))
            } else {
                Ok(none)
            };
        }
        let options = SortOptions {
            descending: self.descending,
            nulls_first: false,
        };
        let order = sort_to_indices(&all, Some(options), None)?;
        let sorted = take(&all, &order, None)?;
        let Some(fractions) = &self.fractions else {
            return most_frequent(&sorted);
        };
        // The first value that is not below the fraction of all.
        let index = |fraction: f64| ((fraction * all.len() as f64).ceil() as u32).saturating_sub(1);
        let indices: UInt32Array = fractions.values.iter().map(|fraction| fraction.map(index)).collect();
        let found = take(&sorted, &indices, None)?;
        if list {
            Ok(SingleRowListArrayBuilder::new(found).build_list_scalar())
        } else {
            ScalarValue::try_from_array(&found, 0)
        }
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![SingleRowListArrayBuilder::new(self.all()?).build_list_scalar()])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.iter().map(Array::get_array_memory_size).sum::<usize>()
    }
}
