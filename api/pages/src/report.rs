//! Report of an item by a person: the form, and what became of it.

use askama::Template;

use crate::chrome::{PageLayout, Theme};
use crate::form::{Errors as _, FieldError};
use crate::time::Instant;

/// `GET /report`: a form to `POST /report` with `kind`, `id`, `reason`, `detail` and `email`.
#[derive(Debug, Template)]
#[template(path = "report.html")]
pub struct ReportPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Kinds of items that can be reported, as words.
    pub kinds: &'static [&'static str],
    /// Reasons that can be chosen, as words.
    pub reasons: &'static [&'static str],
    /// Kind that the form shows as chosen.
    pub kind: String,
    /// Id or name of the item, as typed.
    pub item: String,
    /// Reason that the form shows as chosen.
    pub reason: String,
    /// Explanation, as the reporter typed it.
    pub detail: String,
    /// E-mail address, as typed.
    pub email: String,
    /// Rules that the input breaks.
    // Everything that was typed comes back with the errors, so nobody has to type it twice.
    pub errors: Vec<FieldError>,
}

impl ReportPage {
    fn is_kind(&self, word: &str) -> bool {
        self.kind == word
    }

    fn is_reason(&self, word: &str) -> bool {
        self.reason == word
    }
}

/// State of a report, with its item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportState {
    /// No moderator has decided about the report.
    Open,
    /// The report was dismissed and the item stayed.
    Dismissed,
    /// The item is down.
    Down,
    /// The item was down and is shown again.
    Restored,
}

/// `GET /reports/{id}`: what became of a report.
#[derive(Debug, Template)]
#[template(path = "report-outcome.html")]
pub struct ReportOutcomePage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Kind of the item.
    pub kind: String,
    /// The item, as it was named.
    pub item: String,
    /// Reason of the report, as a word such as `copyright`.
    pub reason: String,
    /// Time of the report.
    pub at: Instant,
    /// State of the report.
    pub state: ReportState,
    /// Time of the decision.
    pub decided_at: Option<Instant>,
}
