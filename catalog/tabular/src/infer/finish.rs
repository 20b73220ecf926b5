//! From the profiles of columns to a contract and a reading.
//!
//! Invariant: a flag that names no column is an error, since it would be forgotten silently.

use std::collections::HashSet;

use types::contract::MAX_FIELDS;
use types::{Contract, Field, FieldType};

use super::answer::{FileFormat, Inference, InferredColumn, MAX_DISTINCT_VALUES, MAX_EXAMPLES, Note, Question, shown};
use super::decide::{DecidedColumn, OpenColumn, Remarks, decimal_sign};
use super::delimited::asked_nulls;
use super::options::{FlagError, InferOptions, names_column};
use super::profile::ColumnProfile;
use crate::decode::MalformedText;
use crate::fit::{ColumnChoice, FittedColumn, fit_columns};
use crate::names::{FieldName, broken_rule, fold, name_fields};
use crate::reading::{ColumnReading, MAX_READING_COLUMNS, Reading, RecordNumber};
use crate::values::tz_release;

/// A column after the pass.
pub(super) struct FoundColumn {
    /// Name in the file.
    pub(super) name: String,
    pub(super) profile: ColumnProfile,
    /// True if the file says nothing in it.
    pub(super) is_left_out: bool,
}

/// A file after the pass.
pub(super) struct FoundFile {
    pub(super) format: FileFormat,
    pub(super) complete: bool,
    /// Bytes that are no text, at which the pass ended.
    pub(super) malformed: Option<MalformedText>,
    pub(super) text_bytes: u64,
    pub(super) records: u64,
    pub(super) columns: Vec<FoundColumn>,
    /// The reading without columns.
    pub(super) reading: Reading,
    /// Lines that are asked about.
    pub(super) asked_lines: Vec<u64>,
}

/// Name, title and wanted type of the field that a column becomes.
struct NamedColumn {
    /// Name of the field; `None` if the column is left out.
    field: Option<String>,
    title: Option<String>,
    wanted: Option<FieldType>,
}

/// Decides on all columns, and makes the answer without its sample.
pub(super) fn finish(found: FoundFile, mut remarks: Remarks, options: &InferOptions) -> Result<Inference, FlagError> {
    let is_cell = found.format == FileFormat::Csv;
    let number = options
        .number
        .clone()
        .or_else(|| options.reading.as_ref().and_then(|reading| reading.number.clone()));
    let named = name_columns(&found, number.as_ref(), options, &mut remarks);
    check_flags(&found, &named, options)?;
    let mut reading = found.reading;
    if is_cell {
        let profiles = found.columns.iter().map(|column| &column.profile);
        reading.decimal = decimal_sign(profiles, reading.delimiter, options);
    }
    let (mut columns, mut fields) = (Vec::new(), Vec::new());
    let mut has_zone = false;
    for (column, named) in found.columns.iter().zip(&named) {
        let open = OpenColumn {
            profile: &column.profile,
            name: &column.name,
            field: named.field.as_deref().unwrap_or_default(),
            is_cell,
            decimal: reading.decimal,
            asked_lines: &found.asked_lines,
            wanted: named.wanted,
            options,
        };
        // Nobody has to answer for a column that is left out.
        let mut unheard = Remarks::default();
        let said = if named.field.is_some() {
            &mut remarks
        } else {
            &mut unheard
        };
        let mut decided = open.decide(said);
        if !is_cell {
            // A member that is absent is null, too.
            decided.nulls = found.records.saturating_sub(column.profile.values);
        }
        has_zone |= decided.zone.is_some();
        columns.push(inferred(column, named, &decided));
        let nulls: Vec<String> = asked_nulls(&column.name, options)
            .into_iter()
            .chain(decided.null_words.iter().map(|word| word.word.clone()))
            .collect();
        let nulls = if named.field.is_some() { nulls } else { Vec::new() };
        if let Some(name) = &named.field {
            fields.push(Field {
                title: named.title.clone(),
                required: names_column(&options.required, &column.name, Some(name)),
                ..Field::new(name.clone(), decided.kind)
            });
        }
        let is_usual =
            named.field.as_deref() == Some(&column.name) && nulls.is_empty() && decided.is_plain(&column.profile);
        if is_cell || !is_usual {
            let is_taken = named.field.is_some();
            reading.columns.push(ColumnReading {
                from: column.name.clone(),
                to: named.field.clone(),
                parse: decided.parse.filter(|_| is_taken),
                zone: decided.zone.filter(|_| is_taken),
                nulls,
                round: decided.round && is_taken,
            });
        }
    }
    if let Some(number) = number {
        if options.contract.is_none() {
            fields.push(Field::new(number.field.clone(), FieldType::Integer));
        }
        reading.number = Some(number);
    }
    if has_zone {
        reading.tz = tz_release().map(str::to_owned);
    }
    let contract = contract_of(fields, options, is_cell, &mut reading, &mut remarks);
    if reading.columns.len() > MAX_READING_COLUMNS {
        let message = format!(
            "the file has {} columns; a reading names at most {MAX_READING_COLUMNS}",
            reading.columns.len()
        );
        remarks.ask(Question::new("too_many_columns", message));
    }
    Ok(Inference {
        format: found.format,
        complete: found.complete,
        text_bytes: found.text_bytes,
        records: found.records,
        columns,
        contract,
        reading,
        sample: Vec::new(),
        notes: remarks.notes,
        questions: remarks.questions,
    })
}

