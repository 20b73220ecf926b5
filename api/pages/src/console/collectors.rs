//! Scheduled sources of the platform, and their runs.

use askama::Template;

use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::number::{counted, grouped};
use crate::time::Instant;
use crate::words::StateMark;

/// State of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectorState {
    /// Run that has not ended yet.
    Running,
    /// New rows are in a version.
    Merged,
    /// Run that found nothing new.
    Unchanged,
    /// Rows wait for their review.
    Held,
    /// The dataset stays as it was.
    Failed,
}

impl CollectorState {
    pub(crate) const fn mark(self) -> StateMark {
        match self {
            Self::Running => StateMark::Live,
            Self::Merged => StateMark::Ok,
            Self::Unchanged => StateMark::Off,
            Self::Held => StateMark::Hold,
            Self::Failed => StateMark::Bad,
        }
    }

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Merged => "merged",
            Self::Unchanged => "unchanged",
            Self::Held => "held",
            Self::Failed => "failed",
        }
    }
}

/// Page at `GET /console/collectors`.
#[derive(Debug, Template)]
#[template(path = "console/collectors.html")]
pub struct CollectorsPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Collectors in the order of their names.
    pub rows: Vec<CollectorRow>,
    /// Latest runs of all, newest first.
    pub log: Vec<CollectorRunRow>,
}

/// Collector in the list.
#[derive(Clone, Debug)]
pub struct CollectorRow {
    /// Name of the collector.
    pub name: String,
    /// Slug of its dataset.
    pub dataset: String,
    /// Title of the dataset.
    pub title: String,
    /// Cron expression in UTC.
    pub schedule: String,
    /// Failed runs since the last one that did not fail.
    pub failures: u32,
    /// Time from which the next run is due.
    pub next_at: Instant,
    /// Latest version that a run merged.
    pub version: Option<u64>,
    /// New rows of the latest runs, oldest first.
    // Several runs, because one without news is normal and a row of them is a sign that a source has
    // ended.
    pub news: Vec<u64>,
    /// Latest run; `None` before the first one.
    pub last: Option<CollectorRunRow>,
}

/// Run of a collector.
#[derive(Clone, Debug)]
pub struct CollectorRunRow {
    /// Name of the collector.
    pub collector: String,
    /// State of the run.
    pub state: CollectorState,
    /// Time of its start.
    pub at: Instant,
    /// Duration in milliseconds; `None` while it runs.
    pub millis: Option<u64>,
    /// Rows that the source gave.
    pub fetched: u64,
    /// Rows that were new.
    pub new: u64,
    /// Rows that the dataset had.
    pub known: u64,
    /// Rows that were left out.
    pub refused: u64,
    /// Latest version that it merged.
    pub version: Option<u64>,
    /// Reason of a failure or a hold.
    pub reason: Option<String>,
}

impl CollectorRow {
    /// Returns the new rows of the latest runs, as one sentence for a reader of the page.
    fn news_words(&self) -> String {
        let total = self.news.iter().fold(0_u64, |total, new| total.saturating_add(*new));
        let runs = u64::try_from(self.news.len()).unwrap_or(u64::MAX);
        format!("{} in {}", grouped(total), counted(runs, "run", "runs"))
    }

    /// Returns the schedule in words.
    fn plan(&self) -> String {
        crate::collectors::plan(&self.schedule)
    }
}

impl CollectorRunRow {
    /// Returns the duration with one digit, such as `0.4 s`.
    pub(crate) fn took(&self) -> String {
        self.millis
            // A run that has not ended has no duration, and not one of 0 s.
            .map(|millis| format!("{}.{} s", millis / 1_000, millis % 1_000 / 100))
            .unwrap_or_default()
    }

    /// Returns what the run did.
    pub(crate) fn result(&self) -> String {
        // A run that failed may have counted rows before it did; shown, they would look like its
        // result.
        if let Some(reason) = &self.reason {
            return reason.clone();
        }
        if self.state == CollectorState::Running {
            return String::new();
        }
        let left_out = match self.refused {
            0 => String::new(),
            refused => format!(", {} left out", grouped(refused)),
        };
        format!(
            "{} fetched, {} known, {} new{left_out}",
            grouped(self.fetched),
            grouped(self.known),
            grouped(self.new)
        )
    }
}

impl CollectorsPage {
    /// Returns the collectors whose latest runs failed.
    fn failing(&self) -> impl Iterator<Item = &CollectorRow> {
        self.rows.iter().filter(|row| row.failures > 0)
    }
}
