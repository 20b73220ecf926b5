//! The worker of knowledge units: reviews submitted versions in parallel and publishes them on one line.
//!
//! Invariants:
//! - A version is a row of the platform's table at most once, and it has its outcome before its message is done.
//! - Of two copies, the one that is earlier in the log is published: every version is compared again with all that is
//!   published at the base of its commit.
//! - A hold ends by no outcome of its own: the database submits the version again.
//! - A version that ends the process again and again is not reviewed: it is rejected, and kept as a dead letter.

mod publish;
mod published;
mod review;
mod row;

use std::sync::Arc;
use std::time::Duration;

use catalog::Catalog;
use data_encoding::BASE64;
use eventlog::{Delivered, Event, EventLog, Position, Record};
use futures_util::future::join_all;
use messages::{DEAD_LETTERS, DeadLetter, FORMAT, KNOWLEDGE, OUTCOMES, UnitAddress, UnitOutcome, UnitSubmission};
use operators::knowledge::{Comparer, Embedder, Scorer};
use operators::screen::Screener;
use tokio_util::sync::CancellationToken;
use types::trace::NoTraces;
use types::unit::UnitResolution;
use types::{Backoff, Classify as _, Clock, Kind, Retry, Timestamp, fault, metric};

use self::publish::Publisher;
use self::published::Published;
use self::review::{Reviewed, Verdict};
use crate::emit::{self, Emitter};
use crate::in_work::InWork;
use crate::judge::described;
use crate::places::Places;
use crate::quarantine::{Portion, REASON, Trials};

/// The most versions that are reviewed and published at once.
const AT_ONCE: usize = 64;
/// The wait after a failure.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(100),
    most: Duration::from_secs(30),
};

/// The judges of units.
#[derive(Clone, Debug)]
pub struct Judges {
    /// Screeners, the local one first. The first objection counts.
    pub screeners: Vec<Arc<dyn Screener>>,
    /// Scorer of the four axes of a unit.
    pub scorer: Arc<dyn Scorer>,
    /// Maker of vectors. Meanings are not compared without one.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Judge of units of like meaning. A fixed rule decides without one.
    pub comparer: Option<Arc<dyn Comparer>>,
}

