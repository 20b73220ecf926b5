//! Files that are read in any order: Parquet, Arrow and XLSX.
//!
//! Invariants:
//! - Line N of the JSON Lines is row N of the file. A row that is no record is an empty line.
//! - A value that does not fit its field is not left out: its line has it as text, which the field refuses.

mod arrow_columns;
mod arrow_file;
mod cell;
mod error;
mod input;
mod nested;
mod parquet_file;
mod plan;
mod profile;
mod sheet;
mod table;
mod visitor;
mod words;

use std::io::{self, Read as _, Write};

use serde_json::Value;
use types::{Contract, Field, FieldType, canonical};

pub use error::FileError;
pub use input::FileInput;
pub use sheet::MAX_UNPACKED_BYTES;

use self::cell::{FileCell, FileCellRule};
use self::plan::{ColumnPlan, FileRemarks};
use self::profile::{FileColumnProfile, HintRoom};
use self::visitor::{MAX_COLUMNS, RowVisitor};
use crate::infer::{FileFormat, InferOptions, Inference, InferredColumn, MAX_REMARKS, MAX_SAMPLE_RECORDS, Note, shown};
use crate::reading::Reading;

/// The sheet of a workbook, and the row that names its columns.
#[derive(Clone, Debug, Default)]
struct SheetChoice {
    /// Name of the sheet; otherwise the first that is visible and not empty.
    sheet: Option<String>,
    /// True if no row names the columns. Otherwise the row is found.
    has_no_header: bool,
    /// Rows that are no data, from 1 and ascending.
    skipped_rows: Vec<u64>,
}

impl SheetChoice {
    fn of(options: &InferOptions) -> Self {
        Self {
            sheet: options.sheet.clone(),
            has_no_header: options.no_header,
            skipped_rows: options.skip_lines.clone(),
        }
    }

    fn skips(&self, row: u64) -> bool {
        self.skipped_rows.binary_search(&row).is_ok()
    }
}

/// A file whose columns are known.
#[derive(Clone, Debug)]
pub struct FilePlan {
    format: FileFormat,
    choice: SheetChoice,
    columns: Vec<ColumnPlan>,
}

/// A value that does not fit its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowProblem {
    /// Row of the file, from 1, which is the line of the JSON Lines.
    pub row: u64,
    /// Name of the field.
    pub field: String,
    /// Begin of the value.
    pub value: String,
    /// `value`, or `ambiguous_time`.
    pub code: &'static str,
    /// The problem in words.
    pub problem: String,
}

/// Returns the format of a file, by its bytes; `None` if it is none of these.
pub fn format_of(input: &FileInput) -> io::Result<Option<FileFormat>> {
    let mut begin = Vec::new();
    input.rewound().take(8).read_to_end(&mut begin)?;
    Ok(match &begin[..] {
        [b'P', b'A', b'R', b'1', ..] => Some(FileFormat::Parquet),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Some(FileFormat::ArrowFile),
        // The marker of continuation, and the length of the schema.
        [0xff, 0xff, 0xff, 0xff, ..] => Some(FileFormat::ArrowStream),
        [b'P', b'K', 3, 4, ..] if sheet::is_workbook(input) => Some(FileFormat::Xlsx),
        _ => None,
    })
}

