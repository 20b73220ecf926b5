//! A reading: how the bytes of one file become records of a contract.
//!
//! Invariants:
//! - A reading belongs to its file and never to the contract: the next file may be written otherwise.
//! - Its JSON is strict, and a member with its usual value is not written, so that equal readings are equal texts.

use std::collections::HashSet;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use types::vocabulary::plain;
use types::{Contract, FieldType};

use crate::csv::CsvFormat;
use crate::values::{TimeZones, ValueParse};

/// The most columns that a reading names.
pub const MAX_READING_COLUMNS: usize = 1_024;
/// The most bytes of a reading as JSON.
pub const MAX_READING_BYTES: usize = 128 << 10;
/// The most lines that a reading leaves out by number.
pub const MAX_SKIPPED_LINES: usize = 1_000;
/// The last line that can be the header.
pub const MAX_HEADER_LINE: u64 = 1_000;
/// The greatest number that the first record can have. The last one then is an integer of 64 bits too.
const MAX_FIRST_NUMBER: i64 = 1 << 62;

/// The form of a text file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(transform = plain)]
pub enum TextFormat {
    /// One JSON object a line.
    #[default]
    JsonLines,
    /// JSON documents: the objects of an array or of an object, or objects that follow each other.
    Json,
    /// Cells between delimiters, with quotes.
    Csv,
}

/// A compression that the upload itself has no word for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(transform = plain)]
pub enum TextCompression {
    /// Zstandard (RFC 8878) with a window of at most 128 MiB.
    Zstd,
}

/// The way to write a quote within a quoted cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(transform = plain)]
pub enum QuoteEscape {
    /// Two quotes.
    #[default]
    Double,
    /// A backslash before it. A backslash before any other character stands for that character.
    Backslash,
}

/// Way in which the bytes of one file become records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Reading")]
pub struct Reading {
    /// The form of the file.
    pub format: TextFormat,
    /// Compression, where it is not gzip: that is said when the upload begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<TextCompression>,
    /// Label of the encoding (WHATWG Encoding Standard), such as `utf-8`, `windows-1252` or `utf-16le`.
    #[serde(skip_serializing_if = "is_utf8")]
    #[schemars(length(min = 1, max = 40))]
    pub encoding: String,
    /// Character between the cells (`csv`): one of ASCII.
    #[serde(skip_serializing_if = "is_comma")]
    pub delimiter: char,
    /// Character around a cell that has delimiters or line ends (`csv`); null if there is none.
    #[serde(skip_serializing_if = "is_double_quote")]
    pub quote: Option<char>,
    /// Form of a quote within quotes (`csv`).
    #[serde(skip_serializing_if = "is_default")]
    pub escape: QuoteEscape,
    /// Line of the header, from 1; the lines before it are left out (`csv`). 0 means that there is none.
    #[serde(skip_serializing_if = "is_one")]
    #[schemars(range(max = 1000))]
    pub header_line: u64,
    /// Lines that are left out, from 1 and ascending (`csv`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub skip_lines: Vec<u64>,
    /// The sign before decimals in numbers: `.` or `,` (`csv`).
    #[serde(skip_serializing_if = "is_point")]
    pub decimal: char,
    /// Words that mean null in every column. An empty cell and `\N` do in any case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub nulls: Vec<String>,
    /// True if a quoted empty cell of a `string` field is the empty text, and not null (`csv`).
    #[serde(skip_serializing_if = "is_default")]
    pub empty_text: bool,
    /// Release of the time zone database that the reading was made with. The service's own decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20))]
    pub tz: Option<String>,
    /// JSON pointer of the records within the document (`json`); empty for the document itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1000))]
    pub records: String,
    /// If the records are the members of an object: the member that each of them gets with its name (`json`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub members: Option<String>,
    /// For `csv`, every column of the file in order. For JSON, the members that are renamed, left out or parsed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub columns: Vec<ColumnReading>,
    /// A field that gets the number of the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<RecordNumber>,
}

/// Reading of one column of a file, or of one member of its objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ReadingColumn")]
pub struct ColumnReading {
    /// Name in the file. Of `csv`, the header must have it, blanks around it apart.
    pub from: String,
    /// Field that gets the values; null if they are left out.
    // Without this the member could be missing, which would leave out a column that nobody named.
    #[serde(deserialize_with = "present")]
    #[schemars(schema_with = "text_or_null")]
    pub to: Option<String>,
    /// Form of dates and times: a strptime pattern, `unix-seconds`, `unix-milliseconds`, `unix-microseconds` or `rfc2822`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub parse: Option<String>,
    /// Zone of times without an offset: a name of the time zone database, or an offset such as `+01:00`. UTC otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 60))]
    pub zone: Option<String>,
    /// More words that mean null in this column.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub nulls: Vec<String>,
    /// True if times are rounded to microseconds, instead of refused if they are finer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub round: bool,
}

