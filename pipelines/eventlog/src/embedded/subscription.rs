//! Readers of a topic.
//!
//! Invariant: a position moves in the poll that hands over its records, so a call that is dropped earlier has moved
//! nothing. A reader sleeps until the committer wakes it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;

use super::committer::JoinedGroup;
use super::layout::{decode, offset_of, record_key};
use super::state::{EmbeddedState, GroupPositions, Topic};
use crate::{Delivered, Error, Event, Position, Subscription};

/// A delivery ends with the record that brings it to this many bytes.
const DELIVERY_BYTES: usize = 8 << 20;
/// The most records that are read on the calling task. The latest records are in memory, and a switch to another thread
/// and back would cost more than the read.
const MAX_INLINE_READ: u64 = 4;

/// A subscription of a group, or a tail.
#[derive(Debug)]
pub(super) struct EmbeddedReader {
    shared: Arc<EmbeddedState>,
    topic: Arc<Topic>,
    /// The lease of the group; `None` for a tail.
    lease: Option<EmbeddedLease>,
    /// The next offset to deliver, by partition.
    positions: Vec<u64>,
    /// The partition that comes first in the next delivery, so that each gets its turn.
    next_partition: usize,
    /// True once the reader has received its partitions. It keeps all of them for its life.
    assigned: bool,
}

/// The exclusive right to read a topic for a group within this process.
#[derive(Debug)]
struct EmbeddedLease(Arc<GroupPositions>);

/// A range of consecutive records to read.
#[derive(Clone, Copy, Debug)]
struct OffsetRange {
    partition: u32,
    from: u64,
    to: u64,
}

impl EmbeddedLease {
    fn take(topic: &Topic, group: Arc<GroupPositions>) -> Result<Self, Error> {
        // Two readers of one group in a process would both deliver every record.
        if group.subscribed.swap(true, Ordering::AcqRel) {
            return Err(Error::Busy {
                topic: topic.name.clone(),
                group: group.name.clone(),
            });
        }
        Ok(Self(group))
    }
}

impl Drop for EmbeddedLease {
    fn drop(&mut self) {
        self.0.subscribed.store(false, Ordering::Release);
    }
}

impl EmbeddedReader {
    /// Starts at the positions of the group or, without a group, `recent` records before the end.
    pub(super) fn start(shared: Arc<EmbeddedState>, joined: JoinedGroup, recent: u64) -> Result<Self, Error> {
        let JoinedGroup { topic, group } = joined;
        let lease = group.map(|group| EmbeddedLease::take(&topic, group)).transpose()?;
        let positions = match &lease {
            Some(EmbeddedLease(group)) => group
                .committed
                .iter()
                .map(|position| position.load(Ordering::SeqCst))
                .collect(),
            None => topic
                .partitions
                .iter()
                .map(|partition| partition.next().saturating_sub(recent))
                .collect(),
        };
        Ok(Self {
            shared,
            topic,
            lease,
            positions,
            next_partition: 0,
            assigned: false,
        })
    }

    /// Divides at most `max` records among the partitions that have some, beginning with [`Self::next_partition`].
    fn plan(&self, max: usize) -> Vec<OffsetRange> {
        let count = self.positions.len();
        let mut spans: Vec<OffsetRange> = (self.next_partition..self.next_partition + count)
            .map(|index| index % count)
            .filter_map(|index| {
                let bounds = self.topic.partitions[index].bounds();
                // Retention may have passed a tail's position. It continues at the first record
                // left.
                let from = self.positions[index].max(bounds.first);
                let partition = u32::try_from(index).ok()?;
                (from < bounds.next).then_some(OffsetRange {
                    partition,
                    from,
                    to: bounds.next,
                })
            })
            .take(max)
            .collect();
        let (mut left, mut others) = (max, spans.len());
        for span in &mut spans {
            // Space that a short partition does not use goes to the later ones.
            let share = left.div_ceil(others) as u64;
            span.to = span.to.min(span.from.saturating_add(share));
            left -= usize::try_from(span.to - span.from).unwrap_or(left).min(left);
            others -= 1;
        }
        spans
    }

    /// Reads `spans`. All but the latest records are read on a blocking thread: records outside the cache wait for the
    /// disk, and even from memory 256 records of 1 KiB take 0.5 ms.
    async fn read(&self, spans: Vec<OffsetRange>) -> Result<Vec<Delivered>, Error> {
        if let [OffsetRange { partition, from, .. }] = spans[..]
            && self.topic.partitions[partition as usize].next().saturating_sub(from) <= MAX_INLINE_READ
        {
            return read(&self.shared, &self.topic, &spans);
        }
        let (shared, topic) = (Arc::clone(&self.shared), Arc::clone(&self.topic));
        let read = tokio::task::spawn_blocking(move || read(&shared, &topic, &spans)).await;
        read.unwrap_or_else(|end| {
            if !end.is_panic() {
                // The task was cancelled, so the runtime is shutting down.
                return Err(Error::Closed);
            }
            Err(Error::Damaged {
                path: self.shared.path.clone(),
                what: format!("reading topic `{}` panicked: {end}", self.topic.name),
            })
        })
    }

