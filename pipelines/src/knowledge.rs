//! The worker of knowledge units: reviews submitted versions in parallel and publishes them on one line.
//!
//! Invariants:
//! - A version is a row of the platform's table at most once, and it has its outcome before its message is done.
//! - Of two texts of which one is a copy, the one that is earlier in the log is published: every version is compared again
//!   with all that is published at the base of its commit, and waits for an earlier one that it is a copy of.
//! - No other version waits for a review that takes long.
//! - A hold ends by no outcome of its own: the database submits the version again.
//! - A version that can have been in work when an earlier process ended is tried out before this process reads it.

mod in_review;
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
use messages::{BASE_FORMAT, DEAD_LETTERS, DeadLetter, KNOWLEDGE_TOPIC, OUTCOMES_TOPIC, UnitAddress, UnitSubmission};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use types::clock::SystemClock;
use types::error::with_causes;
use types::{Classify as _, Clock, Kind, Retry, UnitId, fault, metric};

use self::in_review::{FinishedUnit, UnitsInReview, WorkEnd};
use self::publish::{Publisher, pause, unprocessable};
pub use self::published::Error;
pub use self::review::Judges;
use self::review::Verdict;
use crate::cpu_slots::CpuSlots;
use crate::isolation::Isolation;
use crate::offsets::{AckHandle, OffsetTracker};

/// The most versions that are reviewed and published at once.
const AT_ONCE: usize = 64;
/// The most messages from the oldest that is not done to the newest that came. As many are suspected after a restart.
const WINDOW: usize = 256;
/// The time for which versions wait to be published in one commit with others that are reviewed.
const TOGETHER: Duration = Duration::from_secs(1);
/// The time that a review may work without a break. No text of the longest size comes near it.
const REVIEW_TIME: Duration = Duration::from_secs(30);

/// The worker of knowledge units.
#[derive(Clone, Debug)]
pub struct KnowledgeWorker {
    log: Arc<dyn EventLog>,
    catalog: Catalog,
    judges: Judges,
    clock: Arc<dyn Clock>,
    group: String,
    isolation: Option<Arc<dyn Isolation>>,
    /// CPU slots of the judges.
    slots: CpuSlots,
    review_time: Duration,
}

/// Versions that can have been in work when an earlier process ended, and those that were condemned since.
#[derive(Debug, Default)]
struct UnitSuspects {
    /// The end of each partition when the worker was given it, and how many messages of it were in work at once.
    redelivered: HashMap<u32, (u64, usize)>,
    /// Versions with their generation. Copies of them may come that nobody suspects.
    poisoned: HashSet<(UnitId, u32)>,
}

