//! Rows of a dataset: the viewer with version, filters, order and columns, or the stored preview.
//!
//! Invariant: everything that a reader chose stands in the one form of the viewer, so a state of the page is its address.

use askama::Template;
use askama::filters::HtmlSafe;
use operators::profile::ProfileLevel;
use types::{Timestamp, Version};

use super::column::{ColumnOrder, ShownColumn, text_words};
use super::head::{DatasetHead, DatasetOffer};
use super::page::ProofOfVersion;
use super::table::{ClosedRest, RecordRow, RecordTable};
use crate::cell::escaped;
use crate::chrome::{PageLayout, Theme};
use crate::dataset::DatasetTab;
use crate::filters;
use crate::form::FieldError;
use crate::number::{counted, grouped};

/// Bytes of a choice of columns beside its texts.
const CHOICE_BYTES: usize = 110;
/// Most bytes of a statement as HTML, which leaves the rest of a page room within 90 KB.
const MAX_STATEMENT_BYTES: usize = 4 << 10;

/// Version in the list of the viewer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionChoice {
    /// Number of the version.
    pub version: Version,
    /// Words beside it, such as `latest`.
    pub note: &'static str,
    /// True if its rows are shown.
    pub here: bool,
}

/// Filter of rows by a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownFilter {
    /// Name of the column.
    pub column: String,
    /// Word of the comparison in the address.
    pub operator: String,
    /// Words of the comparison, such as `is not`.
    pub words: &'static str,
    /// True if the comparison has a value.
    pub has_value: bool,
    /// Value that is compared with; empty where there is none.
    pub value: String,
}

/// Columns that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnChoice {
    /// Value of the field in the address.
    pub value: String,
    /// Words for the reader: a name, or the first and the last of some.
    pub label: String,
    /// True if they are shown.
    pub here: bool,
}

impl ColumnChoice {
    /// Returns the bytes of the choice as HTML, about.
    pub(crate) fn weight(&self) -> usize {
        CHOICE_BYTES + escaped(&self.value) + escaped(&self.label)
    }
}

/// Rows that the reader may read, with what was chosen.
#[derive(Clone, Debug)]
pub struct ReadableRows {
    /// Newest versions, that of the rows among them.
    pub versions: Vec<VersionChoice>,
    /// Bytes of the files of the version of the rows.
    pub bytes: Option<u64>,
    /// Names of all columns that can be filtered.
    pub names: Vec<String>,
    /// Comparisons with their words in the address.
    pub operators: &'static [(&'static str, &'static str)],
    /// Filters, in order.
    pub filters: Vec<ShownFilter>,
    /// Column by which the rows are ordered.
    pub order: Option<(String, ColumnOrder)>,
    /// Columns to choose from: single ones, or ranges of them.
    pub columns: Vec<ColumnChoice>,
    /// True if the columns are chosen by ranges.
    pub has_ranges: bool,
    /// Number of rows that the filters leave; none if that is not known.
    pub found: Option<u64>,
    /// Number of rows before those shown.
    pub offset: u64,
    /// Rows of a page at most.
    pub page: u64,
    /// Token without which the service filters and orders nothing.
    pub token: String,
    /// Address of the page that asks the same in SQL.
    pub sql: String,
    /// Statement that a file of the rows is made by; none where it is too long, or where nothing is chosen.
    pub statement: Option<RowsStatement>,
    /// Filter that is not understood, as the reader typed it.
    pub typed: Option<ShownFilter>,
    /// What is wrong with it.
    pub errors: Vec<FieldError>,
    /// True if filters and order of the address were not applied, because no page of this service asks for them.
    pub is_asked: bool,
    /// Version of the figures in the heads of the columns, if there are any.
    pub figures: Option<Version>,
    /// True if the first rows are shown, fewer than a page has, from which the reader goes on to all of them.
    pub is_beginning: bool,
    /// Why there are no rows, and true if it helps to try again.
    pub failure: Option<(String, bool)>,
}

/// Statement whose answer is the rows that a reader chose, of all pages.
#[derive(Clone, Debug)]
pub struct RowsStatement {
    /// The SELECT.
    pub sql: String,
    /// Most rows of an answer.
    pub most_rows: u32,
}

