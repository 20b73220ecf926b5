//! Bins of `date_bin`.

use datafusion::arrow::array::{Array as _, ArrayRef};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::{DataFusionError, Result};

use super::operands::{instants, intervals, to_times};
use super::{both, each, no_time, out_of_range};

/// Returns the lengths of the bins of `date_bin`.
pub(super) fn lengths_of(strides: &ArrayRef) -> Result<Vec<Option<i64>>> {
    each(intervals(strides)?, |stride| {
        let length = if stride.months == 0 {
            stride.length().map_err(out_of_range)?
        } else {
            0
        };
        if length <= 0 {
            let problem = "date_bin() takes a positive interval without months or years";
            return Err(DataFusionError::Execution(problem.to_owned()));
        }
        Ok(length)
    })
}

pub(super) fn binned(
    strides: &ArrayRef,
    of: &ArrayRef,
    origins: Option<&ArrayRef>,
    result: &DataType,
) -> Result<ArrayRef> {
    let origins = match origins {
        Some(origins) => instants(origins)?,
        None => vec![Some(0); of.len()],
    };
    let pairs = lengths_of(strides)?
        .into_iter()
        .zip(origins)
        .map(|(stride, origin)| stride.zip(origin));
    let found = both(pairs, instants(of)?, |(stride, origin), time| {
        let since = time.checked_sub(origin).ok_or_else(no_time)?;
        time.checked_sub(since.rem_euclid(stride)).ok_or_else(no_time)
    })?;
    Ok(to_times(found, result))
}
