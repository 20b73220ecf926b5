//! What the committer and the readers share.
//!
//! Invariant: only the committer writes here, apart from positions (readers commit them) and leases. Every number only
//! grows.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use fjall::Keyspace;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};

use super::committer::Request;
use super::layout::Store;
use super::{Options, Stats};
use crate::{Bounds, Error};

/// The most requests that wait for the committer.
const QUEUED_REQUESTS: usize = 1024;
/// The most bytes that wait for the committer, in [`UNIT`]s. One append may be larger: it then waits alone.
const QUEUED_UNITS: u32 = 64 * 1024;
/// What bytes are counted in: a semaphore counts in 32 bits.
const UNIT: usize = 1024;

/// The state of an open log.
pub(super) struct Shared {
    pub(super) path: PathBuf,
    pub(super) options: Options,
    pub(super) requests: mpsc::Sender<Request>,
    pub(super) counters: Counters,
    topics: RwLock<BTreeMap<String, Arc<Topic>>>,
    /// `None` once the log is closed, so that a forgotten subscription does not keep the directory locked.
    log: RwLock<Option<Keyspace>>,
    /// Why no more records are taken.
    failed: OnceLock<Arc<fjall::Error>>,
    closing: AtomicBool,
    room: Arc<Semaphore>,
    /// Groups with positions that are not written yet.
    moved: Mutex<Vec<(Arc<Topic>, Arc<Group>)>>,
}

/// See [`Stats`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) appends: AtomicU64,
    pub(super) records: AtomicU64,
    pub(super) fsyncs: AtomicU64,
    pub(super) trimmed: AtomicU64,
}

/// A topic.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) name: String,
    pub(super) id: u32,
    pub(super) partitions: Vec<Partition>,
    /// Told when a partition has more to read, and when there will be no more.
    pub(super) wake: Notify,
    /// Every group that ever subscribed.
    pub(super) groups: RwLock<BTreeMap<String, Arc<Group>>>,
    /// How many of its latest records are kept, where somebody said so.
    keeps: OnceLock<AtomicU64>,
}

/// The readable range of a partition.
#[derive(Debug)]
pub(super) struct Partition {
    first: AtomicU64,
    next: AtomicU64,
}

/// A group's positions in a topic, by partition.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) committed: Vec<AtomicU64>,
    /// What the committer wrote of `committed`.
    pub(super) written: Vec<AtomicU64>,
    /// Whether a subscription is alive.
    pub(super) taken: AtomicBool,
    /// Whether the group is in [`Shared::moved`].
    moved: AtomicBool,
}

impl Partition {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            first: AtomicU64::new(bounds.first),
            next: AtomicU64::new(bounds.next),
        }
    }

    pub(super) fn bounds(&self) -> Bounds {
        let first = self.first();
        // Read in this order, so that `first <= next` whatever moves in between.
        Bounds {
            first,
            next: self.next(),
        }
    }

    pub(super) fn first(&self) -> u64 {
        self.first.load(Ordering::Acquire)
    }

    pub(super) fn next(&self) -> u64 {
        self.next.load(Ordering::Acquire)
    }

    pub(super) fn advance_first(&self, first: u64) {
        self.first.fetch_max(first, Ordering::AcqRel);
    }

    pub(super) fn advance_next(&self, next: u64) {
        self.next.fetch_max(next, Ordering::AcqRel);
    }
}

impl Group {
    /// A group that has done everything before `positions`.
    pub(super) fn new(name: String, positions: &[u64]) -> Self {
        Self {
            name,
            committed: positions.iter().copied().map(AtomicU64::new).collect(),
            written: positions.iter().copied().map(AtomicU64::new).collect(),
            taken: AtomicBool::new(false),
            moved: AtomicBool::new(false),
        }
    }
}

impl Topic {
    pub(super) fn new(name: String, id: u32, partitions: Vec<Partition>) -> Self {
        Self {
            name,
            id,
            partitions,
            wake: Notify::new(),
            groups: RwLock::new(BTreeMap::new()),
            keeps: OnceLock::new(),
        }
    }

    /// Keeps this many of its latest records from now on.
    pub(super) fn keep(&self, count: u64) {
        let keeps = self.keeps.get_or_init(AtomicU64::default);
        keeps.store(count, Ordering::Release);
    }

    /// How many of its latest records are kept, where somebody said so.
    pub(super) fn keeps(&self) -> Option<u64> {
        self.keeps.get().map(|count| count.load(Ordering::Acquire))
    }

    /// The lowest position that every group has written, or `None` where no group ever subscribed.
    pub(super) fn floor(&self, partition: usize) -> Option<u64> {
        let groups = self.groups.read().unwrap_or_else(PoisonError::into_inner);
        let positions = groups.values().filter_map(|group| group.written.get(partition));
        positions.map(|position| position.load(Ordering::Acquire)).min()
    }
}

