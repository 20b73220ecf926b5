//! State shared by the committer and the readers.
//!
//! Invariant: only the committer writes to it, except for positions, which readers commit, and leases. Every number
//! only grows.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use fjall::Keyspace;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};

use super::committer::CommitterRequest;
use super::layout::LogDatabase;
use super::{EmbeddedOptions, EmbeddedStats};
use crate::{Bounds, Error};

/// The most requests in the queue of the committer.
const QUEUED_REQUESTS: usize = 1024;
/// The size of the queue in permits of [`PERMIT_BYTES`]. A larger append waits until the queue is empty.
const QUEUE_PERMITS: u32 = 64 * 1024;
/// Bytes per permit. Semaphores count in 32 bits.
const PERMIT_BYTES: usize = 1024;

/// The state of an open log.
pub(super) struct EmbeddedState {
    pub(super) path: PathBuf,
    pub(super) options: EmbeddedOptions,
    pub(super) requests: mpsc::Sender<CommitterRequest>,
    pub(super) counters: EmbeddedCounters,
    topics: RwLock<BTreeMap<String, Arc<Topic>>>,
    /// The records; `None` once the log is closed, so that a forgotten subscription does not keep the directory locked.
    log: RwLock<Option<Keyspace>>,
    /// The error that ended writing.
    failed: OnceLock<Arc<fjall::Error>>,
    closing: AtomicBool,
    queue: Arc<Semaphore>,
    /// Groups whose positions changed since they were written.
    dirty: Mutex<Vec<(Arc<Topic>, Arc<GroupPositions>)>>,
}

/// The live form of [`EmbeddedStats`].
#[derive(Debug, Default)]
pub(super) struct EmbeddedCounters {
    pub(super) appends: AtomicU64,
    pub(super) records: AtomicU64,
    pub(super) fsyncs: AtomicU64,
    pub(super) trimmed: AtomicU64,
}

/// An open topic.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) name: String,
    pub(super) id: u32,
    pub(super) partitions: Vec<PartitionRange>,
    /// Notified when a partition has more to read, and when the log ends.
    pub(super) wake: Notify,
    /// The groups that ever subscribed, by name.
    pub(super) groups: RwLock<BTreeMap<String, Arc<GroupPositions>>>,
    /// The number of latest records to keep, once [`Topic::keep`] was called.
    keeps: OnceLock<AtomicU64>,
}

/// The readable range of a partition.
#[derive(Debug)]
pub(super) struct PartitionRange {
    first: AtomicU64,
    next: AtomicU64,
}

/// A group's positions in a topic, by partition.
#[derive(Debug)]
pub(super) struct GroupPositions {
    pub(super) name: String,
    pub(super) committed: Vec<AtomicU64>,
    /// The part of `committed` that the committer has written.
    pub(super) written: Vec<AtomicU64>,
    /// True while a subscription is alive.
    pub(super) subscribed: AtomicBool,
    /// True while the group is listed in [`EmbeddedState::dirty`].
    dirty: AtomicBool,
}