impl UnitSuspects {
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
            review_time: REVIEW_TIME,
        }
    }

    /// The same worker, which gives up a review that works for longer without a break. The version is held, and judged
    /// again a few times.
    #[must_use]
    pub fn with_review_time(self, review_time: Duration) -> Self {
        Self { review_time, ..self }
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
        let mut units = self.log.subscribe(KNOWLEDGE_TOPIC, &self.group).await?;
        let offsets = OffsetTracker::new(stop.clone());
        // The published versions are read when there is something to compare with them.
        let mut publisher: Option<Publisher> = None;
        let mut suspects = UnitSuspects::default();
        let mut in_review = UnitsInReview::default();
        loop {
            let free = in_review.room(AT_ONCE, WINDOW);
            let event = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                event = units.event(free), if free > 0 => Some(event?),
                () = in_review.next(), if !in_review.is_idle() => None,
            };
            match event {
                Some(Event::Records(batch)) => {
                    for delivered in batch {
                        let is_suspect = suspects.take(delivered.position);
                        in_review.take(delivered, is_suspect, &offsets);
                    }
                }
                Some(Event::Assigned(partitions)) => {
                    publisher = None;
                    let ends = stop.run_until_cancelled(self.ends(&stop));
                    let Some(ends) = ends.await.transpose()?.flatten() else {
                        return Ok(());
                    };
                    let ends = partitions
                        .into_iter()
                        .filter_map(|at| Some((at, *ends.get(at as usize)?)));
                    suspects.redelivered.extend(ends.map(|(at, end)| (at, (end, WINDOW))));
                    continue;
                }
                Some(Event::Revoked(partitions)) => {
                    // Another worker may publish meanwhile, so what is known is read again.
                    publisher = None;
                    suspects.redelivered.retain(|at, _| !partitions.contains(at));
                    offsets.revoke(&partitions);
                    continue;
                }
                None => {}
            }
            let handled = self.handle(&mut in_review, &mut publisher, &mut suspects, &stop);
            match stop.run_until_cancelled(Box::pin(handled)).await {
                Some(Ok(true)) => {}
                Some(Ok(false)) | None => return Ok(()),
                Some(Err(error)) => return Err(error),
            }
            let marks = offsets.committable();
            if !marks.is_empty() {
                fault::point("position.commit");
                units.commit(&marks).await?;
            }
        }
    }

    /// Returns the offset at which each partition ends. Returns `None` if the worker stops.
    async fn ends(&self, stop: &CancellationToken) -> Result<Option<Vec<u64>>, Error> {
        let mut failures = 0;
        loop {
            match self.log.bounds(KNOWLEDGE_TOPIC).await {
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

    /// Begins the reviews of what came, waits for those that end soon, publishes what passed, and appends every outcome.
    /// Returns false if the worker stops.
    async fn handle(
        &self,
        in_review: &mut UnitsInReview,
        publisher: &mut Option<Publisher>,
        suspects: &mut UnitSuspects,
        stop: &CancellationToken,
    ) -> Result<bool, Error> {
        let mut failures = 0;
        // A table that cannot be reached is tried again. What came stays with this worker meanwhile.
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
        open.read_later_prints(&self.catalog).await;
        loop {
            in_review.begin(self, open.published(), &suspects.poisoned);
            let together = Instant::now() + TOGETHER;
            while !in_review.is_idle() && timeout_at(together, in_review.next()).await.is_ok() {}
            let finished = in_review.ready();
            if finished.is_empty() {
                return Ok(true);
            }
            if !self.finish(finished, open, suspects, stop).await? {
                return Ok(false);
            }
            if !in_review.is_waiting() {
                return Ok(true);
            }
        }
    }

    /// Publishes what passed, appends the outcome of every message, and marks them done. Returns false if the worker stops.
    async fn finish(
        &self,
        finished: Vec<FinishedUnit>,
        open: &mut Publisher,
        suspects: &mut UnitSuspects,
        stop: &CancellationToken,
    ) -> Result<bool, Error> {
        let (mut reviewed, mut unreadable) = (Vec::new(), Vec::new());
        let mut handles = Vec::with_capacity(finished.len());
        for FinishedUnit { message, end } in finished {
            let (delivered, address) = (&message.delivered, message.address);
            let Delivered { position, record } = delivered;
            if !matches!(end, WorkEnd::Reviewed(..)) {
                unreadable.extend(address.map(|address| unprocessable(&address, self.clock.now())));
            }
            let is_written = match end {
                WorkEnd::Reviewed(mut review, published) => {
                    let is_panic = matches!(review.verdict, Verdict::Panicked);
                    if let Verdict::Pass(candidate) = &mut review.verdict
                        && !Arc::ptr_eq(&published, open.published())
                    {
                        // The published versions were read again after the review, so the candidate is compared with all of them.
                        candidate.seen = 0;
                    }
                    reviewed.push(*review);
                    let reason = "a judge panicked on it";
                    !is_panic || self.store_dead_letter(record, *position, address, reason, stop).await?
                }
                // One without a reason is a copy of one that was set aside.
                WorkEnd::Poisoned(reason) => {
                    suspects.poisoned.extend(address.map(|it| (it.unit, it.generation)));
                    match reason {
                        Some(reason) => self.set_aside(delivered, address, &reason, stop).await?,
                        None => true,
                    }
                }
                WorkEnd::Unreadable(error) => self.store_dead_letter(record, *position, address, &error, stop).await?,
            };
            if !is_written {
                return Ok(false);
            }
            handles.push(message.ack);
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
        if !self.append(OUTCOMES_TOPIC, records, stop).await? {
            return Ok(false);
        }
        fault::point("outcome.appended");
        handles.into_iter().for_each(AckHandle::ack);
        Ok(true)
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
        self.store_dead_letter(record, *position, address, reason, stop).await
    }

    /// Appends a message that cannot be processed to the dead letters. Of one that the log does not take, the letter has
    /// the position only. Returns false if the worker stops.
    async fn store_dead_letter(
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
                format: BASE_FORMAT,
                topic: KNOWLEDGE_TOPIC.to_owned(),
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
                RecordAppend::Durable => return Ok(true),
                RecordAppend::Refused => {}
                RecordAppend::Stopped => return Ok(false),
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
            if self.append_one(topic, record, stop).await? == RecordAppend::Stopped {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Appends a record, trying for as long as that can help.
    async fn append_one(&self, topic: &str, record: Record, stop: &CancellationToken) -> Result<RecordAppend, Error> {
        let mut failures = 0;
        loop {
            match self.log.append(topic, vec![record.clone()]).await {
                Ok(_) => return Ok(RecordAppend::Durable),
                Err(error) if error.retry() == Retry::Backoff => {
                    tracing::warn!(topic, %error, "appending for a unit failed, trying again");
                    if !pause(failures, stop).await {
                        return Ok(RecordAppend::Stopped);
                    }
                    failures += 1;
                }
                Err(error) if matches!(error.kind(), Kind::TooLarge | Kind::Invalid) => {
                    tracing::error!(topic, %error, "the log does not take a record of a unit");
                    return Ok(RecordAppend::Refused);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Does everything with a version that a worker would, and keeps nothing: for a process that tries the version out. There
/// is no other version to compare with.
pub(crate) async fn probe_unit(value: &[u8], judges: Judges) -> Result<(), String> {
    let submission = UnitSubmission::decode(value).map_err(|error| with_causes(&error))?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::ahead(Duration::ZERO));
    let at = clock.now();
    let reviewed = review::review(submission, Arc::default(), Arc::default(), judges, clock).await;
    publish::probe_commit(reviewed, at).map_err(|error| with_causes(&error))
}

/// End of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordAppend {
    /// The record is durable.
    Durable,
    /// The log does not take the record, now or later.
    Refused,
    /// The worker stops before the record is durable.
    Stopped,
}
