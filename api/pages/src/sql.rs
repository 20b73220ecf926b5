//! Page that asks the records of a dataset in SQL.
//!
//! Invariant: opening the page runs nothing. A statement runs when its form is sent.

use std::borrow::Cow;

use askama::Template;
use types::Version;
use types::contract::Field;
use types::money::MicroUsdc;

use crate::cell::{TableCell, instant};
use crate::chart::{AnswerChart, ChartForm, MAX_CHART_ROWS, chart_columns};
use crate::chrome::{PageLayout, Theme};
use crate::dataset::{DatasetHead, DatasetOffer, DatasetTab};
use crate::filters;
use crate::number::counted;

/// Columns of an answer that the page shows. The file has all.
const MAX_ANSWER_COLUMNS: usize = 24;
/// Most rows that stand on the page whole. More scroll in a region of their own, below what is done with them.
const MAX_OPEN_ROWS: usize = 20;
/// Bytes of texts of an answer that the page shows. The file has all.
const MAX_ANSWER_PAGE_BYTES: usize = 1 << 20;

/// Kind of the values of a column of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerColumnKind {
    /// Texts.
    Text,
    /// Numbers.
    Number,
    /// Instants, local times or days.
    Time,
    /// Anything else, such as JSON.
    Other,
}

impl AnswerColumnKind {
    /// Returns the class of the cells of a column.
    const fn class(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "n",
            Self::Time => "",
            Self::Other => "j",
        }
    }
}

/// Column of an answer.
#[derive(Clone, Debug)]
pub struct AnswerColumn {
    /// Name of the column.
    pub name: String,
    /// Kind of its values.
    pub kind: AnswerColumnKind,
}

/// Statement that can be chosen.
#[derive(Clone, Debug)]
pub struct SqlExample {
    /// Words that say what it asks.
    pub label: String,
    /// Address of the page with the statement in the box.
    pub href: String,
}

/// Question as the form has it.
#[derive(Clone, Debug)]
pub struct SqlQuestion {
    /// Version that is asked.
    pub version: Version,
    /// Statement.
    pub sql: String,
    /// Greatest number of rows.
    pub limit: u32,
    /// Form of the chart.
    pub chart: ChartForm,
}

/// Right of the reader to ask.
#[derive(Clone, Debug)]
pub enum SqlAccess {
    /// The reader is not signed in.
    SignedOut,
    /// The reader may ask this version and those before it.
    UpTo(Version),
    /// The reader may ask no version before paying this price for one.
    Unbought(MicroUsdc),
}

/// Place in a statement, with the text around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementPlace {
    /// Number of the line, from 1.
    pub line: usize,
    /// Number of the character in the line, from 1.
    pub character: usize,
    /// Text of the line before the place, shortened.
    pub before: String,
    /// Text at the place.
    pub at: String,
    /// Text of the line behind the place, shortened.
    pub behind: String,
}

/// Reason why a question has no answer.
#[derive(Clone, Debug)]
pub struct SqlProblem {
    /// Sentence that says what is wrong.
    pub message: String,
    /// Place of it in the statement, if it can be found.
    pub place: Option<StatementPlace>,
    /// Column whose name is like one that is not there.
    pub meant: Option<String>,
    /// True if the same question may be answered later.
    pub can_repeat: bool,
}

/// Answer to a question.
#[derive(Clone, Debug)]
pub struct SqlAnswer {
    /// Version that was asked.
    pub version: Version,
    /// Content root of the version, 64 hexadecimal digits; `None` before the first version.
    pub root: Option<String>,
    /// Columns whose cells the page needs, in order.
    pub columns: Vec<AnswerColumn>,
    /// First rows, each with a cell per column: as many as the page needs.
    pub rows: Vec<Vec<TableCell>>,
    /// Number of all columns.
    pub column_count: usize,
    /// Number of all rows.
    pub row_count: usize,
    /// True if there are more rows than were asked for.
    pub is_cut: bool,
    /// Time that the answer took, in milliseconds.
    pub millis: u64,
    /// Address of the page with the question in its box, that names the version.
    pub link: String,
}

/// State of a question.
#[derive(Clone, Debug)]
pub enum SqlOutcome {
    /// Nothing was asked.
    Unasked,
    /// It has no answer.
    Failed(SqlProblem),
    /// It has this answer.
    Answered(Box<SqlAnswer>),
}

