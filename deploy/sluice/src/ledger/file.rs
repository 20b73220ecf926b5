//! Files of archived months: the movements as Parquet, and a document with their number and the seals of their days.
//!
//! Invariant: the movements of a file are in the order in which the days were hashed: by day, event and line.

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use arrow::array::{Array as _, ArrayRef, AsArray as _, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use proof::{FileHash, SignatureBytes};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use store::{LedgerMovement, Seal};
use types::Timestamp;

/// Columns of the file, in order.
const COLUMNS: [(&str, DataType); 9] = [
    ("event_id", DataType::Utf8),
    ("line", DataType::Int64),
    ("amount", DataType::Int64),
    ("debit_account", DataType::Utf8),
    ("debit_seq", DataType::Int64),
    ("debit_after", DataType::Int64),
    ("credit_account", DataType::Utf8),
    ("credit_seq", DataType::Int64),
    ("credit_after", DataType::Int64),
];

fn schema() -> Arc<Schema> {
    let fields = COLUMNS.map(|(name, kind)| Field::new(name, kind, false));
    Arc::new(Schema::new(fields.to_vec()))
}

/// Writes the movements of a month.
pub(super) struct MonthWriter {
    writer: ArrowWriter<Vec<u8>>,
}

impl MonthWriter {
    pub(super) fn new() -> anyhow::Result<Self> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
            .build();
        Ok(Self {
            writer: ArrowWriter::try_new(Vec::new(), schema(), Some(properties))?,
        })
    }

    /// Adds movements, which follow those before them.
    pub(super) fn add(&mut self, movements: &[LedgerMovement]) -> anyhow::Result<()> {
        let texts = |of: fn(&LedgerMovement) -> &str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(movements.iter().map(of)))
        };
        let numbers = |of: fn(&LedgerMovement) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(movements.iter().map(of)))
        };
        let columns = vec![
            texts(|movement| &movement.event),
            numbers(|movement| movement.line),
            numbers(|movement| movement.amount),
            texts(|movement| &movement.debit_account),
            numbers(|movement| movement.debit_seq),
            numbers(|movement| movement.debit_after),
            texts(|movement| &movement.credit_account),
            numbers(|movement| movement.credit_seq),
            numbers(|movement| movement.credit_after),
        ];
        self.writer.write(&RecordBatch::try_new(schema(), columns)?)?;
        Ok(())
    }

    /// Returns the bytes of the file.
    pub(super) fn finish(self) -> anyhow::Result<Bytes> {
        Ok(self.writer.into_inner()?.into())
    }
}

/// Movements of a file, in order. They end early if the file is not one of a month.
pub(super) struct MonthMovements {
    batches: ParquetRecordBatchReader,
    page: std::vec::IntoIter<LedgerMovement>,
    problem: Option<anyhow::Error>,
}

impl MonthMovements {
    pub(super) fn read(file: Bytes) -> anyhow::Result<Self> {
        let builder = ParquetRecordBatchReaderBuilder::try_new(file)?;
        let found = builder.schema().fields();
        let is_one = found.len() == COLUMNS.len()
            && found
                .iter()
                .zip(COLUMNS)
                .all(|(field, (name, kind))| field.name() == name && *field.data_type() == kind);
        if !is_one {
            return Err(anyhow!("its columns are not those of movements"));
        }
        Ok(Self {
            batches: builder.build()?,
            page: Vec::new().into_iter(),
            problem: None,
        })
    }

    /// Returns why the movements ended early, if they did.
    pub(super) fn problem(self) -> Option<anyhow::Error> {
        self.problem
    }

    fn next_page(&mut self) -> anyhow::Result<Option<Vec<LedgerMovement>>> {
        match self.batches.next() {
            Some(batch) => movements(&batch?).map(Some),
            None => Ok(None),
        }
    }
}

impl Iterator for MonthMovements {
    type Item = LedgerMovement;

    fn next(&mut self) -> Option<LedgerMovement> {
        loop {
            if let Some(movement) = self.page.next() {
                return Some(movement);
            }
            if self.problem.is_some() {
                return None;
            }
            match self.next_page() {
                Ok(Some(page)) => self.page = page.into_iter(),
                Ok(None) => return None,
                Err(problem) => self.problem = Some(problem),
            }
        }
    }
}

fn movements(batch: &RecordBatch) -> anyhow::Result<Vec<LedgerMovement>> {
    let column = |index: usize| {
        let column = batch.columns().get(index).context("a column is missing")?;
        anyhow::ensure!(column.null_count() == 0, "a value is missing");
        Ok(column)
    };
    let texts = |index: usize| column(index)?.as_string_opt::<i32>().context("a column has no texts");
    let numbers = |index: usize| {
        column(index)?
            .as_primitive_opt::<Int64Type>()
            .context("a column has no numbers")
    };
    let (event, debit_account, credit_account) = (texts(0)?, texts(3)?, texts(6)?);
    let (line, amount) = (numbers(1)?, numbers(2)?);
    let (debit_seq, debit_after) = (numbers(4)?, numbers(5)?);
    let (credit_seq, credit_after) = (numbers(7)?, numbers(8)?);
    let movement = |row: usize| LedgerMovement {
        event: event.value(row).to_owned(),
        line: line.value(row),
        amount: amount.value(row),
        debit_account: debit_account.value(row).to_owned(),
        debit_seq: debit_seq.value(row),
        debit_after: debit_after.value(row),
        credit_account: credit_account.value(row).to_owned(),
        credit_seq: credit_seq.value(row),
        credit_after: credit_after.value(row),
    };
    Ok((0..batch.num_rows()).map(movement).collect())
}