impl PartitionRange {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            first: AtomicU64::new(bounds.first),
            next: AtomicU64::new(bounds.next),
        }
    }

    pub(super) fn bounds(&self) -> Bounds {
        let first = self.first();
        // `first` is read before `next`, so `first <= next` holds even if both move in between.
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

impl GroupPositions {
    /// Creates a group that has committed everything before `positions`.
    pub(super) fn new(name: String, positions: &[u64]) -> Self {
        Self {
            name,
            committed: positions.iter().copied().map(AtomicU64::new).collect(),
            written: positions.iter().copied().map(AtomicU64::new).collect(),
            subscribed: AtomicBool::new(false),
            dirty: AtomicBool::new(false),
        }
    }
}

impl Topic {
    pub(super) fn new(name: String, id: u32, partitions: Vec<PartitionRange>) -> Self {
        Self {
            name,
            id,
            partitions,
            wake: Notify::new(),
            groups: RwLock::new(BTreeMap::new()),
            keeps: OnceLock::new(),
        }
    }

    /// Limits the topic to its latest `count` records from now on.
    pub(super) fn keep(&self, count: u64) {
        let keeps = self.keeps.get_or_init(AtomicU64::default);
        keeps.store(count, Ordering::Release);
    }

    /// Returns the number of latest records to keep, if it is limited.
    pub(super) fn keeps(&self) -> Option<u64> {
        self.keeps.get().map(|count| count.load(Ordering::Acquire))
    }

    /// Returns the lowest position that every group has written, or `None` if the topic has no group.
    pub(super) fn low_watermark(&self, partition: usize) -> Option<u64> {
        let groups = self.groups.read();
        let positions = groups.values().filter_map(|group| group.written.get(partition));
        positions.map(|position| position.load(Ordering::Acquire)).min()
    }
}

impl EmbeddedState {
    pub(super) fn new(
        store: &LogDatabase,
        options: EmbeddedOptions,
        topics: BTreeMap<String, Arc<Topic>>,
    ) -> (Self, mpsc::Receiver<CommitterRequest>) {
        let (requests, receiver) = mpsc::channel(QUEUED_REQUESTS);
        let shared = Self {
            path: store.path.clone(),
            options,
            requests,
            counters: EmbeddedCounters::default(),
            topics: RwLock::new(topics),
            log: RwLock::new(Some(store.log.clone())),
            failed: OnceLock::new(),
            closing: AtomicBool::new(false),
            queue: Arc::new(Semaphore::new(QUEUE_PERMITS as usize)),
            dirty: Mutex::new(Vec::new()),
        };
        (shared, receiver)
    }

    pub(super) fn topic(&self, name: &str) -> Option<Arc<Topic>> {
        let topics = self.topics.read();
        topics.get(name).map(Arc::clone)
    }

    pub(super) fn topics(&self) -> Vec<Arc<Topic>> {
        let topics = self.topics.read();
        topics.values().map(Arc::clone).collect()
    }

    pub(super) fn add_topic(&self, topic: &Arc<Topic>) {
        let mut topics = self.topics.write();
        topics.insert(topic.name.clone(), Arc::clone(topic));
    }

    /// Waits until the queue has space for `bytes` more.
    pub(super) async fn queue_permits(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Error> {
        let permits = u32::try_from(bytes.div_ceil(PERMIT_BYTES))
            .unwrap_or(QUEUE_PERMITS)
            // An append larger than the queue takes all permits: it must not wait for ever.
            .clamp(1, QUEUE_PERMITS);
        let permits = Arc::clone(&self.queue).acquire_many_owned(permits).await;
        permits.map_err(|_closed| Error::Closed)
    }

    /// Returns the keyspace of records, or [`Error::Closed`].
    pub(super) fn log(&self) -> Result<Keyspace, Error> {
        let log = self.log.read();
        log.clone().ok_or(Error::Closed)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.log.read().is_none()
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Asks the committer to write what is queued and to end.
    pub(super) fn close(&self) {
        // The flag comes first: a committer that is woken must see it.
        self.closing.store(true, Ordering::SeqCst);
        self.wake_committer();
    }

    /// Ends reading and wakes every waiting caller.
    pub(super) fn finish_close(&self) {
        self.queue.close();
        let log = self.log.write().take();
        drop(log);
        self.wake_all();
    }

    /// Records the error that ends writing; later errors are ignored.
    pub(super) fn fail(&self, cause: fjall::Error) -> Error {
        // Readers are woken too. They deliver what is durable and then return this error.
        let cause = Arc::clone(self.failed.get_or_init(|| Arc::new(cause)));
        self.wake_all();
        self.failure_of(cause)
    }

    /// Fails the log after a panic of the committer, so that no caller waits for it.
    pub(super) fn fail_after_panic(&self) {
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

    /// Marks `group` as changed, and wakes the committer unless the group was marked already.
    pub(super) fn mark_dirty(&self, topic: &Arc<Topic>, group: &Arc<GroupPositions>) {
        if !group.dirty.swap(true, Ordering::SeqCst) {
            self.dirty.lock().push((Arc::clone(topic), Arc::clone(group)));
            self.wake_committer();
        }
    }

    /// Takes the changed groups. A position committed after this call marks its group again.
    pub(super) fn take_dirty(&self) -> Vec<(Arc<Topic>, Arc<GroupPositions>)> {
        // A commit between these two steps does not list its group again. Its position is read
        // afterwards, so the current batch writes it.
        let dirty = std::mem::take(&mut *self.dirty.lock());
        for (_, group) in &dirty {
            group.dirty.store(false, Ordering::SeqCst);
        }
        dirty
    }

    /// Wakes the committer. A full queue needs no wake-up: the committer looks at the groups after each batch.
    fn wake_committer(&self) {
        match self.requests.try_send(CommitterRequest::Wake) {
            Ok(()) | Err(mpsc::error::TrySendError::Full(_) | mpsc::error::TrySendError::Closed(_)) => {}
        }
    }
}

impl fmt::Debug for EmbeddedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("path", &self.path)
            .field("options", &self.options)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

impl EmbeddedCounters {
    /// Returns a snapshot of the counters.
    pub(super) fn stats(&self) -> EmbeddedStats {
        EmbeddedStats {
            appends: self.appends.load(Ordering::Relaxed),
            records: self.records.load(Ordering::Relaxed),
            fsyncs: self.fsyncs.load(Ordering::Relaxed),
            trimmed: self.trimmed.load(Ordering::Relaxed),
        }
    }
}
