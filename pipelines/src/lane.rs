//! The lane of one dataset: judges a few submissions ahead, concludes them in order.
//!
//! Invariant: within a process, only its lane changes a table, one submission at a time, and a position is marked done
//! only after the submission's outcome is durable. A hold ends a submission's turn like any outcome, so it never
//! blocks the lane.

use std::sync::Arc;

use catalog::{Catalog, MergeOutcome, Proposal, Table};
use futures_util::future;
use futures_util::stream::{self, StreamExt as _};
use operators::screen::Screener;
use operators::{Decision, Judged, Reason, RowVerdict, Tally, Verdict};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;
use types::fault::{self, Plant};
use types::{Clock, Version};

use crate::emit::{Backoff, Emitter, Stopped};
use crate::finished::Finished;
use crate::judge::{Bench, Finding, described, judge};
use crate::lanes::Queued;
use crate::message::{FORMAT, Outcome, Resolution, Submission};

/// What every lane of a worker shares.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) catalog: Catalog,
    pub(crate) screener: Arc<dyn Screener>,
    pub(crate) finished: Arc<Finished>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) emitter: Emitter,
    pub(crate) backoff: Backoff,
    /// How many submissions are judged ahead of the one being concluded.
    pub(crate) ahead: usize,
    pub(crate) stop: CancellationToken,
}

/// Runs a lane until its queue is closed and empty, or the worker stops.
pub(crate) async fn run(context: Context, mut queue: UnboundedReceiver<Queued>) {
    let stop = context.stop.clone();
    // The contract comes with the first submission that can be read.
    while let Some(Some(Queued { work, weight })) = stop.run_until_cancelled(queue.recv()).await {
        let opened = match Submission::decode(&work.record.value) {
            Ok(submission) => open(&context, &submission).await,
            Err(error) => Ok(Err(described(&error))),
        };
        match opened {
            Ok(Ok(table)) => {
                follow(&context, table, Queued { work, weight }, queue).await;
                return;
            }
            Ok(Err(poison)) => {
                if context.emitter.dead_letter(&work, poison).await.is_ok() {
                    work.ticket.finish();
                }
            }
            Err(Stopped) => return,
        }
    }
}

/// Opens the table, however long that takes: a table that cannot be opened holds up only its own lane. A submission
/// that contradicts its table is poison, and the reason is returned.
async fn open(context: &Context, submission: &Submission) -> Result<Result<Table, String>, Stopped> {
    let contract = Arc::new(submission.contract.clone());
    let mut failures = 0;
    loop {
        match context.catalog.table(submission.dataset, &contract).await {
            Ok(table) => return Ok(Ok(table)),
            Err(error @ catalog::Error::ContractMismatch { .. }) => return Ok(Err(described(&error))),
            Err(error) => {
                tracing::error!(dataset = %submission.dataset, error = described(&error), "the table cannot be opened");
                context.backoff.wait(failures, &context.stop).await?;
                failures += 1;
            }
        }
    }
}

async fn follow(context: &Context, mut table: Table, first: Queued, queue: UnboundedReceiver<Queued>) {
    let bench = Bench {
        contract: Arc::clone(table.contract()),
        known: table.known(),
        screener: Arc::clone(&context.screener),
        finished: Arc::clone(&context.finished),
    };
    let rest = stream::unfold(queue, |mut queue| async {
        queue.recv().await.map(|queued| (queued, queue))
    });
    let mut judged = stream::once(future::ready(first))
        .chain(rest)
        .map(|Queued { work, weight }| {
            let judging = judge(bench.clone(), work);
            async move { (judging.await, weight) }
        })
        .buffered(context.ahead.max(1))
        .boxed();
    while let Some(Some(((work, finding), weight))) = context.stop.run_until_cancelled(judged.next()).await {
        let concluded = match finding {
            Finding::Judged(found) => conclude(context, &mut table, &found.0, &found.1).await,
            Finding::Decided => Ok(()),
            Finding::Poison(reason) => context.emitter.dead_letter(&work, reason).await,
        };
        match concluded {
            Ok(()) => work.ticket.finish(),
            Err(Stopped) => return,
        }
        drop(weight);
    }
}

/// What the commit remembers of the judgement, so that an adopted merge gives the same outcome.
#[derive(Debug, Serialize, Deserialize)]
struct Notes {
    rows: u32,
    verdicts: Vec<RowVerdict>,
    tallies: Vec<Tally>,
}

/// Brings a judged submission to its outcome, trying again for as long as the table or the log cannot be reached.
async fn conclude(
    context: &Context,
    table: &mut Table,
    submission: &Submission,
    judged: &Judged,
) -> Result<(), Stopped> {
    // Why: between judging and now the lane may have decided another delivery of the same submission.
    if context
        .finished
        .contains(submission.contribution, submission.generation)
    {
        return Ok(());
    }
    let mut failures = 0;
    loop {
        match decide(context, table, submission, judged).await {
            Ok(Some(outcome)) => return context.emitter.outcome(&outcome).await,
            Ok(None) => return Ok(()),
            Err(error) => {
                tracing::error!(dataset = %submission.dataset, contribution = %submission.contribution,
                    error = described(&error), "the merge failed, trying again");
                context.backoff.wait(failures, &context.stop).await?;
                failures += 1;
            }
        }
    }
}

