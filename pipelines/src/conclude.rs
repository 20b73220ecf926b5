//! Concluding one submission: its rows become a version, or its outcome says why not.
//!
//! Invariant: before anything is said of a submission the table is asked for it, so that what was merged is never told
//! to be rejected. What cannot pass is not tried again. A table that lost history is not asked, and what is for it
//! waits.

pub(crate) mod notes;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use catalog::{CommitOutcome, KnownHead, Late, Merge, Prepared, Table};
use futures_util::FutureExt as _;
use operators::{Decision, Judged};
use tokio::time::Instant;
use tracing::Instrument as _;
use types::{AgentId, Batch, Classify as _, Retry, Timestamp, metric};

use self::notes::Notes;
use crate::emit::Stopped;
use crate::judge::{Case, described};
use crate::lane::Context;
use crate::message::{Address, FORMAT, Outcome, Resolution};
use crate::telling::tell;
use crate::{faults, history};

/// A judged submission on its way to its outcome.
pub(crate) struct Verdict {
    pub(crate) address: Address,
    agent: AgentId,
    head: Option<KnownHead>,
    decision: Decision,
    pub(crate) passed: Arc<Batch>,
    pub(crate) notes: Arc<Notes>,
}

/// Brings a judged submission to its outcome, trying again for as long as the table or the log cannot be reached. Of
/// one that cannot be concluded, now or later, the reason is returned.
pub(crate) async fn conclude(context: &Context, table: &mut Table, case: Case) -> Result<Result<(), String>, Stopped> {
    let Case {
        address,
        agent,
        head,
        judged,
    } = case;
    // Between judging and now the lane may have decided another delivery of the same submission.
    if context.finished.contains(address.contribution, address.generation) {
        return Ok(Ok(()));
    }
    let decision = judged.decision();
    let Judged {
        passed,
        rows,
        verdicts,
        tallies,
    } = judged;
    let verdict = Verdict {
        address,
        agent,
        head,
        decision,
        passed: Arc::new(passed),
        notes: Arc::new(Notes {
            rows,
            verdicts,
            tallies,
        }),
    };
    let mut failures = 0;
    let committed = loop {
        // A panic that the rows cause would come back with every delivery, and must not take the lane
        // along.
        let decided = AssertUnwindSafe(decide(context, table, &verdict)).catch_unwind().await;
        let Ok(decided) = decided else {
            return Ok(Err("merging it panicked".to_owned()));
        };
        match decided {
            Ok(committed) => {
                count(committed.as_ref());
                break committed;
            }
            Err(error @ catalog::Error::HistoryLost { .. }) => {
                return history::put_off(context, address, &error).await.map(Ok);
            }
            Err(error) if !may_pass(&error) => return Ok(Err(described(&error))),
            Err(error) => {
                tracing::error!(dataset = %address.dataset, contribution = %address.contribution,
                    error = described(&error), "the merge failed, trying again");
                context.wait(&mut failures, &error).await?;
            }
        }
    };
    tell(context, table, told(context, verdict, committed)).await.map(Ok)
}

/// Encodes everything that concluding a judged batch would, and keeps nothing: for a process that tries the batch out.
pub(crate) fn try_out(case: Case, at: Timestamp) -> Result<(), String> {
    let Case {
        address, agent, judged, ..
    } = case;
    let decision = judged.decision();
    let Judged {
        passed,
        rows,
        verdicts,
        tallies,
    } = judged;
    let notes = Notes {
        rows,
        verdicts,
        tallies,
    };
    let outcome = if passed.is_empty() {
        unmerged(address, at, not_merged(decision), notes)
    } else {
        let prepared = Prepared::of_batch(address.contribution, agent, Arc::new(passed));
        let merge = prepared.try_out(address.dataset, at, notes.written());
        let merge = merge.map_err(|error| described(&error))?;
        merged(address, merge, notes)
    };
    outcome.record().map(drop).map_err(|error| error.to_string())
}

/// Counts what became of a submission at its table.
fn count(committed: Option<&CommitOutcome>) {
    let result = match committed {
        Some(CommitOutcome::Committed(_)) => "merged",
        Some(CommitOutcome::AlreadyCommitted(_)) => "already_committed",
        Some(CommitOutcome::NothingNew(_)) => "nothing_new",
        None => return,
    };
    metrics::counter!(metric::MERGES, "result" => result).increment(1);
}

