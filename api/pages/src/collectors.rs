//! Public pages of the platform's scheduled sources.
//!
//! Invariant: a page has no address of a source and no text of an error, only the sentences that collectors have.

use askama::Template;
use types::Timestamp;

use crate::chrome::{PageLayout, Theme};
use crate::console::CollectorRunRow;
use crate::filters;
use crate::words::StateMark;

/// Height of the bar of a run with most new rows, in the drawing's units.
const TALLEST: u64 = 18;
/// Line on which the bars stand.
const GROUND: u64 = 20;
/// Distance from one bar to the next.
const PITCH: usize = 7;

/// A run in the small chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunBar {
    /// Number of rows that the run added to the dataset.
    pub new: u64,
    /// True if it failed.
    pub is_failed: bool,
}

/// Rectangle of a run.
struct DrawnRun {
    class: &'static str,
    x: usize,
    y: u64,
    height: u64,
}

/// A collector as anybody sees it.
#[derive(Clone, Debug)]
pub struct PublicCollector {
    /// Name of the collector.
    pub name: String,
    /// Slug of its dataset.
    pub dataset: String,
    /// Title of the dataset.
    pub title: String,
    /// Publisher of the source.
    pub publisher: String,
    /// Id of the licence of the dataset.
    pub license: String,
    /// Cron expression in UTC.
    pub schedule: String,
    /// Failed runs since the last one that did not fail.
    pub failures: u32,
    /// True if its next run is long due.
    pub is_late: bool,
    /// Time from which the next run is due.
    pub next_at: Timestamp,
    /// Latest runs, oldest first.
    pub runs: Vec<RunBar>,
    /// Time of the latest run that did not fail, and its new rows.
    pub last_good: Option<(Timestamp, u64)>,
    /// Rows of the dataset, where it is there.
    pub rows: Option<u64>,
    /// Sentence about the latest failure, while it fails.
    pub reason: Option<String>,
}

impl PublicCollector {
    /// Returns the words and the mark of its state.
    const fn status(&self) -> (&'static str, StateMark) {
        if self.failures > 0 {
            ("failing", StateMark::Bad)
        } else if self.last_good.is_none() {
            ("not run yet", StateMark::Off)
        } else if self.is_late {
            ("late", StateMark::Hold)
        } else {
            ("in time", StateMark::Ok)
        }
    }

    fn is_well(&self) -> bool {
        self.status().1 == StateMark::Ok
    }

    /// Returns the schedule in words.
    fn plan(&self) -> String {
        plan(&self.schedule)
    }

    /// Returns the label of the small chart.
    fn told(&self) -> String {
        let failed = self.runs.iter().filter(|run| run.is_failed).count();
        format!("last {} runs, {failed} failed", self.runs.len())
    }

    /// Draws the latest runs.
    fn bars(&self) -> Vec<DrawnRun> {
        let most = self.runs.iter().map(|run| run.new).max().unwrap_or(0).max(1);
        let drawn = self.runs.iter().enumerate().map(|(place, run)| {
            let (class, height) = match (run.is_failed, run.new) {
                (true, _) => ("b4", TALLEST),
                // A run without news is a line, so that it is not taken for a missing one.
                (false, 0) => ("b2", 3),
                (false, new) => ("b1", (new.saturating_mul(TALLEST) / most).max(4)),
            };
            DrawnRun {
                class,
                x: place * PITCH,
                y: GROUND.saturating_sub(height),
                height,
            }
        });
        drawn.collect()
    }
}

/// Page at `GET /collectors`.
#[derive(Debug, Template)]
#[template(path = "collectors.html")]
pub struct PublicCollectorsPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Collectors by name.
    pub rows: Vec<PublicCollector>,
    /// New rows of all in the last 24 hours.
    pub new_rows: u64,
}

impl PublicCollectorsPage {
    fn well(&self) -> usize {
        self.rows.iter().filter(|row| row.is_well()).count()
    }

    fn unwell(&self) -> usize {
        self.failing().count() + self.rows.iter().filter(|row| row.status().1 == StateMark::Hold).count()
    }

    fn failing(&self) -> impl Iterator<Item = &PublicCollector> {
        self.rows.iter().filter(|row| row.failures > 0)
    }
}

/// Page at `GET /collectors/{name}`.
#[derive(Debug, Template)]
#[template(path = "collector.html")]
pub struct CollectorPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Collector that the page is about.
    pub collector: PublicCollector,
    /// Its latest runs, newest first.
    pub runs: Vec<CollectorRunRow>,
}

/// Returns a schedule in words.
pub(crate) fn plan(schedule: &str) -> String {
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    let words = match fields[..] {
        [_, hours, "*", "*", "*"] => {
            let times = hours.split(',').count();
            match (hours, hours.strip_prefix("*/")) {
                ("*", _) => Some("every hour".to_owned()),
                (_, Some(step)) => Some(format!("every {step} hours")),
                _ if times == 1 => Some("once a day".to_owned()),
                _ if times == 2 => Some("twice a day".to_owned()),
                _ => Some(format!("{times} times a day")),
            }
        }
        _ => None,
    };
    words.unwrap_or_else(|| format!("by the plan {schedule}"))
}
