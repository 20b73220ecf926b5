//! Projector: applies outcomes and dead letters to the database.
//!
//! Invariant: an outcome is applied before its position in the log is committed, and before the requests that wait for
//! it are woken. Applying it again changes nothing, so the database needs no position of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use data_encoding::BASE64;
use eventlog::{Delivered, EventLog, Position, Subscription};
use messages::{ContributionOutcome, DEAD_LETTERS, DeadLetter, OUTCOMES_TOPIC, Outcome, Resolution};
use store::{Applied, DeadLetterAdded, OutcomeRow, Store, UnitOutcome};
use tokio_util::sync::CancellationToken;
use tracing::Span;
use tracing::field::Empty;
use types::trace::{NoTraces, Propagator};
use types::{Backoff, Classify as _, Clock, Retry, Timestamp, UnitId, metric};

use super::units;
use crate::state::waiters::Waiters;

/// Consumer group of the projector.
const GROUP: &str = "projector";
/// Outcomes in one transaction, at most.
const OUTCOMES_PER_READ: usize = 128;
/// Pauses between two attempts at a transaction.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(50),
    most: Duration::from_secs(5),
};

/// Task that applies the decisions of the workers.
#[derive(Debug)]
pub struct Projector {
    store: Store,
    log: Arc<dyn EventLog>,
    waiters: Waiters,
    clock: Arc<dyn Clock>,
    propagator: Arc<dyn Propagator>,
    /// Outcomes per transaction: halved when the database fails, doubled when it succeeds. A transaction has a time
    /// limit.
    at_once: AtomicUsize,
}

