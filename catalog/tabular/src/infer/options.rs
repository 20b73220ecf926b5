//! Decisions of a person about a file before it is read: the flags of `sluice infer` and `sluice push`.
//!
//! Invariant: a flag that names a column takes its name in the file, or the name of the field that it becomes.

use types::contract::FieldTypeName;
use types::{Contract, FieldType};

use crate::reading::{ColumnReading, QuoteEscape, Reading, RecordNumber, TextFormat};
use crate::values::{TimeZones, ValueParse};

/// Bytes of text, after decompression and decoding, that are looked at unless more is asked for.
pub const MAX_INFERRED_TEXT_BYTES: u64 = 1 << 30;

/// The sign around cells of a delimited file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuoteSign {
    /// There is none.
    None,
    /// An ASCII character.
    Is(char),
}

/// Facts about a file that are known beforehand. Each member overrides what would be found.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a command has its flags, and none of them excludes another"
)]
pub struct InferOptions {
    /// `--format`.
    pub format: Option<TextFormat>,
    /// `--delimiter`: an ASCII character.
    pub delimiter: Option<char>,
    /// `--quote`.
    pub quote: Option<QuoteSign>,
    /// `--escape`.
    pub escape: Option<QuoteEscape>,
    /// `--encoding`: a WHATWG label.
    pub encoding: Option<String>,
    /// `--no-header`.
    pub no_header: bool,
    /// `--skip-lines`: numbers of lines that are no data, from 1, ascending.
    pub skip_lines: Vec<u64>,
    /// `--decimal-comma`.
    pub decimal_comma: bool,
    /// `--sheet`: name of the sheet of a workbook.
    pub sheet: Option<String>,
    /// `--records`: JSON pointer of the records.
    pub records: Option<String>,
    /// `--members`: the records are the members of an object, and get their name as this field.
    pub members: Option<String>,
    /// `--null WORD` and `--null COLUMN=WORD`, as they are written.
    pub nulls: Vec<String>,
    /// `--empty-text`.
    pub empty_text: bool,
    /// `--zone ZONE`: of times without an offset.
    pub zone: Option<String>,
    /// `--types COLUMN=TYPE[:PARSE]`.
    pub types: Vec<TypeFlag>,
    /// `--rename OLD=NEW`.
    pub renames: Vec<(String, String)>,
    /// `--ignore COLUMN`.
    pub ignored: Vec<String>,
    /// `--required COLUMN`.
    pub required: Vec<String>,
    /// `--round COLUMN`: times finer than a microsecond are rounded.
    pub rounded: Vec<String>,
    /// `--extra`: the contract allows members that it does not name.
    pub extra: bool,
    /// `--number-rows FIELD[=START]`.
    pub number: Option<RecordNumber>,
    /// `--reading`: the reading of another file, or an edited one. What it says of the file holds, and its columns are
    /// taken by their names.
    pub reading: Option<Reading>,
    /// The contract of an existing dataset: columns are fitted to its fields.
    pub contract: Option<Contract>,
    /// Bytes of text after which inference ends, with [`super::Inference::complete`] false.
    pub max_text_bytes: u64,
}

/// `--types COLUMN=TYPE[:PARSE]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeFlag {
    /// Name of the column, or of its field.
    pub column: String,
    /// Type of the field.
    pub kind: FieldType,
    /// Form of dates and times as in the reading; of Parquet and Arrow also `base64` and `hex`.
    pub parse: Option<String>,
}

/// A flag that cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{flag}: {problem}")]
pub struct FlagError {
    /// The flag.
    pub flag: String,
    /// The rule that is broken, and an example.
    pub problem: String,
}

impl Default for InferOptions {
    fn default() -> Self {
        Self {
            format: None,
            delimiter: None,
            quote: None,
            escape: None,
            encoding: None,
            no_header: false,
            skip_lines: Vec::new(),
            decimal_comma: false,
            sheet: None,
            records: None,
            members: None,
            nulls: Vec::new(),
            empty_text: false,
            zone: None,
            types: Vec::new(),
            renames: Vec::new(),
            ignored: Vec::new(),
            required: Vec::new(),
            rounded: Vec::new(),
            extra: false,
            number: None,
            reading: None,
            contract: None,
            max_text_bytes: MAX_INFERRED_TEXT_BYTES,
        }
    }
}

