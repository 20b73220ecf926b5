//! Judging of one submission: decode, gates, screen. Reads the table's keys, changes nothing.
//!
//! Invariant: a batch is one chunk, judged by the function that judges the chunks of an upload.

pub(crate) mod chunk;
pub(crate) mod in_order;
pub(crate) mod merger;
pub(crate) mod probe;
pub(crate) mod split;
pub(crate) mod upload;

use std::sync::Arc;

use catalog::{KnownHead, PreparedVersion};
use eventlog::Record;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use operators::screen::Screener;
use operators::{Decision, MAX_VERDICT_BYTES, Numbering, Totals, verdict};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;
use types::error::with_causes;
use types::key::KeyLookup;
use types::vocabulary::OnRefused;
use types::{AgentId, Contract, fault};

use self::chunk::{JudgedChunk, judge_chunk};
use crate::cpu_slots::CpuSlots;
use crate::delivery::Delivery;
use crate::isolation::{Isolation, MessageKind, Probe, poison_reason};
use crate::message::{Address, Source, Submission};
use crate::outcome_cache::OutcomeCache;
use crate::report::Report;
use crate::step::{Step, Unfinished};

/// Number of rows of whose verdicts the chain keeps no more than [`MAX_VERDICT_BYTES`].
const USUAL_ROWS: u32 = 1_024;

/// A submission with the result of its judge.
#[derive(Debug)]
pub(crate) struct JudgedSubmission {
    pub(crate) address: Address,
    /// As in [`Submission`].
    pub(crate) head: Option<KnownHead>,
    pub(crate) judged: Judged,
}

/// Result of judging a batch or an upload.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) decision: Decision,
    /// The rows, where they are to be merged.
    pub(crate) prepared: Option<PreparedVersion>,
    pub(crate) report: Arc<Report>,
}

/// Records of a batch after the chain.
pub(crate) struct JudgedBatch {
    pub(crate) address: Address,
    pub(crate) agent: AgentId,
    head: Option<KnownHead>,
    on_refused: OnRefused,
    pub(crate) chunk: JudgedChunk,
}

impl JudgedBatch {
    /// Decides about a batch, which is one chunk.
    fn decide(self) -> JudgedSubmission {
        let Self {
            address,
            agent,
            head,
            on_refused,
            chunk,
        } = self;
        let JudgedChunk { passed, mut report } = chunk;
        let totals = Totals::of(report.rows.into(), passed.len() as u64, &report.verdicts, on_refused);
        if report.rows > USUAL_ROWS {
            // The chain keeps more words of more rows, but these go into one commit and one message.
            verdict::fit(&mut report.verdicts, MAX_VERDICT_BYTES);
        }
        let decision = Decision::of(&totals, Numbering::Records);
        let is_merge = decision == Decision::Merge;
        let judged = Judged {
            decision,
            prepared: is_merge.then(|| PreparedVersion::of_batch(address.contribution, agent, Arc::new(passed))),
            report: Arc::new(report),
        };
        JudgedSubmission { address, head, judged }
    }
}

/// Result of judging one message that is no poison.
#[derive(Debug)]
pub(crate) enum JudgeOutcome {
    /// The gates judged every row.
    Judged(Box<JudgedSubmission>),
    /// It is an upload, which is to be judged beside the batches.
    Upload(Box<Submission>),
    /// It has a terminal outcome already.
    Decided(Address),
}

/// A message that is judged while its writer commits others.
pub(crate) type Preparation = BoxFuture<'static, (Delivery, Step<JudgeOutcome>)>;

/// Parts of a writer that judging needs.
#[derive(Clone, Debug)]
pub(crate) struct JudgeContext {
    pub(crate) contract: Arc<Contract>,
    pub(crate) known: Arc<dyn KeyLookup>,
    pub(crate) screener: Arc<dyn Screener>,
    pub(crate) outcomes: Arc<OutcomeCache>,
    pub(crate) slots: CpuSlots,
    pub(crate) isolation: Option<Arc<dyn Isolation>>,
}

