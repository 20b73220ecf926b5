//! A log and a clock that fail on demand.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use eventlog::{Bounds, Embedded, Error, Event, EventLog, Position, Record, Subscription};
use pipelines::message::{CONTRIBUTIONS_TOPIC, OUTCOMES_TOPIC};
use tokio::sync::{Notify, watch};
use types::clock::ManualClock;
use types::{Clock, DatasetId, Timestamp};

/// The embedded log, which takes outcomes only as far as it is told to.
#[derive(Debug)]
pub(crate) struct Faulty {
    log: Arc<Embedded>,
    largest: AtomicUsize,
    refused: AtomicUsize,
    refusing: Notify,
    closed: AtomicBool,
    panics: Mutex<Option<DatasetId>>,
    /// The topic that has ended further on until it is asked where it ends.
    longer: Mutex<Option<&'static str>>,
    /// How many reads of submissions were dropped before they ended.
    pub(crate) dropped: Arc<AtomicUsize>,
    /// Whether the next look at the clock panics.
    pub(crate) fuse: AtomicBool,
    /// The highest position of submissions that was committed.
    committed: Arc<watch::Sender<u64>>,
    /// How often a worker asked where the submissions end: what is appended since is new to it.
    begun: watch::Sender<usize>,
    taking: Arc<Taking>,
}

/// Takes the partition from the reader of submissions, and gives it back.
#[derive(Debug, Default)]
struct Taking {
    take: Notify,
    taken: Notify,
    give: Notify,
}

impl Faulty {
    pub(crate) fn new(log: Arc<Embedded>) -> Arc<Self> {
        Arc::new(Self {
            log,
            largest: AtomicUsize::new(usize::MAX),
            refused: AtomicUsize::new(0),
            refusing: Notify::new(),
            closed: AtomicBool::new(false),
            panics: Mutex::default(),
            longer: Mutex::default(),
            dropped: Arc::default(),
            fuse: AtomicBool::new(false),
            committed: Arc::default(),
            begun: watch::Sender::default(),
            taking: Arc::default(),
        })
    }

    /// How often a worker was given the partition and knows what was there before.
    pub(crate) fn begun(&self) -> watch::Receiver<usize> {
        self.begun.subscribe()
    }

    /// Takes the partition from the reader of submissions; returns once it knows.
    pub(crate) async fn revoke(&self) {
        self.taking.take.notify_one();
        self.taking.taken.notified().await;
    }

    /// Gives the partition back: its records come again from the position that was committed.
    pub(crate) fn assign(&self) {
        self.taking.give.notify_one();
    }

    /// The highest position of submissions that was committed.
    pub(crate) fn position(&self) -> u64 {
        *self.committed.borrow()
    }

    /// Takes no outcome of more bytes.
    pub(crate) fn largest(&self, bytes: usize) {
        self.largest.store(bytes, Ordering::SeqCst);
        self.refused.store(0, Ordering::SeqCst);
    }

    /// Waits until as many outcomes were too large.
    pub(crate) async fn refused(&self, count: usize) {
        while self.refused.load(Ordering::SeqCst) < count {
            self.refusing.notified().await;
        }
    }

    /// Takes no outcome any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Waits until submissions before `offset` are done for good.
    pub(crate) async fn committed(&self, offset: u64) {
        let mut committed = self.committed.subscribe();
        let moved = committed.wait_for(|committed| *committed >= offset);
        let moved = tokio::time::timeout(Duration::from_secs(30), moved).await;
        assert!(
            moved.is_ok_and(|moved| moved.is_ok()),
            "the position does not move to {offset}"
        );
    }

    /// Says once that a topic ends further on than it does, as does one that is deleted and made anew right after.
    pub(crate) fn longer(&self, topic: &'static str) {
        *self.longer.lock().unwrap() = Some(topic);
    }

    /// Whether that was said.
    pub(crate) fn was_longer(&self) -> bool {
        self.longer.lock().unwrap().is_none()
    }

    /// Fails as it was told to.
    fn look(&self, topic: &str, records: &[Record]) -> Result<(), Error> {
        if topic != OUTCOMES_TOPIC {
            return Ok(());
        }
        let panics = *self.panics.lock().unwrap();
        let meant = panics.is_some_and(|dataset| records.iter().any(|record| record.key[..] == *dataset.as_bytes()));
        assert!(!meant, "a log that panics");
        if self.closed.load(Ordering::SeqCst) {
            return Err(Error::Closed);
        }
        let bytes = records.iter().map(|record| record.value.len()).max().unwrap_or(0);
        let limit = self.largest.load(Ordering::SeqCst);
        if bytes > limit {
            self.refused.fetch_add(1, Ordering::SeqCst);
            self.refusing.notify_one();
            return Err(Error::TooLarge { bytes, limit });
        }
        Ok(())
    }

