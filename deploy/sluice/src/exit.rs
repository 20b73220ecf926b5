//! Exit codes of commands.
//!
//! Invariant: a script tells from the code alone who has to act: nobody (0), the service or the machine (1), the caller's
//! command line (2), an answer or a confirmation (3), records or file (4), rights or payment (5), network (6), name (7).

use std::fmt;
use std::str::FromStr;

use client::Error;
use serde_json::Value;
use types::OperatorId;

use crate::terminal::{plain, quoted};

/// The service or this machine failed, or what was checked does not hold.
pub const EXIT_FAILED: u8 = 1;
/// The command line is wrong; the parser of arguments ends with this code too.
pub const EXIT_USAGE: u8 = 2;
/// A question is open, or nobody confirmed in time; nothing was done.
pub const EXIT_OPEN: u8 = 3;
/// Records, or a whole file, were refused.
pub const EXIT_REFUSED: u8 = 4;
/// The service does not allow it, or wants to be paid first.
pub const NOT_ALLOWED: u8 = 5;
/// The service could not be reached.
pub const NOT_REACHABLE: u8 = 6;
/// There is no such thing at the service.
pub const NOT_FOUND: u8 = 7;

/// A question that is open, or a confirmation that did not come. Nothing was done.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unanswered(pub String);

/// A refusal that is no answer of the service to this call: a person rejected it, or a limit of the operator is reached.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotAllowed(pub String);

/// A mistake on the command line that the parser of arguments cannot see.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongUsage(pub String);

/// A name that nothing has: of a row of the database, or of a collector.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Missing(pub String);

/// An error of the caller's file, which is shown as that error.
#[derive(Debug)]
pub struct FileRefused(anyhow::Error);

impl FileRefused {
    /// Marks an error of reading or converting a file. A failure of the disk stays one.
    pub fn mark(error: anyhow::Error) -> anyhow::Error {
        if error.chain().any(<dyn std::error::Error>::is::<std::io::Error>) {
            return error;
        }
        Self(error).into()
    }
}

impl fmt::Display for FileRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // With all causes, since the marked error is the only one that is left.
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for FileRefused {}

/// Marks a refusal by the service of what the command line says. Without records nothing else can be wrong with a call.
pub fn of_arguments(error: Error) -> anyhow::Error {
    match &error {
        Error::Refused { problem, .. } if matches!(problem.status, 400 | 422) => WrongUsage(error.to_string()).into(),
        _ => error.into(),
    }
}

/// Returns the exit code for an error that ended a command.
pub fn code_of(error: &anyhow::Error) -> u8 {
    if error.chain().any(<dyn std::error::Error>::is::<FileRefused>) {
        return EXIT_REFUSED;
    }
    if error.chain().any(<dyn std::error::Error>::is::<Unanswered>) {
        return EXIT_OPEN;
    }
    if error.chain().any(<dyn std::error::Error>::is::<NotAllowed>) {
        return NOT_ALLOWED;
    }
    // What is no id where one must stand.
    let is_no_id = error
        .chain()
        .any(<dyn std::error::Error>::is::<<OperatorId as FromStr>::Err>);
    if is_no_id || error.chain().any(<dyn std::error::Error>::is::<WrongUsage>) {
        return EXIT_USAGE;
    }
    let names_no_row = |cause: &(dyn std::error::Error + 'static)| {
        let missing = cause.downcast_ref::<store::Error>();
        matches!(missing, Some(store::Error::Missing { .. }))
    };
    if error.chain().any(|cause| cause.is::<Missing>() || names_no_row(cause)) {
        return NOT_FOUND;
    }
    match error.chain().find_map(|cause| cause.downcast_ref::<Error>()) {
        Some(Error::Refused { problem, .. }) => match (problem.status, problem.code.as_str()) {
            (401..=403, _) | (_, "project_limit" | "not_private" | "was_read" | "not_for_sale") => NOT_ALLOWED,
            // The price is above what was agreed to, or a person has not decided yet.
            (_, "price_changed" | "approvals_full") => EXIT_OPEN,
            (404, _) => NOT_FOUND,
            (400 | 413 | 422, _) => EXIT_REFUSED,
            _ => EXIT_FAILED,
        },
        Some(Error::Transport { .. } | Error::Unreachable { .. } | Error::Certificate { .. }) => NOT_REACHABLE,
        Some(Error::Address { .. }) => EXIT_USAGE,
        _ => EXIT_FAILED,
    }
}

