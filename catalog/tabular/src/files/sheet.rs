//! Rows of a sheet of XLSX (ECMA-376 part 1, section 18).
//!
//! Invariant: cells are read one after the other and never as a rectangle, whose size a file only claims. A file whose parts
//! claim more than [`MAX_UNPACKED_BYTES`] is not unpacked; one that lies about it is why this runs in a process of its own.

mod header;
mod hidden;

use std::borrow::Cow;
use std::io::BufReader;

use calamine::{DataRef, ExcelDateTime, Reader as _, SheetType, SheetVisible, Xlsx, XlsxError};
use types::Date;
use zip::ZipArchive;

use self::header::SheetHead;
use super::SheetChoice;
use super::cell::FileCell;
use super::error::FileError;
use super::input::FileInput;
use super::nested::iso_duration_of_millis;
use super::visitor::{MAX_COLUMNS, RowVisitor};

/// The most bytes of all parts of a workbook.
pub const MAX_UNPACKED_BYTES: u64 = 256 << 20;
/// The most rows of a sheet.
const MAX_ROWS: u64 = 1_048_576;
const MILLISECONDS_PER_DAY: f64 = 86_400_000.0;

type Workbook = Xlsx<BufReader<FileInput>>;

/// Visits every row of the sheet that is chosen, else of the first that is visible and not empty.
pub(super) fn visit(
    input: FileInput,
    choice: &SheetChoice,
    visitor: &mut dyn RowVisitor,
) -> Result<Vec<String>, FileError> {
    check_size(input.rewound())?;
    let mut workbook: Workbook = Xlsx::new(BufReader::new(input.rewound()))?;
    let name = chosen(&mut workbook, choice)?;
    let mut notes = Vec::new();
    let others = others(&workbook, &name);
    if choice.sheet.is_none() && !others.is_empty() {
        notes.push(format!(
            "the sheet `{name}` is read; there {}: `--sheet` names another",
            match &others[..] {
                [other] => format!("is also `{other}`"),
                others => format!("are also `{}`", others.join("`, `")),
            }
        ));
    }
    let mut head = SheetHead::new(choice, visitor);
    let failures = rows(&mut workbook, &name, &mut head)?;
    if failures > 0 {
        notes.push(format!("{failures} × an error of a kind that is not known is null"));
    }
    let ended = head.end()?;
    notes.extend(ended.note);
    notes.extend(hidden::notes(input, &name, ended.columns));
    Ok(notes)
}

/// Returns true for an archive with the parts of a workbook.
pub(super) fn is_workbook(input: &FileInput) -> bool {
    let archive = ZipArchive::new(BufReader::new(input.rewound()));
    archive.is_ok_and(|archive| archive.index_for_name("xl/workbook.xml").is_some())
}

/// Refuses a workbook whose parts claim to be large.
fn check_size(input: FileInput) -> Result<(), FileError> {
    let mut archive = ZipArchive::new(BufReader::new(input)).map_err(XlsxError::from)?;
    let mut bytes = 0_u64;
    for part in 0..archive.len() {
        let part = archive.by_index_raw(part).map_err(XlsxError::from)?;
        bytes = bytes.saturating_add(part.size());
    }
    if bytes > MAX_UNPACKED_BYTES {
        return Err(FileError::TooLarge(format!(
            "the workbook comes to {} MiB unpacked, and at most {} are read; save the sheet as CSV",
            bytes >> 20,
            MAX_UNPACKED_BYTES >> 20
        )));
    }
    Ok(())
}

/// Returns the names of the other visible sheets.
fn others(workbook: &Workbook, name: &str) -> Vec<String> {
    let sheets = workbook.sheets_metadata().iter();
    sheets
        .filter(|sheet| sheet.typ == SheetType::WorkSheet && sheet.visible == SheetVisible::Visible)
        .map(|sheet| sheet.name.clone())
        .filter(|other| other != name)
        .collect()
}

fn chosen(workbook: &mut Workbook, choice: &SheetChoice) -> Result<String, FileError> {
    let sheets = workbook.sheets_metadata().to_vec();
    let mut sheets = sheets.into_iter().filter(|sheet| sheet.typ == SheetType::WorkSheet);
    if let Some(name) = &choice.sheet {
        let found = sheets.clone().find(|sheet| sheet.name == *name).map(|sheet| sheet.name);
        return found.ok_or_else(|| {
            let names: Vec<_> = sheets.map(|sheet| sheet.name).collect();
            FileError::Refused(format!(
                "the workbook has no sheet `{name}`; its sheets are `{}`",
                names.join("`, `")
            ))
        });
    }
    let visible = sheets.by_ref().filter(|sheet| sheet.visible == SheetVisible::Visible);
    for sheet in visible {
        let mut cells = workbook.worksheet_cells_reader(&sheet.name)?;
        while let Some(cell) = cells.next_cell()? {
            if *cell.get_value() != DataRef::Empty {
                return Ok(sheet.name);
            }
        }
    }
    Err(FileError::Refused(
        "the workbook has no visible sheet with cells".to_owned(),
    ))
}

