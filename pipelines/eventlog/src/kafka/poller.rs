//! A consumer's side of a subscription: polls while the reader waits, follows the group's rebalances.
//!
//! Invariants:
//! - A partition begins at the committed position or, where the group has none, explicitly at the first record. Of a topic
//!   that was made anew it begins at the first record whatever was committed, because that may be of the one before.
//! - A position out of range is said as an error and counted, the reader is told that it lost the partition and has it
//!   again, and reading goes on at the first record left. What was lost is open in the marketplace, which appends it
//!   again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, RebalanceProtocol};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{Offset, TopicPartitionList};

use super::begin::{Again, Begin, First, again, list, numbers};
use super::client::{Voice, bounds, failure, is_refusal, native};
use super::state::Shared;
use super::stats::{Counters, count};
use super::watchdog::{Lost, Watchdog};
use crate::{Error, Position};

/// How long one poll waits: how late a closing is noticed.
pub(super) const SLICE: Duration = Duration::from_millis(100);

/// What the consumer tells of its group.
pub(super) struct Watch {
    pub(super) shared: Arc<Shared>,
    pub(super) counters: Arc<Counters>,
    pub(super) voice: Voice,
    /// The topic, as the cluster calls it.
    pub(super) name: String,
    /// `None` for a tail.
    pub(super) group: Option<String>,
    pub(super) instance: String,
    pub(super) partitions: u32,
    pub(super) limit: Duration,
    pub(super) first: Mutex<First>,
    /// The reader is done with this consumer.
    pub(super) retired: AtomicBool,
}

/// Takes what the group gives.
fn follow(consumer: &BaseConsumer<Watch>, assignment: &TopicPartitionList) -> KafkaResult<()> {
    match consumer.rebalance_protocol() {
        RebalanceProtocol::Cooperative => consumer.incremental_assign(assignment),
        _ => consumer.assign(assignment),
    }
}

impl ClientContext for Watch {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.voice.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.voice.error(error, reason);
    }
}

impl ConsumerContext for Watch {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, change: RDKafkaRespErr, list: &mut TopicPartitionList) {
        let followed = if change == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
            if self.shared.is_closed() || self.retired.load(Ordering::Relaxed) {
                // Nobody reads any more; what it is given is taken back next. Asking for positions would only wait.
                follow(consumer, list)
            } else {
                self.assigned(consumer, list)
            }
        } else {
            self.revoked(consumer, list)
        };
        if let Err(error) = followed {
            tracing::error!(topic = self.name, %error, "a rebalance could not be followed");
            if !self.retired.load(Ordering::Relaxed) {
                self.shared.fail(self.failure(&error));
            }
        }
    }

    fn commit_callback(&self, result: KafkaResult<()>, positions: &TopicPartitionList) {
        if let Err(error) = result {
            count(&self.counters.failed_commits, positions.count().max(1));
            tracing::warn!(topic = self.name, %error, ?positions, "positions were not committed; they come again");
        }
    }
}

impl Watch {
    fn failure(&self, error: &KafkaError) -> Error {
        failure(format!("reading topic `{}`", self.name), &self.voice, error)
    }

    fn assigned(&self, consumer: &BaseConsumer<Self>, given: &TopicPartitionList) -> KafkaResult<()> {
        let partitions = numbers(given);
        let (first, others) = {
            let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
            first.split(&partitions, Instant::now())
        };
        let mut begins: Vec<Begin> = first.iter().map(|at| (*at, None)).collect();
        let mut assignment = list(&self.name, &begins)?;
        match self.begins(consumer, &others) {
            Ok(known) => {
                begins.extend(known);
                assignment = list(&self.name, &begins)?;
            }
            Err(error) => {
                // Why not fail: librdkafka asks again for as long as it takes. Where it then finds none committed, it
                // says that like a position out of range, and `resume` sets it right.
                tracing::warn!(topic = self.name, %error, "the committed positions are not known yet");
                for partition in &others {
                    assignment.add_partition_offset(&self.name, native(*partition), Offset::Stored)?;
                }
                begins.extend(others.iter().map(|at| (*at, None)));
            }
        }
        self.shared.lock().assign(begins);
        count(&self.counters.assigned, partitions.len());
        tracing::info!(topic = self.name, ?partitions, "assigned");
        follow(consumer, &assignment)?;
        self.commit_first(consumer, &first)
    }

    /// Overwrites what may be committed of the topic of that name before: who is next would skip what is before it.
    fn commit_first(&self, consumer: &BaseConsumer<Self>, first: &[u32]) -> KafkaResult<()> {
        if first.is_empty() {
            return Ok(());
        }
        let zero: Vec<Begin> = first.iter().map(|at| (*at, Some(0))).collect();
        if let Err(error) = consumer.commit(&list(&self.name, &zero)?, CommitMode::Async) {
            count(&self.counters.failed_commits, first.len());
            tracing::warn!(topic = self.name, %error, "positions of the topic before may still be committed");
        }
        Ok(())
    }

    fn revoked(&self, consumer: &BaseConsumer<Self>, taken: &TopicPartitionList) -> KafkaResult<()> {
        let partitions = numbers(taken);
        // What a consumer loses that was given up is the next one's by now.
        let is_retired = self.retired.load(Ordering::Relaxed);
        let revoked = if is_retired {
            0
        } else {
            self.shared.lock().revoke(&partitions)
        };
        count(&self.counters.revoked, revoked);
        tracing::info!(
            topic = self.name,
            ?partitions,
            lost = consumer.assignment_lost(),
            "revoked"
        );
        match consumer.rebalance_protocol() {
            RebalanceProtocol::Cooperative => consumer.incremental_unassign(taken),
            _ => consumer.unassign(),
        }
    }

