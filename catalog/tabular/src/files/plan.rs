//! The field that each column of a file becomes, and what a person is told of it.

use types::{Contract, Field, FieldType, decimal};

use super::cell::{BytesForm, FileCellRule};
use super::profile::{FileCellKind, FileColumnProfile, Found};
use crate::fit::{ColumnChoice, FittedColumn, fit_columns};
use crate::infer::{InferOptions, Note, NullWordCount, Question, names_column, shown};
use crate::names::{fold, name_fields};
use crate::values::{TimeZones, Zone};

/// Way in which one column of a file becomes a field.
#[derive(Clone, Debug)]
pub(super) struct ColumnPlan {
    /// Field that gets the values; none if they are left out.
    pub(super) to: Option<String>,
    pub(super) kind: FieldType,
    pub(super) rule: FileCellRule,
}

/// Notes and questions.
#[derive(Debug, Default)]
pub(super) struct FileRemarks {
    pub(super) notes: Vec<Note>,
    pub(super) questions: Vec<Question>,
}

/// Returns the rule by which the values of a column are read, before their field is known.
pub(super) fn rule_of(name: &str, options: &InferOptions) -> FileCellRule {
    let column = options
        .reading
        .iter()
        .flat_map(|reading| &reading.columns)
        .find(|column| column.from == name);
    // A field has its name only once all columns are known, so flags that name a field are taken by its folded name.
    let field = fold(name, 0);
    let field = Some(field.as_str());
    let mut nulls: Vec<String> = Vec::new();
    for flag in &options.nulls {
        match flag.split_once('=') {
            Some((column, word)) if column == name || Some(column) == field => nulls.push(word.to_owned()),
            _ => nulls.push(flag.clone()),
        }
    }
    if let Some(reading) = &options.reading {
        nulls.extend(reading.nulls.iter().cloned());
    }
    nulls.extend(column.into_iter().flat_map(|column| column.nulls.iter().cloned()));
    let zone = options
        .zone
        .as_deref()
        .or_else(|| column.and_then(|column| column.zone.as_deref()));
    let zone = zone.and_then(|name| TimeZones::new().get(name).ok());
    let parse = options.type_of(name, field).and_then(|flag| flag.parse.as_deref());
    FileCellRule {
        zone: zone.unwrap_or(Zone::Fixed(0)),
        rounds: names_column(&options.rounded, name, field) || column.is_some_and(|column| column.round),
        bytes: match parse {
            Some("base64") => Some(BytesForm::Base64),
            Some("hex") => Some(BytesForm::Hex),
            _ => None,
        },
        nulls,
    }
}

/// Returns the name of the field of each column; `None` where a column is left out.
pub(super) fn fields_of(
    names: &[String],
    profiles: &[FileColumnProfile],
    options: &InferOptions,
    remarks: &mut FileRemarks,
) -> Vec<Option<(String, Option<String>)>> {
    let readings = options.reading.iter().flat_map(|reading| &reading.columns);
    let said = |name: &str| {
        let renamed = options.renames.iter().find(|(old, _)| old == name);
        let read = readings.clone().find(|column| column.from == name);
        match (renamed, read) {
            (Some((_, new)), _) => Some(Some(new.clone())),
            (None, Some(column)) => Some(column.to.clone()),
            (None, None) => None,
        }
    };
    let is_out = |name: &str, profile: &FileColumnProfile| {
        let field = fold(name, 0);
        names_column(&options.ignored, name, Some(&field))
            || said(name) == Some(None)
            || (name.is_empty() && profile.is_empty())
    };
    let columns = || names.iter().zip(profiles);
    if let Some(contract) = &options.contract {
        let choices = columns().map(|(name, profile)| match said(name) {
            _ if is_out(name, profile) => ColumnChoice::LeftOut,
            Some(Some(to)) => ColumnChoice::Named(to),
            _ => ColumnChoice::Open,
        });
        let choices: Vec<_> = choices.collect();
        let fitted = names
            .iter()
            .zip(&choices)
            .map(|(name, said)| FittedColumn { name, said });
        let fits = fit_columns(fitted, contract).into_iter().zip(names).map(|(fit, name)| {
            remarks.questions.extend(fit.question(name));
            fit.into_name().map(|field| (field, None))
        });
        return fits.collect();
    }
    let taken: Vec<String> = columns()
        .filter(|(name, profile)| !is_out(name, profile))
        .filter_map(|(name, _)| said(name).flatten())
        .collect();
    let free: Vec<(usize, &str)> = columns()
        .enumerate()
        .filter(|(_, (name, profile))| !is_out(name, profile) && said(name).is_none())
        .map(|(at, (name, _))| (at, name.as_str()))
        .collect();
    // A column without a name is called by its place among all.
    let places: Vec<String> = free
        .iter()
        .map(|(at, name)| {
            if name.is_empty() {
                format!("column_{}", at + 1)
            } else {
                (*name).to_owned()
            }
        })
        .collect();
    let made = name_fields(places.iter().map(String::as_str), &taken);
    for (name, _) in places.iter().zip(&made).filter(|(_, made)| made.is_numbered) {
        let message = "another column has this name already, so the field gets a number";
        remarks.notes.push(Note::new("name_twice", message).column(name));
    }
    let made = made.into_iter().map(|made| (made.name, made.title));
    let mut made = free.iter().map(|(at, _)| *at).zip(made).peekable();
    let mut fields = Vec::with_capacity(names.len());
    for (at, (name, profile)) in columns().enumerate() {
        let field = match made.next_if(|(of, _)| *of == at) {
            Some((_, field)) => Some(field),
            None if is_out(name, profile) => None,
            None => said(name).flatten().map(|to| (to, Some(name.clone()))),
        };
        fields.push(field);
    }
    fields
}

