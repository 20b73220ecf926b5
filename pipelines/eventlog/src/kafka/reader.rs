//! A subscription: the side that is asked. The other is its thread (`poller`).
//!
//! Invariant: a position is sent to the brokers only while the reader has its partition; the lock that says so is held
//! while it is handed over.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::{Offset, TopicPartitionList};

use super::client::{Voice, bounds, failure, native};
use super::lease::Lease;
use super::options::Options;
use super::poller::{self, Watch};
use super::state::Shared;
use super::stats::{Counters, count};
use crate::{Bounds, Delivered, Error, Event, Position, Subscription};

/// Where a subscription begins.
pub(super) enum Start {
    /// Where the group is in the topic that the cluster calls `name`.
    Group { name: String, lease: Lease },
    /// At these positions of every partition, for nobody.
    Recent {
        topic: String,
        name: String,
        positions: Vec<u64>,
    },
}

/// A subscription, or a tail.
pub(super) struct Reader {
    shared: Arc<Shared>,
    /// The thread's: letting go of it means leaving the group, which takes its time.
    consumer: Weak<BaseConsumer<Watch>>,
    /// `None` for a tail; ends with the thread.
    lease: Option<Weak<Lease>>,
    topic: String,
    name: String,
    partitions: u32,
    limit: Duration,
    voice: Voice,
    counters: Arc<Counters>,
    /// Of each partition, the offset after the last record that was ever delivered, also before it was lost.
    delivered: BTreeMap<u32, u64>,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("topic", &self.name)
            .field("grouped", &self.lease.is_some())
            .finish_non_exhaustive()
    }
}

impl Reader {
    pub(super) fn start(options: &Arc<Options>, counters: &Arc<Counters>, start: Start) -> Result<Self, Error> {
        let shared = Arc::new(Shared::default());
        let voice = Voice::default();
        let (topic, name, lease, positions) = match start {
            Start::Group { name, lease } => (lease.topic().to_owned(), name, Some(Arc::new(lease)), None),
            Start::Recent { topic, name, positions } => (topic, name, None, Some(positions)),
        };
        let group = lease.as_ref().map(|lease| Options::group(&name, lease.group()));
        let what = || format!("reading topic `{topic}`");
        let watch = Watch {
            shared: Arc::clone(&shared),
            counters: Arc::clone(counters),
            voice: voice.clone(),
            name: name.clone(),
            group: lease.as_ref().map(|lease| lease.group().to_owned()),
            instance: options.instance.clone().unwrap_or_default(),
            partitions: options.partitions,
            limit: options.delivery,
        };
        let consumer: BaseConsumer<Watch> = options
            .consumer(group.as_deref())
            .create_with_context(watch)
            .map_err(|error| failure(what(), &voice, &error))?;
        let begun = match positions {
            None => consumer.subscribe(&[&name]),
            Some(positions) => {
                let positions: Vec<(u32, Option<u64>)> = (0..).zip(positions.into_iter().map(Some)).collect();
                shared.lock().assign(positions.iter().copied());
                poller::list(&name, &positions).and_then(|list| consumer.assign(&list))
            }
        };
        begun.map_err(|error| failure(what(), &voice, &error))?;
        let consumer = Arc::new(consumer);
        let (weak, held) = (Arc::downgrade(&consumer), lease.as_ref().map(Arc::downgrade));
        poller::spawn(consumer, lease).map_err(|error| Error::Unavailable {
            what: what(),
            cause: error.to_string(),
        })?;
        Ok(Self {
            shared,
            consumer: weak,
            lease: held,
            topic,
            name,
            partitions: options.partitions,
            limit: options.delivery,
            voice,
            counters: Arc::clone(counters),
            delivered: BTreeMap::new(),
        })
    }

    pub(super) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
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
        let consumer = self.consumer.upgrade().ok_or(Error::Closed)?;
        let (name, partitions, limit) = (self.name.clone(), self.partitions, self.limit);
        let asked = tokio::task::spawn_blocking(move || bounds(&consumer, &name, partitions, limit));
        let bounds: Vec<Bounds> = match asked.await {
            Ok(bounds) => bounds
                .map_err(|error| failure(format!("asking for the bounds of `{}`", self.name), &self.voice, &error))?,
            Err(_end) => return Err(Error::Closed),
        };
        for position in positions {
            let bounds = bounds.get(position.partition as usize);
            if bounds.is_none_or(|bounds| position.offset > bounds.next) {
                return Err(Error::Invalid {
                    field: "positions",
                    rule: format!(
                        "must be within topic `{}`; partition {} offset {} is not",
                        self.topic, position.partition, position.offset
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
        let event = self.shared.event(max).await?;
        if let Event::Records(records) = &event {
            for Delivered { position, .. } in records {
                let delivered = self.delivered.entry(position.partition).or_default();
                *delivered = (position.offset + 1).max(*delivered);
            }
        }
        Ok(event)
    }

    async fn commit(&mut self, positions: &[Position]) -> Result<(), Error> {
        if self.lease.is_none() {
            return Err(Error::Ungrouped {
                topic: self.topic.clone(),
            });
        }
        self.check(positions).await?;
        let consumer = self.consumer.upgrade().ok_or(Error::Closed)?;
        let mut list = TopicPartitionList::new();
        let mut state = self.shared.lock();
        for position in positions {
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
                let added = list.add_partition_offset(&self.name, native(position.partition), Offset::Offset(offset));
                added.map_err(|error| failure("committing a position", &self.voice, &error))?;
            }
        }
        if list.count() > 0 {
            // Why under the lock: the partition cannot be lost between the look and the hand-over. It only queues.
            if let Err(error) = consumer.commit(&list, CommitMode::Async) {
                count(&self.counters.failed_commits, list.count());
                tracing::warn!(topic = self.name, %error, "positions were not committed; they come again");
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
        self.shared.close();
    }
}
