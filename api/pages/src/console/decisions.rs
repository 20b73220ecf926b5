//! Lists of the staff behind the queue: what is down, what comes back, and what was decided.
//!
//! Invariant: rendered for the staff only.

use askama::Template;
use types::vocabulary::{ReportKind, ReportReason};
use types::{OperatorId, ReportId, TakedownId};

use super::moderation::{ModerationTab, ModerationTabs, kind_word, reason_words};
use crate::chrome::{PageLayout, Theme};
use crate::form::{Errors as _, FieldError};
use crate::time::Instant;
use crate::words::StateMark;

/// `GET /console/moderation?tab=answers` and `?tab=down`.
#[derive(Debug, Template)]
#[template(path = "console/takedowns.html")]
pub struct DownPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Tabs of the desk.
    pub tabs: ModerationTabs,
    /// Takedowns in force.
    pub rows: Vec<DownRow>,
}

impl DownPage {
    fn is_answers(&self) -> bool {
        self.tabs.here == ModerationTab::Answers
    }
}

/// Takedown in force.
#[derive(Clone, Debug)]
pub struct DownRow {
    /// Id of the takedown.
    pub id: TakedownId,
    /// Kind of the item.
    pub kind: ReportKind,
    /// Title of the item, or its name where it has none.
    pub title: String,
    /// Reason of the takedown.
    pub reason: ReportReason,
    /// Words of the moderator for the owner.
    pub note: Option<String>,
    /// Answer of the owner, with its time.
    pub answer: Option<(Instant, String)>,
    /// Time of the decision.
    pub at: Instant,
    /// Operator that owns the item.
    pub owner: OperatorId,
}

impl DownRow {
    fn kind_word(&self) -> &'static str {
        kind_word(self.kind)
    }

    fn reason_words(&self) -> &'static str {
        reason_words(self.reason)
    }
}

/// `GET /console/takedowns/{id}/restore`: the takedown, the answer, and the question. Form: `POST` to the same address.
#[derive(Debug, Template)]
#[template(path = "console/restore.html")]
pub struct RestorePage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Takedown that the form ends.
    pub row: DownRow,
    /// Words of the report, if it is known.
    pub detail: Option<String>,
    /// Reason as typed.
    pub note: String,
    /// Rules that the input breaks.
    pub errors: Vec<FieldError>,
}

/// `GET /console/moderation?tab=decided`: the reports that were decided, the latest decision first.
#[derive(Debug, Template)]
#[template(path = "console/decided.html")]
pub struct DecidedPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Tabs of the desk.
    pub tabs: ModerationTabs,
    /// Outcome that is chosen: empty for all, `upheld` or `dismissed`.
    pub outcome: &'static str,
    /// Decided reports, the latest decision first.
    pub rows: Vec<DecidedRow>,
    /// Address of earlier ones.
    pub next: Option<String>,
    /// Address of the first ones; `None` where they are shown.
    pub first: Option<String>,
}

impl DecidedPage {
    fn latest(&self) -> Option<&DecidedRow> {
        self.rows.first().filter(|row| row.is_own && row.undo_until.is_some())
    }

    fn is_outcome(&self, word: &str) -> bool {
        self.outcome == word
    }
}

/// Report that was upheld or dismissed, for a row of the list.
#[derive(Clone, Debug)]
pub struct DecidedRow {
    /// Id of the report.
    pub id: ReportId,
    /// Kind of the item.
    pub kind: ReportKind,
    /// Title of the item, or its name where it has none.
    pub title: String,
    /// Reason of the report.
    pub reason: ReportReason,
    /// Takedown that it led to.
    pub takedown: Option<TakedownId>,
    /// Time of the decision.
    pub at: Instant,
    /// Name of who decided; `None` for an administrator at the command line.
    pub by: Option<String>,
    /// True if the person decided.
    pub is_own: bool,
    /// Reason of the decision.
    pub note: Option<String>,
    /// True if the owner answered.
    pub is_answered: bool,
    /// Time at which the item was shown again.
    pub restored_at: Option<Instant>,
    /// Time until which the decision can be taken back.
    pub undo_until: Option<Instant>,
}

impl DecidedRow {
    fn kind_word(&self) -> &'static str {
        kind_word(self.kind)
    }

    fn reason_words(&self) -> &'static str {
        reason_words(self.reason)
    }

    fn outcome(&self) -> &'static str {
        match (self.takedown, self.restored_at) {
            (None, _) => "left up",
            (Some(_), Some(_)) => "back up",
            (Some(_), None) => "down",
        }
    }

    fn mark(&self) -> StateMark {
        if self.is_down() { StateMark::Bad } else { StateMark::Ok }
    }

    fn undo_path(&self) -> String {
        match self.takedown {
            Some(takedown) => format!("/console/takedowns/{takedown}/undo"),
            None => format!("/console/reports/{}/reopen", self.id),
        }
    }

    fn is_down(&self) -> bool {
        self.takedown.is_some() && self.restored_at.is_none()
    }
}
