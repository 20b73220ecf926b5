//! The row of a sheet that names its columns.
//!
//! Invariant: at most [`SAMPLE_ROWS`] rows are held.

use super::super::SheetChoice;
use super::super::cell::FileCell;
use super::super::error::FileError;
use super::super::visitor::RowVisitor;

/// Rows that are looked at to find the header.
const SAMPLE_ROWS: usize = 100;

/// Finds the header among the first rows and hands the others on.
pub(super) struct SheetHead<'v> {
    choice: &'v SheetChoice,
    visitor: &'v mut dyn RowVisitor,
    /// The first rows, until the header is known.
    held: Option<Vec<(u64, Vec<FileCell<'static>>)>>,
    found: SheetHeader,
}

/// Outcome of the search for the header.
#[derive(Debug, Default)]
pub(super) struct SheetHeader {
    /// Notice about rows that were skipped.
    pub(super) note: Option<String>,
    /// The number of columns of the widest row.
    pub(super) columns: usize,
}

impl<'v> SheetHead<'v> {
    pub(super) fn new(choice: &'v SheetChoice, visitor: &'v mut dyn RowVisitor) -> Self {
        Self {
            choice,
            visitor,
            held: Some(Vec::new()),
            found: SheetHeader::default(),
        }
    }

    /// Takes a row with cells.
    pub(super) fn row(&mut self, number: u64, cells: Vec<FileCell<'_>>) -> Result<(), FileError> {
        self.found.columns = self.found.columns.max(cells.len());
        if self.choice.skips(number) {
            return Ok(());
        }
        let Some(held) = &mut self.held else {
            return self.visitor.row(number, &cells);
        };
        held.push((number, cells.into_iter().map(FileCell::into_owned).collect()));
        if held.len() >= SAMPLE_ROWS {
            self.decide()?;
        }
        Ok(())
    }

    /// Ends the sheet.
    pub(super) fn end(mut self) -> Result<SheetHeader, FileError> {
        self.decide()?;
        Ok(self.found)
    }

    /// Finds the header in the rows that are held, and hands them on.
    fn decide(&mut self) -> Result<(), FileError> {
        let Some(held) = self.held.take() else {
            return Ok(());
        };
        let at = if self.choice.has_no_header { None } else { header(&held) };
        let (before, records) = match at {
            Some(at) => (at, at + 1),
            None => (0, 0),
        };
        if before > 0 {
            let rows: Vec<_> = held[..before].iter().map(|(number, _)| number.to_string()).collect();
            self.found.note = Some(format!(
                "rows {} stand above the header and are skipped",
                rows.join(", ")
            ));
        }
        let names = at
            .and_then(|at| held.get(at))
            .map(|(_, cells)| cells.iter().map(name_of).collect());
        self.visitor.begin(names.unwrap_or_default())?;
        for (number, cells) in &held[records..] {
            self.visitor.row(*number, cells)?;
        }
        Ok(())
    }
}

fn name_of(cell: &FileCell<'_>) -> String {
    match cell {
        FileCell::Null | FileCell::Failed | FileCell::Unstored => String::new(),
        cell => cell.shown().trim().to_owned(),
    }
}

fn count(cells: &[FileCell<'_>]) -> usize {
    cells.iter().filter(|cell| **cell != FileCell::Null).count()
}

/// Returns the place of the header: behind rows with fewer cells than all after them, unless no cell of it is a text.
fn header(held: &[(u64, Vec<FileCell<'_>>)]) -> Option<usize> {
    // The fewest cells of the rows from each on.
    let mut fewest = Vec::with_capacity(held.len());
    for (_, cells) in held.iter().rev() {
        let least: usize = fewest.last().copied().unwrap_or(usize::MAX);
        fewest.push(least.min(count(cells)));
    }
    fewest.reverse();
    let titles = held
        .iter()
        .zip(fewest.iter().skip(1))
        .take_while(|((_, cells), fewest)| count(cells) < **fewest);
    let at = titles.count();
    let (_, cells) = held.get(at)?;
    cells.iter().any(|cell| matches!(cell, FileCell::Text(_))).then_some(at)
}