/// The outcome of a judged submission; none where it was told already.
async fn decide(
    context: &Context,
    table: &mut Table,
    submission: &Submission,
    judged: &Judged,
) -> Result<Option<Outcome>, catalog::Error> {
    // Why: an earlier delivery may have merged, and then its rows look like duplicates of themselves.
    if !fault::planted(Plant::NoGuard)
        && let Some(merge) = table.find(submission.contribution).await?
    {
        return Ok(Some(merged(context, submission, merge)));
    }
    let notes = Notes {
        rows: judged.rows,
        verdicts: judged.verdicts.clone(),
        tallies: judged.tallies.clone(),
    };
    let resolution = match judged.decision() {
        Decision::Reject { code, message } => Resolution::Rejected { code, message },
        Decision::Hold { reason, resumes_after } => Resolution::Waiting { reason, resumes_after },
        Decision::Merge => {
            let told = fault::planted(Plant::OutcomeBeforeCommit);
            if told
                && context
                    .emitter
                    .outcome(&foretold(context, table, submission, judged))
                    .await
                    .is_err()
            {
                return Ok(None);
            }
            let proposal = Proposal {
                contribution: submission.contribution,
                agent: submission.agent,
                batch: judged.passed.clone(),
                at: context.clock.now(),
                notes: serde_json::to_value(&notes).unwrap_or_default(),
            };
            match table.merge(proposal).await? {
                MergeOutcome::Merged(_) | MergeOutcome::Adopted(_) if told => return Ok(None),
                MergeOutcome::Merged(merge) | MergeOutcome::Adopted(merge) => {
                    return Ok(Some(merged(context, submission, merge)));
                }
                MergeOutcome::NothingNew { duplicates } => {
                    let notes = with_duplicates(notes, &duplicates);
                    return Ok(Some(outcome(context, submission, nothing_new(), notes)));
                }
            }
        }
    };
    Ok(Some(outcome(context, submission, resolution, notes)))
}

fn merged(context: &Context, submission: &Submission, merge: catalog::Merge) -> Outcome {
    let resolution = Resolution::Merged {
        version: merge.version,
        accepted: merge.accepted,
        record_count: merge.record_count,
        root: merge.root,
    };
    let notes = serde_json::from_value(merge.notes).unwrap_or_else(|error| {
        tracing::error!(contribution = %submission.contribution, %error, "the notes of a commit cannot be read");
        Notes {
            rows: 0,
            verdicts: Vec::new(),
            tallies: Vec::new(),
        }
    });
    let mut outcome = outcome(
        context,
        submission,
        resolution,
        with_duplicates(notes, &merge.duplicates),
    );
    outcome.at = merge.at;
    outcome
}

fn outcome(context: &Context, submission: &Submission, resolution: Resolution, notes: Notes) -> Outcome {
    Outcome {
        format: FORMAT,
        contribution: submission.contribution,
        generation: submission.generation,
        dataset: submission.dataset,
        at: context.clock.now(),
        resolution,
        rows: notes.rows,
        verdicts: notes.verdicts,
        tallies: notes.tallies,
    }
}

fn nothing_new() -> Resolution {
    Resolution::Rejected {
        code: "duplicates".to_owned(),
        message: "every record is a duplicate of a record the dataset has".to_owned(),
    }
}

/// The planted bug: the outcome as it would be if the commit were certain.
fn foretold(context: &Context, table: &Table, submission: &Submission, judged: &Judged) -> Outcome {
    let accepted = u64::try_from(judged.passed.len()).unwrap_or(u64::MAX);
    let resolution = Resolution::Merged {
        version: Version::next(table.head()),
        accepted,
        record_count: table.record_count() + accepted,
        root: String::new(),
    };
    let notes = Notes {
        rows: judged.rows,
        verdicts: judged.verdicts.clone(),
        tallies: judged.tallies.clone(),
    };
    outcome(context, submission, resolution, notes)
}

/// Adds the rows that the critical section dropped: they passed the gates and were merged by another batch meanwhile.
fn with_duplicates(mut notes: Notes, duplicates: &[u32]) -> Notes {
    let Ok(count) = u32::try_from(duplicates.len()) else {
        return notes;
    };
    notes.verdicts.extend(duplicates.iter().map(|&row| RowVerdict {
        row,
        verdict: Verdict::Drop {
            reason: Reason {
                gate: "dedup".to_owned(),
                code: "duplicate_in_dataset".to_owned(),
                path: String::new(),
                expected: "a record the dataset does not have".to_owned(),
                actual: "a record merged while this batch was judged".to_owned(),
            },
        },
    }));
    notes.verdicts.sort_by_key(|verdict| verdict.row);
    if let Some(tally) = notes.tallies.iter_mut().find(|tally| tally.gate == "dedup") {
        tally.dropped += count;
        tally.passed = tally.passed.saturating_sub(count);
    }
    notes
}
