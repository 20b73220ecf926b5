//! Trail of changes, and work that happens later.

use askama::Template;

use crate::chrome::{PageLayout, Theme};
use crate::time::Instant;
use crate::words;

/// Page at `GET /console/activity`.
#[derive(Debug, Template)]
#[template(path = "console/activity.html")]
pub struct ActivityPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Changes to what the operator owns, newest first.
    pub rows: Vec<ActivityRow>,
    /// Address of the next page.
    pub next: Option<String>,
    /// True if this is not the first page.
    pub is_later: bool,
    /// Letters and other work that is not done.
    pub jobs: Vec<JobRow>,
}

/// Party that made a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeActor {
    /// The person at the console.
    Person,
    /// The person at the console, as the agent of this name.
    PersonAs(String),
    /// An agent, by its name.
    Agent(String),
    /// An app, by its name.
    App(String),
    /// The service or an administrator.
    Service,
    /// A caller without credentials.
    Anonymous,
}

/// A change as the audit trail has it.
#[derive(Clone, Debug)]
pub struct ActivityRow {
    /// Time of the change.
    pub at: Instant,
    /// Party that made it.
    pub actor: ChangeActor,
    /// Name of the operation.
    pub operation: String,
    /// Thing that was changed, as the call named it.
    pub subject: Option<String>,
    /// Id of the request.
    // The same id is in the log lines of the service, so a report with it leads to them.
    pub request_id: String,
}

impl ActivityRow {
    pub(crate) fn words(&self) -> String {
        words::operation(&self.operation)
    }
}

/// Work that happens later.
#[derive(Clone, Debug)]
pub struct JobRow {
    /// Kind of the work.
    pub kind: String,
    /// Time at which it is tried next.
    pub due_at: Instant,
    /// Number of tries so far.
    pub attempts: u32,
    /// Error of the last try.
    pub last_error: Option<String>,
    /// Time at which it was given up.
    pub failed_at: Option<Instant>,
}

impl JobRow {
    pub(crate) fn words(&self) -> String {
        words::job(&self.kind)
    }
}

impl ActivityPage {
    /// Returns the address of the first page, unless this is it.
    fn first(&self) -> Option<&'static str> {
        self.is_later.then_some("/console/activity")
    }
}