/// The flags that [`InferOptions::set`] takes, and whether they have a value.
pub const READING_FLAGS: [(&str, bool); 21] = [
    ("--format", true),
    ("--delimiter", true),
    ("--quote", true),
    ("--escape", true),
    ("--encoding", true),
    ("--no-header", false),
    ("--skip-lines", true),
    ("--decimal-comma", false),
    ("--sheet", true),
    ("--records", true),
    ("--members", true),
    ("--null", true),
    ("--empty-text", false),
    ("--zone", true),
    ("--types", true),
    ("--rename", true),
    ("--ignore", true),
    ("--required", true),
    ("--round", true),
    ("--extra", false),
    ("--number-rows", true),
];

impl InferOptions {
    /// Takes a flag as it stands on the command line, or in a [`super::Remedy`]. `--reading` is a file and no flag of
    /// these.
    ///
    /// # Errors
    /// The flag is unknown, or its value breaks a rule.
    pub fn set(&mut self, flag: &str, value: &str) -> Result<(), FlagError> {
        self.take(flag, value).map_err(|problem| FlagError {
            flag: flag.to_owned(),
            problem,
        })
    }

    fn take(&mut self, flag: &str, value: &str) -> Result<(), String> {
        match flag {
            "--format" => {
                self.format = Some(match value {
                    "csv" | "tsv" => TextFormat::Csv,
                    "json" => TextFormat::Json,
                    "json-lines" | "jsonl" | "ndjson" => TextFormat::JsonLines,
                    _ => return Err("expected `csv`, `json` or `json-lines`".to_owned()),
                });
            }
            "--delimiter" => self.delimiter = Some(character(value)?),
            "--quote" => {
                self.quote = Some(match value {
                    "none" => QuoteSign::None,
                    sign => QuoteSign::Is(character(sign)?),
                });
            }
            "--escape" => {
                self.escape = Some(match value {
                    "double" => QuoteEscape::Double,
                    "backslash" => QuoteEscape::Backslash,
                    _ => return Err("expected `double` or `backslash`".to_owned()),
                });
            }
            "--encoding" => {
                let known = encoding_rs::Encoding::for_label_no_replacement(value.as_bytes());
                let known =
                    known.ok_or("expected an encoding of the WHATWG Encoding Standard, such as `windows-1252`")?;
                self.encoding = Some(known.name().to_ascii_lowercase());
            }
            "--no-header" => self.no_header = true,
            "--skip-lines" => self.skip_lines = lines(&self.skip_lines, value)?,
            "--decimal-comma" => self.decimal_comma = true,
            "--sheet" => self.sheet = Some(value.to_owned()),
            "--records" if value.is_empty() || value.starts_with('/') => self.records = Some(value.to_owned()),
            "--records" => return Err("expected a JSON pointer, such as `/data/items`".to_owned()),
            "--members" => self.members = Some(named(value)?),
            "--null" => self.nulls.push(value.to_owned()),
            "--empty-text" => self.empty_text = true,
            "--zone" => {
                TimeZones::new().get(value)?;
                self.zone = Some(value.to_owned());
            }
            "--types" => self.types.push(type_flag(value)?),
            "--rename" => {
                let (old, new) = value
                    .rsplit_once('=')
                    .ok_or("expected `OLD=NEW`, such as `Station ID=station`")?;
                self.renames.push((named(old)?, named(new)?));
            }
            "--ignore" => self.ignored.push(named(value)?),
            "--required" => self.required.push(named(value)?),
            "--round" => self.rounded.push(named(value)?),
            "--extra" => self.extra = true,
            "--number-rows" => {
                let (field, start) = match value.rsplit_once('=') {
                    None => (value, 1),
                    Some((field, start)) => {
                        let start = start.parse().ok().filter(|start| *start >= 0);
                        (
                            field,
                            start.ok_or("expected the number of the first row, such as `row=5211`")?,
                        )
                    }
                };
                self.number = Some(RecordNumber {
                    field: named(field)?,
                    start,
                });
            }
            _ => return Err("is no flag of a reading".to_owned()),
        }
        Ok(())
    }

    /// Returns the options with what [`Self::reading`] says of the file, where no flag says otherwise.
    pub(super) fn with_reading(&self) -> Self {
        let mut options = self.clone();
        let Some(reading) = &self.reading else {
            return options;
        };
        options.format = options.format.or(Some(reading.format));
        options.empty_text |= reading.empty_text;
        options.number = options.number.or_else(|| reading.number.clone());
        if options.encoding.is_none() && reading.encoding != Reading::default().encoding {
            options.encoding = Some(reading.encoding.clone());
        }
        match reading.format {
            TextFormat::Csv => {
                options.delimiter = options.delimiter.or(Some(reading.delimiter));
                options.quote = options
                    .quote
                    .or_else(|| Some(reading.quote.map_or(QuoteSign::None, QuoteSign::Is)));
                options.escape = options.escape.or(Some(reading.escape));
                options.decimal_comma |= reading.decimal == ',';
                options.skip_lines.extend(&reading.skip_lines);
                options.skip_lines.sort_unstable();
                options.skip_lines.dedup();
            }
            TextFormat::Json => {
                options.records = options.records.or_else(|| Some(reading.records.clone()));
                options.members = options.members.or_else(|| reading.members.clone());
            }
            TextFormat::JsonLines => {}
        }
        options
    }

