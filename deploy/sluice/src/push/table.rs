//! What a file is, as a table of its columns for people.
//!
//! Invariant: a text of the file is printed so that a terminal does not obey it, and in a command only if it is safe there.

use indicatif::HumanCount;
use tabular::reading::Reading;

use crate::look::{FileLook, LookedAtColumn, LookedAtRemark};
use crate::terminal::{cut, plain, shown};

/// The most columns that are listed.
const MAX_LISTED_COLUMNS: usize = 100;
/// The most characters of a column's name, and of an example.
const MAX_NAME_CHARS: usize = 30;
const MAX_EXAMPLE_CHARS: usize = 20;
/// Examples of a column.
const EXAMPLES: usize = 2;
/// The most notes without a column.
const MAX_LISTED_NOTES: usize = 20;
/// The most questions.
const MAX_LISTED_QUESTIONS: usize = 20;

/// Returns the lines about a file of this name: its form, its columns with the notes on each, and the other notes.
pub(crate) fn lines(name: &str, look: &FileLook) -> Vec<String> {
    let mut lines = vec![head_line(name, look)];
    let columns = look.columns.iter().take(MAX_LISTED_COLUMNS);
    let rows: Vec<[String; 6]> = columns.map(|column| row(column, look)).collect();
    let head = ["column", "field", "type", "nulls", "examples", ""].map(str::to_owned);
    lines.extend(aligned(&head, &rows));
    lines.extend(more(look.columns.len(), MAX_LISTED_COLUMNS, "columns"));
    let others: Vec<_> = look
        .notes
        .iter()
        .filter(|note| !is_listed(note.column.as_deref(), look))
        .collect();
    for note in others.iter().take(MAX_LISTED_NOTES) {
        lines.push(format!("  {}", remark(note)));
    }
    lines.extend(more(others.len(), MAX_LISTED_NOTES, "notes"));
    lines
}

/// Returns the lines about what is open, each with the flags that settle it.
pub(crate) fn questions(look: &FileLook) -> Vec<String> {
    let mut lines: Vec<String> = look.questions.iter().take(MAX_LISTED_QUESTIONS).map(remark).collect();
    lines.extend(more(look.questions.len(), MAX_LISTED_QUESTIONS, "questions"));
    lines
}

/// Returns the lines about a file for a dataset that exists: its form, and what was decided.
pub(crate) fn noted_lines(name: &str, look: &FileLook) -> Vec<String> {
    let mut lines = vec![head_line(name, look)];
    lines.extend(
        look.notes
            .iter()
            .take(MAX_LISTED_NOTES)
            .map(|note| format!("  {}", remark(note))),
    );
    lines.extend(more(look.notes.len(), MAX_LISTED_NOTES, "notes"));
    lines
}

/// Returns a remark with its flags, and before it the part of its place that the message does not name.
fn remark(remark: &LookedAtRemark) -> String {
    let message = &remark.message;
    let column = remark
        .column
        .as_deref()
        .filter(|column| !column.is_empty() && !message.contains(&format!("`{column}`")));
    let line = remark.line.filter(|line| !message.contains(&format!("line {line}")));
    format!("{}{}", place(column, line), sentence(remark))
}

/// Returns a remark with its flags. It has words of the file.
fn sentence(remark: &LookedAtRemark) -> String {
    let flags: Vec<&str> = remark
        .remedies
        .iter()
        .map(|remedy| remedy.command.as_deref().unwrap_or(&remedy.flag))
        .collect();
    if flags.is_empty() {
        return plain(&remark.message);
    }
    plain(&format!("{}: {}", remark.message, flags.join(", or ")))
}

/// Returns the line about entries that are not listed.
fn more(entries: usize, most: usize, noun: &str) -> Option<String> {
    let more = entries.checked_sub(most).filter(|more| *more > 0)?;
    Some(format!("  … and {} more {noun}", HumanCount(more as u64)))
}

fn head_line(name: &str, look: &FileLook) -> String {
    let so_far = if look.complete { "" } else { " so far" };
    let (form, records) = (form(look), HumanCount(look.records));
    format!("{}: {form}; {records} records{so_far}", shown(name))
}