/// Stored preview.
#[derive(Clone, Debug)]
pub struct PreviewRows {
    /// Detail of the figures.
    pub level: ProfileLevel,
    /// Time at which it was made.
    pub made_at: Timestamp,
    /// True if a text was cut.
    pub is_cut: bool,
    /// Version that was asked for, if it is another than that of the sample.
    pub asked: Option<Version>,
}

/// What stands in the place of the rows.
#[derive(Clone, Debug)]
pub enum RowsState {
    /// Rows of a version.
    Readable(Box<ReadableRows>),
    /// Preview, the same for everybody.
    Preview(PreviewRows),
    /// The dataset has rows, and none is shown.
    Closed,
    /// The dataset has no rows yet.
    Empty,
}

/// Section with the rows of a dataset.
#[derive(Clone, Debug, Template)]
#[template(path = "dataset/rows-view.html")]
pub struct DatasetRows {
    slug: String,
    version: Version,
    records: u64,
    table: RecordTable,
    state: RowsState,
    latest: Version,
    /// Newest version that the reader may read.
    newest: Option<Version>,
    license: String,
    form_token: String,
    now: crate::time::Instant,
    /// What proves the version of the rows, where the section shows it.
    proof: Option<ProofOfVersion>,
}

impl HtmlSafe for DatasetRows {}

impl DatasetRows {
    /// Creates the section. `version` is that of the rows and has `records`; `rows` are as many as may be shown, of which a
    /// page has those that fit.
    pub fn new(
        chrome: &PageLayout,
        head: &DatasetHead,
        (version, records): (Version, u64),
        (columns, rows): (Vec<ShownColumn>, Vec<RecordRow>),
        state: RowsState,
    ) -> Self {
        let label = match (&state, rows.is_empty()) {
            (RowsState::Preview(_), false) => format!("Sampled rows of version {}, table", grouped(version.0)),
            (RowsState::Empty | RowsState::Closed, _) | (_, true) => "Columns without rows".to_owned(),
            _ => format!("Rows of version {}, table", grouped(version.0)),
        };
        // A sample is for readers who may open no record.
        let record = format!("/projects/{}/rows?version={version}&row=", head.slug);
        let record = matches!(state, RowsState::Readable(_)).then_some(record);
        let mut table = RecordTable::new(label, record, columns, rows);
        match &state {
            RowsState::Readable(view) => {
                table.sortable();
                if table.is_empty() && view.failure.is_none() {
                    let clear = format!("/projects/{}/rows?version={version}", head.slug);
                    table.close(view.none_of(records, clear));
                }
            }
            RowsState::Preview(_) | RowsState::Closed | RowsState::Empty => {
                table.close(rest_of(
                    chrome,
                    head,
                    // Of the newest version, which is the one that is sold.
                    head.records.saturating_sub(table.len() as u64),
                    &state,
                ));
            }
        }
        Self {
            slug: head.slug.clone(),
            version,
            records,
            table,
            state,
            latest: head.version,
            newest: head.readable,
            license: head.license.clone(),
            form_token: chrome.form_token.clone(),
            now: chrome.now,
            proof: None,
        }
    }

    /// Shows what proves the version of the rows below them.
    pub fn prove(&mut self, proof: ProofOfVersion) {
        self.proof = Some(proof);
    }

    /// Shows the rows as the first ones, which lead to all of them.
    pub fn begin(&mut self) {
        if let RowsState::Readable(view) = &mut self.state {
            view.is_beginning = true;
        }
    }

    /// Offers the rows at an address of this service to a reader who may read them, and was led here by another site.
    pub fn offer(&mut self, address: String) {
        if !matches!(self.state, RowsState::Empty) {
            self.table.offer(
                "Another site led here, so they are not read yet.",
                (address, "Show all rows".to_owned()),
            );
        }
    }