    /// Moves the positions past the delivered records.
    fn advance(&mut self, delivered: &[Delivered]) {
        for Delivered { position, .. } in delivered {
            self.positions[position.partition as usize] = position.offset + 1;
            self.next_partition = (position.partition as usize + 1) % self.positions.len();
        }
    }
}

#[async_trait]
impl Subscription for EmbeddedReader {
    async fn event(&mut self, max: usize) -> Result<Event, Error> {
        if max == 0 {
            return Err(Error::Invalid {
                field: "max",
                rule: "must be at least 1".to_owned(),
            });
        }
        let topic = Arc::clone(&self.topic);
        loop {
            // Subscribes to the wake-up before looking, so that a record appended in between is
            // not missed.
            let mut woken = std::pin::pin!(topic.wake.notified());
            woken.as_mut().enable();
            if self.shared.is_closed() {
                return Err(Error::Closed);
            }
            if !self.assigned {
                self.assigned = true;
                return Ok(Event::Assigned(
                    (0_u32..).zip(&self.positions).map(|(at, _)| at).collect(),
                ));
            }
            let spans = self.plan(max);
            // Durable records are delivered before the failure is reported.
            if spans.is_empty() {
                if let Some(error) = self.shared.failure() {
                    return Err(error);
                }
                woken.await;
                continue;
            }
            let delivered = self.read(spans).await?;
            if !delivered.is_empty() {
                self.advance(&delivered);
                return Ok(Event::Records(delivered));
            }
        }
    }

    async fn commit(&mut self, positions: &[Position]) -> Result<(), Error> {
        let Some(EmbeddedLease(group)) = &self.lease else {
            return Err(Error::Ungrouped {
                topic: self.topic.name.clone(),
            });
        };
        if self.shared.is_closed() {
            return Err(Error::Closed);
        }
        // All positions are checked before any is committed, so an invalid call changes
        // nothing.
        for position in positions {
            let next = self
                .topic
                .partitions
                .get(position.partition as usize)
                .map(super::state::PartitionRange::next);
            if next.is_none_or(|next| position.offset > next) {
                return Err(Error::Invalid {
                    field: "positions",
                    rule: format!(
                        "must be within topic `{}`; partition {} offset {} is not",
                        self.topic.name, position.partition, position.offset
                    ),
                });
            }
        }
        let mut is_dirty = false;
        for position in positions {
            let committed = &group.committed[position.partition as usize];
            is_dirty |= committed.fetch_max(position.offset, Ordering::SeqCst) < position.offset;
        }
        if is_dirty {
            self.shared.mark_dirty(&self.topic, group);
        }
        Ok(())
    }
}

/// Reads the spans up to [`DELIVERY_BYTES`], each partition up to its share.
fn read(shared: &EmbeddedState, topic: &Topic, spans: &[OffsetRange]) -> Result<Vec<Delivered>, Error> {
    let log = shared.log()?;
    let mut delivered = Vec::new();
    let mut left = DELIVERY_BYTES;
    for (index, span) in spans.iter().enumerate() {
        let share = left.div_ceil(spans.len() - index);
        let mut taken = 0;
        let mut expected = span.from;
        let keys = record_key(topic.id, span.partition, span.from)..record_key(topic.id, span.partition, span.to);
        for entry in log.range(keys) {
            let (key, value) = entry
                .into_inner()
                .map_err(|cause| super::directory::error(&shared.path, cause))?;
            let (Some(offset), Some(record)) = (offset_of(&key), decode(value)) else {
                return Err(damaged(shared, topic, span.partition, expected));
            };
            // A gap is damage unless the records before `offset` were trimmed meanwhile.
            if offset != expected && offset > topic.partitions[span.partition as usize].first() {
                return Err(damaged(shared, topic, span.partition, expected));
            }
            expected = offset + 1;
            taken += record.key.len() + record.value.len();
            let position = Position {
                partition: span.partition,
                offset,
            };
            delivered.push(Delivered { position, record });
            if taken >= share {
                break;
            }
        }
        // The scan ended early without filling its share, so records at the end are missing.
        if taken < share && expected < span.to && expected >= topic.partitions[span.partition as usize].first() {
            return Err(damaged(shared, topic, span.partition, expected));
        }
        left = left.saturating_sub(taken);
        if left == 0 {
            break;
        }
    }
    Ok(delivered)
}

fn damaged(shared: &EmbeddedState, topic: &Topic, partition: u32, offset: u64) -> Error {
    Error::Damaged {
        path: shared.path.clone(),
        what: format!(
            "topic `{}`, partition {partition}: offset {offset} is missing or unreadable",
            topic.name
        ),
    }
}