/// Returns the place of a remark, as the begin of its line.
fn place(column: Option<&str>, line: Option<u64>) -> String {
    match (column, line) {
        (Some(column), Some(line)) => format!("column `{}`, line {}: ", shown(column), HumanCount(line)),
        (Some(column), None) => format!("column `{}`: ", shown(column)),
        (None, Some(line)) => format!("line {}: ", HumanCount(line)),
        (None, None) => String::new(),
    }
}

/// Returns true if the column is in the list, where its notes are.
fn is_listed(column: Option<&str>, look: &FileLook) -> bool {
    let columns = look.columns.iter().take(MAX_LISTED_COLUMNS);
    column.is_some_and(|name| columns.clone().any(|column| column.name == name))
}

fn row(column: &LookedAtColumn, look: &FileLook) -> [String; 6] {
    let examples: Vec<String> = column
        .examples
        .iter()
        .take(EXAMPLES)
        .map(|text| cut(text, MAX_EXAMPLE_CHARS))
        .collect();
    let mut notes: Vec<String> = Vec::new();
    if let Some(parse) = &column.parse {
        notes.push(format!("read as {}", shown(parse)));
    }
    for null in &column.null_words {
        let are = if null.count == 1 { "is" } else { "are" };
        notes.push(format!(
            "{} × `{}` {are} null",
            HumanCount(null.count),
            shown(&null.word)
        ));
    }
    let own = look
        .notes
        .iter()
        .filter(|note| note.column.as_deref() == Some(&column.name));
    notes.extend(own.map(sentence));
    [
        cut(&column.name, MAX_NAME_CHARS),
        column
            .field
            .as_deref()
            .map_or_else(|| "left out".to_owned(), |field| cut(field, MAX_NAME_CHARS)),
        column.field.as_ref().map_or_else(String::new, |_| column.type_name()),
        HumanCount(column.nulls).to_string(),
        examples.join(", "),
        notes.join("; "),
    ]
}

/// Returns the rows below each other. The fourth column has numbers.
fn aligned(head: &[String; 6], rows: &[[String; 6]]) -> Vec<String> {
    let mut widths = head.each_ref().map(|cell| cell.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    std::iter::once(head)
        .chain(rows)
        .map(|row| {
            let mut line = String::new();
            for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
                let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
                line.push_str("  ");
                // The numbers end at one place.
                if at == 3 {
                    line.push_str(&pad);
                    line.push_str(cell);
                } else {
                    line.push_str(cell);
                    line.push_str(&pad);
                }
            }
            line.trim_end().to_owned()
        })
        .collect()
}

/// Returns the words for the form of a file, as "CSV with `;`, decimal comma, UTF-8".
pub(crate) fn form(look: &FileLook) -> String {
    let reading = &look.reading;
    match look.format.as_str() {
        "csv" => csv_form(reading),
        "json-lines" => format!("JSON Lines{}", encoding(reading)),
        "json" => {
            let at = match reading.records.as_str() {
                "" => String::new(),
                pointer => format!(" with records at {}", shown(pointer)),
            };
            format!("a JSON document{at}{}", encoding(reading))
        }
        "parquet" => "Parquet".to_owned(),
        "arrow-file" => "an Arrow file".to_owned(),
        "arrow-stream" => "an Arrow stream".to_owned(),
        "xlsx" => "a workbook".to_owned(),
        other => shown(other),
    }
}

fn csv_form(reading: &Reading) -> String {
    let delimiter = match reading.delimiter {
        '\t' => "tabs".to_owned(),
        sign => format!("`{sign}`"),
    };
    let comma = if reading.decimal == ',' { ", decimal comma" } else { "" };
    format!(
        "CSV with {}{comma}, {}",
        shown(&delimiter),
        reading.encoding.to_uppercase()
    )
}

/// Returns the encoding, unless it is the usual one.
fn encoding(reading: &Reading) -> String {
    if reading.encoding.eq_ignore_ascii_case("utf-8") {
        return String::new();
    }
    format!(", {}", reading.encoding.to_uppercase())
}
