//! The step of a writer that ends a judged submission: its rows become a version, or its outcome says why not.
//!
//! Invariant: before anything is published of a submission the table is asked for it, so that what was merged is never
//! rejected. What cannot pass is not tried again. A table that lost history is not asked, and what is for it waits.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use catalog::{CommitOutcome, PreparedVersion, Table};
use futures_util::FutureExt as _;
use tokio::time::Instant;
use tracing::Instrument as _;
use types::error::with_causes;
use types::{metric, mutate};

use crate::context::{Context, is_transient};
use crate::history;
use crate::judge::JudgedSubmission;
use crate::message::Outcome;
use crate::publish::publish;
use crate::report::{Report, adopted, not_merged, nothing_new, outcome};
use crate::step::{Step, Unfinished};

/// Commits a judged submission and publishes its outcome, trying again for as long as the table or the log cannot be
/// reached.
pub(crate) async fn commit(context: &Context, table: &mut Table, mut submission: JudgedSubmission) -> Step<()> {
    let address = submission.address;
    // Between judging and now the writer may have decided another delivery of the same submission.
    if context.outcomes.contains(address.contribution, address.generation) {
        return Ok(());
    }
    let mut failures = 0;
    let outcome = loop {
        // A panic that the rows cause would come back with every delivery, and must not take the writer
        // along.
        let merging = AssertUnwindSafe(merge(context, table, &mut submission)).catch_unwind();
        let Ok(merging) = merging.await else {
            return Err(Unfinished::poison("merging it panicked"));
        };
        match merging {
            Ok(outcome) => break outcome,
            Err(error @ catalog::Error::HistoryLost { .. }) => {
                // Rows that the table lost were left out as duplicates, so it is judged again later.
                return Ok(history::put_off(context, address, &error).await?);
            }
            Err(error @ catalog::Error::NoRoom { .. })
                if submission
                    .judged
                    .prepared
                    .as_ref()
                    .is_some_and(PreparedVersion::is_in_files) =>
            {
                // Not waited for, because the files of the upload take the room. The message comes again,
                // as it has no outcome.
                tracing::error!(dataset = %address.dataset, contribution = %address.contribution,
                    error = with_causes(&error), "an upload could not be merged, and is staged again later");
                return Ok(());
            }
            Err(error) if !is_transient(&error) => return Err(Unfinished::refused_by_table(&error)),
            Err(error) => {
                tracing::error!(dataset = %address.dataset, contribution = %address.contribution,
                    error = with_causes(&error), "the merge failed, trying again");
                context.wait(&mut failures, &error).await?;
            }
        }
    };
    // Dropped now, because files of an upload take room, and their rows are in the table or wanted by nobody.
    drop(submission);
    Ok(publish(context, table, outcome).await?)
}

/// Commits the rows unless an earlier delivery did, and returns the outcome.
async fn merge(
    context: &Context,
    table: &mut Table,
    submission: &mut JudgedSubmission,
) -> Result<Outcome, catalog::Error> {
    let (address, judged) = (submission.address, &mut submission.judged);
    history::check(context, table, address, submission.head).await?;
    // An earlier delivery may have merged, and then its rows look like duplicates of themselves.
    let found = table.find(address.contribution).await?;
    mutate!(Bug::NoGuard => let found = None);
    if let Some(merge) = found {
        count("already_committed");
        return Ok(adopted(address, merge));
    }
    // The report is cloned below, because a try that fails needs it again.
    let Some(prepared) = &mut judged.prepared else {
        // The rows were judged by keys of commits that this process knew. If the log lost the last of
        // them, what counts as a duplicate may be in no table, and a rejection is final.
        table.confirm().await?;
        let resolution = not_merged(judged.decision.clone());
        return Ok(outcome(
            address,
            context.clock.now(),
            resolution,
            Report::clone(&judged.report),
        ));
    };
    mutate!(Bug::OutcomeBeforeCommit => crate::faults::publish_early(context, table, address, &judged.report).await);
    let started = Instant::now();
    let report = Arc::clone(&judged.report);
    let committing = table.commit(prepared, context.clock.now(), move |late| report.written_with(late));
    let committed = committing.instrument(tracing::debug_span!("merge")).await?;
    metrics::histogram!(metric::MERGE_SECONDS).record(started.elapsed().as_secs_f64());
    let (result, outcome) = match committed {
        CommitOutcome::Committed(merge) => ("merged", adopted(address, merge)),
        CommitOutcome::AlreadyCommitted(merge) => ("already_committed", adopted(address, merge)),
        CommitOutcome::NothingNew(late) => {
            let report = Report::clone(&judged.report).with_late(&late);
            let resolution = nothing_new(&report.tallies);
            let outcome = outcome(address, context.clock.now(), resolution, report);
            ("nothing_new", outcome)
        }
    };
    count(result);
    Ok(outcome)
}

/// Counts what became of a submission at its table.
fn count(result: &'static str) {
    metrics::counter!(metric::MERGES, "result" => result).increment(1);
}