/// Hands on every row that has cells, and returns the number of cells that could not be read.
fn rows(workbook: &mut Workbook, name: &str, head: &mut SheetHead<'_>) -> Result<u64, FileError> {
    let mut reader = workbook.worksheet_cells_reader(name)?;
    let (mut row, mut cells, mut failures) = (0, Vec::new(), 0);
    loop {
        let record = match reader.next_cell_with_formula_metadata() {
            Ok(Some(record)) => record,
            Ok(None) => break,
            // The cell is left out, and so null. The reader goes on behind it.
            Err(XlsxError::CellError(_)) => {
                failures += 1;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let (number, column) = (u64::from(record.pos.0) + 1, record.pos.1 as usize);
        if number < row || number > MAX_ROWS {
            return Err(FileError::Refused(format!(
                "the workbook cannot be read: row {number} follows row {row}"
            )));
        }
        if column >= MAX_COLUMNS {
            return Err(FileError::TooLarge(format!(
                "the sheet has more than {MAX_COLUMNS} columns"
            )));
        }
        if number > row {
            if !cells.is_empty() {
                head.row(row, std::mem::take(&mut cells))?;
            }
            row = number;
        }
        let cell = cell_of(record.value, record.formula.is_some());
        if cell != FileCell::Null {
            if cells.len() <= column {
                cells.resize(column + 1, FileCell::Null);
            }
            cells[column] = cell;
        }
    }
    if !cells.is_empty() {
        head.row(row, cells)?;
    }
    Ok(failures)
}

fn cell_of(value: DataRef<'_>, is_formula: bool) -> FileCell<'_> {
    match value {
        DataRef::Empty if is_formula => FileCell::Unstored,
        DataRef::Empty => FileCell::Null,
        DataRef::String(text) if text.is_empty() => FileCell::Null,
        DataRef::SharedString("") => FileCell::Null,
        DataRef::String(text) => FileCell::Text(text.into()),
        DataRef::SharedString(text) => FileCell::Text(text.into()),
        DataRef::Bool(value) => FileCell::Boolean(value),
        DataRef::Int(value) => FileCell::Integer(value),
        DataRef::Float(value) => number(value),
        DataRef::DateTime(value) => time(value),
        DataRef::DateTimeIso(text) => iso_time(text),
        DataRef::DurationIso(text) => FileCell::Form(text.into()),
        DataRef::Error(_) => FileCell::Failed,
    }
}

/// Returns a number. Sheets have doubles only, so whole ones are integers as far as doubles hold all integers.
fn number(value: f64) -> FileCell<'static> {
    /// 2 to the power of 53.
    const END: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < END {
        #[expect(clippy::cast_possible_truncation, reason = "the bounds were checked")]
        return FileCell::Integer(value as i64);
    }
    FileCell::Double(value)
}

/// Returns the time of a serial number, rounded to milliseconds, in which sheets count.
fn time(value: ExcelDateTime) -> FileCell<'static> {
    let serial = value.as_f64();
    let unsayable = || FileCell::Unsayable(format!("the serial number {serial} is no day of the calendar"));
    // As many milliseconds as the year 9999 ends at fit doubles and integers.
    if !(-3_000_000.0..3_000_000.0).contains(&serial) {
        return unsayable();
    }
    #[expect(clippy::cast_possible_truncation, reason = "the bounds were checked")]
    let milliseconds = (serial * MILLISECONDS_PER_DAY).round() as i64;
    if value.is_duration() {
        return FileCell::Form(iso_duration_of_millis(milliseconds).into());
    }
    if (0.0..1.0).contains(&serial) && milliseconds < 86_400_000 {
        return FileCell::Form(time_of_day(milliseconds).into());
    }
    if serial < 0.0 {
        return unsayable();
    }
    let (year, month, day, hour, minute, second, millisecond) = value.to_ymd_hms_milli();
    // 1900-02-29 is a day of sheets only.
    let Ok(date) = format!("{year:04}-{month:02}-{day:02}").parse::<Date>() else {
        return unsayable();
    };
    let seconds = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
    match seconds * 1_000 + i64::from(millisecond) {
        0 => FileCell::Day(date.days().into()),
        rest => FileCell::Local((i128::from(date.days()) * 86_400_000 + i128::from(rest)) * 1_000_000),
    }
}

/// Returns `HH:MM:SS`, with milliseconds where there are some.
fn time_of_day(milliseconds: i64) -> String {
    let (seconds, rest) = (milliseconds / 1_000, milliseconds % 1_000);
    let text = format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match rest {
        0 => text,
        rest => format!("{text}.{rest:03}").trim_end_matches('0').to_owned(),
    }
}

/// Returns the time of a cell of ISO 8601.
fn iso_time(text: String) -> FileCell<'static> {
    if let Ok(date) = text.parse::<Date>() {
        return FileCell::Day(date.days().into());
    }
    let Ok(time) = text.parse::<jiff::civil::DateTime>() else {
        return FileCell::Text(Cow::Owned(text));
    };
    match jiff::tz::TimeZone::UTC.to_timestamp(time) {
        Ok(instant) => FileCell::Local(instant.as_nanosecond()),
        Err(_error) => FileCell::Text(Cow::Owned(text)),
    }
}
