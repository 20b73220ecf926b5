//! Subscriptions and tails, as seen by the caller. Their thread is in `restart`.
//!
//! Invariant: a position is sent to the brokers only while the reader has its partition; the lock on the assignment is
//! held during the hand-over.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use rdkafka::consumer::{CommitMode, Consumer};
use rdkafka::{Offset, TopicPartitionList};

use super::client::{KafkaClient, failure, native};
use super::lease::KafkaLease;
use super::options::KafkaOptions;
use super::restart::{Consumers, StartAt};
use super::state::BufferShared;
use super::stats::{KafkaCounters, count};
use crate::{Delivered, Error, Event, Position, Subscription};

/// The start of a subscription.
pub(super) enum ReadFrom {
    /// The committed positions of a group.
    Group { lease: KafkaLease },
    /// A position in every partition of the topic, without a group.
    Recent { topic: String, positions: Vec<u64> },
}

/// A subscription of a group, or a tail.
pub(super) struct KafkaReader {
    consumers: Arc<Consumers>,
    /// The lease; `None` for a tail. The thread owns it and ends it.
    lease: Option<Weak<KafkaLease>>,
    /// The offset after the last record that was ever delivered, by partition; kept when a partition is lost.
    delivered: BTreeMap<u32, u64>,
}

impl fmt::Debug for KafkaReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("topic", &self.consumers.name)
            .field("grouped", &self.lease.is_some())
            .finish_non_exhaustive()
    }
}

impl KafkaReader {
    pub(super) fn start(
        options: &Arc<KafkaOptions>,
        client: &Arc<KafkaClient>,
        counters: &Arc<KafkaCounters>,
        start: ReadFrom,
    ) -> Result<Self, Error> {
        let (topic, lease, from) = match start {
            ReadFrom::Group { lease } => (lease.topic().to_owned(), Some(Arc::new(lease)), StartAt::Group),
            ReadFrom::Recent { topic, positions } => {
                let starts = (0..).zip(positions.into_iter().map(Some)).collect();
                (topic, None, StartAt::At(starts))
            }
        };
        let group = lease.as_ref().map(|lease| lease.group().to_owned());
        let consumers = Arc::new(Consumers::new(options, client, counters, &topic, group));
        let consumer = consumers.make(from)?;
        let weak_lease = lease.as_ref().map(Arc::downgrade);
        consumers.spawn(consumer, lease).map_err(|error| Error::Unavailable {
            what: format!("reading topic `{topic}`"),
            cause: error.to_string(),
        })?;
        Ok(Self {
            consumers,
            lease: weak_lease,
            delivered: BTreeMap::new(),
        })
    }

    pub(super) fn shared(&self) -> &Arc<BufferShared> {
        &self.consumers.shared
    }

    fn was_delivered(&self, position: &Position) -> bool {
        let delivered = self.delivered.get(&position.partition);
        delivered.is_some_and(|delivered| position.offset <= *delivered)
    }

    /// Refuses positions that do not exist. Delivered positions exist; for others the brokers are asked for the bounds.
    async fn check(&self, positions: &[Position]) -> Result<(), Error> {
        if positions.iter().all(|position| self.was_delivered(position)) {
            return Ok(());
        }
        let bounds = self.consumers.client.bounds(&self.consumers.name).await?;
        for position in positions {
            let bounds = bounds.get(position.partition as usize);
            if bounds.is_none_or(|bounds| position.offset > bounds.next) {
                return Err(Error::Invalid {
                    field: "positions",
                    rule: format!(
                        "must be within topic `{}`; partition {} offset {} is not",
                        self.consumers.topic, position.partition, position.offset
                    ),
                });
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Subscription for KafkaReader {
    async fn event(&mut self, max: usize) -> Result<Event, Error> {
        if max == 0 {
            return Err(Error::Invalid {
                field: "max",
                rule: "must be at least 1".to_owned(),
            });
        }
        let event = self.consumers.shared.event(max).await?;
        if let Event::Records(records) = &event {
            for Delivered { position, .. } in records {
                let delivered = self.delivered.entry(position.partition).or_default();
                *delivered = (position.offset + 1).max(*delivered);
            }
        }
        Ok(event)
    }

    async fn commit(&mut self, positions: &[Position]) -> Result<(), Error> {
        let consumers = &*self.consumers;
        if self.lease.is_none() {
            return Err(Error::Ungrouped {
                topic: consumers.topic.clone(),
            });
        }
        if consumers.shared.is_closed() {
            return Err(Error::Closed);
        }
        self.check(positions).await?;
        let mut list = TopicPartitionList::new();
        let mut state = consumers.shared.lock();
        // The positions belong to the deleted topic and would be committed for the new one of
        // that name.
        if consumers.log_context.is_recreated(&consumers.name) {
            return Ok(());
        }
        for position in positions {
            // The partition was lost, or lost and assigned again, so its commits are ignored.
            if !state.has_seen_assignment(position.partition) {
                continue;
            }
            let Some(owned) = state.owned.get_mut(&position.partition) else {
                continue;
            };
            // The record was delivered before the partition was lost and assigned again. A
            // position at or below the current one is still true. A higher one is not, for
            // example after the topic was recreated.
            if owned.next.is_none_or(|next| position.offset > next) && self.was_delivered(position) {
                continue;
            }
            // A lower position than the committed one changes nothing.
            if owned.committed.is_none_or(|committed| committed < position.offset) {
                owned.committed = Some(position.offset);
            }
        }
        for position in positions {
            let committed = state.owned.get(&position.partition).and_then(|owned| owned.committed);
            if committed == Some(position.offset) {
                let offset = i64::try_from(position.offset).unwrap_or(i64::MAX);
                let added =
                    list.add_partition_offset(&consumers.name, native(position.partition), Offset::Offset(offset));
                added.map_err(|error| failure("committing a position", &consumers.log_context, &error))?;
            }
        }
        // librdkafka reports a commit without offsets as an error.
        if list.count() > 0 {
            // The lock is held, so the partition cannot be lost between the check and the
            // hand-over. `commit` only queues.
            let consumer = consumers.current().ok_or(Error::Closed)?;
            if let Err(error) = consumer.commit(&list, CommitMode::Async) {
                count(&consumers.counters.failed_commits, list.count());
                tracing::warn!(topic = consumers.name, %error, "cannot commit positions; their records will be redelivered");
            }
        }
        drop(state);
        Ok(())
    }
}

impl Drop for KafkaReader {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.as_ref().and_then(Weak::upgrade) {
            lease.leave();
        }
        self.consumers.shared.close();
    }
}
