//! The next write of the committer, while it is put together.
//!
//! Invariant: no record of a batch can be read before [`PendingBatch::commit`] made it durable, with two exceptions. A new
//! topic or group is visible, empty, a moment earlier. And a batch that holds only records from
//! [`append_recoverable`](crate::EventLog::append_kept), and answers no subscription, is published before the
//! sync.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fjall::{OwnedWriteBatch, PersistMode};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use types::fault;

use super::committer::{Append, JoinedGroup, answer};
use super::layout::{LogDatabase, cursor_key, first_key, record_key, topic_key, topic_value};
use super::state::{EmbeddedState, GroupPositions, PartitionRange, Topic};
use crate::{Bounds, Error, Position, partition_of};

/// A batch under construction, and the callers that wait for it.
pub(super) struct PendingBatch<'a> {
    store: &'a LogDatabase,
    shared: &'a EmbeddedState,
    writes: OwnedWriteBatch,
    /// True if a caller waits until the batch is durable.
    durable: bool,
    records: u64,
    trimmed: u64,
    /// The new end of each topic, by topic id.
    appended: BTreeMap<u32, NewOffsets>,
    /// True if every append came by `append_recoverable`.
    kept: bool,
    replies: Vec<AppendReply>,
    joins: Vec<(JoinedGroup, oneshot::Sender<Result<JoinedGroup, Error>>)>,
}

/// The new end of a topic.
struct NewOffsets {
    topic: Arc<Topic>,
    /// The next offset of each partition that receives records.
    next: BTreeMap<u32, u64>,
}

impl NewOffsets {
    /// Makes the new records readable and wakes the readers.
    fn publish(&self) {
        for (partition, next) in &self.next {
            self.topic.partitions[*partition as usize].advance_next(*next);
        }
        self.topic.wake.notify_waiters();
    }
}

struct AppendReply {
    positions: Vec<Position>,
    reply: oneshot::Sender<Result<Vec<Position>, Error>>,
    permits: OwnedSemaphorePermit,
}

impl<'a> PendingBatch<'a> {
    pub(super) fn new(store: &'a LogDatabase, shared: &'a EmbeddedState) -> Self {
        Self {
            store,
            shared,
            writes: store.database.batch(),
            durable: false,
            records: 0,
            trimmed: 0,
            appended: BTreeMap::new(),
            kept: true,
            replies: Vec::new(),
            joins: Vec::new(),
        }
    }

    /// Returns the number of records appended by this batch.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// Returns the topic called `name`, and creates it under the id `next_id` if it does not exist.
    pub(super) fn topic(&mut self, name: &str, next_id: &mut u32) -> Arc<Topic> {
        if let Some(topic) = self.shared.topic(name) {
            return topic;
        }
        let partitions = self.shared.options.partitions;
        let empty = Bounds { first: 0, next: 0 };
        let topic = Arc::new(Topic::new(
            name.to_owned(),
            *next_id,
            (0..partitions).map(|_| PartitionRange::new(empty)).collect(),
        ));
        // The id is used up even if the write fails; the log takes no further writes then, and
        // a reopened log counts again from the stored topics.
        *next_id += 1;
        let value = topic_value(topic.id, partitions);
        self.writes.insert(&self.store.meta, topic_key(name), value);
        self.durable = true;
        self.shared.add_topic(&topic);
        topic
    }

    /// Returns the group called `name`, and creates it at the first readable offsets if it does not exist.
    pub(super) fn group(&mut self, topic: &Arc<Topic>, name: &str) -> Arc<GroupPositions> {
        let mut groups = topic.groups.write();
        if let Some(group) = groups.get(name) {
            return Arc::clone(group);
        }
        // A new group begins at the oldest records that are left. Writing its positions at once
        // makes retention wait for it.
        let positions: Vec<u64> = topic.partitions.iter().map(PartitionRange::first).collect();
        for (partition, position) in (0..).zip(&positions) {
            let key = cursor_key(name, topic.id, partition);
            self.writes.insert(&self.store.cursors, key, position.to_be_bytes());
        }
        self.durable = true;
        let group = Arc::new(GroupPositions::new(name.to_owned(), &positions));
        groups.insert(name.to_owned(), Arc::clone(&group));
        group
    }

