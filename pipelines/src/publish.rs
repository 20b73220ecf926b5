//! Publishing of outcomes: of a table in the order of its versions, until the log has them or the worker stops.
//!
//! Invariants:
//! - A version is published after all that come before it, whoever merged them and whatever was published of their
//!   contributions before: what a table has is merged, though a worker that stood still may have put its commit after it
//!   was given up and another one rejected the same contribution.
//! - A writer publishes each commit before it merges again, so each owner of a table that ended or stands still leaves one
//!   version unpublished at most, and the latest few are all that can be unpublished.
//! - An outcome that a log took and lost counts as published, and a damaged version as published long ago. Either is
//!   published again, or asked for, when its submission comes again.
//! - Nothing is tried again that cannot pass. What is too large for the log is shortened.

use catalog::{Merge, Table};
use eventlog::Record;
use operators::verdict;
use tracing::{Instrument as _, Span};
use types::error::with_causes;
use types::{Classify as _, DatasetId, Kind, Retry, Version, fault, mutate};

use crate::context::Context;
use crate::message::{Address, OUTCOMES_TOPIC, Outcome, Resolution};
use crate::report::adopted;
use crate::step::{Stopped, pause};
use crate::trace;

/// The most bytes of verdicts in an outcome that was too large.
const MAX_SHORTENED_VERDICT_BYTES: usize = 64 << 10;
/// Maximum number of versions that are published again: as many owners of one table may end, one after another, before
/// one of them publishes anything. The rest is published when its submission comes again, as it does while it has no
/// outcome.
const MAX_REPUBLISHED_VERSIONS: u64 = 4;

/// Result of an append that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AppendOutcome {
    Durable,
    /// The log does not take the record, now or later.
    Refused,
}

/// Publishes an outcome, and every version known here that is not known to be published: before a merge those before it,
/// and the others then. After a rejection, too, for one of them may be of what is rejected.
pub(crate) async fn publish(context: &Context, table: &Table, outcome: Outcome) -> Result<(), Stopped> {
    let dataset = outcome.dataset;
    if let Resolution::Merged { version, .. } = outcome.resolution {
        catch_up(context, dataset, version).await?;
    }
    publish_outcome(context, outcome).await?;
    // Once more up to the head: another owner may have committed versions after this one and ended before it
    // published them.
    catch_up(context, dataset, table.head().next()).await
}

/// Publishes the versions before `end` that are not known to be published.
async fn catch_up(context: &Context, dataset: DatasetId, end: Version) -> Result<(), Stopped> {
    let next = context.outcomes.published(dataset).next();
    mutate!(Bug::NoGuard => let next = end);
    for version in next.0.max(end.0.saturating_sub(MAX_REPUBLISHED_VERSIONS))..end.0 {
        let merge = context.ask(dataset, || merge_of(context, dataset, Version(version)));
        let Some(merge) = merge.await?.flatten() else { continue };
        tracing::info!(%dataset, version, "a version is told before the next, should nobody have told it");
        // The generation does not matter: a merge holds for every one.
        let address = Address {
            contribution: merge.contribution,
            generation: 0,
            dataset,
        };
        let publishing = publish_outcome(context, adopted(address, merge));
        publishing.instrument(trace::republished(address)).await?;
    }
    Ok(())
}

/// The merge that a version is; none where its commit is damaged.
async fn merge_of(context: &Context, dataset: DatasetId, version: Version) -> Result<Option<Merge>, catalog::Error> {
    let Some(snapshot) = context.catalog.snapshot(dataset, Some(version)).await? else {
        return Ok(None);
    };
    match snapshot.merge().await {
        // Not waited for: it was published long ago, or its submission comes again and waits.
        Err(error) if matches!(error.kind(), Kind::Internal | Kind::Damaged) => {
            tracing::error!(%dataset, %version, error = with_causes(&error), "a version is damaged, and is not told");
            Ok(None)
        }
        merge => merge,
    }
}

/// Appends an outcome; returns once it is durable. An outcome that the log refuses is shortened and appended again.
pub(crate) async fn publish_outcome(context: &Context, mut outcome: Outcome) -> Result<(), Stopped> {
    fault::point("outcome.append");
    let span = Span::current();
    trace::record(&span, &outcome);
    outcome.traceparent = context.propagator.inject(&span);
    let mut appended = append_outcome(context, &outcome)
        .instrument(tracing::debug_span!("publish outcome"))
        .await?;
    if appended == AppendOutcome::Refused {
        // The log refuses records that are too large. The verdicts are the only part of an outcome
        // that grows with its batch, and the contributor needs the resolution more than it needs
        // them.
        verdict::fit(&mut outcome.verdicts, MAX_SHORTENED_VERDICT_BYTES);
        appended = append_outcome(context, &outcome).await?;
    }
    if appended == AppendOutcome::Refused {
        outcome.verdicts = Vec::new();
        appended = append_outcome(context, &outcome).await?;
    }
    if appended == AppendOutcome::Refused {
        tracing::error!(contribution = %outcome.contribution, "the log takes nothing of an outcome; it is not told");
    }
    fault::point("outcome.appended");
    // The outcome is remembered only after the append: remembered before, a redelivery that comes
    // while the append fails would take it for published.
    context.outcomes.insert(outcome, context.clock.now());
    Ok(())
}

async fn append_outcome(context: &Context, outcome: &Outcome) -> Result<AppendOutcome, Stopped> {
    match outcome.record() {
        Ok(record) => {
            // The table keeps a merge, so its outcome can be published again if the log loses it. A rejection
            // cannot: judged again, the submission may pass.
            let kept = matches!(outcome.resolution, Resolution::Merged { .. });
            append(context, OUTCOMES_TOPIC, record, kept).await
        }
        Err(error) => {
            tracing::error!(contribution = %outcome.contribution, %error, "an outcome cannot be encoded");
            Ok(AppendOutcome::Refused)
        }
    }
}

/// Appends a record, trying for as long as that can help. A log that takes nothing any more stops the worker.
pub(crate) async fn append(
    context: &Context,
    topic: &str,
    record: Record,
    kept: bool,
) -> Result<AppendOutcome, Stopped> {
    let mut failures = 0;
    loop {
        let records = vec![record.clone()];
        let appended = if kept {
            context.log.append_recoverable(topic, records).await
        } else {
            context.log.append(topic, records).await
        };
        let Err(error) = appended else {
            return Ok(AppendOutcome::Durable);
        };
        let shown = with_causes(&error);
        match (error.retry(), error.kind()) {
            (Retry::Backoff, _) => {
                tracing::warn!(topic, error = shown, "appending failed, trying again");
                pause(context.backoff, failures, &context.worker_stop).await?;
                failures += 1;
            }
            (Retry::Never, Kind::TooLarge | Kind::Invalid) => {
                tracing::error!(topic, error = shown, "the log does not take a record");
                return Ok(AppendOutcome::Refused);
            }
            (Retry::Never, _) => {
                tracing::error!(topic, error = shown, "the log takes no records; the worker stops");
                // The first error is the one that the worker reports; later appends fail because of
                // it.
                context.failure.get_or_init(|| error);
                context.worker_stop.cancel();
                return Err(Stopped);
            }
        }
    }
}
