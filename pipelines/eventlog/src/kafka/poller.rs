//! The consumer of a subscription: polls while the reader waits, and follows the rebalances of the group.
//!
//! Invariants:
//! - A partition starts at the committed position or, if the group has none, explicitly at the first record. A
//!   recreated topic starts at its first record whatever was committed, since the offset may belong to the deleted
//!   topic.
//! - A position outside the log is logged as an error and counted. The reader sees the partition revoked and assigned
//!   again, and reading continues at the first record left. Lost records belong to unfinished contributions, which the
//!   marketplace appends again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, RebalanceProtocol};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{Offset, TopicPartitionList};

use super::client::{LogContext, bounds, failure, is_refusal, native};
use super::health::{Anomaly, HealthCheck};
use super::start::{FirstRecord, Reset, StartOffset, list, numbers, reset_offsets};
use super::state::BufferShared;
use super::stats::{KafkaCounters, count};
use crate::{Error, Position};

/// The longest time of one poll, and so the delay with which a closed subscription is noticed.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The consumer context of a subscription.
pub(super) struct Poller {
    pub(super) shared: Arc<BufferShared>,
    pub(super) counters: Arc<KafkaCounters>,
    pub(super) log_context: LogContext,
    /// The topic, under its name in the cluster.
    pub(super) name: String,
    /// `None` for a tail.
    pub(super) group: Option<String>,
    pub(super) instance: String,
    pub(super) partitions: u32,
    pub(super) limit: Duration,
    pub(super) first: Mutex<FirstRecord>,
    /// True once the consumer is being replaced; its rebalances no longer concern the reader.
    pub(super) retired: AtomicBool,
}

/// Adds the partitions that the group assigned.
fn follow(consumer: &BaseConsumer<Poller>, assignment: &TopicPartitionList) -> KafkaResult<()> {
    match consumer.rebalance_protocol() {
        RebalanceProtocol::Cooperative => consumer.incremental_assign(assignment),
        _ => consumer.assign(assignment),
    }
}

impl ClientContext for Poller {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.log_context.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.log_context.error(error, reason);
    }
}

impl ConsumerContext for Poller {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, change: RDKafkaRespErr, list: &mut TopicPartitionList) {
        let followed = if change == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
            if self.shared.is_closed() || self.retired.load(Ordering::Relaxed) {
                // No reader is left, and the partitions are revoked next. A request for
                // committed offsets would only delay that.
                follow(consumer, list)
            } else {
                self.assigned(consumer, list)
            }
        } else {
            self.revoked(consumer, list)
        };
        if let Err(error) = followed {
            tracing::error!(topic = self.name, %error, "cannot follow a rebalance; the subscription ends");
            if !self.retired.load(Ordering::Relaxed) {
                self.shared.fail(self.failure(&error));
            }
        }
    }

    fn commit_callback(&self, result: KafkaResult<()>, positions: &TopicPartitionList) {
        if let Err(error) = result {
            count(&self.counters.failed_commits, positions.count().max(1));
            tracing::warn!(topic = self.name, %error, ?positions, "the brokers did not commit the positions; their records will be redelivered");
        }
    }
}

impl Poller {
    fn failure(&self, error: &KafkaError) -> Error {
        failure(format!("reading topic `{}`", self.name), &self.log_context, error)
    }

    fn assigned(&self, consumer: &BaseConsumer<Self>, given: &TopicPartitionList) -> KafkaResult<()> {
        let partitions = numbers(given);
        let (first, others) = {
            let mut first = self.first.lock();
            first.split(&partitions, Instant::now())
        };
        let mut starts: Vec<StartOffset> = first.iter().map(|at| (*at, None)).collect();
        let mut assignment = list(&self.name, &starts)?;
        match self.committed_offsets(consumer, &others) {
            Ok(known) => {
                starts.extend(known);
                assignment = list(&self.name, &starts)?;
            }
            Err(error) => {
                // Not fatal: `Offset::Stored` makes librdkafka retry the request without a
                // limit. If the group has committed no offset, librdkafka reports that like a
                // position out of range, and `reset_positions` repairs it.
                tracing::warn!(topic = self.name, %error, "cannot read the committed positions yet; retrying");
                for partition in &others {
                    assignment.add_partition_offset(&self.name, native(*partition), Offset::Stored)?;
                }
                starts.extend(others.iter().map(|at| (*at, None)));
            }
        }
        self.shared.lock().assign(starts);
        count(&self.counters.assigned, partitions.len());
        tracing::info!(topic = self.name, ?partitions, "partitions assigned");
        follow(consumer, &assignment)?;
        self.commit_first_records(consumer, &first)
    }

    /// Overwrites offsets committed for a deleted topic of the same name. Otherwise the next consumer would start at
    /// them and skip records.
    fn commit_first_records(&self, consumer: &BaseConsumer<Self>, first: &[u32]) -> KafkaResult<()> {
        if first.is_empty() {
            return Ok(());
        }
        let zero: Vec<StartOffset> = first.iter().map(|at| (*at, Some(0))).collect();
        if let Err(error) = consumer.commit(&list(&self.name, &zero)?, CommitMode::Async) {
            count(&self.counters.failed_commits, first.len());
            tracing::warn!(topic = self.name, %error, "cannot overwrite positions committed for the deleted topic");
        }
        Ok(())
    }