/// Begins to judge one message: judging goes on while the writer commits an earlier message, in a slot of its own. A
/// gate that panics makes the message poison instead of taking the worker down. A suspect is tried out first.
pub(crate) fn judge(context: JudgeContext, delivery: Delivery) -> Preparation {
    let record = delivery.record.clone();
    let is_suspect = delivery.suspect == Some(MessageKind::Batch);
    let span = tracing::debug_span!(parent: &delivery.span, "judge");
    let judging = AbortOnDropHandle::new(tokio::spawn(async move {
        if is_suspect && decided(&context.outcomes, &record).is_none() {
            let tried = poison_reason(context.isolation.as_deref(), Probe::Batch(&record));
            if let Some(reason) = tried.await {
                return Ok(Err(Unfinished::failed_probe(reason)));
            }
        }
        let slots = context.slots.clone();
        slots
            // Records are parsed in the slot too: decoding the JSON of a large batch takes as long as
            // the gates.
            .run(async move { find(&context, &record).await }.instrument(span))
            .await
    }));
    async move {
        match judging.await {
            Ok(Ok(found)) => (delivery, found),
            Ok(Err(_panic)) => (delivery, Err(Unfinished::poison("a gate panicked on it"))),
            // Only the end of the runtime cancels it, and then nothing may be committed.
            Err(_cancelled) => std::future::pending().await,
        }
    }
    .boxed()
}

/// Returns the address of a message that has a terminal outcome already. Only its first line is read.
pub(crate) fn decided(outcomes: &OutcomeCache, record: &Record) -> Option<Address> {
    let address = Address::read(&record.value)?;
    let is_its_key = address.dataset.as_bytes()[..] == record.key[..];
    (is_its_key && outcomes.contains(address.contribution, address.generation)).then_some(address)
}

async fn find(context: &JudgeContext, record: &Record) -> Step<JudgeOutcome> {
    fault::point("gate.enter");
    // Before the message is decoded, because that may be what it was condemned for.
    if let Some(address) = decided(&context.outcomes, record) {
        return Ok(JudgeOutcome::Decided(address));
    }
    let submission = decode(record).map_err(Unfinished::poison)?;
    // The gates of the writer are built for one contract. Rows judged by another would not fit the table.
    if submission.contract != *context.contract {
        return Err(Unfinished::poison("its contract is not the dataset's"));
    }
    if matches!(submission.source, Source::Upload(_)) {
        return Ok(JudgeOutcome::Upload(Box::new(submission)));
    }
    let (known, screener) = (Arc::clone(&context.known), Arc::clone(&context.screener));
    let judged = judge_records(submission, &context.contract, known, screener).await;
    let judged = judged.map_err(Unfinished::poison)?;
    fault::point("gate.exit");
    Ok(JudgeOutcome::Judged(Box::new(judged.decide())))
}

/// Judges the records of a submission by a contract. The error says why they are none.
pub(crate) async fn judge_records(
    submission: Submission,
    contract: &Arc<Contract>,
    known: Arc<dyn KeyLookup>,
    screener: Arc<dyn Screener>,
) -> Result<JudgedBatch, String> {
    let address = submission.address();
    let Source::Inline(records) = &submission.source else {
        return Err("its records are in an upload".to_owned());
    };
    fault::crash_on(records.text());
    let decoded = tracing::debug_span!("decode").in_scope(|| records.decode(contract));
    let batch = decoded.map_err(|error| with_causes(&error))?;
    let (agent, private, head) = (submission.agent, submission.private, submission.head);
    let on_refused = submission.on_refused;
    // The batch has all of its rows, and a screener may take its time: the text would double the
    // memory.
    drop(submission);
    Ok(JudgedBatch {
        address,
        agent,
        head,
        on_refused,
        chunk: judge_chunk(known, (!private).then_some(screener), batch).await,
    })
}

/// Returns the submission of a record whose key is its dataset's; else why it is none.
pub(crate) fn decode(record: &Record) -> Result<Submission, String> {
    let submission = Submission::decode(&record.value).map_err(|error| with_causes(&error))?;
    if submission.dataset.as_bytes()[..] != record.key[..] {
        return Err("its key is not its dataset's".to_owned());
    }
    Ok(submission)
}