/// The error that ends the worker.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log cannot be used.
    #[error("the log cannot be used")]
    Log(#[from] eventlog::Error),
    /// The platform's table cannot be used.
    #[error("the platform's table cannot be used")]
    Table(#[from] catalog::Error),
    /// The contract of the platform's table is wrong.
    #[error("the contract of the platform's table is wrong")]
    Contract(#[from] types::contract::ContractError),
    /// A version cannot be written as a row of the platform's table.
    #[error("a unit cannot be written as a row: {0}")]
    Encode(String),
    /// Rows of the platform's table cannot be read.
    #[error("rows of the platform's table cannot be read")]
    Rows(#[source] arrow::error::ArrowError),
}

/// The worker of knowledge units.
#[derive(Debug)]
pub struct KnowledgeWorker {
    log: Arc<dyn EventLog>,
    catalog: Catalog,
    judges: Judges,
    clock: Arc<dyn Clock>,
    group: String,
    /// Threads of the judges.
    places: Places,
    isolation: Option<Isolation>,
}

/// Limits of the quarantine.
#[derive(Clone, Debug)]
struct Isolation {
    in_work: InWork,
    bound: Duration,
    ends: usize,
}

impl KnowledgeWorker {
    /// Creates a worker. Workers of one group share the work.
    pub fn new(
        log: Arc<dyn EventLog>,
        catalog: Catalog,
        judges: Judges,
        clock: Arc<dyn Clock>,
        group: impl Into<String>,
    ) -> Self {
        Self {
            log,
            catalog,
            judges,
            clock,
            group: group.into(),
            places: Places::new(InWork::new()),
            isolation: None,
        }
    }

    /// Sets versions aside that end the process: what was open at the start is reviewed alone, for at most `bound` each,
    /// and is condemned when `ends` processes have ended with it alone; 0 for never. `in_work` is shared with the worker of
    /// the datasets, whose suspects come first.
    #[must_use]
    pub fn isolating(self, in_work: InWork, bound: Duration, ends: usize) -> Self {
        let isolation = Some(Isolation { in_work, bound, ends });
        Self { isolation, ..self }
    }

    /// Reviews and publishes until `stop`.
    ///
    /// # Errors
    /// A log or a table that cannot be used any more.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        let mut trials = self.trials(&stop);
        let read = self.read(trials.as_mut(), &stop).await;
        if let Some(trials) = &mut trials {
            trials.end().await;
        }
        read
    }

    fn trials(&self, stop: &CancellationToken) -> Option<Trials> {
        let Isolation { in_work, bound, ends } = self.isolation.clone()?;
        let emitter = Emitter {
            log: Arc::clone(&self.log),
            finished: Arc::default(),
            clock: Arc::clone(&self.clock),
            propagator: Arc::new(NoTraces),
            backoff: BACKOFF,
            // A log that takes no notes fails at the next outcome.
            stop: stop.child_token(),
            failure: Arc::default(),
        };
        Some(Trials::new(emitter, in_work, self.group.clone(), bound, ends))
    }

    async fn read(&self, mut trials: Option<&mut Trials>, stop: &CancellationToken) -> Result<(), Error> {
        let mut units = self.log.subscribe(KNOWLEDGE, &self.group).await?;
        // The published versions are read when there is something to compare with them.
        let mut publisher: Option<Publisher> = None;
        loop {
            let event = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                event = units.event(AT_ONCE) => event?,
            };
            let batch = match event {
                Event::Records(batch) => batch,
                Event::Assigned(partitions) => {
                    // Another worker may publish meanwhile, so what is known is read again.
                    publisher = None;
                    let trials = trials.as_deref_mut();
                    if !self.suspect(trials, &partitions, stop).await? {
                        return Ok(());
                    }
                    continue;
                }
                Event::Revoked(partitions) => {
                    publisher = None;
                    if let Some(trials) = &mut trials {
                        trials.lose(&partitions);
                    }
                    continue;
                }
            };
            let marks = after(&batch);
            let handled = Box::pin(self.take_turns(batch, trials.as_deref_mut(), &mut publisher, stop));
            let Some(handled) = stop.run_until_cancelled(handled).await else {
                return Ok(());
            };
            if !handled? {
                return Ok(());
            }
            fault::point("position.commit");
            units.commit(&marks).await?;
        }
    }

    /// Suspects what the partitions have now. Returns false if the worker stops.
    async fn suspect(
        &self,
        trials: Option<&mut Trials>,
        partitions: &[u32],
        stop: &CancellationToken,
    ) -> Result<bool, Error> {
        let Some(trials) = trials else { return Ok(true) };
        let mut failures = 0;
        loop {
            let Some(read) = stop
                .run_until_cancelled(trials.assigned(&*self.log, KNOWLEDGE, partitions))
                .await
            else {
                return Ok(false);
            };
            match read {
                Ok(()) => return Ok(true),
                Err(error) if error.retry() == Retry::Never => return Err(error.into()),
                Err(error) => {
                    tracing::warn!(
                        error = described(&error),
                        "what came before cannot be read, trying again"
                    );
                }
            }
            if !pause(failures, stop).await {
                return Ok(false);
            }
            failures += 1;
        }
    }

    /// Handles a batch, its suspects one at a time. Returns false if the worker stops.
    async fn take_turns(
        &self,
        batch: Vec<Delivered>,
        trials: Option<&mut Trials>,
        publisher: &mut Option<Publisher>,
        stop: &CancellationToken,
    ) -> Result<bool, Error> {
        let Some(trials) = trials else {
            return Box::pin(self.handle(batch, publisher, stop)).await;
        };
        for turn in trials.turns(batch) {
            trials.waits().await;
            let goes_on = match turn {
                Portion::Together(some) => Box::pin(self.handle(some, publisher, stop)).await?,
                Portion::Alone(one, noted) => {
                    let work = Box::pin(self.handle(vec![one], publisher, stop));
                    trials.alone(&noted, work).await?
                }
                Portion::Condemned(one) => self.condemn(&one, stop).await?,
            };
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Keeps a message as a dead letter that nobody is to work on, and rejects its version. Returns false if the worker
    /// stops.
    async fn condemn(&self, one: &Delivered, stop: &CancellationToken) -> Result<bool, Error> {
        metrics::counter!(metric::QUARANTINED).increment(1);
        let address = UnitAddress::read(&one.record.value);
        if !self
            .bury(&one.record, Some(one.position), address, REASON, stop)
            .await?
        {
            return Ok(false);
        }
        let Some(address) = address else { return Ok(true) };
        match unprocessable(&address, self.clock.now()).record() {
            Ok(record) => self.append(OUTCOMES, vec![record], stop).await,
            Err(error) => {
                tracing::error!(unit = %address.unit, %error, "the outcome of a unit cannot be encoded");
                Ok(true)
            }
        }
    }

    /// Reviews a batch, publishes what passed, and appends every outcome. Returns false if the worker stops.
    async fn handle(
        &self,
        batch: Vec<Delivered>,
        publisher: &mut Option<Publisher>,
        stop: &CancellationToken,
    ) -> Result<bool, Error> {
        let mut failures = 0;
        // A table that cannot be reached is tried again. The batch stays with this worker meanwhile.
        let open = loop {
            match publisher.take() {
                Some(open) => break open,
                None => match Publisher::open(&self.catalog, self.judges.embedder.as_deref()).await {
                    Ok(open) => break open,
                    Err(Error::Table(error)) if error.retry() == Retry::Backoff => {
                        tracing::warn!(%error, "the table of knowledge units cannot be opened, trying again");
                        if !pause(failures, stop).await {
                            return Ok(false);
                        }
                        failures += 1;
                    }
                    Err(error) => return Err(error),
                },
            }
        };
        let open = publisher.insert(open);
        let mut submissions: Vec<UnitSubmission> = Vec::with_capacity(batch.len());
        let mut unreadable = Vec::new();
        for delivered in &batch {
            match UnitSubmission::decode(&delivered.record.value) {
                // One review of a version at a time: of two messages in the batch the later generation counts.
                Ok(submission) => match submissions.iter_mut().find(|known| known.unit == submission.unit) {
                    Some(known) if known.generation < submission.generation => *known = submission,
                    Some(_) => {}
                    None => submissions.push(submission),
                },
                Err(error) => {
                    let address = UnitAddress::read(&delivered.record.value);
                    let (record, position) = (&delivered.record, Some(delivered.position));
                    if !self.bury(record, position, address, &error.to_string(), stop).await? {
                        return Ok(false);
                    }
                    let Some(address) = address else { continue };
                    unreadable.push(unprocessable(&address, self.clock.now()));
                }
            }
        }
        let reviewed = self.review_all(submissions, open.published()).await;
        for review in &reviewed {
            if matches!(review.verdict, Verdict::Panicked)
                && let Ok(record) = review.submission.record()
            {
                let (address, reason) = (review.submission.address(), "a judge panicked on it");
                if !self.bury(&record, None, Some(address), reason, stop).await? {
                    return Ok(false);
                }
            }
        }
        let outcomes = open.publish(reviewed, &self.catalog, &*self.clock, stop).await?;
        let Some(mut outcomes) = outcomes else { return Ok(false) };
        outcomes.append(&mut unreadable);
        let mut records = Vec::with_capacity(outcomes.len());
        for outcome in &outcomes {
            match outcome.record() {
                Ok(record) => records.push(record),
                Err(error) => tracing::error!(unit = %outcome.unit, %error, "the outcome of a unit cannot be encoded"),
            }
        }
        fault::point("outcome.append");
        if !self.append(OUTCOMES, records, stop).await? {
            return Ok(false);
        }
        fault::point("outcome.appended");
        Ok(true)
    }

    /// Reviews every submission, all at once.
    async fn review_all(&self, submissions: Vec<UnitSubmission>, published: &Arc<Published>) -> Vec<Reviewed> {
        let reviews = submissions.into_iter().map(|submission| {
            let (published, judges) = (Arc::clone(published), self.judges.clone());
            let (clock, places, address) = (Arc::clone(&self.clock), self.places.clone(), submission.address());
            async move {
                let review = places.run(review::review(submission.clone(), published, judges, clock));
                // A judge that panics loses the version its review, not the worker its life.
                review.await.unwrap_or_else(|error| {
                    tracing::error!(unit = %address.unit, %error, "the review of a unit panicked");
                    Reviewed {
                        submission,
                        entries: Vec::new(),
                        verdict: Verdict::Panicked,
                    }
                })
            }
        });
        join_all(reviews).await
    }

    /// Appends a message that cannot be processed to the dead letters. Of one that the log does not take, the letter has
    /// the position only. Returns false if the worker stops.
    async fn bury(
        &self,
        record: &Record,
        position: Option<Position>,
        address: Option<UnitAddress>,
        reason: &str,
        stop: &CancellationToken,
    ) -> Result<bool, Error> {
        tracing::error!(?position, unit = ?address.map(|address| address.unit), reason, "dead letter of a unit");
        for value in [&record.value[..], &[]] {
            let letter = DeadLetter {
                format: FORMAT,
                topic: KNOWLEDGE.to_owned(),
                partition: position.map_or(0, |position| position.partition),
                offset: position.map_or(0, |position| position.offset),
                contribution: None,
                unit: address.map(|address| address.unit),
                reason: reason.to_owned(),
                at: self.clock.now(),
                key: BASE64.encode(&record.key),
                value: BASE64.encode(value),
            };
            let letter = serde_json::to_vec(&letter).map_err(|error| Error::Encode(error.to_string()))?;
            let letter = Record {
                key: record.key.clone(),
                value: letter.into(),
            };
            match self.append_one(DEAD_LETTERS, letter, stop).await? {
                Appended::Durable => return Ok(true),
                Appended::Refused => {}
                Appended::Stopped => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Appends records: at once where the log takes them so, else one by one. Returns false if the worker stops.
    async fn append(&self, topic: &str, records: Vec<Record>, stop: &CancellationToken) -> Result<bool, Error> {
        if records.is_empty() || self.log.append(topic, records.clone()).await.is_ok() {
            return Ok(true);
        }
        for record in records {
            if self.append_one(topic, record, stop).await? == Appended::Stopped {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Appends a record, trying for as long as that can help.
    async fn append_one(&self, topic: &str, record: Record, stop: &CancellationToken) -> Result<Appended, Error> {
        let mut failures = 0;
        loop {
            match self.log.append(topic, vec![record.clone()]).await {
                Ok(_) => return Ok(Appended::Durable),
                Err(error) if error.retry() == Retry::Backoff => {
                    tracing::warn!(topic, %error, "appending for a unit failed, trying again");
                    if !pause(failures, stop).await {
                        return Ok(Appended::Stopped);
                    }
                    failures += 1;
                }
                Err(error) if matches!(error.kind(), Kind::TooLarge | Kind::Invalid) => {
                    tracing::error!(topic, %error, "the log does not take a record of a unit");
                    return Ok(Appended::Refused);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// End of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Appended {
    /// The record is durable.
    Durable,
    /// The log does not take the record, now or later.
    Refused,
    /// The worker stops before the record is durable.
    Stopped,
}

/// The sentence of a version that cannot be processed.
const UNPROCESSABLE: &str = "the service could not process the unit; it is kept and the operators were told";

/// Returns the outcome of a version that cannot be processed.
fn unprocessable(address: &UnitAddress, at: Timestamp) -> UnitOutcome {
    let resolution = UnitResolution::Rejected {
        code: "unprocessable".to_owned(),
        message: UNPROCESSABLE.to_owned(),
    };
    UnitOutcome::new((address.unit, address.chain), address.generation, at, resolution)
}

/// Waits after a failure. Returns false if the worker stops.
async fn pause(failures: u32, stop: &CancellationToken) -> bool {
    emit::pause(BACKOFF, failures, stop).await.is_ok()
}

/// Returns the position after the last record of each partition.
fn after(batch: &[Delivered]) -> Vec<Position> {
    let mut marks: Vec<Position> = Vec::new();
    for Delivered { position, .. } in batch {
        marks.retain(|mark| mark.partition != position.partition);
        marks.push(Position {
            partition: position.partition,
            offset: position.offset + 1,
        });
    }
    marks
}