/// A field that counts the records of a file, also those that are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ReadingNumber")]
pub struct RecordNumber {
    /// The `integer` field.
    pub field: String,
    /// Number of the first record.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 4_611_686_018_427_387_904_i64))]
    pub start: i64,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            format: TextFormat::JsonLines,
            compression: None,
            encoding: "utf-8".to_owned(),
            delimiter: ',',
            quote: Some('"'),
            escape: QuoteEscape::Double,
            header_line: 1,
            skip_lines: Vec::new(),
            decimal: '.',
            nulls: Vec::new(),
            empty_text: false,
            tz: None,
            records: String::new(),
            members: None,
            columns: Vec::new(),
            number: None,
        }
    }
}

/// The first rule of a reading that is broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct ReadingError {
    /// JSON pointer within the reading; empty for the whole of it.
    pub path: String,
    /// The rule that is broken, with what to do.
    pub problem: String,
}

fn fail<T>(path: impl Into<String>, problem: impl Into<String>) -> Result<T, ReadingError> {
    Err(ReadingError {
        path: path.into(),
        problem: problem.into(),
    })
}

impl Reading {
    /// Returns true if the text goes to the contract as it is, line by line.
    pub const fn is_plain_lines(&self) -> bool {
        matches!(self.format, TextFormat::JsonLines)
            && self.columns.is_empty()
            && self.nulls.is_empty()
            && self.number.is_none()
    }

    /// Returns the delimiters and quotes of a `csv`.
    pub fn csv_format(&self) -> Result<CsvFormat, ReadingError> {
        let byte = |path: &str, character: char| {
            let byte = u8::try_from(character).ok().filter(u8::is_ascii);
            let byte = byte.filter(|byte| !matches!(byte, b'\n' | b'\r' | 0 | b'\\'));
            byte.map_or_else(
                || fail(path, "must be one ASCII character, no line end and no backslash"),
                Ok,
            )
        };
        let delimiter = byte("/delimiter", self.delimiter)?;
        let quote = self.quote.map(|quote| byte("/quote", quote)).transpose()?;
        if quote.is_some_and(|quote| quote == delimiter || quote.is_ascii_whitespace()) {
            return fail("/quote", "must be neither the delimiter nor a blank");
        }
        Ok(CsvFormat {
            delimiter,
            quote,
            escape: self.escape,
        })
    }

    /// Returns the first rule that the reading breaks, if its records are to be those of this contract.
    pub fn check(&self, contract: &Contract) -> Result<(), ReadingError> {
        self.check_form()?;
        let mut filled = HashSet::new();
        let zones = TimeZones::new();
        for (index, column) in self.columns.iter().enumerate() {
            let at = |member: &str| format!("/columns/{index}/{member}");
            let Some(to) = &column.to else { continue };
            if !filled.insert(to.as_str()) {
                return fail(
                    at("to"),
                    format!("fills `{to}` a second time: leave one of them out with null"),
                );
            }
            let field = contract.fields().iter().find(|field| field.name == *to);
            if field.is_none() && (!contract.allow_extra() || to.is_empty()) {
                let problem =
                    format!("`{to}` is no field of the contract: name one, or leave the column out with null");
                return fail(at("to"), problem);
            }
            if let Some(parse) = &column.parse {
                ValueParse::new(parse).or_else(|problem| fail(at("parse"), problem))?;
                if !field.is_some_and(|field| is_time(field.kind)) {
                    return fail(at("parse"), "is only for fields of the types `timestamp` and `date`");
                }
            }
            if let Some(zone) = &column.zone {
                zones.get(zone).or_else(|problem| fail(at("zone"), problem))?;
                if field.is_none_or(|field| field.kind != FieldType::Timestamp) {
                    return fail(at("zone"), "is only for fields of the type `timestamp`");
                }
            }
        }
        if let Some(RecordNumber { field, start }) = &self.number {
            let found = contract.fields().iter().find(|found| found.name == *field);
            if found.is_none_or(|found| found.kind != FieldType::Integer) {
                let problem = format!("`{field}` is no field of the type `integer` of the contract");
                return fail("/number/field", problem);
            }
            if !filled.insert(field) {
                return fail("/number/field", format!("a column fills `{field}` already"));
            }
            if !(0..=MAX_FIRST_NUMBER).contains(start) {
                return fail("/number/start", format!("must be 0 to {MAX_FIRST_NUMBER}"));
            }
        }
        if self.format == TextFormat::Csv {
            let missing = contract
                .fields()
                .iter()
                .find(|field| field.required && !filled.contains(field.name.as_str()));
            if let Some(missing) = missing {
                let problem = format!("no column fills `{}`, which the contract requires", missing.name);
                return fail("/columns", problem);
            }
        }
        Ok(())
    }