    /// Panics at outcomes of this dataset.
    pub(crate) fn panic_at(&self, dataset: Option<DatasetId>) {
        *self.panics.lock().unwrap() = dataset;
    }
}

#[async_trait]
impl EventLog for Faulty {
    async fn append(&self, topic: &str, records: Vec<Record>) -> Result<Vec<Position>, Error> {
        self.look(topic, &records)?;
        self.log.append(topic, records).await
    }

    async fn append_recoverable(&self, topic: &str, records: Vec<Record>) -> Result<Vec<Position>, Error> {
        self.look(topic, &records)?;
        self.log.append_recoverable(topic, records).await
    }

    async fn subscribe(&self, topic: &str, group: &str) -> Result<Box<dyn Subscription>, Error> {
        let subscription = self.log.subscribe(topic, group).await?;
        if topic != CONTRIBUTIONS_TOPIC {
            return Ok(subscription);
        }
        Ok(Box::new(Counted {
            subscription: Some(subscription),
            group: group.to_owned(),
            log: Arc::clone(&self.log),
            taking: Arc::clone(&self.taking),
            lost: false,
            dropped: Arc::clone(&self.dropped),
            committed: Arc::clone(&self.committed),
        }))
    }

    async fn recent(&self, topic: &str, count: u64) -> Result<Box<dyn Subscription>, Error> {
        self.log.recent(topic, count).await
    }

    async fn keep(&self, topic: &str, count: u64) -> Result<(), Error> {
        self.log.keep(topic, count).await
    }

    async fn bounds(&self, topic: &str) -> Result<Vec<Bounds>, Error> {
        let mut bounds = self.log.bounds(topic).await;
        let longer = self.longer.lock().unwrap().take_if(|longer| *longer == topic);
        if let (Some(_), Ok(bounds)) = (longer, &mut bounds) {
            for bounds in bounds {
                bounds.next += 100;
            }
        }
        if topic == CONTRIBUTIONS_TOPIC {
            self.begun.send_modify(|begun| *begun += 1);
        }
        bounds
    }
}

/// Counts the reads that are dropped.
#[derive(Debug)]
struct Counted {
    /// `None` while another reader has the partition.
    subscription: Option<Box<dyn Subscription>>,
    group: String,
    log: Arc<Embedded>,
    taking: Arc<Taking>,
    /// The reader was told that it lost the partition.
    lost: bool,
    dropped: Arc<AtomicUsize>,
    committed: Arc<watch::Sender<u64>>,
}

struct Reading<'a>(Option<&'a AtomicUsize>);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        if let Some(dropped) = self.0 {
            dropped.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[async_trait]
impl Subscription for Counted {
    async fn event(&mut self, max: usize) -> Result<Event, Error> {
        if self.lost {
            // It asks again, so it has done what a loss asks of it.
            self.lost = false;
            self.taking.taken.notify_one();
        }
        if self.subscription.is_none() {
            self.taking.give.notified().await;
            self.subscription = Some(self.log.subscribe(CONTRIBUTIONS_TOPIC, &self.group).await?);
        }
        let Some(subscription) = &mut self.subscription else {
            return Err(Error::Closed);
        };
        let mut reading = Reading(Some(&self.dropped));
        let read = tokio::select! {
            biased;
            () = self.taking.take.notified() => None,
            read = subscription.event(max) => Some(read),
        };
        reading.0 = None;
        let Some(read) = read else {
            self.subscription = None;
            self.lost = true;
            return Ok(Event::Revoked(vec![0]));
        };
        read
    }

    async fn commit(&mut self, positions: &[Position]) -> Result<(), Error> {
        let Some(subscription) = &mut self.subscription else {
            assert!(
                positions.is_empty(),
                "a position of a partition that was lost: {positions:?}"
            );
            return Ok(());
        };
        subscription.commit(positions).await?;
        for position in positions {
            self.committed
                .send_modify(|committed| *committed = position.offset.max(*committed));
        }
        Ok(())
    }
}

/// A clock that panics once when the fuse is lit.
#[derive(Debug)]
pub(crate) struct Fuse {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) log: Arc<Faulty>,
}

impl Clock for Fuse {
    fn now(&self) -> Timestamp {
        assert!(!self.log.fuse.swap(false, Ordering::SeqCst), "a clock that panics");
        self.clock.now()
    }
}
