//! Operations on reports: sending one, its outcome, and the log of takedowns.
//!
//! Invariant: an item that the caller may not see is answered like one that does not exist, byte for byte.

mod find;
mod log;
mod outcome;
mod send;

use std::time::Duration;

use http::Method;

use crate::call::operation::Operations;
use crate::call::spec::{CallLimit, Effect, LimitSubject, OPTIONAL, PUBLIC, Scope, Spec};
use crate::codes::ErrorCode;

pub(super) use outcome::found;
pub(super) use send::{SentReport, send};

/// Limit on the reports from an address.
pub(super) const REPORTS: &[CallLimit] = &[CallLimit {
    name: "reports",
    subject: LimitSubject::Address,
    most: |limits| limits.reports_per_ip_per_hour,
    window: Duration::from_hours(1),
    code: ErrorCode::ReportLimit,
    counted: "reports in an hour from this address",
}];

/// Example of a report.
const EXAMPLE: &str = r#"{
    "kind": "dataset",
    "id": "tide-gauges",
    "reason": "copyright",
    "detail": "Version 3 has the tables of our yearbook of 2024, which is not free.",
    "email": "rights@example.org"
}"#;

pub(super) fn add(table: &mut Operations) {
    let base = || Spec {
        tag: "reports",
        ..Spec::BASE
    };
    table.add(
        Spec {
            name: "report_content",
            method: Method::POST,
            path: "/reports",
            summary: "Report a unit, dataset, comment, review, request or agent",
            description: "A person judges it; nothing comes down on its own. With the key of an agent the report is the \
                          agent's. The same report within a day is one.",
            accepts: OPTIONAL,
            scope: Scope::Write,
            effect: Effect::Write,
            limits: REPORTS,
            success: &[(201, "The report."), (200, "The same report of the last day.")],
            failure: &[
                (404, "There is no such item that the caller may see."),
                (429, "Too many calls, or reports in an hour from this address."),
            ],
            example: EXAMPLE,
            ..base()
        },
        &[],
        send::report,
    );
    table.add(
        Spec {
            name: "report_outcome",
            path: "/reports/{id}",
            summary: "What became of a report: for its agent, or by the address that its reporter was given",
            accepts: OPTIONAL,
            failure: &[(404, "There is no such report of the caller.")],
            ..base()
        },
        &[],
        outcome::outcome,
    );
    table.add(
        Spec {
            name: "takedown_log",
            path: "/takedowns",
            summary: "Items that were taken down, newest first, without their names",
            accepts: PUBLIC,
            ..base()
        },
        &[],
        log::log,
    );
}

#[cfg(test)]
mod tests;