/// Returns true if trying the same thing again can help. A panic comes again.
pub(crate) fn may_pass(error: &catalog::Error) -> bool {
    let panicked = matches!(error, catalog::Error::Stopped(end) if end.is_panic());
    error.retry() == Retry::Backoff && !panicked
}

/// Commits the rows of a judged submission, unless they are a version already. Returns `None` if they are not to be one.
async fn decide(
    context: &Context,
    table: &mut Table,
    verdict: &Verdict,
) -> Result<Option<CommitOutcome>, catalog::Error> {
    history::check(context, table, verdict.address, verdict.head).await?;
    // An earlier delivery may have merged, and then its rows look like duplicates of themselves.
    if let Some(merge) = faults::may_skip_guard(table.find(verdict.address.contribution).await?) {
        return Ok(Some(CommitOutcome::AlreadyCommitted(merge)));
    }
    if verdict.decision != Decision::Merge {
        // The rows were judged by keys of commits that this process knew. If the log lost the last of
        // them, what counts as a duplicate may be in no table, and a rejection is final.
        table.confirm().await?;
        return Ok(None);
    }
    faults::may_publish_early(context, table, verdict).await;
    let mut prepared = Prepared::of_batch(verdict.address.contribution, verdict.agent, Arc::clone(&verdict.passed));
    let notes = Arc::clone(&verdict.notes);
    let started = Instant::now();
    let committing = table.commit(&mut prepared, context.clock.now(), move |_| notes.written());
    let committed = committing.instrument(tracing::debug_span!("merge")).await?;
    metrics::histogram!(metric::MERGE_SECONDS).record(started.elapsed().as_secs_f64());
    Ok(Some(committed))
}

/// The outcome to tell.
fn told(context: &Context, verdict: Verdict, committed: Option<CommitOutcome>) -> Outcome {
    let Verdict {
        address,
        decision,
        notes,
        ..
    } = verdict;
    let notes = Arc::unwrap_or_clone(notes);
    let (resolution, notes) = match committed {
        Some(CommitOutcome::AlreadyCommitted(merge)) => return adopted(address, merge),
        Some(CommitOutcome::Committed(merge)) => return merged(address, merge, notes),
        Some(CommitOutcome::NothingNew(late)) => (nothing_new(), notes.with_late(&late)),
        None => (not_merged(decision), notes),
    };
    outcome(context, address, resolution, notes)
}

pub(crate) fn not_merged(decision: Decision) -> Resolution {
    match decision {
        Decision::Reject { code, message } => Resolution::Rejected { code, message },
        Decision::Hold { reason, resumes_after } => Resolution::Waiting { reason, resumes_after },
        Decision::Merge => nothing_new(),
    }
}

pub(crate) fn nothing_new() -> Resolution {
    Resolution::Rejected {
        code: "duplicates".to_owned(),
        message: "every record is a duplicate of a record the dataset has".to_owned(),
    }
}

pub(crate) fn outcome(context: &Context, address: Address, resolution: Resolution, notes: Notes) -> Outcome {
    unmerged(address, context.clock.now(), resolution, notes)
}

/// The outcome of what is no version.
fn unmerged(address: Address, at: Timestamp, resolution: Resolution, notes: Notes) -> Outcome {
    Outcome {
        format: FORMAT,
        contribution: address.contribution,
        generation: address.generation,
        dataset: address.dataset,
        at,
        resolution,
        rows: notes.rows,
        verdicts: notes.verdicts,
        tallies: notes.tallies,
        traceparent: None,
    }
}

/// Builds the outcome of a merge, which is the same at every delivery.
fn merged(address: Address, merge: Merge, notes: Notes) -> Outcome {
    let notes = notes.with_late(&Late::Rows(merge.duplicates));
    Outcome {
        format: FORMAT,
        contribution: address.contribution,
        generation: address.generation,
        dataset: address.dataset,
        // The time is that of the commit, not of now, so that a second publication is the same outcome.
        at: merge.at,
        resolution: Resolution::Merged {
            version: merge.version,
            accepted: merge.accepted,
            record_count: merge.record_count,
            root: merge.root,
        },
        rows: notes.rows,
        verdicts: notes.verdicts,
        tallies: notes.tallies,
        traceparent: None,
    }
}

pub(crate) fn adopted(address: Address, mut merge: Merge) -> Outcome {
    let notes = Notes::read(address.contribution, std::mem::take(&mut merge.notes));
    merged(address, merge, notes)
}
