//! CSV is read in time that is linear in its text.

#![expect(clippy::tests_outside_test_module, reason = "an integration test is a test module")]

use growth::is_linear;
use tabular::csv::{CsvReader, CsvRecord};

#[test]
fn csv_is_linear() {
    for delimiter in *b",;\t" {
        is_linear("the reader of CSV", 8_000, |text| {
            let mut reader = CsvReader::new(text.as_bytes(), delimiter);
            let mut record = CsvRecord::default();
            while matches!(reader.read(&mut record), Ok(true)) {
                std::hint::black_box(record.cells().len());
            }
        });
    }
}