/// Document beside the movements of a month.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ArchivedMonth {
    format: MonthFormat,
    /// Name of the month, such as `2025-10`.
    month: String,
    /// Number of movements.
    movements: u64,
    /// Size of the file of movements in bytes, and its SHA-256.
    size: u64,
    sha256: FileHash,
    /// Seals of the days, oldest first. A month in which the ledger began has fewer.
    seals: Vec<ArchivedSeal>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
enum MonthFormat {
    #[serde(rename = "sluice-ledger-1")]
    V1,
}

/// Seal of a day.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ArchivedSeal {
    day: String,
    before: FileHash,
    hash: FileHash,
    sealed_at: String,
    key_id: String,
    signature: SignatureBytes,
}

impl ArchivedMonth {
    /// Describes a file of movements.
    pub(super) fn of(month: i64, file: &[u8], movements: u64, seals: &[Seal]) -> Self {
        Self {
            format: MonthFormat::V1,
            month: month_name(month),
            movements,
            size: file.len() as u64,
            sha256: FileHash::from_bytes(Sha256::digest(file).into()),
            seals: seals
                .iter()
                .map(|seal| ArchivedSeal {
                    day: day_name(Timestamp::of_day(seal.closed.day)),
                    before: FileHash::from_bytes(seal.closed.before),
                    hash: FileHash::from_bytes(seal.closed.hash),
                    sealed_at: seal.sealed_at.to_string(),
                    key_id: seal.key_id.clone(),
                    signature: SignatureBytes::from_bytes(seal.signature),
                })
                .collect(),
        }
    }

    /// Returns the document as indented JSON.
    pub(super) fn to_json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)?)
    }

    /// Returns true if a text is this document.
    pub(super) fn is_in(&self, text: &[u8]) -> bool {
        serde_json::from_slice::<Self>(text).is_ok_and(|found| found == *self)
    }
}

/// Returns the name of a month, such as `2025-10`.
pub(super) fn month_name(month: i64) -> String {
    let mut name = day_name(Timestamp::of_month(month));
    name.truncate(name.len().saturating_sub("-01".len()));
    name
}

fn day_name(at: Timestamp) -> String {
    let text = at.to_string();
    text.split('T').next().unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn movement(number: i64) -> LedgerMovement {
        LedgerMovement {
            event: format!("event-{number}"),
            line: number % 3,
            amount: number * 10_000 + 1,
            debit_account: "test|credits:ä".to_owned(),
            debit_seq: number,
            debit_after: i64::MAX - number,
            credit_account: "test|fees".to_owned(),
            credit_seq: number + 7,
            credit_after: 0,
        }
    }

    fn file(count: i64) -> Bytes {
        let mut writer = MonthWriter::new().unwrap();
        let movements: Vec<_> = (0..count).map(movement).collect();
        for page in movements.chunks(700) {
            writer.add(page).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn movements_are_read_as_they_were_written() {
        for count in [0, 1, 5_000] {
            let mut read = MonthMovements::read(file(count)).unwrap();
            let found: Vec<_> = read.by_ref().collect();
            assert!(read.problem().is_none());
            assert_eq!(found, (0..count).map(movement).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_file_that_is_no_month_says_so() {
        let bytes = file(5_000);
        for broken in [
            Bytes::new(),
            bytes.slice(1..),
            bytes.slice(..bytes.len() - 9),
            Bytes::from_static(b"PAR1PAR1"),
        ] {
            // What is found only when the movements are read is a problem at their end.
            let is_taken = MonthMovements::read(broken).is_ok_and(|mut read| {
                read.by_ref().for_each(drop);
                read.problem().is_none()
            });
            assert!(!is_taken);
        }
        let batch = RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        assert!(MonthMovements::read(writer.into_inner().unwrap().into()).is_err());
        // A wrong byte in the middle gives other movements or ends them.
        let mut flipped = bytes.to_vec();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 0x40;
        let mut read = MonthMovements::read(flipped.into()).unwrap();
        let found: Vec<_> = read.by_ref().collect();
        assert!(read.problem().is_some() || found != (0..5_000).map(movement).collect::<Vec<_>>());
    }

    #[test]
    fn a_document_names_one_file_and_its_seals() {
        let seal = Seal {
            closed: store::ClosedDay {
                day: 20_362,
                before: [1; 32],
                hash: [2; 32],
            },
            key_id: "0123456789abcdef".to_owned(),
            signature: [3; 64],
            sealed_at: Timestamp::of_day(20_363),
        };
        let document = ArchivedMonth::of(669, b"file", 4, std::slice::from_ref(&seal));
        let text = document.to_json().unwrap();
        assert!(
            text.contains("\"2025-10\"") && text.contains("\"2025-10-01\""),
            "{text}"
        );
        assert!(document.is_in(text.as_bytes()));
        for other in [
            ArchivedMonth::of(669, b"other", 4, std::slice::from_ref(&seal)),
            ArchivedMonth::of(669, b"file", 5, std::slice::from_ref(&seal)),
            ArchivedMonth::of(670, b"file", 4, std::slice::from_ref(&seal)),
            ArchivedMonth::of(669, b"file", 4, &[]),
        ] {
            assert!(!other.is_in(text.as_bytes()));
        }
        assert!(!document.is_in(&text.as_bytes()[..text.len() - 2]));
        assert!(!document.is_in(text.replacen('{', "{\"more\": 1,", 1).as_bytes()));
    }
}