/// Reads a whole file: what it is, the dataset that it can become, and how [`convert_file`] makes records of it.
pub fn infer_file(
    input: &FileInput,
    format: FileFormat,
    options: &InferOptions,
) -> Result<(Inference, FilePlan), FileError> {
    let choice = SheetChoice::of(options);
    let mut profiler = Profiler {
        options,
        choice: &choice,
        names: Vec::new(),
        rules: Vec::new(),
        profiles: Vec::new(),
        room: HintRoom::default(),
        records: 0,
    };
    let notes = table::visit(input, format, &choice, &mut profiler)?;
    let Profiler {
        names,
        rules,
        profiles,
        records,
        ..
    } = profiler;
    let mut remarks = FileRemarks::default();
    let notes = notes.into_iter().map(|note| Note::new("sheet", note));
    remarks.notes.extend(notes);
    let fields = plan::fields_of(&names, &profiles, options, &mut remarks);
    let mut contract_fields = Vec::new();
    let (mut columns, mut plans) = (Vec::new(), Vec::new());
    for (((name, profile), rule), field) in names.into_iter().zip(&profiles).zip(rules).zip(fields) {
        let kind = match &field {
            Some((to, _)) => plan::kind_of(&name, to, profile, options, &mut remarks),
            None => FieldType::String,
        };
        let to = field.as_ref().map(|(to, _)| to.clone());
        if let Some((to, title)) = field {
            let required = crate::infer::names_column(&options.required, &name, Some(&to));
            contract_fields.push(Field {
                required,
                title: title.filter(|title| *title != to),
                ..Field::new(to, kind)
            });
        }
        // A column of a sheet without name and values is none.
        if !name.is_empty() || !profile.is_empty() {
            columns.push(inferred(&name, to.clone(), kind, profile));
        }
        plans.push(ColumnPlan { to, kind, rule });
    }
    if let Some(number) = &options.number {
        contract_fields.push(Field::new(number.field.as_str(), FieldType::Integer));
    }
    let contract = plan::contract_of(contract_fields, options, &mut remarks);
    let plan = FilePlan {
        format,
        choice,
        columns: plans,
    };
    let sample = match &contract {
        Some(contract) => sample(input, &plan, contract)?,
        None => Vec::new(),
    };
    remarks.notes.truncate(MAX_REMARKS);
    remarks.questions.truncate(MAX_REMARKS);
    let inference = Inference {
        format,
        complete: true,
        text_bytes: parquet::file::reader::Length::len(input),
        records,
        columns,
        contract,
        reading: Reading {
            number: options.number.clone(),
            ..Reading::default()
        },
        sample,
        notes: remarks.notes,
        questions: remarks.questions,
    };
    Ok((inference, plan))
}

fn inferred(name: &str, field: Option<String>, kind: FieldType, profile: &FileColumnProfile) -> InferredColumn {
    InferredColumn {
        name: shown(name),
        field,
        kind,
        scale: match kind {
            FieldType::Decimal(scale) => Some(scale),
            _ => None,
        },
        parse: None,
        nulls: profile.nulls,
        null_words: profile.null_words.clone(),
        examples: profile.examples.clone(),
        distinct: profile.distinct(),
    }
}

/// Takes the records of a file as lines of JSON, and what is wrong with them.
pub trait RecordSink {
    /// Takes the record of a row, from 1, without a line end. Rows ascend; those between them are no records.
    fn record(&mut self, row: u64, line: &[u8]) -> io::Result<()>;

    /// Takes a value that does not fit its field, before the record. The record has it as text.
    fn problem(&mut self, problem: RowProblem) -> io::Result<()>;
}

/// Converts the records of a file.
///
/// # Errors
/// Also those of the sink.
pub fn convert_records(input: &FileInput, plan: &FilePlan, sink: &mut dyn RecordSink) -> Result<(), FileError> {
    let mut converter = RowConverter {
        plan,
        sink,
        line: Vec::new(),
        left: u64::MAX,
    };
    table::visit(input, plan.format, &plan.choice, &mut converter)?;
    Ok(())
}

/// Writes the records of a file as JSON Lines, so that line N is row N. `on_problem` learns of each value that does not fit
/// its field. `out` is not flushed.
///
/// # Errors
/// Also those of `out` and of `on_problem`.
pub fn convert_file(
    input: &FileInput,
    plan: &FilePlan,
    out: &mut dyn Write,
    on_problem: &mut dyn FnMut(RowProblem) -> io::Result<()>,
) -> Result<(), FileError> {
    let mut lines = NumberedLines {
        out,
        on_problem,
        lines: 0,
    };
    convert_records(input, plan, &mut lines)
}

/// Writes records on the lines of their rows.
struct NumberedLines<'a> {
    out: &'a mut dyn Write,
    on_problem: &'a mut dyn FnMut(RowProblem) -> io::Result<()>,
    lines: u64,
}

impl RecordSink for NumberedLines<'_> {
    fn record(&mut self, row: u64, line: &[u8]) -> io::Result<()> {
        while self.lines + 1 < row {
            self.out.write_all(b"\n")?;
            self.lines += 1;
        }
        self.out.write_all(line)?;
        self.out.write_all(b"\n")?;
        self.lines += 1;
        Ok(())
    }

    fn problem(&mut self, problem: RowProblem) -> io::Result<()> {
        (self.on_problem)(problem)
    }
}

/// Returns the first records as they will be stored.
fn sample(input: &FileInput, plan: &FilePlan, contract: &Contract) -> Result<Vec<Value>, FileError> {
    let mut sample = RecordSample {
        contract,
        records: Vec::new(),
    };
    let mut converter = RowConverter {
        plan,
        sink: &mut sample,
        line: Vec::new(),
        left: MAX_SAMPLE_RECORDS as u64,
    };
    match table::visit(input, plan.format, &plan.choice, &mut converter) {
        Ok(_) | Err(FileError::Enough) => Ok(sample.records),
        Err(error) => Err(error),
    }
}