    /// Returns the version that the rows are of.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Returns the number of rows on the page.
    pub const fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns true if there is no row on the page.
    pub const fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

/// Returns the row that stands for those that are not shown.
fn rest_of(chrome: &PageLayout, head: &DatasetHead, more: u64, state: &RowsState) -> ClosedRest {
    let is_in = chrome.person.is_some();
    let strong = match state {
        RowsState::Empty => "No rows yet.".to_owned(),
        RowsState::Closed => format!("{}, and none is shown here.", counted(head.records, "row", "rows")),
        _ => format!("{}.", counted(more, "more row", "more rows")),
    };
    let sign_in = || Some((format!("/signin?next=/projects/{}", head.slug), "Sign in".to_owned()));
    let (is_locked, text, link) = match (&head.offer, state) {
        (_, RowsState::Empty) => (
            false,
            "The first batch that passes its checks becomes version 1.".to_owned(),
            Some((format!("/projects/{}#use", head.slug), "How to send rows".to_owned())),
        ),
        (DatasetOffer::Own, _) => (false, "They cannot be read at the moment.".to_owned(), None),
        (DatasetOffer::Free, _) if !is_in => (
            true,
            "All rows, sorting, filters, SQL and downloads come with an account.".to_owned(),
            sign_in(),
        ),
        (DatasetOffer::Free, _) => (false, "They cannot be read at the moment.".to_owned(), None),
        (DatasetOffer::Priced { price, .. }, _) => (
            true,
            "All rows, sorting, filters, SQL and downloads come with the version.".to_owned(),
            head.for_sale().map(|_| (head.buy(), format!("Buy for ${price}"))),
        ),
    };
    ClosedRest {
        is_locked,
        strong,
        text,
        link,
    }
}

impl DatasetRows {
    fn readable(&self) -> Option<&ReadableRows> {
        match &self.state {
            RowsState::Readable(readable) => Some(readable),
            _ => None,
        }
    }

    /// Returns the words for the preview.
    fn preview_words(&self) -> Option<&PreviewRows> {
        match &self.state {
            RowsState::Preview(preview) => Some(preview),
            _ => None,
        }
    }

    /// Returns true if the rows are of another version than the one that the head of the page offers as a file.
    fn is_older(&self) -> bool {
        self.newest != Some(self.version)
    }

    /// Returns the newest version that can be read, if some before it are not in the list.
    fn newest_of_others(&self) -> Option<Version> {
        let listed = self.readable()?.versions.len() as u64;
        self.newest.filter(|newest| newest.0 > listed)
    }

    fn verify(&self) -> String {
        format!("sluice verify {}", self.slug)
    }

    fn title(&self) -> String {
        match &self.state {
            RowsState::Preview(_) => format!("Sampled rows of version {}", grouped(self.version.0)),
            RowsState::Readable(_) => format!("Rows of version {}", grouped(self.version.0)),
            RowsState::Closed | RowsState::Empty => "Rows".to_owned(),
        }
    }
}

impl ShownFilter {
    /// Returns the value as a person reads it, if the comparison has one.
    fn said(&self) -> Option<String> {
        self.has_value.then(|| text_words(&self.value, usize::MAX))
    }
}

impl ReadableRows {
    /// Returns true if the page says more than which rows of a version it has.
    fn is_chosen(&self) -> bool {
        !self.filters.is_empty() || self.order.is_some()
    }

    /// Returns the row that stands where no row is, with the address of the first rows without filters.
    fn none_of(&self, records: u64, clear: String) -> ClosedRest {
        let all = format!("The version has {}.", counted(records, "row", "rows"));
        let (strong, link) = match self.filters.len() {
            // What a link asks for is not applied.
            _ if self.is_asked => ("There are no rows so far on.", "Show the first rows"),
            0 => ("There are no rows so far on.", "Show the first rows"),
            _ if self.offset > 0 => ("No more rows match.", "Clear the filters"),
            1 => ("No row matches.", "Clear the filter"),
            _ => ("No row matches.", "Clear the filters"),
        };
        ClosedRest {
            is_locked: false,
            strong: strong.to_owned(),
            text: all,
            link: Some((clear, link.to_owned())),
        }
    }

    /// Returns the statement for a file of the rows that are shown, if the page has room for it.
    fn file(&self) -> Option<&RowsStatement> {
        let is_found = self.found != Some(0) && !self.is_asked && self.failure.is_none();
        let statement = self.statement.as_ref().filter(|_| is_found);
        statement.filter(|statement| escaped(&statement.sql) <= MAX_STATEMENT_BYTES)
    }

