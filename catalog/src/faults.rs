//! Injected bug of compactions, which the crash tests must detect.

use arrow::array::RecordBatch;

/// Loses a row of a compacted part, and repeats another.
pub(crate) fn lose_row(batch: RecordBatch) -> RecordBatch {
    if batch.num_rows() < 2 {
        return batch;
    }
    let (second, rest) = (batch.slice(1, 1), batch.slice(1, batch.num_rows() - 1));
    arrow::compute::concat_batches(batch.schema_ref(), [&second, &rest]).unwrap_or(batch)
}
