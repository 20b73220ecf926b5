//! The writer of one dataset's table: judges a few submissions ahead, commits and publishes them in order.
//!
//! Invariant: within a process, only its writer changes a table, one submission at a time, and a delivery is
//! acknowledged only after the submission's outcome is durable. A hold ends a submission's turn like any outcome, so it
//! never blocks the writer. A writer whose table stays damaged ends, and what it had comes again: the log lets go of it
//! meanwhile.

mod commit;
mod uploads;

use std::sync::Arc;

use catalog::Table;
use futures_util::future;
use futures_util::stream::{self, StreamExt as _};
use tokio::sync::mpsc::UnboundedReceiver;
use tracing::Instrument as _;
use types::error::with_causes;
use types::{Version, metric};

use self::commit::commit;
use self::uploads::Running;
use crate::compactor::Compactor;
use crate::context::{Context, is_transient};
use crate::delivery::Delivery;
use crate::isolation::{MessageKind, Probe, poison_reason};
use crate::judge::{JudgeContext, JudgeOutcome, decided, decode, judge};
use crate::message::Submission;
use crate::republish::{end_poison, republish, republish_decided};
use crate::step::{Step, Stopped, Unfinished};
use crate::suspects::PoisonSuspects;

/// Runs a writer until its queue is closed and empty, or it is stopped.
pub(crate) async fn run(context: Context, mut queue: UnboundedReceiver<Delivery>) {
    let stop = context.stop.clone();
    let mut suspects = PoisonSuspects::of(&context);
    // The contract comes with the first submission that can be read.
    while let Some(Some(mut delivery)) = stop.run_until_cancelled(queue.recv()).await {
        let span = delivery.span.clone();
        let ended = if let Some(address) = decided(&context.outcomes, &delivery.record) {
            let republishing = republish_decided(&context, address).instrument(span).await;
            republishing.map_err(Unfinished::from)
        } else {
            suspects.observe(&context.outcomes, &mut delivery);
            let opened = match read(&context, &mut delivery).await {
                Ok(submission) => open(&context, &submission).await,
                Err(unfinished) => Err(unfinished),
            };
            match opened {
                Ok(table) => {
                    let following = follow(&context, table, delivery, &mut queue, &mut suspects);
                    if Box::pin(following).await {
                        continue;
                    }
                    return;
                }
                Err(unfinished) => Err(unfinished),
            }
        };
        if let Err(Stopped) = acknowledge(&context, delivery, ended).await {
            return;
        }
    }
}

/// Reads a submission, which is tried out first if it is a suspect.
async fn read(context: &Context, delivery: &mut Delivery) -> Step<Submission> {
    if delivery.suspect == Some(MessageKind::Batch) {
        delivery.suspect = None;
        let tried = poison_reason(context.isolation.as_deref(), Probe::Batch(&delivery.record));
        let tried = context.stop.run_until_cancelled(Box::pin(tried)).await;
        if let Some(reason) = tried.ok_or(Stopped)? {
            return Err(Unfinished::failed_probe(reason));
        }
    }
    let record = delivery.record.clone();
    let read = context.slots.run(async move { decode(&record) }).await;
    let read = read.unwrap_or_else(|_panic| Err("reading it panicked".to_owned()));
    read.map_err(Unfinished::poison)
}

/// Opens the table, for as long as that can help: a table that cannot be opened holds up only its own writer. A
/// submission that contradicts its table is poison.
async fn open(context: &Context, submission: &Submission) -> Step<Table> {
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
                return Ok(table);
            }
            Err(error) if !is_transient(&error) => return Err(Unfinished::refused_by_table(&error)),
            Err(error) => {
                tracing::error!(dataset = %submission.dataset, error = with_causes(&error), "the table cannot be opened");
                context.wait(&mut failures, &error).await?;
            }
        }
    }
}

/// Works through the queue on an open table. Returns true if the table is to be opened again because the log has
/// another history than this process knew, or an end; what was judged against that comes again.
async fn follow(
    context: &Context,
    mut table: Table,
    first: Delivery,
    queue: &mut UnboundedReceiver<Delivery>,
    suspects: &mut PoisonSuspects,
) -> bool {
    let judges = JudgeContext {
        contract: Arc::clone(table.contract()),
        known: table.known(),
        screener: Arc::clone(&context.screener),
        outcomes: Arc::clone(&context.outcomes),
        slots: context.slots.clone(),
        isolation: context.isolation.clone(),
    };
    let rest = stream::unfold(queue, |queue| async {
        queue.recv().await.map(|delivery| (delivery, queue))
    });
    // The first was looked at before.
    let rest = rest.map(|mut delivery: Delivery| {
        suspects.observe(&context.outcomes, &mut delivery);
        delivery
    });
    let mut batches = stream::once(future::ready(first))
        .chain(rest)
        .map(|delivery| judge(judges.clone(), delivery))
        .buffered(context.ahead.max(1))
        .boxed();
    let mut compactor = Compactor::new();
    compactor.schedule(&table);
    let mut uploads = Running::default();
    let mut open = true;
    while open || !uploads.is_empty() {
        let (delivery, found) = tokio::select! {
            // A stop comes first. Then come what was built and what was judged of uploads: both are rare, and a
            // steady stream of batches would keep them waiting without this order, with their files on
            // the disk.
            biased;
            () = context.stop.cancelled() => break,
            built = compactor.built() => {
                compactor.adopt(&mut table, built).await;
                continue;
            }
            Some(judged) = uploads.next() => judged,
            judged = batches.next(), if open => {
                let Some(judged) = judged else {
                    open = false;
                    continue;
                };
                judged
            }
        };
        let span = delivery.span.clone();
        let ended = end(context, &mut table, &mut uploads, delivery, found);
        // Batches judged ahead were judged by the keys of the lost history, so none of them is committed.
        if ended.instrument(span).await.is_err() || table.is_lost() {
            break;
        }
        compactor.schedule(&table);
    }
    drop((batches, uploads, compactor));
    let again = table.is_lost() && open && !context.stop.is_cancelled();
    table.close().await;
    again
}

/// Brings a judged message to its end, and begins to judge an upload.
async fn end(
    context: &Context,
    table: &mut Table,
    uploads: &mut Running,
    delivery: Delivery,
    found: Step<JudgeOutcome>,
) -> Result<(), Stopped> {
    let (delivery, ended) = match found {
        // Boxed, because the future is large.
        Ok(JudgeOutcome::Judged(submission)) => (delivery, Box::pin(commit(context, table, *submission)).await),
        Ok(JudgeOutcome::Decided(address)) => {
            let republished = republish(context, table, address).await;
            (delivery, republished.map_err(Unfinished::from))
        }
        Ok(JudgeOutcome::Upload(submission)) => match uploads.begin(context, table, delivery, *submission).await? {
            Some(ended) => ended,
            None => return Ok(()),
        },
        Err(unfinished) => (delivery, Err(unfinished)),
    };
    acknowledge(context, delivery, ended).await
}

/// Acknowledges a message that came to its end. Poison becomes a dead letter first. What was for a dataset that is deleted
/// has no other end.
async fn acknowledge(context: &Context, delivery: Delivery, ended: Step<()>) -> Result<(), Stopped> {
    match ended {
        Ok(()) | Err(Unfinished::Deleted) => {}
        Err(Unfinished::Poison(poison)) => {
            let span = delivery.span.clone();
            end_poison(context, &delivery, &poison).instrument(span).await?;
        }
        Err(Unfinished::Stopped) => return Err(Stopped),
    }
    delivery.ack.ack();
    Ok(())
}
