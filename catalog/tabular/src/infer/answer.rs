//! The answer of inference: what a file is, as `POST /files/infer` tells it.
//!
//! Invariant: a value of the file appears in it at most [`MAX_SHOWN_CHARACTERS`] characters long, and a command only
//! has values that are safe to paste.

use std::fmt;

use serde::Serialize;
use serde_json::Value;
use types::{Contract, FieldType};

use crate::reading::Reading;

/// The most characters of a value of the file in an answer.
pub const MAX_SHOWN_CHARACTERS: usize = 200;
/// The most records in [`Inference::sample`].
pub const MAX_SAMPLE_RECORDS: usize = 20;
/// The most examples of a column.
pub const MAX_EXAMPLES: usize = 5;
/// The most distinct values of a column that are told.
pub const MAX_DISTINCT_VALUES: usize = 50;
/// The most notes, and the most questions.
pub const MAX_REMARKS: usize = 1_000;

/// Format of a file, by its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileFormat {
    /// Cells between delimiters.
    Csv,
    /// One JSON object a line.
    JsonLines,
    /// JSON documents.
    Json,
    /// Apache Parquet.
    Parquet,
    /// Arrow IPC file, Feather 2.
    ArrowFile,
    /// Arrow IPC stream.
    ArrowStream,
    /// Office Open XML workbook.
    Xlsx,
}

/// A file as it was found, and the dataset that it can become.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inference {
    /// Format of the file.
    pub format: FileFormat,
    /// False if not the whole file was looked at; then a later record may not fit.
    pub complete: bool,
    /// Bytes of text that were looked at, after decompression and decoding.
    pub text_bytes: u64,
    /// Records, also those that cannot be taken; blank lines are none.
    pub records: u64,
    /// The columns of the file in order, then those of [`Reading::number`].
    pub columns: Vec<InferredColumn>,
    /// The contract that the records pass; `None` if there is none, which a question says.
    #[serde(rename = "schemaDef", skip_serializing_if = "Option::is_none")]
    pub contract: Option<Contract>,
    /// The reading that makes records of that contract of the file. Of a Parquet, Arrow or XLSX file it is the reading
    /// of its JSON Lines.
    pub reading: Reading,
    /// The first records as they will be stored, at most [`MAX_SAMPLE_RECORDS`].
    pub sample: Vec<Value>,
    /// Decisions that were made. They never stop.
    pub notes: Vec<Note>,
    /// Decisions that a person has to make before anything is created.
    pub questions: Vec<Question>,
}

impl Inference {
    /// Returns true if a dataset can be made as it stands.
    pub const fn is_settled(&self) -> bool {
        self.questions.is_empty() && self.contract.is_some()
    }
}

/// A column of the file, or a member of its objects.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InferredColumn {
    /// Name in the file.
    pub name: String,
    /// Name of the field; absent if the column is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Type of the field.
    #[serde(rename = "type", serialize_with = "type_name")]
    pub kind: FieldType,
    /// Digits after the point, of a decimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<u8>,
    /// Form of dates and times, as in the reading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parse: Option<String>,
    /// Records in which the value is null.
    pub nulls: u64,
    /// Words of the column that mean null, with their numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub null_words: Vec<NullWordCount>,
    /// Values as they are written in the file, the first distinct ones.
    pub examples: Vec<String>,
    /// All distinct values, if they are few.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distinct: Option<Vec<String>>,
}

/// A word that means null in a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NullWordCount {
    /// The word.
    pub word: String,
    /// The number of cells that are it.
    pub count: u64,
}

/// Something that was decided, and may be decided otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Kind of the note, such as `leading_zeros`. Programs tell notes apart by it.
    pub code: &'static str,
    /// The note in words, without flags.
    pub message: String,
    /// Name of the column in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Line of the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Flags that decide otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<Remedy>,
}

/// Something that a person has to decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    /// Kind of the question, such as `infinity`. Programs tell questions apart by it.
    pub code: &'static str,
    /// The question in words, without flags.
    pub message: String,
    /// Name of the column in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Line of the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The answers: each of these flags settles it.
    pub remedies: Vec<Remedy>,
}

macro_rules! remark {
    ($remark:ident) => {
        impl $remark {
            /// Creates it without column, line and flags.
            pub fn new(code: &'static str, message: impl Into<String>) -> Self {
                Self {
                    code,
                    message: message.into(),
                    column: None,
                    line: None,
                    remedies: Vec::new(),
                }
            }

            /// Names the column.
            #[must_use]
            pub fn column(mut self, name: &str) -> Self {
                self.column = Some(shown(name));
                self
            }

            /// Names the line.
            #[must_use]
            pub const fn line(mut self, line: u64) -> Self {
                self.line = Some(line);
                self
            }

            /// Adds a flag, as [`Remedy::new`] makes it.
            #[must_use]
            pub fn remedy(mut self, flag: &'static str, of_file: &[&str], ours: &str) -> Self {
                self.remedies.push(Remedy::new(flag, of_file, ours));
                self
            }
        }

        /// The message with its column, its line and its flags, on one line.
        impl fmt::Display for $remark {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.message)?;
                for (index, remedy) in self.remedies.iter().enumerate() {
                    let before = if index == 0 { ": " } else { ", or " };
                    write!(f, "{before}{remedy}")?;
                }
                Ok(())
            }
        }
    };
}

remark!(Note);
remark!(Question);

/// A flag of the command line that answers a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// The flag, such as `--types`.
    pub flag: &'static str,
    /// Its value; absent for a flag without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The flag as it can be pasted into a shell; absent if the value is none that is safe there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl Remedy {
    /// Creates a flag. Its value is texts of the file, with `=` between them, and then a text of this program; without any
    /// of them it has none.
    pub fn new(flag: &'static str, of_file: &[&str], ours: &str) -> Self {
        if of_file.is_empty() && ours.is_empty() {
            return Self {
                flag,
                value: None,
                command: Some(flag.to_owned()),
            };
        }
        let value = of_file.join("=") + ours;
        let is_safe = of_file == [""] || of_file.iter().all(|text| is_pasteable(text));
        let command = is_safe.then(|| format!("{flag} '{value}'"));
        Self {
            flag,
            value: Some(value),
            command,
        }
    }
}

/// The flag as it can be pasted, or its name alone.
impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.command.as_deref().unwrap_or(self.flag))
    }
}

/// Returns true if a text of a file may stand in a command, between single quotes: a person pastes it into a shell
/// without reading it.
pub fn is_pasteable(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" ._,/-".contains(&byte);
    !text.is_empty() && !text.starts_with('-') && text.bytes().all(is_plain)
}

/// Returns the begin of a value of the file.
pub fn shown(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARACTERS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn type_name<S: serde::Serializer>(kind: &FieldType, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}