    /// Adds the records of `append` and assigns their offsets.
    pub(super) fn append(&mut self, topic: &Arc<Topic>, append: Append) {
        let Append {
            entries,
            kept,
            permits,
            reply,
            ..
        } = append;
        let count = u32::try_from(topic.partitions.len()).unwrap_or(u32::MAX);
        let new = self.appended.entry(topic.id).or_insert_with(|| NewOffsets {
            topic: Arc::clone(topic),
            next: BTreeMap::new(),
        });
        self.kept &= kept;
        let mut positions = Vec::with_capacity(entries.len());
        for entry in entries {
            let partition = partition_of(&entry.key, count);
            let next = new
                .next
                .entry(partition)
                .or_insert_with(|| topic.partitions[partition as usize].next());
            // Offsets come from the batch, not from the partition: earlier appends of this
            // batch are not published yet.
            let offset = *next;
            *next += 1;
            let key = record_key(topic.id, partition, offset);
            self.writes.insert(&self.store.log, key, entry.value);
            positions.push(Position { partition, offset });
        }
        self.records += positions.len() as u64;
        self.durable = true;
        self.replies.push(AppendReply {
            positions,
            reply,
            permits,
        });
    }

    /// Answers `reply` once the topic and the group are durable.
    pub(super) fn join(&mut self, joined: JoinedGroup, reply: oneshot::Sender<Result<JoinedGroup, Error>>) {
        self.joins.push((joined, reply));
    }

    /// Writes the positions of `group` that changed. No caller waits for them, so they do not make the batch durable.
    pub(super) fn write_positions(&mut self, topic: &Topic, group: &GroupPositions) {
        for (partition, (committed, written)) in (0..).zip(group.committed.iter().zip(&group.written)) {
            let position = committed.load(Ordering::SeqCst);
            // Positions only grow, and an unchanged one needs no write.
            if written.swap(position, Ordering::AcqRel) != position {
                let key = cursor_key(&group.name, topic.id, partition);
                self.writes.insert(&self.store.cursors, key, position.to_be_bytes());
            }
        }
    }

    /// Removes the records from the first readable one up to `end`. Readers skip them at once: a reader that finds a
    /// gap sees that the first readable offset has moved.
    pub(super) fn trim(&mut self, topic: &Topic, partition: u32, end: u64) {
        let bounds = &topic.partitions[partition as usize];
        let first = bounds.first();
        // The first offset moves before the records go, so a reader never takes the gap for
        // damage.
        bounds.advance_first(end);
        for offset in first..end {
            let key = record_key(topic.id, partition, offset);
            self.writes.remove(&self.store.log, key);
        }
        let key = first_key(topic.id, partition);
        self.writes.insert(&self.store.meta, key, end.to_be_bytes());
        self.trimmed += end.saturating_sub(first);
    }

    /// Writes the batch, publishes its records, and answers the callers.
    pub(super) fn commit(self) {
        let counters = &self.shared.counters;
        let publish = || self.appended.values().for_each(NewOffsets::publish);
        // Subscriptions must be durable before they are answered, and an empty batch has
        // nothing to publish.
        let early = self.kept && self.joins.is_empty() && !self.appended.is_empty();
        let written = if early {
            write_published(self.store, self.writes, publish)
        } else {
            write(self.writes, self.durable)
        };
        if let Err(cause) = written {
            let error = self.shared.fail(cause);
            tracing::error!(%error, "the log stopped");
            for append in self.replies {
                answer(append.reply, Err(error.clone()));
            }
            for (_, reply) in self.joins {
                answer(reply, Err(error.clone()));
            }
            return;
        }
        counters.fsyncs.fetch_add(u64::from(self.durable), Ordering::Relaxed);
        counters.appends.fetch_add(self.replies.len() as u64, Ordering::Relaxed);
        counters.records.fetch_add(self.records, Ordering::Relaxed);
        counters.trimmed.fetch_add(self.trimmed, Ordering::Relaxed);
        if !early {
            publish();
        }
        for append in self.replies {
            // The space in the queue is released before the answer, so a caller that appends
            // again finds it.
            drop(append.permits);
            answer(append.reply, Ok(append.positions));
        }
        for (joined, reply) in self.joins {
            answer(reply, Ok(joined));
        }
    }
}

/// Writes a batch, and syncs it if `durable` is set.
fn write(writes: OwnedWriteBatch, durable: bool) -> fjall::Result<()> {
    let mode = if durable {
        PersistMode::SyncData
    } else {
        PersistMode::Buffer
    };
    writes.durability(Some(mode)).commit()
}

/// Writes a batch, publishes it, and then syncs it.
///
/// Only for records that their senders can append again: between the two steps a thread of the database may hit a disk
/// error that concerns this batch, and swallow it.
fn write_published(store: &LogDatabase, writes: OwnedWriteBatch, publish: impl FnOnce()) -> fjall::Result<()> {
    // The write reaches the operating system before it is published, so a record that a reader
    // has seen outlives this process.
    writes.durability(Some(PersistMode::Buffer)).commit()?;
    publish();
    fault::point("log.shown");
    store.database.persist(PersistMode::SyncData)
}