    /// Returns the reading of a column that a person gave.
    pub(crate) fn reading_of(&self, name: &str) -> Option<&ColumnReading> {
        self.reading
            .iter()
            .flat_map(|reading| &reading.columns)
            .find(|column| column.from == name)
    }

    /// Returns the type that a flag gives a column, by its name in the file or that of its field.
    pub(crate) fn type_of(&self, name: &str, field: Option<&str>) -> Option<&TypeFlag> {
        let is = |flag: &&TypeFlag| flag.column == name || Some(flag.column.as_str()) == field;
        self.types.iter().rev().find(is)
    }
}

/// Returns true if one of the names that a person wrote is that of a column in the file, or of its field.
pub(crate) fn names_column(names: &[String], name: &str, field: Option<&str>) -> bool {
    names.iter().any(|known| known == name || Some(known.as_str()) == field)
}

fn named(name: &str) -> Result<String, String> {
    if name.is_empty() {
        return Err("expected a name".to_owned());
    }
    Ok(name.to_owned())
}

fn character(value: &str) -> Result<char, String> {
    let mut characters = value.chars();
    match (characters.next(), characters.next(), value) {
        (Some(only), None, _) if only.is_ascii() => Ok(only),
        (_, _, "tab" | "\\t") => Ok('\t'),
        _ => Err("expected one ASCII character, or `tab`".to_owned()),
    }
}

/// Returns the lines of a list such as `1,2,904` with those that are known, in order.
fn lines(known: &[u64], value: &str) -> Result<Vec<u64>, String> {
    let mut lines = known.to_vec();
    for line in value.split(',') {
        let line = line.trim().parse().ok().filter(|line| *line > 0);
        lines.push(line.ok_or("expected numbers of lines, such as `2` or `1,2,904`")?);
    }
    lines.sort_unstable();
    lines.dedup();
    Ok(lines)
}

fn type_flag(value: &str) -> Result<TypeFlag, String> {
    const EXPECTED: &str =
        "expected `COLUMN=TYPE`, such as `zip=string`, `fare=decimal(2)` or `at=timestamp:unix-seconds`";
    // A pattern may have `=`, the name of a type has none: the first one that a type follows parts them.
    for (place, _) in value.match_indices('=') {
        let (column, rest) = (&value[..place], &value[place + 1..]);
        let (kind, parse) = match rest.split_once(':') {
            Some((kind, parse)) => (kind, Some(parse)),
            None => (rest, None),
        };
        let Some(kind) = field_type(kind) else { continue };
        if column.is_empty() {
            return Err(EXPECTED.to_owned());
        }
        match (kind, parse) {
            (_, None) | (FieldType::String, Some("base64" | "hex")) => {}
            (FieldType::Timestamp | FieldType::Date, Some(parse)) => {
                ValueParse::new(parse)?;
            }
            _ => return Err("only `date`, `timestamp` and, for bytes, `string` have a form".to_owned()),
        }
        return Ok(TypeFlag {
            column: column.to_owned(),
            kind,
            parse: parse.map(str::to_owned),
        });
    }
    Err(EXPECTED.to_owned())
}

/// Returns the type of a name such as `integer` or `decimal(2)`.
fn field_type(name: &str) -> Option<FieldType> {
    let (name, scale) = match name.strip_suffix(')').and_then(|name| name.split_once('(')) {
        Some((name, scale)) => (name, Some(scale.parse().ok()?)),
        None => (name, None),
    };
    let found = match name {
        "string" => FieldTypeName::String,
        "integer" => FieldTypeName::Integer,
        "number" => FieldTypeName::Number,
        "boolean" => FieldTypeName::Boolean,
        "timestamp" => FieldTypeName::Timestamp,
        "json" => FieldTypeName::Json,
        "date" => FieldTypeName::Date,
        "decimal" => FieldTypeName::Decimal,
        _ => return None,
    };
    found.with_scale(scale).ok()
}
