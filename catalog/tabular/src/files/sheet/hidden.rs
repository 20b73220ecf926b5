//! Parts of a sheet that it shows otherwise than they are read: merged cells, hidden rows and columns.

use std::fmt::Display;
use std::io::{BufRead, BufReader};

use sheet_xml::events::{BytesStart, Event};
use sheet_xml::{Reader, XmlVersion};
use zip::ZipArchive;

use super::super::input::FileInput;

type Archive = ZipArchive<BufReader<FileInput>>;

/// Counts of what a sheet shows otherwise.
#[derive(Debug, Default)]
struct HiddenCounts {
    merged: u64,
    rows: u64,
    columns: u64,
}

/// Returns notices about a sheet with so many columns. A sheet that cannot be found has none.
pub(super) fn notes(input: FileInput, sheet: &str, columns: usize) -> Vec<String> {
    let archive = ZipArchive::new(BufReader::new(input)).ok();
    let counts = archive.and_then(|mut archive| {
        let path = path_of(&mut archive, sheet)?;
        counts(&mut archive, &path, columns as u64)
    });
    let counts = counts.unwrap_or_default();
    let mut notes = Vec::new();
    if counts.merged > 0 {
        let areas = counted(counts.merged, "merged area");
        notes.push(format!(
            "{areas}: a value is in the first cell of an area, and its other cells are null"
        ));
    }
    let hidden = [(counts.rows, "hidden row"), (counts.columns, "hidden column")];
    let hidden: Vec<_> = hidden.into_iter().filter(|(count, _)| *count > 0).collect();
    if !hidden.is_empty() {
        let hidden: Vec<_> = hidden.into_iter().map(|(count, of)| counted(count, of)).collect();
        notes.push(format!("{}: read like the others", hidden.join(" and ")));
    }
    notes
}

fn counted(count: u64, of: impl Display) -> String {
    format!("{count} {of}{}", if count == 1 { "" } else { "s" })
}

/// Calls `each` with every element of a part, until it returns false. Returns nothing if the part cannot be read.
fn elements(archive: &mut Archive, path: &str, mut each: impl FnMut(&BytesStart<'_>)) -> Option<()> {
    let part = archive.by_name(path).ok()?;
    let mut reader = Reader::from_reader(BufReader::new(part));
    walk(&mut reader, &mut each)
}

fn walk(reader: &mut Reader<impl BufRead>, each: &mut impl FnMut(&BytesStart<'_>)) -> Option<()> {
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer).ok()? {
            Event::Start(element) | Event::Empty(element) => each(&element),
            Event::Eof => return Some(()),
            _ => {}
        }
    }
}

/// Returns the value of an attribute, whatever its prefix.
fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = element.attributes();
    let found = attributes
        .with_checks(false)
        .flatten()
        .find(|found| found.key.local_name().as_ref() == name)?;
    Some(found.normalized_value(XmlVersion::Explicit1_0).ok()?.into_owned())
}

/// Returns the path of a sheet's part.
fn path_of(archive: &mut Archive, sheet: &str) -> Option<String> {
    let mut id = None;
    elements(archive, "xl/workbook.xml", |element| {
        if element.local_name().as_ref() == "sheet" && attribute(element, "name").as_deref() == Some(sheet) {
            id = id.take().or_else(|| attribute(element, "id"));
        }
    })?;
    let mut path = None;
    elements(archive, "xl/_rels/workbook.xml.rels", |element| {
        if attribute(element, "Id") == id {
            path = path.take().or_else(|| attribute(element, "Target"));
        }
    })?;
    let path: String = path?;
    Some(
        path.strip_prefix('/')
            .map_or_else(|| format!("xl/{path}"), str::to_owned),
    )
}

fn counts(archive: &mut Archive, path: &str, columns: u64) -> Option<HiddenCounts> {
    let mut counts = HiddenCounts::default();
    elements(archive, path, |element| {
        let is_hidden = || matches!(attribute(element, "hidden").as_deref(), Some("1" | "true"));
        match element.local_name().as_ref() {
            "mergeCell" => counts.merged += 1,
            "row" if is_hidden() => counts.rows += 1,
            "col" if is_hidden() => {
                let place = |name| attribute(element, name).and_then(|text| text.parse::<u64>().ok());
                let (first, last) = (place("min").unwrap_or(1), place("max").unwrap_or(1));
                // Often all columns behind the last one are hidden.
                counts.columns += (last.min(columns) + 1).saturating_sub(first);
            }
            _ => {}
        }
    })?;
    Some(counts)
}
