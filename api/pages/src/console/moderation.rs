//! Takedowns of the operator's items, and the queue of a moderator.

use askama::Template;

use crate::chrome::{PageLayout, Theme};
use crate::time::Instant;

/// `GET /console/moderation`. Forms: `POST /console/takedowns/{id}/answer`, and of a moderator
/// `POST /console/reports/{id}` and `POST /console/takedowns/{id}/restore`.
#[derive(Debug, Template)]
#[template(path = "console/moderation.html")]
pub struct ModerationPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Takedowns of the operator's items, newest first.
    pub own: Vec<TakedownRow>,
    /// Queue, if the operator is a moderator.
    pub queue: Option<ReportQueue>,
}

/// Work that waits for a moderator.
#[derive(Clone, Debug)]
pub struct ReportQueue {
    /// Open reports, newest first.
    pub reports: Vec<ReportRow>,
    /// Takedowns of all operators, newest first.
    pub takedowns: Vec<TakedownRow>,
}

/// Report that nobody has decided.
#[derive(Clone, Debug)]
pub struct ReportRow {
    /// Id of the report.
    pub id: String,
    /// Kind of the item.
    pub kind: String,
    /// The item, as the reporter named it.
    pub item: String,
    /// Address of the item, where it has a page or an answer for programs.
    pub url: Option<String>,
    /// Reason of the report, as a word such as `copyright`.
    pub reason: String,
    /// Words of the reporter.
    pub detail: String,
    /// Kind of the reporter, in words.
    pub reporter: String,
    /// E-mail address that the reporter left.
    pub email: Option<String>,
    /// Time of the report.
    pub at: Instant,
}

/// Takedown of an item.
#[derive(Clone, Debug)]
pub struct TakedownRow {
    /// Id of the takedown.
    pub id: String,
    /// Kind of the item.
    pub kind: String,
    /// The item, as its reporter named it.
    pub item: String,
    /// Reason of the takedown, as a word such as `copyright`.
    pub reason: String,
    /// Words of the moderator.
    pub note: Option<String>,
    /// Time of the decision.
    pub at: Instant,
    /// Answer of the owner.
    pub answer: Option<String>,
    /// Time at which the item was shown again.
    pub restored_at: Option<Instant>,
}
