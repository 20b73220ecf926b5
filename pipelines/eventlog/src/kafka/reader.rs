//! A subscription: the side that is asked. The other is its thread (`renewal`).
//!
//! Invariant: a position is sent to the brokers only while the reader has its partition; the lock that says so is held
//! while it is handed over.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use rdkafka::consumer::{CommitMode, Consumer};
use rdkafka::{Offset, TopicPartitionList};

use super::client::{Client, failure, native};
use super::lease::Lease;
use super::options::Options;
use super::renewal::{Consumers, From};
use super::state::Shared;
use super::stats::{Counters, count};
use crate::{Delivered, Error, Event, Position, Subscription};

/// Where a subscription begins.
pub(super) enum Start {
    /// Where the group is.
    Group { lease: Lease },
    /// At these positions of every partition of the topic, for nobody.
    Recent { topic: String, positions: Vec<u64> },
}

/// A subscription, or a tail.
pub(super) struct Reader {
    consumers: Arc<Consumers>,
    /// `None` for a tail; ends with the thread.
    lease: Option<Weak<Lease>>,
    /// Of each partition, the offset after the last record that was ever delivered, also before it was lost.
    delivered: BTreeMap<u32, u64>,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("topic", &self.consumers.name)
            .field("grouped", &self.lease.is_some())
            .finish_non_exhaustive()
    }
}

impl Reader {
    pub(super) fn start(
        options: &Arc<Options>,
        client: &Arc<Client>,
        counters: &Arc<Counters>,
        start: Start,
    ) -> Result<Self, Error> {
        let (topic, lease, from) = match start {
            Start::Group { lease } => (lease.topic().to_owned(), Some(Arc::new(lease)), From::Group),
            Start::Recent { topic, positions } => {
                let begins = (0..).zip(positions.into_iter().map(Some)).collect();
                (topic, None, From::At(begins))
            }
        };
        let group = lease.as_ref().map(|lease| lease.group().to_owned());
        let consumers = Arc::new(Consumers::new(options, client, counters, &topic, group));
        let consumer = consumers.make(from)?;
        let held = lease.as_ref().map(Arc::downgrade);
        consumers.spawn(consumer, lease).map_err(|error| Error::Unavailable {
            what: format!("reading topic `{topic}`"),
            cause: error.to_string(),
        })?;
        Ok(Self {
            consumers,
            lease: held,
            delivered: BTreeMap::new(),
        })
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.consumers.shared
    }

    fn was_delivered(&self, position: &Position) -> bool {
        let delivered = self.delivered.get(&position.partition);
        delivered.is_some_and(|delivered| position.offset <= *delivered)
    }

    /// Refuses positions that do not exist. What was delivered exists; of the rest the brokers are asked.
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
impl Subscription for Reader {
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
        // Why: they are of the topic before, and would be taken for positions of the one that has its name now.
        if consumers.voice.is_anew(&consumers.name) {
            return Ok(());
        }
        for position in positions {
            // Why: of a partition that was lost meanwhile, or was lost and came back, it says nothing.
            if !state.is_told(position.partition) {
                continue;
            }
            let Some(owned) = state.owned.get_mut(&position.partition) else {
                continue;
            };
            // Why: it was delivered before the partition was lost and came back. Behind what is delivered now, it says
            // what is done; ahead of it, as after the topic was recreated, it says nothing.
            if owned.next.is_none_or(|next| position.offset > next) && self.was_delivered(position) {
                continue;
            }
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
                added.map_err(|error| failure("committing a position", &consumers.voice, &error))?;
            }
        }
        if list.count() > 0 {
            // Why under the lock: the partition cannot be lost between the look and the hand-over. It only queues.
            let consumer = consumers.current().ok_or(Error::Closed)?;
            if let Err(error) = consumer.commit(&list, CommitMode::Async) {
                count(&consumers.counters.failed_commits, list.count());
                tracing::warn!(topic = consumers.name, %error, "positions were not committed; they come again");
            }
        }
        drop(state);
        Ok(())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.as_ref().and_then(Weak::upgrade) {
            lease.leave();
        }
        self.consumers.shared.close();
    }
}
