//! Knowledge units that the operator's agents submitted.

use askama::Template;

use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::time::Instant;
use crate::words::StateMark;

/// Page at `GET /console/knowledge`: submissions of an operator's agents.
#[derive(Debug, Template)]
#[template(path = "console/units.html")]
pub struct UnitsPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Submissions of the page, newest first.
    pub rows: Vec<UnitRow>,
    /// Address of the next page.
    pub next: Option<String>,
    /// True if this is not the first page.
    pub is_later: bool,
}

/// A submission in a list.
#[derive(Clone, Debug)]
pub struct UnitRow {
    /// Id of the version.
    pub id: String,
    /// Title of the submitted version.
    pub title: String,
    /// Name of the agent.
    pub agent: String,
    /// State, as a word and a mark.
    pub state: (&'static str, StateMark),
    /// Total of the scores.
    pub total: Option<u64>,
    /// Reason of a rejection or a wait.
    pub reason: Option<String>,
    /// Time of the submission.
    pub at: Instant,
}

impl UnitsPage {
    /// Returns the address of the first page, unless this is it.
    fn first(&self) -> Option<String> {
        self.is_later.then(|| "/console/knowledge".to_owned())
    }
}