fn inferred(column: &FoundColumn, named: &NamedColumn, decided: &DecidedColumn) -> InferredColumn {
    let words: Vec<&[u8]> = decided.null_words.iter().map(|word| word.word.as_bytes()).collect();
    let values = column.profile.distinct.values(&words);
    let is_whole = !column.profile.distinct.is_incomplete && values.len() <= MAX_DISTINCT_VALUES;
    InferredColumn {
        name: column.name.clone(),
        field: named.field.clone(),
        kind: decided.kind,
        scale: match decided.kind {
            FieldType::Decimal(scale) => Some(scale),
            _ => None,
        },
        parse: decided.parse.clone(),
        nulls: decided.nulls,
        null_words: decided.null_words.clone(),
        examples: values.iter().take(MAX_EXAMPLES).cloned().collect(),
        distinct: is_whole.then_some(values),
    }
}

/// Gives each column the name of its field.
fn name_columns(
    found: &FoundFile,
    number: Option<&RecordNumber>,
    options: &InferOptions,
    remarks: &mut Remarks,
) -> Vec<NamedColumn> {
    let said = |column: &FoundColumn| {
        let folded = fold(&column.name, 0);
        if column.is_left_out || names_column(&options.ignored, &column.name, Some(&folded)) {
            return ColumnChoice::LeftOut;
        }
        let renamed = options
            .renames
            .iter()
            .rev()
            .find(|(old, _)| *old == column.name || *old == folded);
        if let Some((_, new)) = renamed {
            return ColumnChoice::Named(new.clone());
        }
        match options.reading_of(&column.name) {
            None => ColumnChoice::Open,
            Some(known) => known.to.clone().map_or(ColumnChoice::LeftOut, ColumnChoice::Named),
        }
    };
    let said: Vec<ColumnChoice> = found.columns.iter().map(said).collect();
    if let Some(contract) = &options.contract {
        let columns = found.columns.iter().zip(&said).map(|(column, said)| FittedColumn {
            name: column.name.as_str(),
            said,
        });
        let fitted = fit_columns(columns, contract);
        return found
            .columns
            .iter()
            .zip(fitted)
            .map(|(column, fitted)| {
                if let Some(question) = fitted.question(&column.name) {
                    remarks.ask(question);
                }
                NamedColumn {
                    wanted: fitted.field().map(|field| field.kind),
                    field: fitted.into_name(),
                    title: None,
                }
            })
            .collect();
    }
    let named = said.iter().filter_map(|said| match said {
        ColumnChoice::Named(name) => Some(name.clone()),
        _ => None,
    });
    let mut taken: Vec<String> = named.collect();
    taken.extend(number.map(|number| number.field.clone()));
    for name in &taken {
        if let Some(rule) = broken_rule(name) {
            remarks.ask(Question::new(
                "illegal_name",
                format!("the name of a field `{}` {rule}", shown(name)),
            ));
        }
    }
    let mut once = HashSet::new();
    for name in &taken {
        if !once.insert(name.to_lowercase()) {
            let message = format!("two columns would fill the field `{}`", shown(name));
            remarks.ask(Question::new("name_twice", message).remedy("--rename", &[name], "=…"));
        }
    }
    let open = found
        .columns
        .iter()
        .zip(&said)
        .filter(|(_, said)| **said == ColumnChoice::Open);
    let mut made = name_fields(open.map(|(column, _)| column.name.as_str()), &taken).into_iter();
    let mut named = Vec::new();
    for (column, said) in found.columns.iter().zip(said) {
        let name = match said {
            ColumnChoice::Open => made.next(),
            ColumnChoice::LeftOut => None,
            ColumnChoice::Named(name) => Some(FieldName {
                name,
                title: None,
                is_numbered: false,
            }),
        };
        if let Some(FieldName { name, .. }) = name.as_ref().filter(|name| name.is_numbered) {
            let message = format!(
                "column `{}` becomes `{name}`, since another one has its name",
                shown(&column.name)
            );
            remarks.note(Note::new("name_taken", message).column(&column.name));
        }
        let (field, title) = name.map_or((None, None), |name| (Some(name.name), name.title));
        named.push(NamedColumn {
            field,
            title,
            wanted: None,
        });
    }
    named
}

