//! Injected bug of writers, which the crash tests must detect.

use catalog::Table;

use crate::context::Context;
use crate::message::{Address, Resolution};
use crate::publish::publish_outcome;
use crate::report::{Report, outcome};

/// Publishes the outcome before the commit, as if the commit were certain.
pub(crate) async fn publish_early(context: &Context, table: &Table, address: Address, report: &Report) {
    let accepted = report.tallies.last().map_or(0, |tally| tally.passed.into());
    let resolution = Resolution::Merged {
        version: table.head().next(),
        accepted,
        record_count: table.record_count() + accepted,
        root: String::new(),
    };
    let early = outcome(address, context.clock.now(), resolution, report.clone());
    // A worker that stops publishes nothing, and then the bug does not show.
    publish_outcome(context, early).await.unwrap_or_default();
}
