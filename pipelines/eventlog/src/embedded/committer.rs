//! The committer: one thread that drains the queue, writes it as one batch, and answers the callers.
//!
//! Invariant: a request is answered after the batch that holds it is durable, or with an error.

use std::sync::Arc;

use bytes::Bytes;
use fjall::{PersistMode, UserValue};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::batch::PendingBatch;
use super::layout::LogDatabase;
use super::retention::Trims;
use super::state::{EmbeddedState, GroupPositions, Topic};
use crate::{Error, Position};

/// The most bytes of one batch, unless a single append is larger.
const BATCH_BYTES: usize = 8 << 20;
/// The most requests of one batch.
const BATCH_REQUESTS: usize = 1024;
/// The most records that one batch removes, so that trimming does not delay appends. A batch with many new records may
/// remove twice as many as it appends, so that trimming keeps up.
const BATCH_TRIMS: u64 = 512;

/// A message to the committer.
#[derive(Debug)]
pub(super) enum CommitterRequest {
    /// Appends records to partitions of a topic.
    Append(Append),
    /// Creates the topic and the group if they do not exist.
    Join {
        topic: String,
        group: Option<String>,
        /// The number of latest records that the topic keeps from now on, if set.
        keep: Option<u64>,
        reply: oneshot::Sender<Result<JoinedGroup, Error>>,
    },
    /// Wakes the committer after a commit of positions, or to close the log.
    Wake,
}

/// Records to write, and the caller that waits for them.
#[derive(Debug)]
pub(super) struct Append {
    pub(super) topic: String,
    pub(super) entries: Vec<EncodedRecord>,
    /// True if the sender can append the records again, so they may be read before they are durable.
    pub(super) kept: bool,
    /// The size of keys and values in bytes.
    pub(super) bytes: usize,
    /// Permits for space in the queue, released when the records are written.
    pub(super) permits: OwnedSemaphorePermit,
    pub(super) reply: oneshot::Sender<Result<Vec<Position>, Error>>,
}

/// An encoded record.
#[derive(Debug)]
pub(super) struct EncodedRecord {
    pub(super) key: Bytes,
    /// The bytes made by [`encode`](super::layout::encode).
    pub(super) value: UserValue,
}

/// The topic and the group of a new subscription.
#[derive(Debug)]
pub(super) struct JoinedGroup {
    pub(super) topic: Arc<Topic>,
    pub(super) group: Option<Arc<GroupPositions>>,
}

/// The state of the committer thread.
pub(super) struct Committer {
    shared: Arc<EmbeddedState>,
    store: LogDatabase,
    requests: mpsc::Receiver<CommitterRequest>,
    trims: Trims,
    next_topic: u32,
}

impl Committer {
    pub(super) fn new(
        shared: Arc<EmbeddedState>,
        store: LogDatabase,
        requests: mpsc::Receiver<CommitterRequest>,
    ) -> Self {
        let topics = shared.topics();
        // A log that was closed with records to trim, or is opened with a smaller `retain`,
        // trims them now.
        let mut trims = Trims::new(shared.options.retain);
        for topic in &topics {
            trims.review(topic);
        }
        // Ids are never reused: an id belongs to a topic for the life of the directory.
        let next_topic = topics.iter().map(|topic| topic.id + 1).max().unwrap_or(0);
        Self {
            shared,
            store,
            requests,
            trims,
            next_topic,
        }
    }

    /// Runs until the log is closed.
    pub(super) fn run(mut self) {
        while !self.shared.is_closing() && self.write_next() {}
        self.close();
    }

    /// Waits for requests and writes them in one batch. Returns `false` once every sender is gone.
    pub(super) fn write_next(&mut self) -> bool {
        // With trims left, an empty queue is no reason to sleep: the next batch removes some
        // more.
        let request = if self.trims.are_due() {
            self.requests.try_recv().unwrap_or(CommitterRequest::Wake)
        } else {
            match self.requests.blocking_recv() {
                Some(request) => request,
                None => return false,
            }
        };
        let requests = self.take_queued(request);
        self.write(requests);
        true
    }

    /// Takes the requests that are queued now, up to the limits of a batch.
    fn take_queued(&mut self, first: CommitterRequest) -> Vec<CommitterRequest> {
        let mut bytes = first.bytes();
        let mut requests = vec![first];
        // A larger batch would make the first caller wait longer for the sync than it saves the
        // last one.
        while bytes < BATCH_BYTES && requests.len() < BATCH_REQUESTS {
            let Ok(request) = self.requests.try_recv() else { break };
            bytes += request.bytes();
            requests.push(request);
        }
        requests
    }

    /// Writes one batch: requests, changed positions, trims.
    fn write(&mut self, requests: Vec<CommitterRequest>) {
        // After a failed sync it is unknown what is on disk, so nothing is written on top of
        // it.
        if let Some(error) = self.shared.failure() {
            self.trims.clear();
            for request in requests {
                request.refuse(&error);
            }
            return;
        }
        let mut batch = PendingBatch::new(&self.store, &self.shared);
        for request in requests {
            match request {
                CommitterRequest::Append(append) => {
                    let topic = batch.topic(&append.topic, &mut self.next_topic);
                    if topic.keeps().is_some() {
                        // Trims are planned before the records of this batch become readable,
                        // so the batch itself is counted when the next one is written.
                        self.trims.review(&topic);
                    }
                    batch.append(&topic, append);
                }
                CommitterRequest::Join {
                    topic,
                    group,
                    keep,
                    reply,
                } => {
                    let topic = batch.topic(&topic, &mut self.next_topic);
                    if let Some(count) = keep {
                        topic.keep(count);
                    }
                    let group = group.map(|group| batch.group(&topic, &group));
                    self.trims.review(&topic);
                    batch.join(JoinedGroup { topic, group }, reply);
                }
                CommitterRequest::Wake => {}
            }
        }
        for (topic, group) in self.shared.take_dirty() {
            batch.write_positions(&topic, &group);
            self.trims.review(&topic);
        }
        // Removing up to twice as many records as are appended lets retention catch up under
        // load.
        let limit = BATCH_TRIMS.max(batch.records().saturating_mul(2));
        self.trims.add_to(&mut batch, limit);
        batch.commit();
    }

    /// Writes what is queued, syncs the positions, and releases the directory.
    fn close(mut self) {
        // New requests are refused from here on; those that are queued are still written.
        self.requests.close();
        while let Ok(request) = self.requests.try_recv() {
            let requests = self.take_queued(request);
            self.write(requests);
        }
        // Positions and trims may be pending without a queued request.
        // Positions committed since the last batch have no request of their own.
        self.write(Vec::new());
        if self.shared.failure().is_none()
            && let Err(error) = self.store.database.persist(PersistMode::SyncData)
        {
            tracing::error!(
                path = %self.shared.path.display(), %error,
                "cannot sync the log while closing it; the last committed positions may be lost and their records redelivered"
            );
        }
        self.shared.finish_close();
    }
}

impl CommitterRequest {
    fn bytes(&self) -> usize {
        match self {
            Self::Append(append) => append.bytes,
            Self::Join { .. } | Self::Wake => 0,
        }
    }

    fn refuse(self, error: &Error) {
        match self {
            Self::Append(append) => answer(append.reply, Err(error.clone())),
            Self::Join { reply, .. } => answer(reply, Err(error.clone())),
            Self::Wake => {}
        }
    }
}

/// Sends an answer. A caller that stopped waiting is ignored.
pub(super) fn answer<T>(reply: oneshot::Sender<T>, value: T) {
    drop(reply.send(value));
}
