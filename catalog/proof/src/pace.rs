//! Batch sizes for reading Parquet files.
//!
//! Invariant: the memory of a decoded batch is bounded in bytes. A text that repeats is stored once in a file with a
//! dictionary, but once per row in a batch.

use std::ops::Range;

use parquet::basic::Type;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::page_index::offset_index::PageLocation;

/// The most rows of a batch.
const MAX_BATCH_ROWS: usize = 4_096;
/// The most bytes of text in a batch, roughly.
const MAX_BATCH_BYTES: u64 = 16 << 20;
/// The longest text of a dictionary, in bytes.
const MAX_DICTIONARY_TEXT_BYTES: u64 = 256 << 10;

/// Consecutive rows of one column, and their size in bytes when decoded.
#[derive(Clone, Copy, Debug)]
struct DecodedPage {
    rows: u64,
    bytes: u64,
}

impl DecodedPage {
    /// Estimates the bytes of some rows of the page. For a page that exceeds a batch, returns the upper bound.
    fn bytes_of(self, rows: u64) -> u64 {
        let Some(even) = self.bytes.saturating_mul(rows).checked_div(self.rows) else {
            return self.bytes;
        };
        if self.bytes <= MAX_BATCH_BYTES {
            return even;
        }
        // Only pages with dictionary texts are so large, and the long texts may all be
        // adjacent.
        even.max(self.bytes.min(rows.saturating_mul(MAX_DICTIONARY_TEXT_BYTES)))
    }
}

/// Returns the number of rows to decode at a time, for the leaf columns that are read: 4,096, or fewer if a batch could
/// exceed 16 MiB of text. Without an offset index in the footer, the rows of a row group count as equally large.
pub fn rows_at_once(footer: &ParquetMetaData, is_read: impl Fn(usize) -> bool, rows: &Range<u64>) -> usize {
    let count = usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(usize::MAX);
    // A batch has at least one row, however large its texts are.
    let most = count.clamp(1, MAX_BATCH_ROWS);
    let columns = footer.file_metadata().schema_descr().columns().iter().enumerate();
    let read: Vec<usize> = columns
        .filter(|(column, described)| described.physical_type() == Type::BYTE_ARRAY && is_read(*column))
        .map(|(column, _)| column)
        .collect();
    let groups = groups(footer, rows);
    let of_group =
        |group: &RowGroup| -> u64 { read.iter().map(|column| bytes_of(footer, group.number, *column)).sum() };
    let all: u64 = groups.iter().map(of_group).sum();
    // All rows together are small, so the pages need no closer look.
    if all <= MAX_BATCH_BYTES {
        return most;
    }
    let columns: Vec<Vec<DecodedPage>> = read
        .iter()
        .map(|column| pages(footer, &groups, *column, rows))
        .collect();
    let fits = |at_once: &usize| {
        let columns = columns.iter().map(|pages| heaviest(pages, *at_once as u64));
        columns.fold(0, u64::saturating_add) <= MAX_BATCH_BYTES
    };
    // Halving finds a fitting size in a few steps; the best size does not matter.
    let halves = std::iter::successors(Some(most), |at_once| Some(at_once / 2));
    halves.take_while(|at_once| *at_once > 1).find(fits).unwrap_or(1)
}

/// A row group and its range of rows in the file.
struct RowGroup {
    number: usize,
    rows: Range<u64>,
}

/// Returns the row groups that overlap `rows`.
fn groups(footer: &ParquetMetaData, rows: &Range<u64>) -> Vec<RowGroup> {
    let mut before = 0;
    let groups = footer.row_groups().iter().enumerate().map(|(number, group)| {
        let first = before;
        before += group.num_rows().unsigned_abs();
        RowGroup {
            number,
            rows: first..before,
        }
    });
    groups
        .filter(|group| group.rows.start < rows.end && rows.start < group.rows.end)
        .collect()
}

/// Returns the decoded size in bytes of a column of a row group.
fn bytes_of(footer: &ParquetMetaData, group: usize, column: usize) -> u64 {
    let column = footer.row_group(group).column(column);
    // Older files lack this statistic; the uncompressed size is used instead.
    let bytes = column.unencoded_byte_array_data_bytes();
    bytes.unwrap_or_else(|| column.uncompressed_size()).unsigned_abs()
}

/// Returns the pages of a column that overlap `rows`. A row group without a page index counts as one page.
fn pages(footer: &ParquetMetaData, groups: &[RowGroup], column: usize, rows: &Range<u64>) -> Vec<DecodedPage> {
    let mut pages = Vec::new();
    let mut add = |of: Range<u64>, bytes: u64| {
        let page = DecodedPage {
            rows: of.end.saturating_sub(of.start),
            bytes,
        };
        let wanted = of.end.min(rows.end).saturating_sub(of.start.max(rows.start));
        if wanted > 0 {
            pages.push(DecodedPage {
                rows: wanted,
                bytes: page.bytes_of(wanted),
            });
        }
    };
    for group in groups {
        let Range { start, end } = group.rows;
        let index = footer
            .offset_index()
            .and_then(|groups| groups.get(group.number)?.get(column));
        // Both are needed: the locations give the rows of a page, the sizes its decoded bytes.
        let sizes = index.and_then(|index| Some((index.page_locations(), index.unencoded_byte_array_data_bytes()?)));
        let Some((locations, sizes)) = sizes.filter(|(locations, sizes)| locations.len() == sizes.len()) else {
            add(start..end, bytes_of(footer, group.number, column));
            continue;
        };
        let first_of = |page: &PageLocation| start + page.first_row_index.unsigned_abs();
        let from = locations
            .partition_point(|page| first_of(page) <= rows.start)
            .saturating_sub(1);
        let wanted = locations[from..].iter().zip(&sizes[from..]).enumerate();
        for (at, (page, bytes)) in wanted.take_while(|(_, (page, _))| first_of(page) < rows.end) {
            let next = locations.get(from + at + 1);
            add(first_of(page)..next.map_or(end, first_of), bytes.unsigned_abs());
        }
    }
    pages
}

