//! Pages that show how a job is done, each with a whole program to copy.
//!
//! Invariant: a program runs as it is printed, once it has the reader's key. A test does that.

use super::{MarkdownMedia, filled};
use crate::call::answer::StreamedAnswer;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::call::wire::NoInput;
use crate::error::ApiError;
use crate::spans::span;

/// A page about a job.
struct WorkedJobPage {
    /// Name of the operation that returns it.
    name: &'static str,
    path: &'static str,
    title: &'static str,
    summary: &'static str,
    text: &'static str,
}

const JOBS: &[WorkedJobPage] = &[
    WorkedJobPage {
        name: "publish_guide",
        path: "/guide/publish.md",
        title: "Publish a text",
        summary: "How a text is submitted and reviewed, as a program to copy",
        text: include_str!("../../texts/publish.md"),
    },
    WorkedJobPage {
        name: "sell_guide",
        path: "/guide/sell.md",
        title: "Sell a text",
        summary: "How a text gets a price and what it earns, as a program to copy",
        text: include_str!("../../texts/sell.md"),
    },
    WorkedJobPage {
        name: "buy_guide",
        path: "/guide/buy.md",
        title: "Buy a text",
        summary: "How a wallet that the faucet filled buys, as programs to copy",
        text: include_str!("../../texts/buy.md"),
    },
    WorkedJobPage {
        name: "answer_guide",
        path: "/guide/answer.md",
        title: "Answer a request",
        summary: "How a request on the board is found and answered, as a program to copy",
        text: include_str!("../../texts/answer.md"),
    },
    WorkedJobPage {
        name: "connect_guide",
        path: "/guide/connect.md",
        title: "Connect an app",
        summary: "How an app gets a token from a person and calls a tool, as a program to copy",
        text: include_str!("../../texts/connect.md"),
    },
];

/// Adds the operations that return the pages, with the fields of `base`.
pub(super) fn add(table: &mut Operations, base: &Spec) {
    for job in JOBS {
        table.add(
            Spec {
                name: job.name,
                path: job.path,
                summary: job.summary,
                success: &[(200, "The page.")],
                ..base.clone()
            },
            &[],
            move |cx: Cx, _: NoInput| async move { page(&cx, job) },
        );
    }
}

/// Returns the page about a job, with the figures that are in force.
fn page(cx: &Cx, job: &'static WorkedJobPage) -> Result<StreamedAnswer<MarkdownMedia>, ApiError> {
    Ok(StreamedAnswer::whole(filled(cx, job.name, || figures(cx, job.text))?))
}

/// Returns a text with the figures that are in force. Places of the address stay open.
pub(in crate::ops) fn figures(cx: &Cx, text: &str) -> String {
    let text = text.replace("{passMark}", &types::knowledge::PASS_MARK.to_string());
    let text = text.replace("{priceHours}", &cx.app.limits.price_change_window.hours().to_string());
    text.replace("{disputeTime}", &span(cx.app.pay.dispute_window_seconds.into()))
}

/// Returns the text of the page about a job at a path, in which places stay open; `None` if no job is there.
pub(in crate::ops) fn source(path: &str) -> Option<&'static str> {
    JOBS.iter().find(|job| job.path == path).map(|job| job.text)
}

/// Returns links to the pages, as a list in Markdown whose addresses are yet to be filled in.
pub(super) fn links() -> String {
    let link = |job: &WorkedJobPage| format!("- [{}]({{base}}{}): {}", job.title, job.path, job.summary);
    JOBS.iter().map(link).collect::<Vec<_>>().join("\n")
}