impl Projector {
    /// Creates a projector that has not started.
    pub fn new(store: Store, log: Arc<dyn EventLog>, waiters: Waiters, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            log,
            waiters,
            clock,
            propagator: Arc::new(NoTraces),
            at_once: AtomicUsize::new(OUTCOMES_PER_READ),
        }
    }

    /// Sets the propagator, so that spans continue the traces of the messages.
    #[must_use]
    pub fn with_propagator(self, propagator: Arc<dyn Propagator>) -> Self {
        Self { propagator, ..self }
    }

    /// Projects until `stop`. Fails on errors of the log only; the database is retried until it answers.
    pub async fn run(self, stop: CancellationToken) -> Result<(), eventlog::Error> {
        let mut outcomes = self.log.subscribe(OUTCOMES_TOPIC, GROUP).await?;
        let mut letters = self.log.subscribe(DEAD_LETTERS, GROUP).await?;
        let projecting = async {
            loop {
                tokio::select! {
                    batch = outcomes.next(OUTCOMES_PER_READ) => self.project(outcomes.as_mut(), batch?).await?,
                    batch = letters.next(OUTCOMES_PER_READ) => self.store_dead_letter(letters.as_mut(), batch?).await?,
                }
            }
        };
        stop.run_until_cancelled(projecting).await.unwrap_or(Ok(()))
    }

    async fn project(&self, outcomes: &mut dyn Subscription, batch: Vec<Delivered>) -> Result<(), eventlog::Error> {
        let (mut rows, mut units) = (Vec::with_capacity(batch.len()), Vec::new());
        // Each span lasts from the delivery of its outcome to the commit of the transaction, which it shares with
        // others.
        let mut spans = Vec::with_capacity(batch.len());
        for delivered in &batch {
            match self.read(&delivered.record.value) {
                Ok((ReadOutcome::Contribution(row), span)) => {
                    rows.push((row, delivered));
                    spans.push(span);
                }
                Ok((ReadOutcome::Unit(outcome), span)) => {
                    units.push((outcome, delivered));
                    spans.push(span);
                }
                Err(error) => self.unreadable(OUTCOMES_TOPIC, delivered, &error.to_string()).await,
            }
        }
        let all: Vec<_> = rows.iter().map(|(row, _)| row.clone()).collect();
        if self.apply(&all).await.is_err() {
            // At least one of them can never be applied, so they are applied one by one.
            for (row, delivered) in &rows {
                if let Err(error) = self.apply(std::slice::from_ref(row)).await {
                    self.unreadable(OUTCOMES_TOPIC, delivered, &error.to_string()).await;
                    self.waiters.wake(row.id);
                }
            }
        }
        for (outcome, delivered) in self.apply_units(units).await {
            self.unreadable(OUTCOMES_TOPIC, delivered, "the database refuses the outcome")
                .await;
            self.waiters.wake_unit(outcome);
        }
        // The spans end after the transaction, which is part of them.
        drop(spans);
        outcomes.commit(&marks(&batch)).await
    }

    /// Decodes an outcome and opens its span, in the trace of its submission.
    fn read(&self, value: &[u8]) -> Result<(ReadOutcome, Span), OutcomeError> {
        let outcome = match Outcome::decode(value)? {
            Outcome::Contribution(outcome) => outcome,
            Outcome::Unit(outcome) => {
                let span = tracing::debug_span!("apply outcome", unit = %outcome.unit);
                if let Some(traceparent) = &outcome.traceparent {
                    self.propagator.extract(&span, traceparent);
                }
                return Ok((ReadOutcome::Unit(units::outcome(outcome)), span));
            }
        };
        let (contribution, dataset) = (outcome.contribution, outcome.dataset);
        let span = tracing::debug_span!("apply outcome", %contribution, %dataset, version = Empty);
        if let Resolution::Merged { version, .. } = outcome.resolution {
            span.record("version", version.0);
        }
        if let Some(traceparent) = &outcome.traceparent {
            self.propagator.extract(&span, traceparent);
        }
        Ok((ReadOutcome::Contribution(row(outcome)?), span))
    }

    /// Applies outcomes of units in order, all in one transaction, and wakes the requests that wait for them. Returns
    /// those that can never be applied.
    async fn apply_units<'b>(&self, mut units: Vec<(UnitOutcome, &'b Delivered)>) -> Vec<(UnitId, &'b Delivered)> {
        let (mut refused, mut failures, mut at_once) = (Vec::new(), 0, units.len());
        while !units.is_empty() {
            let some = units.iter().take(at_once).map(|(outcome, _)| outcome.clone());
            match self.store.knowledge().apply(some.collect()).await {
                Ok(applied) => {
                    failures = 0;
                    for ((outcome, _), applied) in units.drain(..applied.len()).zip(applied) {
                        if applied.changed {
                            units::measure(&outcome, applied, self.clock.now());
                        }
                        self.waiters.wake_unit(applied.id);
                    }
                }
                // Only one that was alone in its transaction is known to be the one that the database
                // refuses.
                Err(error) if error.retry() == Retry::Never && at_once == 1 => {
                    let (outcome, delivered) = units.remove(0);
                    refused.push((outcome.id, delivered));
                }
                Err(error) => {
                    // The transaction may have been too large for its time limit, or one outcome spoils it.
                    at_once = (at_once / 2).max(1);
                    if error.retry() != Retry::Never {
                        back_off(&error, &mut failures).await;
                    }
                }
            }
        }
        refused
    }

    /// Applies outcomes in order and wakes the requests that wait for them. Retries for as long as a retry can help.
    /// Uses several transactions if one was too slow for all.
    async fn apply(&self, rows: &[OutcomeRow]) -> Result<(), store::Error> {
        let (mut rest, mut failures) = (rows, 0);
        while !rest.is_empty() {
            let at_once = self.at_once.load(Ordering::Relaxed);
            let (rows, later) = rest.split_at(at_once.min(rest.len()));
            match self.store.outcomes_apply(rows.to_vec()).await {
                Ok(applied) => {
                    (rest, failures) = (later, 0);
                    // A full transaction succeeded, so the next one may be larger.
                    if rows.len() == at_once {
                        self.at_once
                            .store((2 * at_once).min(OUTCOMES_PER_READ), Ordering::Relaxed);
                    }
                    for (row, Applied { changed, .. }) in rows.iter().zip(applied) {
                        // An outcome that changed nothing may differ from the one in the database, so its waiters read
                        // the database.
                        if changed {
                            measure(row, self.clock.now());
                            self.waiters.notify_applied(row);
                        } else {
                            self.waiters.wake(row.id);
                        }
                    }
                }
                Err(error) if error.retry() == Retry::Never => return Err(error),
                Err(error) => {
                    // The transaction may have been too large for its time limit.
                    self.at_once.store((rows.len() / 2).max(1), Ordering::Relaxed);
                    back_off(&error, &mut failures).await;
                }
            }
        }
        Ok(())
    }

    async fn store_dead_letter(
        &self,
        letters: &mut dyn Subscription,
        batch: Vec<Delivered>,
    ) -> Result<(), eventlog::Error> {
        for delivered in &batch {
            match letter(&delivered.record.value) {
                Some(letter) => self.keep(letter).await,
                None => {
                    self.unreadable(DEAD_LETTERS, delivered, "a dead letter that cannot be read")
                        .await;
                }
            }
        }
        letters.commit(&marks(&batch)).await
    }

    /// Stores a message of the log that this version cannot decode as a dead letter.
    async fn unreadable(&self, topic: &str, delivered: &Delivered, reason: &str) {
        let Position { partition, offset } = delivered.position;
        tracing::error!(
            topic,
            partition,
            offset,
            reason,
            "cannot read a message of the log; it becomes a dead letter"
        );
        self.keep(store::DeadLetter {
            id: letter_id(topic, delivered.position, &delivered.record.value),
            topic: topic.to_owned(),
            partition,
            offset,
            contribution: None,
            unit: None,
            payload: delivered.record.value.to_vec(),
            reason: reason.to_owned(),
            now: self.clock.now(),
        })
        .await;
    }

    async fn keep(&self, letter: store::DeadLetter) {
        let mut failures = 0;
        loop {
            match self.store.dead_letter_add(letter.clone()).await {
                Ok(DeadLetterAdded::Added) => {
                    metrics::counter!(metric::DEAD_LETTERS).increment(1);
                    return;
                }
                // It was delivered again after a crash, and was counted the first time.
                Ok(DeadLetterAdded::Known) => return,
                // The database refuses it for good, so retrying would block the topic. The log still has it.
                Err(error) if error.retry() == Retry::Never => {
                    tracing::error!(
                        dead_letter = %letter.id, %error,
                        "cannot store a dead letter in the database; it stays in the log"
                    );
                    return;
                }
                Err(error) => back_off(&error, &mut failures).await,
            }
        }
    }
}

