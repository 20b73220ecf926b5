//! The lanes of a worker: one per dataset that has work, started and ended by the reader.
//!
//! Invariant: handing a message to a lane never waits. The bytes queued in memory are bounded, per lane and in all; a
//! message beyond the bound is left out, which is safe because the marketplace appends it again until it has an
//! outcome. What a lane that died or gave up its table had queued is left out in the same way
//! ([`Ticket`](crate::progress::Ticket)). A lane works on messages of partitions that the reader has: with its
//! partition, it ends.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::error::SendError;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use types::{DatasetId, Timestamp};

use crate::judge::Work;
use crate::lane::{self, Context};
use crate::message::weight;

/// An id that is never drawn.
const NO_DATASET: DatasetId = DatasetId::from_bytes([0; 16]);

/// A message in a lane's queue, with what it weighs.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) work: Work,
    pub(crate) weight: Weight,
}

/// The bytes of a message that is queued or in work; gives them back when dropped.
#[derive(Debug)]
pub(crate) struct Weight {
    bytes: usize,
    lane: Arc<AtomicUsize>,
    all: Arc<AtomicUsize>,
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.lane.fetch_sub(self.bytes, Ordering::Relaxed);
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Lane {
    queue: UnboundedSender<Queued>,
    /// Partition of its messages: a dataset is in one partition.
    partition: u32,
    stop: CancellationToken,
    bytes: Arc<AtomicUsize>,
    used: Timestamp,
}

/// Limits of the queues of all lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) lane_bytes: usize,
    pub(crate) all_bytes: usize,
    pub(crate) idle: Duration,
}

impl Bounds {
    /// Returns true if a message of `bytes` may be queued in a lane that has `lane` bytes queued, when all lanes have
    /// `all`. The first message of a lane, and of all lanes, may exceed the bound, since it would never be queued
    /// otherwise. Half of the bound is reserved for lanes with an empty queue, so that a few slow lanes do not block
    /// the others.
    const fn have_room(self, lane: usize, all: usize, bytes: usize) -> bool {
        let room = if lane == 0 { self.all_bytes } else { self.all_bytes / 2 };
        (lane == 0 || lane + bytes <= self.lane_bytes) && (all == 0 || all + bytes <= room)
    }
}

/// Every lane of a worker.
#[derive(Debug)]
pub(crate) struct Lanes {
    context: Context,
    bounds: Bounds,
    by_dataset: HashMap<DatasetId, Lane>,
    bytes: Arc<AtomicUsize>,
    tasks: TaskTracker,
    left_out: u64,
}

impl Lanes {
    pub(crate) fn new(context: Context, bounds: Bounds) -> Self {
        Self {
            context,
            bounds,
            by_dataset: HashMap::new(),
            bytes: Arc::default(),
            tasks: TaskTracker::new(),
            left_out: 0,
        }
    }

    /// Hands a message to the lane of its dataset.
    pub(crate) fn dispatch(&mut self, work: Work) {
        let Some((dataset, work)) = self.hand(work) else {
            return;
        };
        tracing::error!(%dataset, "the lane ended before its time; a new one takes over");
        // Only once: where a new lane dies at once, the runtime ends, and with it this worker.
        if self.hand(work).is_some() {
            tracing::error!(%dataset, "there are no lanes any more; the message will come again");
        }
    }

    /// Hands a message to the lane of its dataset; gives it back where that died.
    fn hand(&mut self, work: Work) -> Option<(DatasetId, Work)> {
        // A message with another key is of no dataset, and poison. The lane of the nil dataset finds
        // that out.
        let dataset = <[u8; 16]>::try_from(&work.record.key[..]).map_or(NO_DATASET, DatasetId::from_bytes);
        let now = self.context.clock.now();
        let bytes = weight(&work.record.value);
        let partition = work.ticket.position().partition;
        let lane = self.by_dataset.entry(dataset).or_insert_with(|| {
            let (queue, receiver) = mpsc::unbounded_channel();
            let stop = self.context.stop.child_token();
            let context = Context {
                places: self.context.places.of_lane(),
                stop: stop.clone(),
                ..self.context.clone()
            };
            self.tasks.spawn(lane::run(context, receiver));
            Lane {
                queue,
                partition,
                stop,
                bytes: Arc::default(),
                used: now,
            }
        });
        lane.used = now;
        if !self.bounds.have_room(
            lane.bytes.load(Ordering::Relaxed),
            self.bytes.load(Ordering::Relaxed),
            bytes,
        ) {
            self.left_out += 1;
            tracing::warn!(%dataset, left_out = self.left_out, "no room in the queue; the message will come again");
            // The message counts as done although nobody worked on it: an open one would hold the mark
            // of the partition back, and the marketplace appends it again anyway.
            work.ticket.finish();
            return None;
        }
        lane.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let weight = Weight {
            bytes,
            lane: Arc::clone(&lane.bytes),
            all: Arc::clone(&self.bytes),
        };
        if let Err(SendError(Queued { work, weight })) = lane.queue.send(Queued { work, weight }) {
            drop(weight);
            self.by_dataset.remove(&dataset);
            return Some((dataset, work));
        }
        None
    }

    /// Ends the lanes that had nothing to do for a while, which closes their tables.
    pub(crate) fn retire_idle(&mut self) {
        let now = self.context.clock.now();
        let idle = self.bounds.idle;
        self.by_dataset
            // A lane with bytes still works on its table. Without an entry here the next message would
            // get a second lane for the same table.
            .retain(|_, lane| lane.bytes.load(Ordering::Relaxed) > 0 || now.since(lane.used) < idle);
    }

    /// Ends the lanes of partitions that were lost. Each concludes at most the submission it has begun, which the
    /// table's guard makes harmless. Its queued messages belong to another worker now.
    pub(crate) fn lose(&mut self, lost: &[u32]) {
        self.by_dataset.retain(|_, lane| {
            let kept = !lost.contains(&lane.partition);
            if !kept {
                lane.stop.cancel();
            }
            kept
        });
    }

    /// Waits until every lane has concluded what it had begun when the worker was stopped, at most for `grace`.
    pub(crate) async fn close(self, grace: Duration) {
        // Dropping the queues is the signal to end: a lane runs until its queue is closed and empty.
        drop(self.by_dataset);
        self.tasks.close();
        if tokio::time::timeout(grace, self.tasks.wait()).await.is_err() {
            tracing::warn!("a lane did not end in time; its work will be redelivered");
        }
    }
}