impl Shared {
    pub(super) fn new(
        store: &Store,
        options: Options,
        topics: BTreeMap<String, Arc<Topic>>,
    ) -> (Self, mpsc::Receiver<Request>) {
        let (requests, receiver) = mpsc::channel(QUEUED_REQUESTS);
        let shared = Self {
            path: store.path.clone(),
            options,
            requests,
            counters: Counters::default(),
            topics: RwLock::new(topics),
            log: RwLock::new(Some(store.log.clone())),
            failed: OnceLock::new(),
            closing: AtomicBool::new(false),
            room: Arc::new(Semaphore::new(QUEUED_UNITS as usize)),
            moved: Mutex::new(Vec::new()),
        };
        (shared, receiver)
    }

    pub(super) fn topic(&self, name: &str) -> Option<Arc<Topic>> {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        topics.get(name).map(Arc::clone)
    }

    pub(super) fn topics(&self) -> Vec<Arc<Topic>> {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        topics.values().map(Arc::clone).collect()
    }

    pub(super) fn add_topic(&self, topic: &Arc<Topic>) {
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        topics.insert(topic.name.clone(), Arc::clone(topic));
    }

    /// Waits until `bytes` more may wait for the committer.
    pub(super) async fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Error> {
        let units = u32::try_from(bytes.div_ceil(UNIT))
            .unwrap_or(QUEUED_UNITS)
            .clamp(1, QUEUED_UNITS);
        let room = Arc::clone(&self.room).acquire_many_owned(units).await;
        room.map_err(|_closed| Error::Closed)
    }

    /// The records, for reading.
    pub(super) fn log(&self) -> Result<Keyspace, Error> {
        let log = self.log.read().unwrap_or_else(PoisonError::into_inner);
        log.clone().ok_or(Error::Closed)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.log.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Asks the committer to write what is queued and to end.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        self.ring();
    }

    /// Ends reading, and tells everybody who waits.
    pub(super) fn closed(&self) {
        self.room.close();
        let log = self.log.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(log);
        self.wake_all();
    }

    /// Notes the failure that ends writing; the first one counts.
    pub(super) fn fail(&self, cause: fjall::Error) -> Error {
        let cause = Arc::clone(self.failed.get_or_init(|| Arc::new(cause)));
        self.wake_all();
        self.failure_of(cause)
    }

    /// Notes that the committer panicked: nothing is written any more, and nobody is to wait for it.
    pub(super) fn fail_by_panic(&self) {
        let cause = io::Error::other("the thread that writes panicked");
        drop(self.fail(cause.into()));
    }

    pub(super) fn failure(&self) -> Option<Error> {
        self.failed.get().map(|cause| self.failure_of(Arc::clone(cause)))
    }

    fn failure_of(&self, cause: Arc<fjall::Error>) -> Error {
        Error::Failed {
            path: self.path.clone(),
            cause,
        }
    }

    fn wake_all(&self) {
        for topic in self.topics() {
            topic.wake.notify_waiters();
        }
    }

    /// Notes that `group` has positions to write. The committer is told unless it has been already.
    pub(super) fn moved(&self, topic: &Arc<Topic>, group: &Arc<Group>) {
        if !group.moved.swap(true, Ordering::SeqCst) {
            locked(&self.moved).push((Arc::clone(topic), Arc::clone(group)));
            self.ring();
        }
    }

    /// Takes the groups with positions to write. A position committed from now on is announced again.
    pub(super) fn take_moved(&self) -> Vec<(Arc<Topic>, Arc<Group>)> {
        let moved = std::mem::take(&mut *locked(&self.moved));
        for (_, group) in &moved {
            group.moved.store(false, Ordering::SeqCst);
        }
        moved
    }

    /// Wakes the committer. With a full queue there is no need to: it looks after each batch, and one is due.
    fn ring(&self) {
        match self.requests.try_send(Request::Wake) {
            Ok(()) | Err(mpsc::error::TrySendError::Full(_) | mpsc::error::TrySendError::Closed(_)) => {}
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("path", &self.path)
            .field("options", &self.options)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

impl Counters {
    /// The counters at this moment.
    pub(super) fn stats(&self) -> Stats {
        Stats {
            appends: self.appends.load(Ordering::Relaxed),
            records: self.records.load(Ordering::Relaxed),
            fsyncs: self.fsyncs.load(Ordering::Relaxed),
            trimmed: self.trimmed.load(Ordering::Relaxed),
        }
    }
}

/// Locks; a panic of another holder cannot leave these values half changed.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
