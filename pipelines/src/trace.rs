//! Spans of submissions: one for each delivery, in the trace of the request that submitted it.

use eventlog::Record;
use serde::Deserialize;
use tracing::Span;
use tracing::field::Empty;
use types::trace::{Origin, Propagator};
use types::{ContributionId, DatasetId};

use crate::message::{self, Address, Outcome, Resolution};

/// Opens the span of a delivered submission. Its field `version` is recorded with its outcome.
pub(crate) fn submission(record: &Record, propagator: &dyn Propagator) -> Span {
    #[derive(Deserialize)]
    struct Names {
        contribution: ContributionId,
        dataset: DatasetId,
        origin: Option<Origin>,
    }
    let span = tracing::info_span!(
        "submission",
        contribution = Empty,
        dataset = Empty,
        version = Empty,
        request_id = Empty
    );
    // Without a subscriber nobody reads the names, and the line is parsed for nothing else here.
    if span.is_disabled() {
        return span;
    }
    // A message that cannot be read has a span without names; the judge finds out what is wrong with it.
    if let Ok(names) = serde_json::from_slice::<Names>(message::head(&record.value)) {
        span.record("contribution", tracing::field::display(names.contribution));
        span.record("dataset", tracing::field::display(names.dataset));
        if let Some(origin) = names.origin {
            origin.apply(&span, propagator);
        }
    }
    span
}

/// Opens the span of a version whose outcome is published again on its own.
pub(crate) fn republished(address: Address) -> Span {
    let (contribution, dataset) = (address.contribution, address.dataset);
    tracing::info_span!(parent: None, "submission", %contribution, %dataset, version = Empty)
}

/// Records what an outcome says in the span of its submission, and logs it.
pub(crate) fn record(span: &Span, outcome: &Outcome) {
    match &outcome.resolution {
        Resolution::Merged { version, accepted, .. } => {
            span.record("version", version.0);
            tracing::info!(parent: span, accepted, "contribution merged");
        }
        Resolution::Rejected { code, .. } => tracing::info!(parent: span, code, "contribution rejected"),
        Resolution::Waiting { reason, .. } => tracing::info!(parent: span, reason, "contribution waits"),
    }
}