/// Returns the first flag that names no column of the file.
fn check_flags(found: &FoundFile, named: &[NamedColumn], options: &InferOptions) -> Result<(), FlagError> {
    let is_known = |asked: &str| {
        found.columns.iter().zip(named).any(|(column, named)| {
            column.name == asked || named.field.as_deref() == Some(asked) || fold(&column.name, 0) == asked
        })
    };
    let flags = (options.types.iter().map(|flag| ("--types", flag.column.as_str())))
        .chain(options.renames.iter().map(|(old, _)| ("--rename", old.as_str())))
        .chain(options.ignored.iter().map(|name| ("--ignore", name.as_str())))
        .chain(options.required.iter().map(|name| ("--required", name.as_str())))
        .chain(options.rounded.iter().map(|name| ("--round", name.as_str())));
    for (flag, name) in flags {
        if !is_known(name) {
            return Err(FlagError {
                flag: flag.to_owned(),
                problem: format!("the file has no column `{}`", shown(name)),
            });
        }
    }
    Ok(())
}

/// Makes the contract. What cannot be one is a question.
fn contract_of(
    mut fields: Vec<Field>,
    options: &InferOptions,
    is_cell: bool,
    reading: &mut Reading,
    remarks: &mut Remarks,
) -> Option<Contract> {
    if let Some(contract) = &options.contract {
        return Some(contract.clone());
    }
    if fields.is_empty() {
        remarks.ask(Question::new("no_columns", "no column is left to be a field"));
        return None;
    }
    if fields.len() > MAX_FIELDS {
        if options.extra && !is_cell {
            // The names of extras are those of the file.
            let kept: HashSet<String> = fields.drain(MAX_FIELDS..).map(|field| field.name).collect();
            reading
                .columns
                .retain(|column| column.to.as_ref().is_none_or(|to| !kept.contains(to)));
        } else {
            let message = format!(
                "the file has {} columns; a contract has at most {MAX_FIELDS} fields",
                fields.len()
            );
            let question = Question::new("too_many_columns", message);
            remarks.ask(if is_cell {
                question
            } else {
                question.remedy("--extra", &[], "")
            });
            return None;
        }
    }
    match Contract::new(fields, options.extra) {
        Ok(contract) => Some(contract),
        Err(error) => {
            remarks.ask(Question::new("contract", format!("no contract can be made: {error}")));
            None
        }
    }
}
