//! Judging one submission: decode, gates, screen. Reads the table's keys, changes nothing.

use std::sync::Arc;

use catalog::KnownHead;
use eventlog::Record;
use operators::screen::Screener;
use operators::{Judged, standard_chain};
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument as _, Span};
use types::key::KeyLookup;
use types::{AgentId, Contract, fault};

use crate::finished::Finished;
use crate::message::{Address, Source, Submission};
use crate::places::Places;
use crate::progress::Ticket;

/// A message on its way through a lane.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) record: Record,
    pub(crate) ticket: Ticket,
    /// Reason for which it is a dead letter whatever it contains; `None` for a message to judge.
    pub(crate) condemned: Option<&'static str>,
    /// Span of the submission, from its delivery to its acknowledgement.
    pub(crate) span: Span,
}

/// A submission that the gates judged.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) address: Address,
    pub(crate) agent: AgentId,
    /// As in [`Submission`].
    pub(crate) head: Option<KnownHead>,
    pub(crate) judged: Judged,
}

/// Result of judging one message.
#[derive(Debug)]
pub(crate) enum Finding {
    /// The gates judged every row.
    Judged(Box<Case>),
    /// It is an upload, to be staged.
    Upload(Box<Submission>),
    /// It has a terminal outcome already.
    Decided(Address),
    /// It cannot be processed, now or later.
    Poison(String),
}

/// Parts of a lane that judging needs.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    pub(crate) contract: Arc<Contract>,
    pub(crate) known: Arc<dyn KeyLookup>,
    pub(crate) screener: Arc<dyn Screener>,
    pub(crate) finished: Arc<Finished>,
    pub(crate) places: Places,
}

/// Begins to judge one message: judging goes on while the lane concludes an earlier message, in a place of its own. A
/// gate that panics makes the message poison instead of taking the worker down.
pub(crate) fn judge(bench: Bench, work: Work) -> impl Future<Output = (Work, Finding)> {
    let judging = if let Some(reason) = work.condemned {
        Err(reason)
    } else {
        let record = work.record.clone();
        let span = tracing::debug_span!(parent: &work.span, "judge");
        Ok(AbortOnDropHandle::new(tokio::spawn(async move {
            let places = bench.places.clone();
            places
                // Records are parsed in the place too: decoding the JSON of a large batch takes as long
                // as the gates.
                .run(async move { find(&bench, &record).await }.instrument(span))
                .await
        })))
    };
    async move {
        let judging = match judging {
            Ok(judging) => judging,
            Err(reason) => return (work, Finding::Poison(reason.to_owned())),
        };
        match judging.await {
            Ok(Ok(finding)) => (work, finding),
            Ok(Err(_panic)) => (work, Finding::Poison("a gate panicked on it".to_owned())),
            // Only the end of the runtime cancels it, and then nothing may be concluded.
            Err(_cancelled) => std::future::pending().await,
        }
    }
}

async fn find(bench: &Bench, record: &Record) -> Finding {
    fault::point("gate.enter");
    let submission = match decode(record) {
        Ok(submission) => submission,
        Err(poison) => return Finding::Poison(poison),
    };
    // The gates of the lane are built for one contract. Rows judged by another would not fit the table.
    if submission.contract != *bench.contract {
        return Finding::Poison("its contract is not the dataset's".to_owned());
    }
    let address = submission.address();
    if bench.finished.contains(address.contribution, address.generation) {
        return Finding::Decided(address);
    }
    let Source::Inline(records) = &submission.source else {
        return Finding::Upload(Box::new(submission));
    };
    fault::crash_on(records.text());
    let decoded = tracing::debug_span!("decode").in_scope(|| records.decode(&bench.contract));
    let batch = match decoded {
        Ok(batch) => batch,
        Err(error) => return Finding::Poison(described(&error)),
    };
    let (agent, private, head) = (submission.agent, submission.private, submission.head);
    // The batch has all of its rows, and a screener may take its time: the text would double the
    // memory.
    drop(submission);
    let screener = (!private).then(|| Arc::clone(&bench.screener));
    let judged = standard_chain(Arc::clone(&bench.known), screener).run(batch).await;
    fault::point("gate.exit");
    Finding::Judged(Box::new(Case {
        address,
        agent,
        head,
        judged,
    }))
}

/// The submission of a record whose key is its dataset's; else why it is none.
pub(crate) fn decode(record: &Record) -> Result<Submission, String> {
    let submission = Submission::decode(&record.value).map_err(|error| described(&error))?;
    if submission.dataset.as_bytes()[..] != record.key[..] {
        return Err("its key is not its dataset's".to_owned());
    }
    Ok(submission)
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