    fn revoked(&self, consumer: &BaseConsumer<Self>, taken: &TopicPartitionList) -> KafkaResult<()> {
        let partitions = numbers(taken);
        // Partitions of a retired consumer were taken from the reader already.
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
            "partitions revoked"
        );
        match consumer.rebalance_protocol() {
            RebalanceProtocol::Cooperative => consumer.incremental_unassign(taken),
            _ => consumer.unassign(),
        }
    }

    /// Reads the offsets that the group has committed for these partitions.
    fn committed_offsets(&self, consumer: &BaseConsumer<Self>, partitions: &[u32]) -> KafkaResult<Vec<StartOffset>> {
        if partitions.is_empty() {
            return Ok(Vec::new());
        }
        let mut asked = TopicPartitionList::with_capacity(partitions.len());
        for partition in partitions {
            asked.add_partition(&self.name, native(*partition));
        }
        let answered = consumer.committed_offsets(asked, self.limit)?;
        let mut starts = Vec::with_capacity(partitions.len());
        for at in answered.elements() {
            at.error()?;
            let committed = match at.offset() {
                Offset::Offset(offset) => u64::try_from(offset).ok(),
                _ => None,
            };
            if let Ok(partition) = u32::try_from(at.partition()) {
                starts.push((partition, committed));
            }
        }
        Ok(starts)
    }

    /// Restarts every partition of the reader, those out of range at their first record.
    fn reset_positions(&self, consumer: &BaseConsumer<Self>) -> KafkaResult<()> {
        let owned: Vec<StartOffset> = {
            let state = self.shared.lock();
            state.owned.iter().map(|(at, owned)| (*at, owned.next)).collect()
        };
        if owned.is_empty() {
            return Ok(());
        }
        let readable = bounds(consumer, &self.name, self.partitions, self.limit)?;
        let unknown: Vec<u32> = owned
            .iter()
            .filter(|(_, next)| next.is_none() && self.group.is_some())
            .map(|(at, _)| *at)
            .collect();
        let committed = self.committed_offsets(consumer, &unknown)?;
        let position = |(at, next): &StartOffset| {
            let found = committed.iter().find(|(partition, _)| partition == at);
            next.or_else(|| found.and_then(|(_, committed)| *committed))
        };
        let known: Vec<StartOffset> = owned.iter().map(|start| (start.0, position(start))).collect();
        let Reset { out_of_range, starts } = reset_offsets(&known, &readable);
        for (at, position) in known.iter().filter(|(at, _)| out_of_range.contains(at)) {
            tracing::error!(
                topic = self.name,
                partition = at,
                ?position,
                bounds = ?readable.get(*at as usize),
                "the position is outside the log; reading continues at the first record left"
            );
        }
        count(&self.counters.out_of_range, out_of_range.len());
        {
            let mut state = self.shared.lock();
            state.revoke(&out_of_range);
            state.assign(out_of_range.iter().map(|at| (*at, None)));
        }
        let starts = list(&self.name, &starts)?;
        if self.group.is_some() && matches!(consumer.rebalance_protocol(), RebalanceProtocol::Cooperative) {
            // A seek cannot move a partition without a position, so the partition is assigned
            // again.
            consumer.incremental_unassign(&starts)?;
            return consumer.incremental_assign(&starts);
        }
        consumer.assign(&starts)
    }

    /// Handles an error of the consumer. Returns true if positions must be reset.
    fn on_error(&self, error: &KafkaError) -> bool {
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
                cause: self.log_context.describe(error),
            }),
            error if error.rdkafka_error_code().is_some_and(is_refusal) => self.shared.fail(self.failure(error)),
            error if matches!(error.rdkafka_error_code(), Some(UnknownTopicOrPartition | UnknownTopic)) => {
                tracing::error!(
                    topic = self.name,
                    "the topic does not exist; reading continues when the next append creates it again"
                );
            }
            // A broker that is away or a slow reader: librdkafka recovers by itself.
            error => tracing::warn!(topic = self.name, %error, "the consumer reported an error; reading continues"),
        }
        false
    }

    /// Polls once. Returns `None` if nothing came, else whether positions must be reset.
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
            Err(error) => Some(self.on_error(&error)),
        }
    }

    /// Polls until the reader is closed, or until an anomaly requires a new consumer.
    pub(super) fn run(&self, consumer: &BaseConsumer<Self>, health: &mut HealthCheck) -> Option<Anomaly> {
        let mut needs_reset = false;
        while self.shared.wait_until_wanted() {
            let begun = Instant::now();
            // Drains what librdkafka has fetched before anything else, up to the size of the
            // buffer.
            let mut polled = self.poll(consumer, POLL_INTERVAL);
            while let Some(out_of_range) = polled {
                needs_reset |= out_of_range;
                polled = if self.shared.has_room() {
                    self.poll(consumer, Duration::ZERO)
                } else {
                    None
                };
            }
            if self.log_context.is_recreated(&self.name) {
                tracing::error!(
                    topic = self.name,
                    "the topic was deleted and created again; reading starts at its first record"
                );
                return Some(Anomaly::TopicRecreated);
            }
            if needs_reset {
                match self.reset_positions(consumer) {
                    Ok(()) => needs_reset = false,
                    Err(error) => tracing::warn!(topic = self.name, %error, "cannot reset the positions yet; retrying"),
                }
            }
            self.shared.wake_reader();
            if let Some(anomaly) = health.tick(begun.elapsed(), || self.shared.lock().positions()) {
                return Some(anomaly);
            }
        }
        None
    }
}
