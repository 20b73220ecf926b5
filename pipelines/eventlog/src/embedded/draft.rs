//! A batch while it is put together.
//!
//! Invariant: nothing of a draft can be read before [`Draft::commit`] made it durable, except that a new topic or
//! group is known, empty, a moment earlier, and that records are read at once that their sender keeps, where the draft
//! brings nothing else that somebody waits for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use fjall::{OwnedWriteBatch, PersistMode};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use types::fault;

use super::committer::{Append, Joined, answer};
use super::layout::{Store, cursor_key, first_key, record_key, topic_key, topic_value};
use super::state::{Group, Partition, Shared, Topic};
use crate::{Bounds, Error, Position, partition_of};

/// A batch while it is put together.
pub(super) struct Draft<'a> {
    store: &'a Store,
    shared: &'a Shared,
    batch: OwnedWriteBatch,
    /// Whether somebody waits for its durability.
    durable: bool,
    records: u64,
    trimmed: u64,
    /// By topic id.
    tails: BTreeMap<u32, Tail>,
    /// Whether the records are kept by their senders, all of them.
    kept: bool,
    appends: Vec<Appended>,
    joins: Vec<(Joined, oneshot::Sender<Result<Joined, Error>>)>,
}

/// What a topic gets.
struct Tail {
    topic: Arc<Topic>,
    /// The next offset of each partition that gets records.
    next: BTreeMap<u32, u64>,
}

impl Tail {
    /// Lets readers have it.
    fn show(&self) {
        for (partition, next) in &self.next {
            self.topic.partitions[*partition as usize].advance_next(*next);
        }
        self.topic.wake.notify_waiters();
    }
}

struct Appended {
    positions: Vec<Position>,
    reply: oneshot::Sender<Result<Vec<Position>, Error>>,
    room: OwnedSemaphorePermit,
}

impl<'a> Draft<'a> {
    pub(super) fn new(store: &'a Store, shared: &'a Shared) -> Self {
        Self {
            store,
            shared,
            batch: store.database.batch(),
            durable: false,
            records: 0,
            trimmed: 0,
            tails: BTreeMap::new(),
            kept: true,
            appends: Vec::new(),
            joins: Vec::new(),
        }
    }

    /// The number of records appended by this draft.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// The topic called `name`, created under the id `next_id` if it does not exist.
    pub(super) fn topic(&mut self, name: &str, next_id: &mut u32) -> Arc<Topic> {
        if let Some(topic) = self.shared.topic(name) {
            return topic;
        }
        let partitions = self.shared.options.partitions;
        let empty = Bounds { first: 0, next: 0 };
        let topic = Arc::new(Topic::new(
            name.to_owned(),
            *next_id,
            (0..partitions).map(|_| Partition::new(empty)).collect(),
        ));
        *next_id += 1;
        let value = topic_value(topic.id, partitions);
        self.batch.insert(&self.store.meta, topic_key(name), value);
        self.durable = true;
        self.shared.add_topic(&topic);
        topic
    }

    /// The group called `name`, created at the first readable records if it does not exist.
    pub(super) fn group(&mut self, topic: &Arc<Topic>, name: &str) -> Arc<Group> {
        let mut groups = topic.groups.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(group) = groups.get(name) {
            return Arc::clone(group);
        }
        let positions: Vec<u64> = topic.partitions.iter().map(Partition::first).collect();
        for (partition, position) in (0..).zip(&positions) {
            let key = cursor_key(name, topic.id, partition);
            self.batch.insert(&self.store.cursors, key, position.to_be_bytes());
        }
        self.durable = true;
        let group = Arc::new(Group::new(name.to_owned(), &positions));
        groups.insert(name.to_owned(), Arc::clone(&group));
        group
    }

