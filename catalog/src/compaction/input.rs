//! Input of a compaction: regroups rows into the batches that are written.
//!
//! Invariants: the end of a batch depends only on the rows and not on the batches in which they came, so the same rows
//! give the same bytes. A batch has at most [`BATCH_TEXT_BYTES`] bytes of text plus one row.

use std::collections::VecDeque;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;

use crate::part::PAGE_ROWS;

/// Maximum number of rows in a batch.
const BATCH_ROWS: usize = 4 * PAGE_ROWS;
/// Number of text bytes after which a batch ends.
const BATCH_TEXT_BYTES: usize = 16 << 20;

/// Rows of the incomplete batch, and complete batches.
#[derive(Debug)]
pub(super) struct InputBatches {
    schema: SchemaRef,
    waiting: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    complete: VecDeque<RecordBatch>,
}

impl InputBatches {
    pub(super) const fn new(schema: SchemaRef) -> Self {
        Self {
            schema,
            waiting: Vec::new(),
            rows: 0,
            bytes: 0,
            complete: VecDeque::new(),
        }
    }

    /// Adds rows and completes batches.
    pub(super) fn push(&mut self, mut batch: RecordBatch) -> Result<(), ArrowError> {
        while batch.num_rows() > 0 {
            let most = batch.num_rows().min(BATCH_ROWS - self.rows);
            let taken = rows_to(&batch, most, BATCH_TEXT_BYTES - self.bytes);
            self.bytes += bytes_of(&batch, taken);
            self.rows += taken;
            // A slice shares the buffers, so nothing is copied until the batch is complete.
            self.waiting.push(batch.slice(0, taken));
            batch = batch.slice(taken, batch.num_rows() - taken);
            if self.rows == BATCH_ROWS || self.bytes >= BATCH_TEXT_BYTES {
                self.end()?;
            }
        }
        Ok(())
    }

    /// Completes a batch from the remaining rows, if there are any.
    pub(super) fn end(&mut self) -> Result<(), ArrowError> {
        if self.rows > 0 {
            self.complete.push_back(concat_batches(&self.schema, &self.waiting)?);
            self.waiting.clear();
            (self.rows, self.bytes) = (0, 0);
        }
        Ok(())
    }

    /// Removes and returns the next complete batch.
    pub(super) fn next(&mut self) -> Option<RecordBatch> {
        self.complete.pop_front()
    }
}

/// Returns the smallest number of rows whose texts have at least `bytes` bytes, or `most` if there is none below it.
fn rows_to(batch: &RecordBatch, most: usize, bytes: usize) -> usize {
    // Binary search: `fewer` rows have too few bytes, `enough` rows are sufficient or the maximum.
    let (mut fewer, mut enough) = (0, most);
    while fewer + 1 < enough {
        let middle = fewer.midpoint(enough);
        if bytes_of(batch, middle) < bytes {
            fewer = middle;
        } else {
            enough = middle;
        }
    }
    enough
}

/// Returns the size in bytes of the texts in the first `rows` rows.
fn bytes_of(batch: &RecordBatch, rows: usize) -> usize {
    let columns = batch.columns().iter().map(|column| {
        let offsets = match column.data_type() {
            DataType::Utf8 => column.as_string::<i32>().value_offsets(),
            DataType::Binary => column.as_binary::<i32>().value_offsets(),
            _ => return 0,
        };
        let all = offsets.first().zip(offsets.get(rows));
        all.map_or(0, |(first, end)| usize::try_from(end - first).unwrap_or(0))
    });
    columns.sum()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    /// Rows with texts of these sizes.
    fn rows(sizes: &[usize]) -> RecordBatch {
        let texts = StringArray::from_iter_values(sizes.iter().map(|size| "x".repeat(*size)));
        let numbers = Int64Array::from_iter_values((0..).take(sizes.len()));
        RecordBatch::try_from_iter([("n", Arc::new(numbers) as ArrayRef), ("text", Arc::new(texts))]).unwrap()
    }

    /// Returns the batches of rows that are pushed `at_once` at a time.
    fn batches(rows: &RecordBatch, at_once: usize) -> Vec<RecordBatch> {
        let mut input = InputBatches::new(rows.schema());
        let mut found = Vec::new();
        for first in (0..rows.num_rows()).step_by(at_once) {
            let some = at_once.min(rows.num_rows() - first);
            input.push(rows.slice(first, some)).unwrap();
            found.extend(std::iter::from_fn(|| input.next()));
        }
        input.end().unwrap();
        found.extend(std::iter::from_fn(|| input.next()));
        found
    }

    #[test]
    fn batches_end_by_rows_or_by_bytes_however_the_rows_come() {
        // 5,000 small rows; then ones of 5 MiB, of which four are enough; then one that is enough alone; then few.
        let mut sizes = vec![10; 5_000];
        sizes.extend([5 << 20; 6]);
        sizes.push(BATCH_TEXT_BYTES + 1);
        sizes.extend([0; 3]);
        let rows = rows(&sizes);
        let expected = [4_096, 904 + 4, 3, 3];
        let once = batches(&rows, rows.num_rows());
        assert_eq!(once.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), expected);
        for at_once in [1, 7, 1_000, 4_097] {
            assert!(batches(&rows, at_once) == once, "{at_once} at once");
        }
        let whole = concat_batches(&rows.schema(), &once).unwrap();
        assert!(whole == rows);
    }

    #[test]
    fn no_rows_are_no_batch() {
        assert!(batches(&rows(&[]), 1).is_empty());
    }
}