/// Returns what the caller can do about an error, as a sentence; `None` if the error says it.
pub fn remedy_of(error: &anyhow::Error) -> Option<String> {
    let error = error.chain().find_map(|cause| cause.downcast_ref::<Error>())?;
    let Error::Refused { path, problem, .. } = error else {
        return None;
    };
    match (problem.status, problem.code.as_str()) {
        // The key of a suspended account is good, and another one would not help.
        (401, "unauthenticated") => {
            Some("`sluice login` gets a key for this machine, if a person approves it in the browser.".to_owned())
        }
        (402, "payment_required") => {
            // The second part of the path is the slug or the id.
            let item = quoted(path.split('/').nth(2)?)?;
            Some(format!(
                "`sluice buy {item}` buys it with credits; `sluice info {item}` says what it costs."
            ))
        }
        (402, "credits_short") => {
            let top_up = problem.body.get("credits").and_then(|credits| credits.get("topUp"));
            let home = top_up.and_then(Value::as_str)?.split_once("/paid/")?.0;
            Some(format!(
                "`sluice credits` shows them; a person buys more at {}/console/money.",
                plain(home)
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Context as _, anyhow};
    use client::ServiceProblem;

    use super::*;

    fn refused(status: u16, code: &str) -> anyhow::Error {
        let problem = ServiceProblem {
            status,
            code: code.to_owned(),
            message: String::new(),
            details: Vec::new(),
            retry_after: None,
            body: serde_json::Map::new(),
        };
        let (method, path) = ("GET".to_owned(), "/".to_owned());
        let problem = Box::new(problem);
        anyhow::Error::from(Error::Refused { method, path, problem }).context("what failed")
    }

    #[test]
    fn who_has_not_paid_reads_how_to() {
        let refused = |path: &str, body: &str| {
            let body: serde_json::Map<String, Value> = serde_json::from_str(body).unwrap();
            let problem = ServiceProblem {
                status: 402,
                code: body["error"].as_str().unwrap().to_owned(),
                message: String::new(),
                details: Vec::new(),
                retry_after: None,
                body,
            };
            let (method, path) = ("GET".to_owned(), path.to_owned());
            let problem = Box::new(problem);
            remedy_of(&Error::Refused { method, path, problem }.into())
        };
        let unpaid = r#"{"error": "payment_required"}"#;
        let remedy = refused("/projects/tides/manifest", unpaid).unwrap();
        assert!(remedy.contains("`sluice buy 'tides'`"), "{remedy}");
        assert_eq!(refused("/projects/$(id)/manifest", unpaid), None);
        let short = r#"{"error": "credits_short", "credits": {"topUp": "https://x.example/paid/credits?operator=1"}}"#;
        let remedy = refused("/projects/tides/buy", short).unwrap();
        assert!(remedy.contains(" https://x.example/console/money."), "{remedy}");
    }

    #[test]
    fn what_a_command_line_says_wrongly_is_usage() {
        for (status, code) in [(400, 2), (422, 2), (404, 7), (402, 5)] {
            let error = refused(status, "x").downcast::<Error>().unwrap();
            assert_eq!(code_of(&of_arguments(error)), code, "{status}");
        }
    }

    #[test]
    fn a_code_says_who_has_to_act() {
        for (error, code) in [
            (anyhow!("x"), 1),
            (refused(500, "internal"), 1),
            (refused(429, "too_many_uploads"), 1),
            (refused(409, "project_not_open"), 1),
            (refused(400, "invalid_request"), 4),
            (refused(413, "upload_too_large"), 4),
            (refused(401, "unauthenticated"), 5),
            (refused(402, "storage_quota"), 5),
            (refused(403, "forbidden"), 5),
            (refused(409, "project_limit"), 5),
            (refused(409, "not_private"), 5),
            (refused(409, "was_read"), 5),
            (refused(404, "not_found"), 7),
            (refused(409, "not_for_sale"), 5),
            (refused(409, "price_changed"), 3),
            (refused(429, "approvals_full"), 3),
            (anyhow::Error::from(Missing("no report".to_owned())).context("x"), 7),
            ("ada".parse::<OperatorId>().context("no id").unwrap_err(), 2),
            (FileRefused::mark(anyhow!("line 2")).context("`f.csv`"), 4),
            (FileRefused::mark(std::io::Error::other("disk").into()), 1),
            (anyhow::Error::from(Unanswered("y?".to_owned())).context("x"), 3),
            (anyhow::Error::from(NotAllowed("no".to_owned())).context("x"), 5),
            (anyhow::Error::from(WrongUsage("--x".to_owned())).context("x"), 2),
        ] {
            assert_eq!(code_of(&error), code, "{error:#}");
        }
        let remedy = |status, code| remedy_of(&refused(status, code));
        assert!(remedy(401, "unauthenticated").unwrap().contains("`sluice login`"));
        assert_eq!(remedy(402, "payment_required"), None, "its path names no item");
        assert_eq!(
            (remedy(401, "account_suspended"), remedy(403, "forbidden")),
            (None, None)
        );
        let marked = FileRefused::mark(anyhow!("no integer").context("line 2"));
        let shown = Err::<(), _>(marked).context("`f.csv`").unwrap_err();
        assert_eq!(format!("{shown:#}"), "`f.csv`: line 2: no integer");
    }
}