    /// Returns the words before the formats of the file.
    fn file_words(&self, statement: &RowsStatement) -> String {
        let most = u64::from(statement.most_rows);
        if self.found.is_some_and(|found| found <= most) {
            "Download these rows:".to_owned()
        } else if self.order.is_some() {
            format!("Download the first {} of these rows:", grouped(most))
        } else {
            format!("Download {} of these rows:", grouped(most))
        }
    }

    /// Returns the number that the next filter has in the address, if one more is possible.
    fn next_filter(&self) -> Option<usize> {
        let next = self.filters.len() + 1;
        (next <= MAX_FILTERS).then_some(next)
    }

    /// Returns the filter in the fields of the next one.
    fn typed(&self) -> ShownFilter {
        self.typed.clone().unwrap_or(ShownFilter {
            column: String::new(),
            operator: String::new(),
            words: "",
            has_value: true,
            value: String::new(),
        })
    }

    fn value_error(&self) -> Option<&FieldError> {
        self.errors.first()
    }

    /// Returns the words for what is on the page.
    fn count(&self, shown: usize, records: u64) -> String {
        let all = self.found.unwrap_or(records);
        let last = self.offset.saturating_add(shown as u64);
        match shown {
            0 => "No rows".to_owned(),
            _ if self.found.is_none() && self.is_filtered() => {
                format!("{} to {}", grouped(self.offset + 1), grouped(last))
            }
            _ => format!(
                "{} to {} of {}",
                grouped(self.offset + 1),
                grouped(last),
                counted(all, "row", "rows")
            ),
        }
    }

    fn is_filtered(&self) -> bool {
        !self.filters.is_empty()
    }

    /// Returns the offset of the page before.
    fn previous(&self) -> Option<u64> {
        (self.offset > 0).then(|| self.offset.saturating_sub(self.page))
    }

    /// Returns the offset of the next page.
    fn next(&self, shown: usize, records: u64) -> Option<u64> {
        let next = self.offset.saturating_add(shown as u64);
        (shown > 0 && next < self.found.unwrap_or(records) && !self.is_beginning).then_some(next)
    }

    /// Returns the number of all rows, if the first ones are shown and there are more.
    fn all(&self, shown: usize, records: u64) -> Option<u64> {
        (self.is_beginning && shown > 0 && (shown as u64) < records).then_some(records)
    }

    /// Returns the version of the figures, if it is another than that of the rows.
    fn figures_of(&self, version: Version) -> Option<Version> {
        self.figures.filter(|figures| *figures != version)
    }

    /// Returns the first page, those around the one with the first row shown, and the last; none if there is one page at most,
    /// or if nobody knows how many.
    fn numbers(&self, records: u64) -> Vec<RowsPageNumber> {
        let is_counted = self.found.is_some() || !self.is_filtered();
        let all = self.found.unwrap_or(records);
        let step = self.page.max(1);
        let last = all.div_ceil(step);
        if !is_counted || last < 2 || self.is_beginning {
            return Vec::new();
        }
        let here = self.offset / step + 1;
        // Three pages stand together at the ends, too.
        let middle = here.clamp(2, (last - 1).max(2));
        let mut numbers: Vec<u64> = [1, middle - 1, middle, middle + 1, last]
            .into_iter()
            .filter(|number| *number <= last)
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut before = 0;
        let number = |number: u64| RowsPageNumber {
            number,
            offset: (number - 1) * step,
            here: number == here,
            is_apart: number > std::mem::replace(&mut before, number) + 1,
        };
        numbers.into_iter().map(number).collect()
    }
}

/// Page of rows that can be opened by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RowsPageNumber {
    /// Number of the page, from 1.
    number: u64,
    /// Number of rows before its first.
    offset: u64,
    /// True if the first row that is shown is one of its rows.
    here: bool,
    /// True if pages are left out before it.
    is_apart: bool,
}

/// Most filters at once.
pub(crate) const MAX_FILTERS: usize = 3;

/// Page at `GET /projects/{slug}/rows`: the viewer.
#[derive(Debug, Template)]
#[template(path = "dataset/rows.html")]
pub struct DatasetRowsPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Head of the dataset.
    pub head: DatasetHead,
    /// The rows.
    pub rows: DatasetRows,
}