    /// Checks what does not depend on a contract.
    fn check_form(&self) -> Result<(), ReadingError> {
        let bytes = serde_json::to_vec(self).map_or(usize::MAX, |text| text.len());
        if bytes > MAX_READING_BYTES {
            return fail("", format!("must be at most {MAX_READING_BYTES} bytes as JSON"));
        }
        if self.columns.len() > MAX_READING_COLUMNS {
            return fail("/columns", format!("must be at most {MAX_READING_COLUMNS}"));
        }
        if encoding_rs::Encoding::for_label_no_replacement(self.encoding.as_bytes()).is_none() {
            let problem = format!(
                "`{}` is no encoding of the WHATWG Encoding Standard, such as `windows-1252`",
                self.encoding
            );
            return fail("/encoding", problem);
        }
        for (path, nulls) in [("/nulls".to_owned(), &self.nulls)].into_iter().chain(
            (0..)
                .zip(&self.columns)
                .map(|(index, column): (usize, _)| (format!("/columns/{index}/nulls"), &column.nulls)),
        ) {
            if nulls.len() > 100 || nulls.iter().any(|word| word.len() > 1_000) {
                return fail(path, "must be at most 100 words of at most 1,000 bytes");
            }
        }
        match self.format {
            TextFormat::Csv => self.check_csv()?,
            TextFormat::JsonLines | TextFormat::Json => self.check_json()?,
        }
        if self.format != TextFormat::Json {
            if !self.records.is_empty() {
                return fail("/records", "is only for the format `json`");
            }
            if self.members.is_some() {
                return fail("/members", "is only for the format `json`");
            }
        }
        Ok(())
    }

    fn check_csv(&self) -> Result<(), ReadingError> {
        self.csv_format()?;
        if self.columns.is_empty() {
            return fail("/columns", "must name every column of the file, in order");
        }
        if !matches!(self.decimal, '.' | ',') {
            return fail("/decimal", "must be `.` or `,`");
        }
        if self.header_line > MAX_HEADER_LINE {
            return fail("/headerLine", format!("must be at most {MAX_HEADER_LINE}"));
        }
        if self.skip_lines.len() > MAX_SKIPPED_LINES {
            return fail("/skipLines", format!("must be at most {MAX_SKIPPED_LINES}"));
        }
        if self.skip_lines.contains(&0) || !self.skip_lines.is_sorted_by(|left, right| left < right) {
            return fail("/skipLines", "must be ascending numbers of lines, from 1");
        }
        if self.header_line > 0 && self.skip_lines.contains(&self.header_line) {
            return fail("/skipLines", "must not have the line of the header");
        }
        Ok(())
    }

    fn check_json(&self) -> Result<(), ReadingError> {
        let usual = Self::default();
        for (path, is_usual) in [
            ("/delimiter", self.delimiter == usual.delimiter),
            ("/quote", self.quote == usual.quote),
            ("/escape", self.escape == usual.escape),
            ("/headerLine", self.header_line == usual.header_line),
            ("/skipLines", self.skip_lines.is_empty()),
            ("/decimal", self.decimal == usual.decimal),
            ("/emptyText", !self.empty_text),
        ] {
            if !is_usual {
                return fail(path, "is only for the format `csv`");
            }
        }
        let mut names = HashSet::new();
        for (index, column) in self.columns.iter().enumerate() {
            if !names.insert(column.from.as_str()) {
                let problem = format!("names the member `{}` a second time", column.from);
                return fail(format!("/columns/{index}/from"), problem);
            }
        }
        if !self.records.is_empty() && !self.records.starts_with('/') {
            return fail("/records", "must be a JSON pointer (RFC 6901), such as `/data/items`");
        }
        if self
            .members
            .as_ref()
            .is_some_and(|name| name.is_empty() || name.len() > 512)
        {
            return fail("/members", "must be the name of a member, such as `key`");
        }
        Ok(())
    }
}

const fn is_time(kind: FieldType) -> bool {
    matches!(kind, FieldType::Timestamp | FieldType::Date)
}

/// Reads a member that must be there, but may be null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(deserializer)
}

/// Schema of a text that may be null, but must be there.
fn text_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"]})
}

const fn one() -> i64 {
    1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn is_utf8(label: &String) -> bool {
    label == "utf-8"
}

fn is_comma(character: &impl PartialEq<char>) -> bool {
    *character == ','
}

fn is_double_quote(character: &impl PartialEq<Option<char>>) -> bool {
    *character == Some('"')
}

fn is_one(number: &impl PartialEq<u64>) -> bool {
    *number == 1
}

fn is_point(character: &impl PartialEq<char>) -> bool {
    *character == '.'
}

#[cfg(test)]
mod tests;