/// Returns the type of a column by its values.
pub(super) fn kind_of(
    name: &str,
    field: &str,
    profile: &FileColumnProfile,
    options: &InferOptions,
    remarks: &mut FileRemarks,
) -> FieldType {
    let known = options
        .contract
        .as_ref()
        .and_then(|contract| contract.fields().iter().find(|known| known.name == field));
    let flag = options.type_of(name, Some(field)).map(|flag| flag.kind);
    let kind = flag.or_else(|| known.map(|known| known.kind));
    let kind = kind.unwrap_or_else(|| found_kind(name, profile, remarks));
    remark(name, kind, profile, options, remarks);
    kind
}

fn found_kind(name: &str, profile: &FileColumnProfile, remarks: &mut FileRemarks) -> FieldType {
    let note = |code, message: &str| Note::new(code, message).column(name);
    match profile.kinds()[..] {
        [] => {
            remarks
                .notes
                .push(note("no_values", "the column has no values, so it is text"));
            FieldType::String
        }
        [FileCellKind::Boolean] => FieldType::Boolean,
        [FileCellKind::Whole] if profile.is_beyond => FieldType::Decimal(0),
        [FileCellKind::Whole] => FieldType::Integer,
        [FileCellKind::Floating] | [FileCellKind::Whole, FileCellKind::Floating] => FieldType::Number,
        [FileCellKind::Decimal] => match (profile.whole_digits, profile.fraction_digits) {
            (_, 0) if !profile.is_beyond => FieldType::Integer,
            (whole, scale)
                if scale <= usize::from(decimal::MAX_SCALE) && whole + scale <= usize::from(decimal::MAX_DIGITS) =>
            {
                FieldType::Decimal(u8::try_from(scale).unwrap_or(decimal::MAX_SCALE))
            }
            _ => {
                let message = format!(
                    "kept as text: a decimal has at most {} digits, {} of them after the point",
                    decimal::MAX_DIGITS,
                    decimal::MAX_SCALE
                );
                remarks.notes.push(note("too_many_digits", &message));
                FieldType::String
            }
        },
        [FileCellKind::Day] => FieldType::Date,
        [FileCellKind::Local | FileCellKind::Instant] | [FileCellKind::Day, FileCellKind::Local] => {
            FieldType::Timestamp
        }
        [FileCellKind::Nested] => FieldType::Json,
        [FileCellKind::Text | FileCellKind::Form | FileCellKind::Bytes] | [FileCellKind::Text, FileCellKind::Form] => {
            FieldType::String
        }
        ref mixed => {
            remarks.notes.push(mixed_note(name, profile, mixed));
            FieldType::String
        }
    }
}

/// Returns the note on a column with values of several kinds: of the rarest, the first is named.
fn mixed_note(name: &str, profile: &FileColumnProfile, kinds: &[FileCellKind]) -> Note {
    let mut kinds = kinds.to_vec();
    kinds.sort_by_key(|kind| profile.of(*kind).count);
    let few = kinds.first().copied().unwrap_or(FileCellKind::Text);
    let most = kinds.last().copied().unwrap_or(FileCellKind::Text);
    let Found { count, row, value } = profile.of(few);
    let message = format!(
        "kept as text: it has {} {} and {count} {}, the first of them in row {row}: `{value}`",
        profile.of(most).count,
        most.plural(),
        few.plural()
    );
    let note = Note::new("mixed", message).column(name).line(*row);
    if few == FileCellKind::Text {
        note.remedy("--null", &[name, value], "")
    } else {
        note
    }
}

