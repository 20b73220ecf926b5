//! The one writer: gathers what waits, writes it as one batch, answers everybody.
//!
//! Invariant: a request is answered after the batch that holds it is durable, or with an error.

use std::sync::Arc;

use bytes::Bytes;
use fjall::{PersistMode, UserValue};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::draft::Draft;
use super::layout::Store;
use super::retention::Trims;
use super::state::{Group, Shared, Topic};
use crate::{Error, Position};

/// The most bytes of one batch, unless a single append is larger.
const BATCH_BYTES: usize = 8 << 20;
/// The most requests of one batch.
const BATCH_REQUESTS: usize = 1024;
/// The most records that one batch removes, so that trimming does not delay appends. A batch that brings more records
/// may remove twice as many as it brings, so that trimming keeps up.
const BATCH_TRIMS: u64 = 512;

/// What the committer is asked.
#[derive(Debug)]
pub(super) enum Request {
    /// Write records.
    Append(Append),
    /// Create what is missing of a topic and a group.
    Join {
        topic: String,
        group: Option<String>,
        /// How many of its latest records the topic keeps from now on.
        keep: Option<u64>,
        reply: oneshot::Sender<Result<Joined, Error>>,
    },
    /// Look whether positions moved or the log is to be closed.
    Wake,
}

/// Records to write.
#[derive(Debug)]
pub(super) struct Append {
    pub(super) topic: String,
    pub(super) entries: Vec<Entry>,
    /// Whether their sender keeps them, so that they may be read before they are durable.
    pub(super) kept: bool,
    /// Their size.
    pub(super) bytes: usize,
    /// Their place in the queue, free again when they are written.
    pub(super) room: OwnedSemaphorePermit,
    pub(super) reply: oneshot::Sender<Result<Vec<Position>, Error>>,
}

/// A record as it is written.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Bytes,
    /// See [`encode`](super::layout::encode).
    pub(super) value: UserValue,
}

/// What a subscription is about.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) topic: Arc<Topic>,
    pub(super) group: Option<Arc<Group>>,
}

/// The state of the committer thread.
pub(super) struct Committer {
    shared: Arc<Shared>,
    store: Store,
    requests: mpsc::Receiver<Request>,
    trims: Trims,
    next_topic: u32,
}

impl Committer {
    pub(super) fn new(shared: Arc<Shared>, store: Store, requests: mpsc::Receiver<Request>) -> Self {
        let topics = shared.topics();
        let mut trims = Trims::new(shared.options.retain);
        for topic in &topics {
            trims.review(topic);
        }
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
        while !self.shared.is_closing() && self.one() {}
        self.close();
    }

    /// Waits for requests and writes them, in one batch; `false` when there are none any more.
    pub(super) fn one(&mut self) -> bool {
        let request = if self.trims.are_due() {
            self.requests.try_recv().unwrap_or(Request::Wake)
        } else {
            match self.requests.blocking_recv() {
                Some(request) => request,
                None => return false,
            }
        };
        let requests = self.gather(request);
        self.write(requests);
        true
    }

    /// Everything that waits by now, up to the limits of a batch.
    fn gather(&mut self, first: Request) -> Vec<Request> {
        let mut bytes = first.bytes();
        let mut requests = vec![first];
        while bytes < BATCH_BYTES && requests.len() < BATCH_REQUESTS {
            let Ok(request) = self.requests.try_recv() else { break };
            bytes += request.bytes();
            requests.push(request);
        }
        requests
    }

    /// Writes one batch: requests, positions that moved, trims.
    fn write(&mut self, requests: Vec<Request>) {
        if let Some(error) = self.shared.failure() {
            self.trims.give_up();
            for request in requests {
                request.refuse(&error);
            }
            return;
        }
        let mut draft = Draft::new(&self.store, &self.shared);
        for request in requests {
            match request {
                Request::Append(append) => {
                    let topic = draft.topic(&append.topic, &mut self.next_topic);
                    if topic.keeps().is_some() {
                        // Why before its records can be read: those of this batch are looked at with the next.
                        self.trims.review(&topic);
                    }
                    draft.append(&topic, append);
                }
                Request::Join {
                    topic,
                    group,
                    keep,
                    reply,
                } => {
                    let topic = draft.topic(&topic, &mut self.next_topic);
                    if let Some(count) = keep {
                        topic.keep(count);
                    }
                    let group = group.map(|group| draft.group(&topic, &group));
                    self.trims.review(&topic);
                    draft.join(Joined { topic, group }, reply);
                }
                Request::Wake => {}
            }
        }
        for (topic, group) in self.shared.take_moved() {
            draft.positions(&topic, &group);
            self.trims.review(&topic);
        }
        let limit = BATCH_TRIMS.max(draft.records().saturating_mul(2));
        self.trims.draft(&mut draft, limit);
        draft.commit();
    }

    /// Writes what is left, makes positions durable, and lets go of the directory.
    fn close(mut self) {
        self.requests.close();
        while let Ok(request) = self.requests.try_recv() {
            let requests = self.gather(request);
            self.write(requests);
        }
        self.write(Vec::new());
        if self.shared.failure().is_none()
            && let Err(error) = self.store.database.persist(PersistMode::SyncData)
        {
            tracing::error!(
                path = %self.shared.path.display(), %error,
                "closing the log: the last positions may be lost, and their records delivered again"
            );
        }
        self.shared.closed();
    }
}

impl Request {
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

/// Answers; a caller that is gone needs no answer.
pub(super) fn answer<T>(reply: oneshot::Sender<T>, value: T) {
    drop(reply.send(value));
}
