//! Table of records with a profile in the head of each column.
//!
//! Invariant: a table has at most [`MAX_TABLE_BYTES`] of HTML, except for a single row that is larger.

use askama::Template;
use askama::filters::HtmlSafe;
use serde_json::value::RawValue;

use super::column::ShownColumn;
use crate::cell::TableCell;
use crate::filters;

/// Most bytes of a table as HTML, which leaves the rest of a page room within 90 KB.
const MAX_TABLE_BYTES: usize = 66 << 10;
/// Bytes of a row beside its cells.
const ROW_BYTES: usize = 80;

/// Record as a row: a value for each column of its table.
#[derive(Clone, Debug)]
pub struct RecordRow {
    /// Number of the record in its version, from 1; none where the rows are a sample.
    pub place: Option<u64>,
    /// Values as JSON; none where the record has no such member.
    pub values: Vec<Option<Box<RawValue>>>,
    /// True for each value that is a text with the beginning of the JSON of the value; none where all are whole.
    pub begun: Vec<bool>,
}

/// Row with its cells as texts.
#[derive(Clone, Debug)]
struct TextRow {
    place: Option<u64>,
    cells: Vec<TableCell>,
}

/// Records of a dataset, or the heads of its columns alone.
#[derive(Clone, Debug, Template)]
#[template(path = "dataset/table.html")]
pub(crate) struct RecordTable {
    /// Name of the region that the table scrolls in.
    label: String,
    /// Address of a record, up to its number, where records can be opened.
    record: Option<String>,
    columns: Vec<ShownColumn>,
    rows: Vec<TextRow>,
    /// What stands in the place of the rows that are not shown.
    rest: Option<ClosedRest>,
    /// True if the heads are buttons that sort.
    can_sort: bool,
    has_places: bool,
}

impl HtmlSafe for RecordTable {}

/// Row below the last one, with a link or without.
#[derive(Clone, Debug)]
pub(crate) struct ClosedRest {
    pub(crate) is_locked: bool,
    pub(crate) strong: String,
    pub(crate) text: String,
    pub(crate) link: Option<(String, String)>,
}

impl RecordTable {
    /// Creates a table of as many of the rows as fit, at least one. The numbers of the records are links to `record`, which
    /// is the address of a record up to its number, or no links without one.
    pub(crate) fn new(label: String, record: Option<String>, columns: Vec<ShownColumn>, rows: Vec<RecordRow>) -> Self {
        let mut left = MAX_TABLE_BYTES.saturating_sub(columns.iter().map(ShownColumn::weight).sum());
        let mut shown: Vec<TextRow> = Vec::with_capacity(rows.len());
        for row in rows {
            let cells = columns.iter().enumerate().map(|(at, column)| {
                let value = row.values.get(at).and_then(Option::as_deref);
                match value {
                    Some(value) if row.begun.get(at) == Some(&true) => TableCell::of_begun_json(value),
                    value => TableCell::of_record(column.field.kind, value),
                }
            });
            let cells: Vec<_> = cells.collect();
            let link = record.as_ref().map_or(0, String::len);
            let weight = ROW_BYTES + link + cells.iter().map(TableCell::weight).sum::<usize>();
            if weight > left && !shown.is_empty() {
                break;
            }
            left = left.saturating_sub(weight);
            shown.push(TextRow {
                place: row.place,
                cells,
            });
        }
        Self {
            label,
            // Records that can be opened have places, also where none is found.
            has_places: record.is_some() || shown.iter().any(|row| row.place.is_some()),
            record,
            columns,
            rows: shown,
            rest: None,
            can_sort: false,
        }
    }

    /// Returns the number of rows that fit.
    pub(crate) const fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if there is no row.
    pub(crate) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Makes the heads of scalar columns buttons that sort, in the form `view`.
    pub(crate) fn sortable(&mut self) {
        self.can_sort = true;
    }

    pub(crate) fn close(&mut self, rest: ClosedRest) {
        self.rest = Some(rest);
    }

    /// Says why the rest is not shown, and where it is.
    pub(crate) fn offer(&mut self, text: &str, link: (String, String)) {
        if let Some(rest) = &mut self.rest {
            rest.is_locked = false;
            text.clone_into(&mut rest.text);
            rest.link = Some(link);
        }
    }

    /// Returns the cells of a row, each with the class of its column.
    fn cells<'a>(&'a self, row: &'a TextRow) -> impl Iterator<Item = (&'a TableCell, &'static str)> {
        self.columns
            .iter()
            .zip(&row.cells)
            .map(|(column, cell)| (cell, column.class()))
    }

    /// Returns the number of columns with that of the places.
    fn width(&self) -> usize {
        self.columns.len() + usize::from(self.has_places)
    }
}
