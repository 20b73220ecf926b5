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
use crate::isolation::{Isolation, MessageKind, Trial, condemned};
use crate::message::{Address, Source, Submission};
use crate::places::Places;
use crate::progress::Ticket;

/// A message on its way through a lane.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) record: Record,
    pub(crate) ticket: Ticket,
    /// Kind of the message if it can have been in work when an earlier process ended, and was not tried out.
    pub(crate) suspect: Option<MessageKind>,
    /// Nobody is to work on it: its trial ended badly.
    pub(crate) condemned: bool,
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
    /// Nobody is to work on it, for this reason.
    Condemned(String),
}

/// Parts of a lane that judging needs.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    pub(crate) contract: Arc<Contract>,
    pub(crate) known: Arc<dyn KeyLookup>,
    pub(crate) screener: Arc<dyn Screener>,
    pub(crate) finished: Arc<Finished>,
    pub(crate) places: Places,
    pub(crate) isolation: Option<Arc<dyn Isolation>>,
}

/// Begins to judge one message: judging goes on while the lane concludes an earlier message, in a place of its own. A
/// gate that panics makes the message poison instead of taking the worker down. A suspect is tried out first.
pub(crate) fn judge(bench: Bench, mut work: Work) -> impl Future<Output = (Work, Finding)> {
    let record = work.record.clone();
    let is_suspect = work.suspect == Some(MessageKind::Batch);
    let span = tracing::debug_span!(parent: &work.span, "judge");
    let judging = AbortOnDropHandle::new(tokio::spawn(async move {
        if is_suspect && let Some(reason) = try_out(&bench, &record).await {
            return Ok(Finding::Condemned(reason));
        }
        let places = bench.places.clone();
        places
            // Records are parsed in the place too: decoding the JSON of a large batch takes as long
            // as the gates.
            .run(async move { find(&bench, &record).await }.instrument(span))
            .await
    }));
    async move {
        match judging.await {
            Ok(Ok(Finding::Condemned(reason))) => {
                work.condemned = true;
                (work, Finding::Condemned(reason))
            }
            Ok(Ok(finding)) => (work, finding),
            Ok(Err(_panic)) => (work, Finding::Poison("a gate panicked on it".to_owned())),
            // Only the end of the runtime cancels it, and then nothing may be concluded.
            Err(_cancelled) => std::future::pending().await,
        }
    }
}

/// Tries a batch out, unless it is decided. Returns the reason if nobody is to work on it.
async fn try_out(bench: &Bench, record: &Record) -> Option<String> {
    if decided(&bench.finished, record).is_some() {
        return None;
    }
    condemned(bench.isolation.as_deref(), Trial::Batch(record)).await
}

/// Returns the address of a message that has a terminal outcome already. Only its first line is read.
pub(crate) fn decided(finished: &Finished, record: &Record) -> Option<Address> {
    let address = Address::read(&record.value)?;
    let is_its_key = address.dataset.as_bytes()[..] == record.key[..];
    (is_its_key && finished.contains(address.contribution, address.generation)).then_some(address)
}

async fn find(bench: &Bench, record: &Record) -> Finding {
    fault::point("gate.enter");
    // Before the message is decoded, because that may be what it was condemned for.
    if let Some(address) = decided(&bench.finished, record) {
        return Finding::Decided(address);
    }
    let submission = match decode(record) {
        Ok(submission) => submission,
        Err(poison) => return Finding::Poison(poison),
    };
    // The gates of the lane are built for one contract. Rows judged by another would not fit the table.
    if submission.contract != *bench.contract {
        return Finding::Poison("its contract is not the dataset's".to_owned());
    }
    if matches!(submission.source, Source::Upload(_)) {
        return Finding::Upload(Box::new(submission));
    }
    let (known, screener) = (Arc::clone(&bench.known), Arc::clone(&bench.screener));
    match judge_records(submission, &bench.contract, known, screener).await {
        Ok(case) => {
            fault::point("gate.exit");
            Finding::Judged(Box::new(case))
        }
        Err(poison) => Finding::Poison(poison),
    }
}

/// Judges the records of a submission by a contract. The error says why they are none.
pub(crate) async fn judge_records(
    submission: Submission,
    contract: &Arc<Contract>,
    known: Arc<dyn KeyLookup>,
    screener: Arc<dyn Screener>,
) -> Result<Case, String> {
    let address = submission.address();
    let Source::Inline(records) = &submission.source else {
        return Err("its records are in an upload".to_owned());
    };
    fault::crash_on(records.text());
    let decoded = tracing::debug_span!("decode").in_scope(|| records.decode(contract));
    let batch = decoded.map_err(|error| described(&error))?;
    let (agent, private, head) = (submission.agent, submission.private, submission.head);
    // The batch has all of its rows, and a screener may take its time: the text would double the
    // memory.
    drop(submission);
    let judged = standard_chain(known, (!private).then_some(screener)).run(batch).await;
    Ok(Case {
        address,
        agent,
        head,
        judged,
    })
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
