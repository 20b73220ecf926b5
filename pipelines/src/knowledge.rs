//! The worker of knowledge units: reviews submitted versions in parallel and publishes them on one line.
//!
//! Invariants:
//! - A version is a row of the platform's table at most once, and it has its outcome before its message is done.
//! - Of two copies, the one that is earlier in the log is published: every version is compared again with all that is
//!   published at the base of its commit.
//! - A hold ends by no outcome of its own: the database submits the version again.
//! - A version that can have been in work when an earlier process ended is tried out before this process reads it.

mod publish;
mod published;
mod review;
mod row;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use catalog::Catalog;
use data_encoding::BASE64;
use eventlog::{Delivered, Event, EventLog, Position, Record};
use futures_util::future::join_all;
use messages::{DEAD_LETTERS, DeadLetter, FORMAT, KNOWLEDGE, OUTCOMES, UnitAddress, UnitSubmission};
use tokio_util::sync::CancellationToken;
use types::clock::SystemClock;
use types::{Classify as _, Clock, Kind, Retry, UnitId, fault, metric};

use self::publish::{Publisher, pause, unprocessable};
pub use self::published::Error;
use self::published::Published;
pub use self::review::Judges;
use self::review::{Reviewed, Verdict};
use crate::cpu_slots::CpuSlots;
use crate::isolation::{Isolation, Trial, condemned};
use crate::step::described;

/// The most versions that are reviewed and published at once.
const AT_ONCE: usize = 64;

/// The worker of knowledge units.
#[derive(Debug)]
pub struct KnowledgeWorker {
    log: Arc<dyn EventLog>,
    catalog: Catalog,
    judges: Judges,
    clock: Arc<dyn Clock>,
    group: String,
    isolation: Option<Arc<dyn Isolation>>,
    /// CPU slots of the judges.
    slots: CpuSlots,
}

/// Versions that can have been in work when an earlier process ended, and those that were condemned since.
#[derive(Debug, Default)]
struct Suspects {
    /// The end of each partition when the worker was given it, and how many messages of it were in work at once.
    redelivered: HashMap<u32, (u64, usize)>,
    /// Versions with their generation. Copies of them may come that nobody suspects.
    condemned: HashSet<(UnitId, u32)>,
}

