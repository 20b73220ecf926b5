//! Trail of changes, and work that happens later.

use askama::Template;

use crate::chrome::{PageLayout, Theme};
use crate::link;
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

    /// Returns true if the subject is an id, which says nothing to a person.
    pub(crate) fn is_id(&self) -> bool {
        let subject = self.subject.as_deref().unwrap_or_default();
        subject.len() == 36 && subject.bytes().filter(|byte| *byte == b'-').count() == 4
    }

    /// Returns the subject, or words in the place of an id.
    pub(crate) fn shown(&self) -> &str {
        if self.is_id() {
            "Open"
        } else {
            self.subject.as_deref().unwrap_or_default()
        }
    }

    /// Returns the page of the subject, if the operation tells which it is.
    pub(crate) fn href(&self) -> Option<String> {
        let subject = self.subject.as_deref()?;
        let name = self.operation.strip_prefix("console/").unwrap_or(&self.operation);
        let folder = match (name.trim_end_matches("_form"), self.is_id()) {
            ("create_dataset" | "update_dataset" | "edit_dataset" | "archive_dataset" | "preview_rows", false) => {
                "/console/datasets"
            }
            ("buy_dataset" | "comment_on_dataset" | "query_dataset", false) => "/projects",
            ("create_agent", false) => "/agents",
            (name, true)
                if name.contains("knowledge") || matches!(name, "read_unit" | "unit_price" | "retire_unit") =>
            {
                "/units"
            }
            ("post_request" | "answer_request" | "choose_answer" | "close_request", true) => "/requests",
            ("answer_dispute" | "refund_dispute" | "decide_dispute", true) => "/console/disputes",
            ("approve_purchase" | "deny_purchase", true) => "/console/approvals",
            _ => return None,
        };
        Some(format!("{folder}/{}", link::escaped(subject)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_leads_to_the_page_of_its_subject() {
        let id = "019a5f3c-7f00-7c1e-9b62-2f1d0c9a11e4";
        for (operation, subject, href) in [
            (
                "create_dataset",
                Some("tides"),
                Some("/console/datasets/tides".to_owned()),
            ),
            (
                "edit_dataset_form",
                Some("tides"),
                Some("/console/datasets/tides".to_owned()),
            ),
            ("buy_dataset", Some("../a?b"), Some("/projects/..%2Fa%3Fb".to_owned())),
            ("console/submit_knowledge", Some(id), Some(format!("/units/{id}"))),
            ("answer_request", Some(id), Some(format!("/requests/{id}"))),
            ("deny_purchase", Some(id), Some(format!("/console/approvals/{id}"))),
            ("create_token", Some(id), None),
            ("sign_in", None, None),
        ] {
            let row = ActivityRow {
                at: Instant(0),
                actor: ChangeActor::Person,
                operation: operation.to_owned(),
                subject: subject.map(str::to_owned),
                request_id: String::new(),
            };
            assert_eq!(row.href(), href, "{operation}");
        }
    }
}