/// Estimates the most bytes of `rows` consecutive rows; an upper bound if a page exceeds a batch.
fn heaviest(pages: &[DecodedPage], rows: u64) -> u64 {
    // The heaviest window begins at the start of a page or ends at the end of one.
    let windows = (0..pages.len()).map(|page| {
        let (before, after) = (&pages[..=page], &pages[page..]);
        first(after.iter(), rows).max(first(before.iter().rev(), rows))
    });
    windows.max().unwrap_or(0)
}

/// Estimates the bytes of the first `rows` rows of these pages.
fn first<'a>(pages: impl Iterator<Item = &'a DecodedPage>, mut rows: u64) -> u64 {
    let mut bytes = 0_u64;
    for page in pages {
        let some = page.rows.min(rows);
        bytes = bytes.saturating_add(page.bytes_of(some));
        rows -= some;
        if rows == 0 || bytes > MAX_BATCH_BYTES {
            break;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};
    use parquet::file::properties::WriterProperties;

    use super::*;

    /// The footer of a file with a number, a short text and a text of `bytes` bytes, in pages of at most 100 rows.
    fn footer(sizes: &[usize], index: PageIndexPolicy) -> ParquetMetaData {
        let texts = |size: &dyn Fn(&usize) -> usize| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(
                sizes.iter().map(|at| "x".repeat(size(at))),
            ))
        };
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(sizes.iter().map(|_| 7)));
        let rows =
            RecordBatch::try_from_iter([("n", numbers), ("short", texts(&|_| 3)), ("long", texts(&|size| *size))]);
        let rows = rows.unwrap();
        let properties = WriterProperties::builder()
            .set_data_page_row_count_limit(100)
            .set_write_batch_size(100)
            .set_dictionary_page_size_limit(2 << 20)
            .set_max_row_group_row_count(Some(1_000));
        let file = tempfile::tempfile().unwrap();
        let mut writer = ArrowWriter::try_new(&file, rows.schema(), Some(properties.build())).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        let reader = ParquetMetaDataReader::new().with_offset_index_policy(index);
        reader.parse_and_finish(&file).unwrap()
    }

    const ALL: Range<u64> = 0..u64::MAX;

    #[test]
    fn rows_are_decoded_by_the_thousand_and_large_ones_a_few_at_a_time() {
        for (size, rows, expected) in [
            (100, 5_000, 4_096),
            (3_000, 5_000, 4_096),
            (6_000, 5_000, 2_048),
            (100_000, 400, 128),
            (2 << 20, 20, 4),
        ] {
            let footer = footer(&vec![size; rows], PageIndexPolicy::Required);
            assert_eq!(rows_at_once(&footer, |_| true, &ALL), expected, "{size}");
            // Of columns that are short, whatever the others are.
            let short = rows_at_once(&footer, |column| column < 2, &(0..rows as u64));
            assert_eq!(short, rows.min(4_096));
        }
    }

    #[test]
    fn a_text_that_comes_again_counts_as_often_as_it_comes() {
        // Where it is told of, and where only the row groups say how large they are.
        for index in [PageIndexPolicy::Required, PageIndexPolicy::Skip] {
            let footer = footer(&[1 << 20; 100], index);
            assert!(footer.row_group(0).compressed_size() < 2 << 20);
            assert_eq!(rows_at_once(&footer, |_| true, &ALL), 8);
        }
    }

    #[test]
    fn few_large_rows_among_small_ones_are_no_reason_to_decode_fewer() {
        let mut sizes = vec![100; 20_000];
        sizes[7_000] = 4 << 20;
        sizes[15_000] = 4 << 20;
        let footer = footer(&sizes, PageIndexPolicy::Required);
        assert_eq!(rows_at_once(&footer, |_| true, &ALL), 4_096);
    }

    #[test]
    fn long_texts_of_a_page_may_all_be_together() {
        let mut sizes = vec![1; 1_000];
        sizes[510..590].fill(250 << 10);
        let footer = footer(&sizes, PageIndexPolicy::Required);
        let found = rows_at_once(&footer, |_| true, &ALL);
        assert!((32..=64).contains(&found), "{found}");
    }

    #[test]
    fn only_the_rows_that_are_read_count() {
        let mut sizes = vec![100; 3_000];
        sizes[1_000..1_300].fill(200_000);
        let footer = footer(&sizes, PageIndexPolicy::Required);
        let of = |rows| rows_at_once(&footer, |_| true, &rows);
        assert_eq!(of(0..1_000), 1_000);
        assert_eq!(of(1_300..1_350), 50);
        assert!((32..=100).contains(&of(900..1_400)));
        assert_eq!(of(5..5), 1);
    }
}