/// `GET /projects/{slug}/sql`: a form to `POST` at the same address with `version`, `q`, `limit`, `chart` and, for a file of
/// the answer, `file`.
#[derive(Debug, Template)]
#[template(path = "sql.html")]
pub struct SqlPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Head of the dataset.
    pub head: DatasetHead,
    /// Versions that can be chosen, newest first.
    pub versions: Vec<Version>,
    /// Fields of the contract: the columns of the table.
    pub fields: Vec<Field>,
    /// Name of the column of other members, if the contract allows them.
    pub extra: Option<&'static str>,
    /// Examples of statements.
    pub examples: Vec<SqlExample>,
    /// Question in the form.
    pub question: SqlQuestion,
    /// Right of the reader.
    pub access: SqlAccess,
    /// What came of the question.
    pub outcome: SqlOutcome,
    /// Greatest numbers of rows that can be chosen.
    pub limits: Vec<u32>,
    /// The most rows of an answer.
    pub most_rows: u32,
    /// The most characters of a statement.
    pub most_characters: u32,
    /// Time that a question may take, in seconds.
    pub seconds: u32,
    /// Formats of a file of the answer: value of the form field, and words.
    pub formats: &'static [(&'static str, &'static str)],
}

impl StatementPlace {
    /// Returns the length of the text at the place, as scripts count it.
    fn length(&self) -> usize {
        self.at.encode_utf16().count()
    }
}

impl SqlPage {
    fn is_failed(&self) -> bool {
        matches!(self.outcome, SqlOutcome::Failed(_))
    }

    /// Returns the chart of an answer.
    fn chart(&self, answer: &SqlAnswer) -> AnswerChart {
        let count = (answer.row_count, answer.is_cut);
        AnswerChart::of(&answer.columns, &answer.rows, count, self.question.chart)
    }

    /// Returns the price that is paid before the reader may ask, as far as is known of the reader.
    fn price(&self) -> Option<MicroUsdc> {
        match self.access {
            SqlAccess::SignedOut => self.head.for_sale(),
            SqlAccess::Unbought(price) => Some(price),
            SqlAccess::UpTo(_) => None,
        }
    }

    /// Returns the words of the button that sends the form.
    fn button(&self) -> &'static str {
        match (&self.access, &self.outcome) {
            (SqlAccess::SignedOut, _) => "Sign in to run it",
            (_, SqlOutcome::Failed(problem)) if problem.can_repeat => "Try again",
            _ => "Run",
        }
    }
}

impl SqlPage {
    /// Returns the members of a call with the question and the version that it was answered for.
    fn members(&self, answer: &SqlAnswer) -> serde_json::Value {
        let mut members = serde_json::json!({"sql": self.question.sql, "limit": self.question.limit});
        if answer.version.0 > 0 {
            members["version"] = answer.version.0.into();
        }
        members
    }

    fn curl(&self, answer: &SqlAnswer) -> String {
        let (base, slug) = (&self.chrome.base, &self.head.slug);
        let body = shell_quoted(&self.members(answer).to_string());
        format!(
            "curl -s {base}/projects/{slug}/query \\\n  -H \"Authorization: Bearer $SLUICE_KEY\" -H \"Content-Type: \
             application/json\" \\\n  -d {body}"
        )
    }

    fn cli(&self, answer: &SqlAnswer) -> String {
        let (base, slug, limit) = (&self.chrome.base, &self.head.slug, self.question.limit);
        let version = match answer.version.0 {
            0 => String::new(),
            version => format!(" --version {version}"),
        };
        let sql = shell_quoted(&self.question.sql);
        // A statement that begins with a comment is no option.
        format!("sluice query --server {base}{version} --limit {limit} \\\n  -- {slug} {sql}")
    }

    fn python(&self, answer: &SqlAnswer) -> String {
        let (base, slug) = (&self.chrome.base, &self.head.slug);
        // Texts and numbers of JSON mean the same in Python.
        let members = self.members(answer);
        format!(
            "import os, requests\n\nr = requests.post(\"{base}/projects/{slug}/query\",\n    headers={{\"Authorization\": \
             \"Bearer \" + os.environ[\"SLUICE_KEY\"]}},\n    json={members})\nfor row in r.json()[\"rows\"]:\n    print(row)"
        )
    }

