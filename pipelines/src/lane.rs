//! The lane of one dataset: judges a few submissions ahead, concludes them in order.
//!
//! Invariant: within a process, only its lane changes a table, one submission at a time, and a position is marked done
//! only after the submission's outcome is durable. A hold ends a submission's turn like any outcome, so it never
//! blocks the lane. A lane whose table stays damaged ends, and what it had comes again: the log lets go of it
//! meanwhile.

use std::collections::HashSet;
use std::error::Error;
use std::sync::Arc;

use catalog::{Catalog, Table};
use futures_util::future;
use futures_util::stream::{self, StreamExt as _};
use operators::screen::Screener;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use types::{Backoff, Classify, Clock, ContributionId, DatasetId, Kind, Version, metric};

use crate::compactor::Compactor;
use crate::conclude::{conclude, may_pass};
use crate::emit::{Emitter, Stopped, pause};
use crate::finished::Finished;
use crate::isolation::{Isolation, MessageKind, Trial, condemned};
use crate::judge::{Bench, Finding, Work, decided, decode, described, judge};
use crate::lanes::Queued;
use crate::message::{Address, Submission};
use crate::places::Places;
use crate::settled::{bury, tell_again, tell_decided};
use crate::staging::Uploads;
use crate::staging::conclude::{Running, conclude as conclude_upload};

/// Tries of a damaged table before its lane gives it up: about a minute with the usual waits.
const DAMAGED: u32 = 9;
/// Tries of a table that cannot be reached before its lane gives it up: about twelve minutes.
const AWAY: u32 = 30;

/// Parts that every lane of a worker shares.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) catalog: Catalog,
    pub(crate) screener: Arc<dyn Screener>,
    pub(crate) finished: Arc<Finished>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) emitter: Emitter,
    /// Store of the bytes of uploads; a worker without one takes no uploads.
    pub(crate) uploads: Option<Uploads>,
    /// The place where suspects are tried out. Nothing is tried out without one.
    pub(crate) isolation: Option<Arc<dyn Isolation>>,
    pub(crate) backoff: Backoff,
    /// The places of one lane.
    pub(crate) places: Places,
    /// Number of submissions that are judged ahead of the one being concluded.
    pub(crate) ahead: usize,
    /// Of the lane, which the worker's stop stops too.
    pub(crate) stop: CancellationToken,
}

impl Context {
    /// Asks a table, for as long as that can help.
    pub(crate) async fn ask<T, A: Future<Output = Result<T, catalog::Error>>>(
        &self,
        dataset: DatasetId,
        question: impl Fn() -> A,
    ) -> Result<T, Stopped> {
        let mut failures = 0;
        loop {
            match question().await {
                Ok(answer) => return Ok(answer),
                Err(error @ catalog::Error::HistoryLost { .. }) => {
                    // The table is to be opened again, and what the lane has comes again.
                    tracing::error!(%dataset, %error, "a table is given up for now; its submissions come again");
                    return Err(Stopped);
                }
                Err(error) => {
                    tracing::error!(%dataset, error = described(&error), "the table cannot be asked, trying again");
                    self.wait(&mut failures, &error).await?;
                }
            }
        }
    }

    /// Waits before a table that failed is asked again. One that stays as it is is given up: somebody has to mend it,
    /// and until then what its lane has would keep the log from being trimmed.
    pub(crate) async fn wait<E: Classify + Error>(&self, failures: &mut u32, error: &E) -> Result<(), Stopped> {
        let lasts = matches!(error.kind(), Kind::Internal | Kind::Damaged);
        let most = if lasts { DAMAGED } else { AWAY };
        if *failures >= most {
            tracing::error!(
                error = described(error),
                "a table is given up for now; its submissions come again"
            );
            return Err(Stopped);
        }
        pause(self.backoff, *failures, &self.stop).await?;
        *failures += 1;
        Ok(())
    }
}

/// Runs a lane until its queue is closed and empty, or it is stopped.
pub(crate) async fn run(context: Context, mut queue: UnboundedReceiver<Queued>) {
    let stop = context.stop.clone();
    let mut suspects = Suspects::of(&context);
    // The contract comes with the first submission that can be read.
    while let Some(Some(Queued { mut work, weight })) = stop.run_until_cancelled(queue.recv()).await {
        if let Some(address) = decided(&context.finished, &work.record) {
            let span = work.span.clone();
            match tell_decided(&context, address).instrument(span).await {
                Ok(()) => work.ticket.finish(),
                Err(Stopped) => return,
            }
            continue;
        }
        suspects.look(&context.finished, &mut work);
        let opened = match read(&context, &mut work).await {
            Ok(Ok(submission)) => open(&context, &submission).await,
            Ok(Err(poison)) => Ok(Err(poison)),
            Err(Stopped) => return,
        };
        match opened {
            Ok(Ok(table)) => {
                if !Box::pin(follow(
                    &context,
                    table,
                    Queued { work, weight },
                    &mut queue,
                    &mut suspects,
                ))
                .await
                {
                    return;
                }
            }
            Ok(Err(poison)) => match bury(&context, &work, &poison).instrument(work.span.clone()).await {
                Ok(()) => work.ticket.finish(),
                Err(Stopped) => return,
            },
            Err(Stopped) => return,
        }
    }
}

/// The messages of a lane that can have been in work when an earlier process ended: every upload, and no more batches
/// than are judged at once. These are the first that are undecided, because a lane judges its batches in order.
struct Suspects {
    /// Number of batches that may still be suspected.
    left: usize,
    /// Contributions with their generation whose messages are suspected. Copies of them may come that were not in the
    /// log then.
    open: HashSet<(ContributionId, u32)>,
}

impl Suspects {
    fn of(context: &Context) -> Self {
        Self {
            left: context.ahead + 1,
            open: HashSet::new(),
        }
    }

