//! The dispatcher of a worker: one writer per dataset that has work, started and ended by the consumer.
//!
//! Invariant: dispatching a message never waits. The bytes queued in memory are bounded, per writer and in all; a message
//! beyond the bound is deferred: it is acknowledged without an outcome, which is safe because the marketplace appends it
//! again until it has one. What a writer that died or gave up its table had queued is deferred in the same way
//! ([`AckHandle`](crate::offsets::AckHandle)). A writer works on messages of partitions that the consumer has: with its
//! partition, it ends.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::error::SendError;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use types::{DatasetId, Timestamp, metric};

use crate::context::Context;
use crate::delivery::{BytePermit, Delivery};
use crate::message::weight;
use crate::writer;

/// An id that is never drawn.
const NO_DATASET: DatasetId = DatasetId::from_bytes([0; 16]);

#[derive(Debug)]
struct TableWriter {
    queue: UnboundedSender<Delivery>,
    /// Partition of its messages: a dataset is in one partition.
    partition: u32,
    stop: CancellationToken,
    bytes: Arc<AtomicUsize>,
    used: Timestamp,
}

/// Limits of the queues of all writers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) writer_bytes: usize,
    pub(crate) all_bytes: usize,
    pub(crate) idle: Duration,
}

impl Bounds {
    /// Returns true if a message of `bytes` may be queued at a writer that has `writer` bytes queued, when all writers
    /// have `all`. The first message of a writer, and of all writers, may exceed the bound, since it would never be
    /// queued otherwise. Half of the bound is reserved for writers with an empty queue, so that a few slow writers do not
    /// block the others.
    const fn have_room(self, writer: usize, all: usize, bytes: usize) -> bool {
        let room = if writer == 0 {
            self.all_bytes
        } else {
            self.all_bytes / 2
        };
        (writer == 0 || writer + bytes <= self.writer_bytes) && (all == 0 || all + bytes <= room)
    }
}

/// Every writer of a worker.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    context: Context,
    bounds: Bounds,
    by_dataset: HashMap<DatasetId, TableWriter>,
    bytes: Arc<AtomicUsize>,
    tasks: TaskTracker,
    deferred: u64,
}

impl Dispatcher {
    pub(crate) fn new(context: Context, bounds: Bounds) -> Self {
        Self {
            context,
            bounds,
            by_dataset: HashMap::new(),
            bytes: Arc::default(),
            tasks: TaskTracker::new(),
            deferred: 0,
        }
    }

    /// Hands a message to the writer of its dataset.
    pub(crate) fn dispatch(&mut self, delivery: Delivery) {
        let Some((dataset, delivery)) = self.hand(delivery) else {
            return;
        };
        tracing::error!(%dataset, "the table writer ended before its time; a new one takes over");
        // Only once: where a new writer dies at once, the runtime ends, and with it this worker.
        if self.hand(delivery).is_some() {
            tracing::error!(%dataset, "there are no table writers any more; the message will come again");
        }
    }

    /// Hands a message to the writer of its dataset; gives it back where that died.
    fn hand(&mut self, mut delivery: Delivery) -> Option<(DatasetId, Delivery)> {
        // A message with another key is of no dataset, and poison. The writer of the nil dataset finds
        // that out.
        let dataset = <[u8; 16]>::try_from(&delivery.record.key[..]).map_or(NO_DATASET, DatasetId::from_bytes);
        let now = self.context.clock.now();
        let bytes = weight(&delivery.record.value);
        let partition = delivery.ack.position().partition;
        let writer = self.by_dataset.entry(dataset).or_insert_with(|| {
            let (queue, receiver) = mpsc::unbounded_channel();
            let stop = self.context.stop.child_token();
            let context = Context {
                slots: self.context.slots.of_writer(),
                stop: stop.clone(),
                ..self.context.clone()
            };
            self.tasks.spawn(writer::run(context, receiver));
            TableWriter {
                queue,
                partition,
                stop,
                bytes: Arc::default(),
                used: now,
            }
        });
        writer.used = now;
        let queued = writer.bytes.load(Ordering::Relaxed);
        if !self.bounds.have_room(queued, self.bytes.load(Ordering::Relaxed), bytes) {
            self.defer(dataset, delivery);
            return None;
        }
        delivery.permit = BytePermit::take(bytes, &writer.bytes, &self.bytes);
        if let Err(SendError(mut delivery)) = writer.queue.send(delivery) {
            // Its bytes go back first: the next writer counts its own from zero.
            delivery.permit = BytePermit::default();
            self.by_dataset.remove(&dataset);
            return Some((dataset, delivery));
        }
        None
    }

    /// Acknowledges a message although nobody worked on it: an open one would hold the mark of the partition back, and
    /// the marketplace appends it again anyway.
    fn defer(&mut self, dataset: DatasetId, delivery: Delivery) {
        self.deferred += 1;
        metrics::counter!(metric::DEFERRED).increment(1);
        tracing::warn!(%dataset, left_out = self.deferred, "no room in the queue; the message will come again");
        delivery.ack.ack();
    }

    /// Ends the writers that had nothing to do for a while, which closes their tables.
    pub(crate) fn retire_idle(&mut self) {
        let now = self.context.clock.now();
        let idle = self.bounds.idle;
        self.by_dataset
            // A writer with bytes still works on its table. Without an entry here the next message would
            // get a second writer for the same table.
            .retain(|_, writer| writer.bytes.load(Ordering::Relaxed) > 0 || now.since(writer.used) < idle);
    }

    /// Ends the writers of partitions that were revoked. Each commits at most the submission it has begun, which the
    /// table's guard makes harmless. Its queued messages belong to another worker now.
    pub(crate) fn revoke(&mut self, revoked: &[u32]) {
        self.by_dataset.retain(|_, writer| {
            let kept = !revoked.contains(&writer.partition);
            if !kept {
                writer.stop.cancel();
            }
            kept
        });
    }

    /// Waits until every writer has committed what it had begun when the worker was stopped, at most for `grace`.
    pub(crate) async fn close(self, grace: Duration) {
        // Dropping the queues is the signal to end: a writer runs until its queue is closed and empty.
        drop(self.by_dataset);
        self.tasks.close();
        if tokio::time::timeout(grace, self.tasks.wait()).await.is_err() {
            tracing::warn!("a table writer did not end in time; its work will be redelivered");
        }
    }
}