    /// Appends to `topic`.
    pub(super) fn append(&mut self, topic: &Arc<Topic>, append: Append) {
        let Append {
            entries,
            kept,
            room,
            reply,
            ..
        } = append;
        let count = u32::try_from(topic.partitions.len()).unwrap_or(u32::MAX);
        let tail = self.tails.entry(topic.id).or_insert_with(|| Tail {
            topic: Arc::clone(topic),
            next: BTreeMap::new(),
        });
        self.kept &= kept;
        let mut positions = Vec::with_capacity(entries.len());
        for entry in entries {
            let partition = partition_of(&entry.key, count);
            let next = tail
                .next
                .entry(partition)
                .or_insert_with(|| topic.partitions[partition as usize].next());
            let offset = *next;
            *next += 1;
            let key = record_key(topic.id, partition, offset);
            self.batch.insert(&self.store.log, key, entry.value);
            positions.push(Position { partition, offset });
        }
        self.records += positions.len() as u64;
        self.durable = true;
        self.appends.push(Appended { positions, reply, room });
    }

    /// Answers `reply` once what it joined is durable.
    pub(super) fn join(&mut self, joined: Joined, reply: oneshot::Sender<Result<Joined, Error>>) {
        self.joins.push((joined, reply));
    }

    /// Writes the positions of `group` that moved. Nobody waits for them.
    pub(super) fn positions(&mut self, topic: &Topic, group: &Group) {
        for (partition, (committed, written)) in (0..).zip(group.committed.iter().zip(&group.written)) {
            let position = committed.load(Ordering::SeqCst);
            if written.swap(position, Ordering::AcqRel) != position {
                let key = cursor_key(&group.name, topic.id, partition);
                self.batch.insert(&self.store.cursors, key, position.to_be_bytes());
            }
        }
    }

    /// Removes the records from the first readable one up to `end`. Readers stop looking for them at once: one that
    /// finds some of them gone sees that the first readable offset has moved.
    pub(super) fn trim(&mut self, topic: &Topic, partition: u32, end: u64) {
        let bounds = &topic.partitions[partition as usize];
        let first = bounds.first();
        bounds.advance_first(end);
        for offset in first..end {
            let key = record_key(topic.id, partition, offset);
            self.batch.remove(&self.store.log, key);
        }
        let key = first_key(topic.id, partition);
        self.batch.insert(&self.store.meta, key, end.to_be_bytes());
        self.trimmed += end.saturating_sub(first);
    }

    /// Writes the batch, lets it be read, and answers.
    pub(super) fn commit(self) {
        let counters = &self.shared.counters;
        let show = || self.tails.values().for_each(Tail::show);
        let early = self.kept && self.joins.is_empty() && !self.tails.is_empty();
        let written = if early {
            write_shown(self.store, self.batch, show)
        } else {
            write(self.batch, self.durable)
        };
        if let Err(cause) = written {
            let error = self.shared.fail(cause);
            tracing::error!(%error, "the log stopped");
            for append in self.appends {
                answer(append.reply, Err(error.clone()));
            }
            for (_, reply) in self.joins {
                answer(reply, Err(error.clone()));
            }
            return;
        }
        counters.fsyncs.fetch_add(u64::from(self.durable), Ordering::Relaxed);
        counters.appends.fetch_add(self.appends.len() as u64, Ordering::Relaxed);
        counters.records.fetch_add(self.records, Ordering::Relaxed);
        counters.trimmed.fetch_add(self.trimmed, Ordering::Relaxed);
        if !early {
            show();
        }
        for append in self.appends {
            drop(append.room);
            answer(append.reply, Ok(append.positions));
        }
        for (joined, reply) in self.joins {
            answer(reply, Ok(joined));
        }
    }
}

/// Writes a batch, and waits for the disk if it is to be durable.
fn write(batch: OwnedWriteBatch, durable: bool) -> fjall::Result<()> {
    let mode = if durable {
        PersistMode::SyncData
    } else {
        PersistMode::Buffer
    };
    batch.durability(Some(mode)).commit()
}

/// Writes a batch, lets it be read, and waits for the disk.
///
/// For what its senders keep only: between the two steps a thread of the database may meet, and take, an error of the disk
/// that is about this batch.
fn write_shown(store: &Store, batch: OwnedWriteBatch, show: impl FnOnce()) -> fjall::Result<()> {
    // Why to the operating system: what a reader has must outlive this process.
    batch.durability(Some(PersistMode::Buffer)).commit()?;
    show();
    fault::point("log.shown");
    store.database.persist(PersistMode::SyncData)
}