    /// Decides if the next message of the lane is a suspect.
    fn look(&mut self, finished: &Finished, work: &mut Work) {
        let value = &work.record.value;
        self.open
            .retain(|(id, generation)| !finished.contains(*id, *generation));
        if work.suspect.is_none() && self.open.is_empty() {
            return;
        }
        let subject = Address::read(value).map(|address| (address.contribution, address.generation));
        if subject.is_some_and(|subject| self.open.contains(&subject)) {
            work.suspect = Some(MessageKind::of_submission(value));
            return;
        }
        if work.suspect == Some(MessageKind::Batch) {
            match self.left.checked_sub(1) {
                Some(left) => self.left = left,
                None => work.suspect = None,
            }
        }
        if work.suspect.is_some() {
            self.open.extend(subject);
        }
    }
}

/// Reads a submission, which is tried out first if it is a suspect; else says why it is none.
async fn read(context: &Context, work: &mut Work) -> Result<Result<Submission, String>, Stopped> {
    if work.suspect == Some(MessageKind::Batch) {
        work.suspect = None;
        let tried = condemned(context.isolation.as_deref(), Trial::Batch(&work.record));
        let tried = context.stop.run_until_cancelled(Box::pin(tried)).await;
        if let Some(reason) = tried.ok_or(Stopped)? {
            work.condemned = true;
            return Ok(Err(reason));
        }
    }
    let record = work.record.clone();
    let read = context.places.run(async move { decode(&record) }).await;
    Ok(read.unwrap_or_else(|_panic| Err("reading it panicked".to_owned())))
}

/// Opens the table, for as long as that can help: a table that cannot be opened holds up only its own lane. A
/// submission that contradicts its table is poison, and the reason is returned.
async fn open(context: &Context, submission: &Submission) -> Result<Result<Table, String>, Stopped> {
    let contract = Arc::new(submission.contract.clone());
    let mut failures = 0;
    loop {
        match context.catalog.table(submission.dataset, &contract).await {
            Ok(table) => {
                if table.head() > Version::EMPTY {
                    // A table of version 0 has no log, so its opening reads nothing that the figure is
                    // meant to show.
                    metrics::counter!(metric::TABLES_OPENED).increment(1);
                }
                return Ok(Ok(table));
            }
            Err(error) if !may_pass(&error) => return Ok(Err(described(&error))),
            Err(error) => {
                tracing::error!(dataset = %submission.dataset, error = described(&error), "the table cannot be opened");
                context.wait(&mut failures, &error).await?;
            }
        }
    }
}

/// Works through the queue on an open table. Answers whether the table is to be opened again because the log has
/// another history than this process knew; what was judged against that comes again.
async fn follow(
    context: &Context,
    mut table: Table,
    first: Queued,
    queue: &mut UnboundedReceiver<Queued>,
    suspects: &mut Suspects,
) -> bool {
    let bench = Bench {
        contract: Arc::clone(table.contract()),
        known: table.known(),
        screener: Arc::clone(&context.screener),
        finished: Arc::clone(&context.finished),
        places: context.places.clone(),
        isolation: context.isolation.clone(),
    };
    let rest = stream::unfold(queue, |queue| async {
        queue.recv().await.map(|queued| (queued, queue))
    });
    // The first was looked at before.
    let rest = rest.map(|mut queued: Queued| {
        suspects.look(&context.finished, &mut queued.work);
        queued
    });
    let mut judged = stream::once(future::ready(first))
        .chain(rest)
        .map(|Queued { work, weight }| {
            let judging = judge(bench.clone(), work);
            async move { (judging.await, weight) }
        })
        .buffered(context.ahead.max(1))
        .boxed();
    let mut compactor = Compactor::new();
    compactor.look(&table);
    let mut uploads = Running::default();
    let mut open = true;
    while open || !uploads.is_empty() {
        let ended = tokio::select! {
            // A stop comes first. Then come what was built and what was staged: both are rare, and a
            // steady stream of batches would keep them waiting without this order, with their files on
            // the disk.
            biased;
            () = context.stop.cancelled() => break,
            built = compactor.built() => {
                compactor.adopt(&mut table, built).await;
                continue;
            }
            Some(staged) = uploads.next() => {
                let span = staged.span().clone();
                Box::pin(conclude_upload(context, &mut table, staged)).instrument(span).await
            }
            next = judged.next(), if open => match next {
                None => {
                    open = false;
                    Ok(())
                }
                Some(((work, Finding::Upload(submission)), weight)) => {
                    let span = work.span.clone();
                    uploads.begin(context, &table, (work, weight), *submission).instrument(span).await
                }
                Some(((work, finding), _weight)) => {
                    let ended = end(context, &mut table, &work, finding).instrument(work.span.clone()).await;
                    ended.map(|()| work.ticket.finish())
                }
            },
        };
        // Batches judged ahead were judged by the keys of the lost history, so none of them is concluded.
        if matches!(ended, Err(Stopped)) || table.is_lost() {
            break;
        }
        compactor.look(&table);
    }
    drop((judged, uploads, compactor));
    let again = table.is_lost() && open && !context.stop.is_cancelled();
    table.close().await;
    again
}

/// Brings a message to its end, whatever it is.
async fn end(context: &Context, table: &mut Table, work: &Work, finding: Finding) -> Result<(), Stopped> {
    let poison = match finding {
        Finding::Upload(_) => return Ok(()),
        Finding::Decided(address) => return tell_again(context, table, address).await,
        Finding::Judged(case) => match conclude(context, table, *case).await? {
            Ok(()) => return Ok(()),
            Err(poison) => poison,
        },
        Finding::Poison(poison) | Finding::Condemned(poison) => poison,
    };
    bury(context, work, &poison).await
}