    /// Where the group is in these partitions.
    fn begins(&self, consumer: &BaseConsumer<Self>, partitions: &[u32]) -> KafkaResult<Vec<Begin>> {
        if partitions.is_empty() {
            return Ok(Vec::new());
        }
        let mut asked = TopicPartitionList::with_capacity(partitions.len());
        for partition in partitions {
            asked.add_partition(&self.name, native(*partition));
        }
        let answered = consumer.committed_offsets(asked, self.limit)?;
        let mut begins = Vec::with_capacity(partitions.len());
        for at in answered.elements() {
            at.error()?;
            let committed = match at.offset() {
                Offset::Offset(offset) => u64::try_from(offset).ok(),
                _ => None,
            };
            if let Ok(partition) = u32::try_from(at.partition()) {
                begins.push((partition, committed));
            }
        }
        Ok(begins)
    }

    /// Sets right every partition whose position is not kept.
    fn resume(&self, consumer: &BaseConsumer<Self>) -> KafkaResult<()> {
        let owned: Vec<Begin> = {
            let state = self.shared.lock();
            state.owned.iter().map(|(at, owned)| (*at, owned.next)).collect()
        };
        if owned.is_empty() {
            return Ok(());
        }
        let kept = bounds(consumer, &self.name, self.partitions, self.limit)?;
        let unknown: Vec<u32> = owned
            .iter()
            .filter(|(_, next)| next.is_none() && self.group.is_some())
            .map(|(at, _)| *at)
            .collect();
        let committed = self.begins(consumer, &unknown)?;
        let position = |(at, next): &Begin| {
            let found = committed.iter().find(|(partition, _)| partition == at);
            next.or_else(|| found.and_then(|(_, committed)| *committed))
        };
        let known: Vec<Begin> = owned.iter().map(|begin| (begin.0, position(begin))).collect();
        let Again { out, begins } = again(&known, &kept);
        for (at, position) in known.iter().filter(|(at, _)| out.contains(at)) {
            tracing::error!(
                topic = self.name,
                partition = at,
                ?position,
                bounds = ?kept.get(*at as usize),
                "the position is not kept any more; reading goes on at the first record left"
            );
        }
        count(&self.counters.out_of_range, out.len());
        {
            let mut state = self.shared.lock();
            state.revoke(&out);
            state.assign(out.iter().map(|at| (*at, None)));
        }
        let begins = list(&self.name, &begins)?;
        if self.group.is_some() && matches!(consumer.rebalance_protocol(), RebalanceProtocol::Cooperative) {
            // Why not a seek: a partition that has no position cannot be moved, only given anew.
            consumer.incremental_unassign(&begins)?;
            return consumer.incremental_assign(&begins);
        }
        consumer.assign(&begins)
    }

    /// What an error of the consumer means for the subscription; whether positions are to be set right.
    fn heard(&self, error: &KafkaError) -> bool {
        use RDKafkaErrorCode::{UnknownTopic, UnknownTopicOrPartition};

        match error {
            KafkaError::MessageConsumption(RDKafkaErrorCode::AutoOffsetReset) => return true,
            KafkaError::MessageConsumptionFatal(RDKafkaErrorCode::FencedInstanceId) => {
                self.shared.fail(Error::Fenced {
                    topic: self.name.clone(),
                    group: self.group.clone().unwrap_or_default(),
                    instance: self.instance.clone(),
                });
            }
            KafkaError::MessageConsumptionFatal(_) => self.shared.fail(Error::Refused {
                what: format!("reading topic `{}`", self.name),
                cause: self.voice.told(error),
            }),
            error if error.rdkafka_error_code().is_some_and(is_refusal) => self.shared.fail(self.failure(error)),
            error if matches!(error.rdkafka_error_code(), Some(UnknownTopicOrPartition | UnknownTopic)) => {
                tracing::error!(
                    topic = self.name,
                    "the topic does not exist any more; reading waits for it, and the next append makes it anew"
                );
            }
            // A broker that is away, a reader that was too slow: librdkafka goes on by itself.
            error => tracing::warn!(topic = self.name, %error, "reading goes on"),
        }
        false
    }

    fn poll(&self, consumer: &BaseConsumer<Self>, wait: Duration) -> Option<bool> {
        match consumer.poll(wait)? {
            Ok(message) => {
                let position = (u32::try_from(message.partition()), u64::try_from(message.offset()));
                if let (Ok(partition), Ok(offset)) = position {
                    let position = Position { partition, offset };
                    let (key, value) = (message.key().unwrap_or(&[]), message.payload().unwrap_or(&[]));
                    self.shared.lock().push(position, key, value);
                }
                Some(false)
            }
            Err(error) => Some(self.heard(&error)),
        }
    }

    /// Polls until the reader is gone, or the consumer is to be given up.
    pub(super) fn run(&self, consumer: &BaseConsumer<Self>, watchdog: &mut Watchdog) -> Option<Lost> {
        let mut astray = false;
        while self.shared.is_asked() {
            let begun = Instant::now();
            let mut polled = self.poll(consumer, SLICE);
            while let Some(lost) = polled {
                astray |= lost;
                polled = if self.shared.has_room() {
                    self.poll(consumer, Duration::ZERO)
                } else {
                    None
                };
            }
            if self.voice.is_anew(&self.name) {
                tracing::error!(
                    topic = self.name,
                    "the topic was made anew; it is read from its first record"
                );
                return Some(Lost::Anew);
            }
            if astray {
                match self.resume(consumer) {
                    Ok(()) => astray = false,
                    Err(error) => tracing::warn!(topic = self.name, %error, "positions cannot be set right yet"),
                }
            }
            self.shared.tell();
            if let Some(lost) = watchdog.turn(begun.elapsed(), || self.shared.lock().positions()) {
                return Some(lost);
            }
        }
        None
    }
}