/// The first records.
struct RecordSample<'a> {
    contract: &'a Contract,
    records: Vec<Value>,
}

impl RecordSink for RecordSample<'_> {
    fn record(&mut self, _row: u64, line: &[u8]) -> io::Result<()> {
        self.records.push(stored(line, self.contract));
        Ok(())
    }

    fn problem(&mut self, _problem: RowProblem) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a record as it is stored, or as it was written if it is refused.
fn stored(line: &[u8], contract: &Contract) -> Value {
    let mut record = serde_json::from_slice(line).unwrap_or(Value::Null);
    if let Value::Object(members) = &mut record {
        for field in contract.fields() {
            members.entry(&field.name).or_insert(Value::Null);
        }
    }
    record
}

/// Profiles the columns of a file.
struct Profiler<'a> {
    options: &'a InferOptions,
    choice: &'a SheetChoice,
    names: Vec<String>,
    rules: Vec<FileCellRule>,
    profiles: Vec<FileColumnProfile>,
    room: HintRoom,
    records: u64,
}

impl RowVisitor for Profiler<'_> {
    fn begin(&mut self, names: Vec<String>) -> Result<(), FileError> {
        self.rules = names.iter().map(|name| plan::rule_of(name, self.options)).collect();
        self.profiles = vec![FileColumnProfile::default(); names.len()];
        self.names = names;
        Ok(())
    }

    fn row(&mut self, number: u64, cells: &[FileCell<'_>]) -> Result<(), FileError> {
        if self.choice.skips(number) {
            return Ok(());
        }
        if cells.len() > MAX_COLUMNS {
            return Err(FileError::TooLarge(format!(
                "the file has more than {MAX_COLUMNS} columns"
            )));
        }
        while self.names.len() < cells.len() {
            self.names.push(String::new());
            self.rules.push(plan::rule_of("", self.options));
            let mut profile = FileColumnProfile::default();
            // The rows before have no cell here.
            profile.nulls = self.records;
            self.profiles.push(profile);
        }
        for ((cell, profile), rule) in cells.iter().zip(&mut self.profiles).zip(&self.rules) {
            profile.add(number, cell, rule, &mut self.room);
        }
        for profile in &mut self.profiles[cells.len()..] {
            profile.nulls += 1;
        }
        self.records += 1;
        Ok(())
    }
}

/// Writes a value that its field refuses, with the text that stood there. Text alone would be a value of some types.
fn write_misfit(line: &mut Vec<u8>, kind: FieldType, text: &str) {
    match kind {
        FieldType::String | FieldType::Decimal(_) => {
            line.push(b'[');
            canonical::write_string(line, text);
            line.push(b']');
        }
        // Any value is one of this type, but for this character.
        FieldType::Json => canonical::write_string(line, &format!("\0{text}")),
        _ => canonical::write_string(line, text),
    }
}

/// Makes lines of rows.
struct RowConverter<'a> {
    plan: &'a FilePlan,
    sink: &'a mut dyn RecordSink,
    line: Vec<u8>,
    /// The number of records that are still wanted.
    left: u64,
}

impl RowVisitor for RowConverter<'_> {
    fn begin(&mut self, _names: Vec<String>) -> Result<(), FileError> {
        Ok(())
    }

    fn row(&mut self, number: u64, cells: &[FileCell<'_>]) -> Result<(), FileError> {
        if self.plan.choice.skips(number) {
            return Ok(());
        }
        self.left = self.left.checked_sub(1).ok_or(FileError::Enough)?;
        self.line.clear();
        let mut before = b'{';
        for (column, cell) in self.plan.columns.iter().zip(cells) {
            let Some(to) = &column.to else { continue };
            // A member that is missing is null, and shorter.
            if cell.is_null(&column.rule) {
                continue;
            }
            self.line.push(before);
            before = b',';
            canonical::write_string(&mut self.line, to);
            self.line.push(b':');
            let start = self.line.len();
            if let Err(misfit) = cell.write(column.kind, &column.rule, &mut self.line) {
                self.line.truncate(start);
                let value = shown(&cell.shown());
                write_misfit(&mut self.line, column.kind, &value);
                self.sink.problem(RowProblem {
                    row: number,
                    field: to.clone(),
                    value,
                    code: misfit.code,
                    problem: misfit.problem,
                })?;
            }
        }
        if before == b'{' {
            self.line.push(b'{');
        }
        self.line.push(b'}');
        self.sink.record(number, &self.line)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