impl Suspects {
    /// Returns true if a message can have been in work: it is one of the first that were there already.
    fn take(&mut self, position: Position) -> bool {
        let Some((end, left)) = self.redelivered.get_mut(&position.partition) else {
            return false;
        };
        let is_one = position.offset < *end && *left > 0;
        *left -= usize::from(is_one);
        is_one
    }
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
            isolation: None,
            slots: CpuSlots::new(),
        }
    }

    /// The same worker, which tries out what can have ended an earlier process, if there is an isolation.
    #[must_use]
    pub fn with_isolation(self, isolation: Option<Arc<dyn Isolation>>) -> Self {
        Self { isolation, ..self }
    }

    /// Reviews and publishes until `stop`.
    ///
    /// # Errors
    /// A log or a table that cannot be used any more.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        let mut units = self.log.subscribe(KNOWLEDGE, &self.group).await?;
        // The published versions are read when there is something to compare with them.
        let mut publisher: Option<Publisher> = None;
        let mut suspects = Suspects::default();
        loop {
            let event = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                event = units.event(AT_ONCE) => event?,
            };
            let batch = match event {
                Event::Records(batch) => batch,
                Event::Assigned(partitions) => {
                    publisher = None;
                    let ends = stop.run_until_cancelled(self.ends(&stop));
                    let Some(ends) = ends.await.transpose()?.flatten() else {
                        return Ok(());
                    };
                    let ends = partitions
                        .into_iter()
                        .filter_map(|at| Some((at, *ends.get(at as usize)?)));
                    suspects.redelivered.extend(ends.map(|(at, end)| (at, (end, AT_ONCE))));
                    continue;
                }
                Event::Revoked(partitions) => {
                    // Another worker may publish meanwhile, so what is known is read again.
                    publisher = None;
                    suspects.redelivered.retain(|at, _| !partitions.contains(at));
                    continue;
                }
            };
            let Some(marks) = stop
                .run_until_cancelled(Box::pin(self.handle(batch, &mut publisher, &mut suspects, &stop)))
                .await
            else {
                return Ok(());
            };
            let Some(marks) = marks? else { return Ok(()) };
            fault::point("position.commit");
            units.commit(&marks).await?;
        }
    }

    /// Returns the offset at which each partition ends. Returns `None` if the worker stops.
    async fn ends(&self, stop: &CancellationToken) -> Result<Option<Vec<u64>>, Error> {
        let mut failures = 0;
        loop {
            match self.log.bounds(KNOWLEDGE).await {
                Ok(bounds) => return Ok(Some(bounds.iter().map(|bounds| bounds.next).collect())),
                Err(error) if error.retry() == Retry::Backoff => {
                    tracing::warn!(%error, "the end of the units in the log cannot be read, trying again");
                    if !pause(failures, stop).await {
                        return Ok(None);
                    }
                    failures += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Tries out the messages of a batch that can have been in work, unless their version is published. Returns the reason
    /// for each that nobody is to work on, with its place in the batch.
    async fn try_out(
        &self,
        batch: &[Delivered],
        suspects: &mut Suspects,
        published: &Published,
    ) -> HashMap<usize, String> {
        let is_open = |record: &Record| {
            let address = UnitAddress::read(&record.value);
            !address.is_some_and(|address| published.outcomes.read().contains_key(&address.unit))
        };
        let mut trials = Vec::new();
        for (at, Delivered { position, record }) in batch.iter().enumerate() {
            if suspects.take(*position) && is_open(record) {
                let tried = condemned(self.isolation.as_deref(), Trial::Unit(record));
                trials.push(async move { Some((at, tried.await?)) });
            }
        }
        join_all(trials).await.into_iter().flatten().collect()
    }

    /// Reviews a batch, publishes what passed, and appends every outcome. Returns the positions after the batch, or
    /// `None` if the worker stops.
    async fn handle(
        &self,
        batch: Vec<Delivered>,
        publisher: &mut Option<Publisher>,
        suspects: &mut Suspects,
        stop: &CancellationToken,
    ) -> Result<Option<Vec<Position>>, Error> {
        let marks = after(&batch);
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
                            return Ok(None);
                        }
                        failures += 1;
                    }
                    Err(error) => return Err(error),
                },
            }
        };
        let open = publisher.insert(open);
        let reasons = self.try_out(&batch, suspects, open.published()).await;
        let mut submissions: Vec<UnitSubmission> = Vec::with_capacity(batch.len());
        let mut unreadable = Vec::new();
        for (at, delivered) in batch.iter().enumerate() {
            let address = UnitAddress::read(&delivered.record.value);
            let is_copy =
                address.is_some_and(|address| suspects.condemned.contains(&(address.unit, address.generation)));
            if let Some(reason) = reasons.get(&at).filter(|_| !is_copy)
                && !self.set_aside(delivered, address, reason, stop).await?
            {
                return Ok(None);
            }
            if is_copy || reasons.contains_key(&at) {
                suspects.condemned.extend(address.map(|it| (it.unit, it.generation)));
                unreadable.extend(address.map(|address| unprocessable(&address, self.clock.now())));
                continue;
            }
            match UnitSubmission::decode(&delivered.record.value) {
                // One review of a version at a time: of two messages in the batch the later generation counts.
                Ok(submission) => match submissions.iter_mut().find(|known| known.unit == submission.unit) {
                    Some(known) if known.generation < submission.generation => *known = submission,
                    Some(_) => {}
                    None => submissions.push(submission),
                },
                Err(error) => {
                    let (record, position) = (&delivered.record, delivered.position);
                    if !self.bury(record, position, address, &error.to_string(), stop).await? {
                        return Ok(None);
                    }
                    let Some(address) = address else { continue };
                    unreadable.push(unprocessable(&address, self.clock.now()));
                }
            }
        }
        let reviewed = self.review_all(submissions, open.published()).await;
        for review in reviewed.iter().filter(|it| matches!(it.verdict, Verdict::Panicked)) {
            let address = Some(review.submission.address());
            let is_its = |one: &&Delivered| UnitAddress::read(&one.record.value) == address;
            if let Some(Delivered { position, record }) = batch.iter().find(is_its) {
                let reason = "a judge panicked on it";
                if !self.bury(record, *position, address, reason, stop).await? {
                    return Ok(None);
                }
            }
        }
        let outcomes = open.publish(reviewed, &self.catalog, &*self.clock, stop).await?;
        let Some(mut outcomes) = outcomes else { return Ok(None) };
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
            return Ok(None);
        }
        fault::point("outcome.appended");
        Ok(Some(marks))
    }

    /// Reviews every submission, all at once.
    async fn review_all(&self, submissions: Vec<UnitSubmission>, published: &Arc<Published>) -> Vec<Reviewed> {
        let reviews = submissions.into_iter().map(|submission| {
            let (published, judges) = (Arc::clone(published), self.judges.clone());
            let (clock, slots, address) = (Arc::clone(&self.clock), self.slots.clone(), submission.address());
            async move {
                let review = slots.run(review::review(submission.clone(), published, judges, clock));
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

    /// Appends a message that was condemned to the dead letters. Returns false if the worker stops.
    async fn set_aside(
        &self,
        delivered: &Delivered,
        address: Option<UnitAddress>,
        reason: &str,
        stop: &CancellationToken,
    ) -> Result<bool, Error> {
        tracing::error!(unit = ?address.map(|address| address.unit),
            "a submission ended the processes that tried it out; nobody works on it any more");
        metrics::counter!(metric::QUARANTINED).increment(1);
        let Delivered { position, record } = delivered;
        self.bury(record, *position, address, reason, stop).await
    }

    /// Appends a message that cannot be processed to the dead letters. Of one that the log does not take, the letter has
    /// the position only. Returns false if the worker stops.
    async fn bury(
        &self,
        record: &Record,
        position: Position,
        address: Option<UnitAddress>,
        reason: &str,
        stop: &CancellationToken,
    ) -> Result<bool, Error> {
        tracing::error!(?position, unit = ?address.map(|address| address.unit), reason, "dead letter of a unit");
        for value in [&record.value[..], &[]] {
            let letter = DeadLetter {
                format: FORMAT,
                topic: KNOWLEDGE.to_owned(),
                partition: position.partition,
                offset: position.offset,
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

/// Does everything with a version that a worker would, and keeps nothing: for a process that tries the version out. There
/// is no other version to compare with.
pub(crate) async fn try_out(value: &[u8], judges: Judges) -> Result<(), String> {
    let submission = UnitSubmission::decode(value).map_err(|error| described(&error))?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::ahead(Duration::ZERO));
    let at = clock.now();
    let reviewed = review::review(submission, Arc::default(), judges, clock).await;
    publish::try_out(reviewed, at).map_err(|error| described(&error))
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
