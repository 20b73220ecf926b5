//! Files of what a person downloads: their formats and names, and answers to queries as files.
//!
//! Invariant: a file of an answer has the rows of the answer, all of them, and its name says if the answer is cut.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use types::Version;
use types::render::answer::AnswerRows;
use types::render::arrow::ArrowStream;
use types::render::csv::{CsvReader, RenderedCsv};

use crate::call::answer::{FileDownload, NDJSON};
use crate::error::ApiError;
use crate::state::sandbox::AnswerColumn;

/// Format of a file of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FileFormat {
    /// Comma-separated values, for a spreadsheet.
    Csv,
    /// One JSON object a line.
    #[serde(rename = "ndjson")]
    JsonLines,
    /// Apache Parquet.
    Parquet,
    /// Arrow IPC streaming format.
    Arrow,
}

impl FileFormat {
    /// Returns a name with the end that files of the format have.
    pub(crate) fn file_name(self, stem: &str) -> String {
        let extension = match self {
            Self::Csv => "csv",
            Self::JsonLines => "ndjson",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        };
        format!("{stem}.{extension}")
    }

    /// Returns the media type: of RFC 4180 for CSV, those that Apache registered for Arrow and Parquet.
    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8; header=present",
            Self::JsonLines => NDJSON,
            Self::Parquet => "application/vnd.apache.parquet",
            Self::Arrow => "application/vnd.apache.arrow.stream",
        }
    }
}

/// Answer to a query that becomes a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DownloadedAnswer<'a> {
    /// Slug of the dataset.
    pub(crate) slug: &'a str,
    /// Version that was queried.
    pub(crate) version: Version,
    /// Columns, in order.
    pub(crate) columns: &'a [AnswerColumn],
    /// Rows, each a JSON array with a value per column.
    pub(crate) rows: &'a [Box<serde_json::value::RawValue>],
    /// True if the query has more rows.
    pub(crate) is_cut: bool,
}

impl DownloadedAnswer<'_> {
    /// Returns the answer as a file. CSV is for people: a text that a spreadsheet would run has an apostrophe before it.
    ///
    /// # Errors
    /// 500 if the rows do not fit the columns, which no sandbox sends.
    pub(crate) fn encode(&self, format: FileFormat) -> Result<FileDownload, ApiError> {
        let internal = |error: &(dyn std::error::Error + 'static)| {
            ApiError::internal(format!("file of an answer: {}", types::error::with_causes(error)))
        };
        let columns = self.columns.iter().map(|column| (&*column.name, &*column.kind));
        let rows = AnswerRows::new(columns, self.rows.iter().map(AsRef::as_ref)).map_err(|error| internal(&error))?;
        let columns = || rows.columns().map_err(|error| internal(&error));
        let mut bytes = Vec::new();
        match format {
            FileFormat::JsonLines => rows.write_lines(&mut bytes),
            FileFormat::Csv => {
                let columns = columns()?;
                CsvReader::Spreadsheet.write_names(columns.schema_ref(), &mut bytes);
                let cells = RenderedCsv::new(&columns, CsvReader::Spreadsheet).map_err(|error| internal(&error))?;
                cells.write(0..cells.len(), &mut bytes);
            }
            FileFormat::Arrow => {
                let columns = columns()?;
                let mut stream = ArrowStream::new(columns.schema()).map_err(|error| internal(&error))?;
                bytes = stream.encode(&columns).map_err(|error| internal(&error))?;
                bytes.extend(stream.finish().map_err(|error| internal(&error))?);
            }
            FileFormat::Parquet => bytes = catalog::parquet_file(&columns()?).map_err(|error| internal(&error))?,
        }
        Ok(FileDownload::whole(
            &self.name(format),
            format.media_type(),
            Bytes::from(bytes),
        ))
    }

    fn name(&self, format: FileFormat) -> String {
        let cut = if self.is_cut {
            format!("-first-{}", self.rows.len())
        } else {
            String::new()
        };
        format.file_name(&format!("{}-v{}-answer{cut}", self.slug, self.version))
    }
}

#[cfg(test)]
mod tests;
