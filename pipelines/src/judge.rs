//! Judging one submission: decode, gates, screen. Reads the table's keys, changes nothing.

use std::sync::Arc;

use eventlog::Record;
use futures_util::future;
use operators::screen::Screener;
use operators::{Judged, standard_chain};
use tokio_util::task::AbortOnDropHandle;
use types::key::Known;
use types::{Batch, Contract, fault};

use crate::finished::Finished;
use crate::message::Submission;
use crate::progress::Ticket;

/// A message on its way through a lane.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) record: Record,
    pub(crate) ticket: Ticket,
}

/// What judging found.
#[derive(Debug)]
pub(crate) enum Finding {
    /// The gates judged every row.
    Judged(Box<(Submission, Judged)>),
    /// It has a terminal outcome already.
    Decided,
    /// It cannot be processed, now or later.
    Poison(String),
}

/// What a judge needs of its lane.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    pub(crate) contract: Arc<Contract>,
    pub(crate) known: Arc<dyn Known>,
    pub(crate) screener: Arc<dyn Screener>,
    pub(crate) finished: Arc<Finished>,
}

/// Begins to judge one message, on a task of its own: judging goes on while the lane concludes an earlier message. A
/// gate that panics makes the message poison instead of taking the worker down.
pub(crate) fn judge(bench: Bench, work: Work) -> impl Future<Output = (Work, Finding)> {
    let record = work.record.clone();
    let judging = AbortOnDropHandle::new(tokio::spawn(async move { find(&bench, &record).await }));
    async move {
        match judging.await {
            Ok(finding) => (work, finding),
            Err(error) if error.is_panic() => (work, Finding::Poison("a gate panicked on it".to_owned())),
            // Why: only the end of the runtime cancels it, and then nothing may be concluded.
            Err(_cancelled) => future::pending().await,
        }
    }
}

async fn find(bench: &Bench, record: &Record) -> Finding {
    fault::point("gate.enter");
    let mut submission = match Submission::decode(&record.value) {
        Ok(submission) => submission,
        Err(error) => return Finding::Poison(described(&error)),
    };
    if submission.contract != *bench.contract {
        return Finding::Poison("its contract is not the dataset's".to_owned());
    }
    if submission.dataset.as_bytes()[..] != record.key[..] {
        return Finding::Poison("its key is not its dataset's".to_owned());
    }
    if bench.finished.contains(submission.contribution, submission.generation) {
        return Finding::Decided;
    }
    let batch = Batch::decode(&bench.contract, &submission.records);
    submission.records = Vec::new();
    let screener = (!submission.private).then(|| Arc::clone(&bench.screener));
    let judged = standard_chain(Arc::clone(&bench.known), screener).run(batch).await;
    fault::point("gate.exit");
    Finding::Judged(Box::new((submission, judged)))
}

/// An error with its causes, in one line.
pub(crate) fn described(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