/// Says what else there is to know of a column that becomes this type.
fn remark(name: &str, kind: FieldType, profile: &FileColumnProfile, options: &InferOptions, remarks: &mut FileRemarks) {
    let FileRemarks { notes, questions } = remarks;
    let note = |code, message: String| Note::new(code, message).column(name);
    let ask = |code, message: String, of: &Found| Question::new(code, message).column(name).line(of.row);
    if profile.nans > 0 {
        notes.push(note("nan", format!("{} × NaN are null", profile.nans)));
    }
    if profile.failed > 0 {
        notes.push(note(
            "cell_errors",
            format!("{} × an error of a formula is null", profile.failed),
        ));
    }
    for NullWordCount { word, count } in &profile.null_words {
        notes.push(note("null_word", format!("{count} × `{word}` are null")));
    }
    if profile.inexact.count > 0 && options.contract.is_none() {
        let message = "it has numbers of more than 15 digits, of which a spreadsheet and a double keep no more";
        notes.push(note("inexact", message.to_owned()).line(profile.inexact.row));
    }
    let is_time = kind == FieldType::Timestamp;
    let has_zone = options.zone.is_some() || options.reading_of(name).is_some_and(|column| column.zone.is_some());
    if is_time && profile.of(FileCellKind::Local).count > 0 && !has_zone {
        let message = "no zone in the file: taken as UTC".to_owned();
        notes.push(note("zone", message).remedy("--zone", &[], "Europe/Oslo"));
    }
    if is_time && profile.of(FileCellKind::Day).count > 0 {
        notes.push(note(
            "midnight",
            format!("dates in `{}` are taken as midnight", shown(name)),
        ));
    }
    if is_time && profile.ambiguous.count > 0 {
        let Found { count, row, value } = &profile.ambiguous;
        let message = format!("{count} times do not exist in the zone, or exist twice, and are refused: `{value}`");
        notes.push(note("ambiguous_time", message).line(*row));
    }
    let infinities = &profile.infinities;
    if infinities.count > 0 && kind != FieldType::String {
        let message = format!("it has {} infinities, which JSON has not", infinities.count);
        let question = ask("infinity", message, infinities).remedy("--null", &[], "inf");
        questions.push(question.remedy("--types", &[name], "=string"));
    }
    if is_time && profile.finer.count > 0 {
        let message = format!(
            "it has {} times finer than a microsecond: `{}`",
            profile.finer.count, profile.finer.value
        );
        if !rule_of(name, options).rounds {
            questions.push(ask("fine_time", message, &profile.finer).remedy("--round", &[name], ""));
        }
    }
    if profile.unsaid.count > 0 {
        let of = &profile.unsaid;
        let message = format!(
            "it has {} times outside of the years 1 to 9999: `{}`",
            of.count, of.value
        );
        questions.push(ask("years", message, of).remedy("--ignore", &[name], ""));
    }
    if profile.opaque.count > 0 && rule_of(name, options).bytes.is_none() {
        let question = ask("bytes", "its bytes are no text of UTF-8".to_owned(), &profile.opaque);
        let question = question.remedy("--types", &[name], "=string:base64");
        questions.push(
            question
                .remedy("--types", &[name], "=string:hex")
                .remedy("--ignore", &[name], ""),
        );
    }
    if profile.unsayable.count > 0 {
        let of = &profile.unsayable;
        questions.push(
            ask("unsayable", format!("JSON cannot say a value: {}", of.value), of).remedy("--ignore", &[name], ""),
        );
    }
    if profile.unstored.count > 0 {
        let of = &profile.unstored;
        let message = format!(
            "{} formulas have no value in the file; open and save it with a spreadsheet program, which computes them",
            of.count
        );
        questions.push(ask("formulas", message, of).remedy("--ignore", &[name], ""));
    }
}

/// Returns the contract of the fields; `None` if there is none, which a question says.
pub(super) fn contract_of(fields: Vec<Field>, options: &InferOptions, remarks: &mut FileRemarks) -> Option<Contract> {
    if let Some(contract) = &options.contract {
        let missing = contract.fields().iter().find(|field| {
            let is_number = options.number.as_ref().is_some_and(|number| number.field == field.name);
            field.required && !is_number && !fields.iter().any(|known| known.name == field.name)
        });
        if let Some(missing) = missing {
            let message = format!("no column is the field `{}`, which the dataset requires", missing.name);
            remarks.questions.push(Question::new("no_column", message).remedy(
                "--rename",
                &["COLUMN", &missing.name],
                "",
            ));
        }
        return Some(contract.clone());
    }
    match Contract::new(fields, options.extra) {
        Ok(contract) => Some(contract),
        Err(error) => {
            remarks.questions.push(Question::new("contract", error.to_string()));
            None
        }
    }
}