    fn mcp(&self, answer: &SqlAnswer) -> String {
        let mut members = self.members(answer);
        members["slug"] = self.head.slug.as_str().into();
        format!("query_dataset {members}")
    }
}

/// Returns a text as one word of a POSIX shell.
fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Cells that the page of an answer needs. An answer can have far more of them than a page shows.
#[derive(Debug)]
pub struct NeededCells {
    /// Indexes of the columns, in order: those that the page shows, and those of a chart.
    pub columns: Vec<usize>,
    has_chart: bool,
    bytes: usize,
}

impl NeededCells {
    /// Determines the columns of an answer with this number of rows and columns of these kinds.
    pub fn new(rows: usize, kinds: &[AnswerColumnKind]) -> Self {
        let shown = kinds.len().min(MAX_ANSWER_COLUMNS);
        let chart = chart_columns(kinds.iter().copied()).into_iter().flatten();
        let mut columns: Vec<usize> = (0..shown).chain(chart.filter(|column| *column >= shown)).collect();
        columns.sort_unstable();
        Self {
            columns,
            has_chart: rows <= MAX_CHART_ROWS,
            bytes: 0,
        }
    }

    /// Returns true if the page needs more rows than those that were taken.
    pub const fn needs_more(&self) -> bool {
        self.has_chart || self.bytes <= MAX_ANSWER_PAGE_BYTES
    }

    /// Takes a row of these columns.
    pub fn take(&mut self, row: &[TableCell]) {
        let bytes: usize = row.iter().map(TableCell::bytes).sum();
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

impl SqlAnswer {
    fn shown_columns(&self) -> &[AnswerColumn] {
        &self.columns[..self.columns.len().min(MAX_ANSWER_COLUMNS)]
    }

    /// Returns the rows that the page has room for.
    fn shown_rows(&self) -> &[Vec<TableCell>] {
        let mut bytes = 0_usize;
        let size = |row: &Vec<TableCell>| row.iter().take(MAX_ANSWER_COLUMNS).map(TableCell::bytes).sum::<usize>();
        let is_beyond = |row: &Vec<TableCell>| {
            bytes = bytes.saturating_add(size(row));
            bytes > MAX_ANSWER_PAGE_BYTES
        };
        let end = self.rows.iter().position(is_beyond).unwrap_or(self.rows.len());
        &self.rows[..end]
    }

    /// Returns the columns that are shown, each with true if its values are instants, which have a zone.
    fn heads(&self) -> impl Iterator<Item = (&AnswerColumn, bool)> {
        let is_utc = |(at, column): (usize, &AnswerColumn)| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(at));
            column.kind == AnswerColumnKind::Time && cells.any(|cell| cell.written().ends_with('Z'))
        };
        let columns = self.shown_columns().iter().enumerate();
        columns.map(move |head| (head.1, is_utc(head)))
    }

    /// Returns the cells of a row that are shown, each with the class of its column.
    fn cells<'a>(&'a self, row: &'a [TableCell]) -> impl Iterator<Item = (Cow<'a, TableCell>, &'static str)> {
        row.iter().zip(self.shown_columns()).map(|(cell, column)| {
            let cell = match (column.kind, cell) {
                (AnswerColumnKind::Time, TableCell::Text(text)) => Cow::Owned(TableCell::Text(instant(text))),
                _ => Cow::Borrowed(cell),
            };
            (cell, column.kind.class())
        })
    }

    /// Returns true if there are so many rows that they have a region of their own.
    const fn is_long(&self) -> bool {
        self.rows.len() > MAX_OPEN_ROWS
    }

    fn heading(&self) -> String {
        let rows = counted(self.row_count as u64, "row", "rows");
        if self.is_cut {
            format!("The first {rows}; there are more")
        } else {
            rows
        }
    }

    /// Returns what is in the file and not on the page, if anything.
    fn left_out(&self) -> Option<String> {
        let columns = self.column_count.saturating_sub(self.shown_columns().len());
        let rows = self.row_count.saturating_sub(self.shown_rows().len());
        let parts = [
            (columns, counted(columns as u64, "more column", "more columns")),
            (rows, counted(rows as u64, "more row", "more rows")),
        ];
        let parts: Vec<_> = parts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(_, words)| words)
            .collect();
        (!parts.is_empty()).then(|| parts.join(" and "))
    }

    fn took(&self) -> String {
        format!("{}.{:02} s", self.millis / 1_000, self.millis % 1_000 / 10)
    }
}