/// Returns the id of a dead letter: its position, and a hash of its content, because positions start again when a topic
/// is recreated.
fn letter_id(topic: &str, position: Position, payload: &[u8]) -> String {
    // Half of the hash, 128 bits, tells payloads apart.
    let hash = blake3::hash(payload).to_hex();
    format!("{topic}-{}-{}-{}", position.partition, position.offset, &hash[..32])
}

fn letter(value: &[u8]) -> Option<store::DeadLetter> {
    let letter: DeadLetter = serde_json::from_slice(value).ok()?;
    let payload = BASE64.decode(letter.value.as_bytes()).ok()?;
    let position = Position {
        partition: letter.partition,
        offset: letter.offset,
    };
    Some(store::DeadLetter {
        // Named after the message that could not be processed, so that a second letter about it is
        // known.
        id: letter_id(&letter.topic, position, &payload),
        topic: letter.topic,
        partition: letter.partition,
        offset: letter.offset,
        contribution: letter.contribution,
        unit: letter.unit,
        payload,
        reason: letter.reason,
        now: letter.at,
    })
}

/// Outcome as the database takes it.
enum ReadOutcome {
    Contribution(OutcomeRow),
    Unit(UnitOutcome),
}

/// Reason why an outcome cannot be applied.
#[derive(Debug, thiserror::Error)]
enum OutcomeError {
    #[error(transparent)]
    Decode(#[from] messages::DecodeError),
    #[error("what the gates did cannot be encoded: {0}")]
    Encode(#[from] serde_json::Error),
}

fn row(outcome: ContributionOutcome) -> Result<OutcomeRow, serde_json::Error> {
    Ok(OutcomeRow {
        id: outcome.contribution,
        generation: outcome.generation,
        at: outcome.at,
        resolution: outcome.resolution,
        tallies: serde_json::to_string(&outcome.tallies)?,
        verdicts: serde_json::to_string(&outcome.verdicts)?,
    })
}

/// Returns the position after the last message of each partition.
fn marks(batch: &[Delivered]) -> Vec<Position> {
    let mut next = BTreeMap::new();
    // Messages of a partition are in order, so the last one inserted is the highest.
    for Delivered { position, .. } in batch {
        // The position of a group is that of the message that it reads next.
        next.insert(position.partition, position.offset + 1);
    }
    next.into_iter()
        .map(|(partition, offset)| Position { partition, offset })
        .collect()
}

/// Records the metrics of an outcome that was applied for the first time.
fn measure(row: &OutcomeRow, now: Timestamp) {
    let state = match &row.resolution {
        Resolution::Merged { accepted, .. } => {
            metrics::counter!(metric::RECORDS_MERGED).increment(*accepted);
            "merged"
        }
        Resolution::Rejected { .. } => "rejected",
        Resolution::Waiting { .. } => "waiting",
    };
    metrics::counter!(metric::CONTRIBUTIONS, "state" => state).increment(1);
    metrics::histogram!(metric::PROJECTION_SECONDS).record(now.since(row.at).as_secs_f64());
}

async fn back_off(error: &store::Error, failures: &mut u32) {
    metrics::counter!(metric::DATABASE_FAILURES).increment(1);
    tracing::warn!(
        error = error as &dyn std::error::Error,
        "cannot store an outcome in the database; trying again"
    );
    // Nothing is skipped while the database is away: the log keeps what follows in its order.
    tokio::time::sleep(BACKOFF.pause(*failures)).await;
    *failures += 1;
}

#[cfg(test)]
mod tests;
