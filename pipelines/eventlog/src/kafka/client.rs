//! Requests for metadata and bounds, and the callbacks of librdkafka.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{Offset, TopicPartitionList};

use super::assignment::GroupAssignment;
use super::options::KafkaOptions;
use super::recreation::RecreationDetector;
use super::shutdown::BackgroundDrop;
use crate::{Bounds, Error};

/// The most events of librdkafka that are processed after a request.
const MAX_EVENTS_PER_REQUEST: usize = 32;

/// Converts a partition number to the type of librdkafka. The log has at most 1024 partitions.
pub(super) fn native(partition: u32) -> i32 {
    i32::try_from(partition).unwrap_or(i32::MAX)
}

/// The client context: forwards log lines of librdkafka, keeps the last error, and detects recreated topics.
#[derive(Clone, Debug, Default)]
pub(super) struct LogContext {
    last: Arc<Mutex<Option<String>>>,
    recreations: Arc<Mutex<RecreationDetector>>,
}

impl LogContext {
    /// Describes an error together with the last error that librdkafka reported.
    pub(super) fn describe(&self, error: &KafkaError) -> String {
        let last = self.last.lock();
        match &*last {
            Some(last) => format!("{error} (last heard: {last})"),
            None => error.to_string(),
        }
    }

    fn recreations(&self) -> MutexGuard<'_, RecreationDetector> {
        self.recreations.lock()
    }

    /// Returns true if the topic was recreated and the recreation is not acknowledged yet. Works for clients with the
    /// metadata debug log only.
    pub(super) fn is_recreated(&self, topic: &str) -> bool {
        self.recreations().is_recreated(topic)
    }

    /// Acknowledges a recreation. Returns false if there was none.
    pub(super) fn acknowledge_recreation(&self, topic: &str) -> bool {
        self.recreations().acknowledge(topic)
    }
}

impl ClientContext for LogContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        if matches!(level, RDKafkaLogLevel::Debug) {
            self.recreations().observe(message);
        }
        match level {
            RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
                tracing::error!(facility, "kafka: {message}");
            }
            // Not logged as errors: librdkafka repeats them while a broker is away. The request
            // that fails because of it is logged where it fails.
            RDKafkaLogLevel::Error | RDKafkaLogLevel::Warning => tracing::warn!(facility, "kafka: {message}"),
            RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => tracing::info!(facility, "kafka: {message}"),
            RDKafkaLogLevel::Debug => tracing::debug!(facility, "kafka: {message}"),
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "kafka");
        // This error sums up errors that were reported per broker already.
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown) {
            return;
        }
        *self.last.lock() = Some(reason.to_owned());
    }
}

impl ConsumerContext for LogContext {}

/// Returns true if a retry cannot help: a credential, a permission or a request is wrong.
pub(super) const fn is_refusal(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::TopicAuthorizationFailed
            | RDKafkaErrorCode::GroupAuthorizationFailed
            | RDKafkaErrorCode::ClusterAuthorizationFailed
            | RDKafkaErrorCode::InvalidTopic
            | RDKafkaErrorCode::InvalidConfig
            | RDKafkaErrorCode::InvalidReplicationFactor
            | RDKafkaErrorCode::InvalidPartitions
            | RDKafkaErrorCode::InvalidSessionTimeout
            | RDKafkaErrorCode::InvalidGroupId
            | RDKafkaErrorCode::InconsistentGroupProtocol
            | RDKafkaErrorCode::GroupMaxSizeReached
            | RDKafkaErrorCode::PolicyViolation
            | RDKafkaErrorCode::InvalidRequest
            | RDKafkaErrorCode::InvalidRequiredAcks
            | RDKafkaErrorCode::InvalidRecord
            | RDKafkaErrorCode::UnsupportedVersion
            | RDKafkaErrorCode::UnsupportedForMessageFormat
            | RDKafkaErrorCode::SecurityDisabled
    )
}

/// Converts an error of librdkafka.
pub(super) fn failure(what: impl Into<String>, log_context: &LogContext, error: &KafkaError) -> Error {
    let (what, cause) = (what.into(), log_context.describe(error));
    match error {
        KafkaError::ClientConfig(_, rule, name, _) => Error::Invalid {
            field: "properties",
            rule: format!("`{name}` is not accepted: {rule}"),
        },
        KafkaError::ClientCreation(rule) => Error::Invalid {
            field: "properties",
            rule: format!("are not accepted together: {rule}"),
        },
        error if error.rdkafka_error_code().is_some_and(is_refusal) => Error::Refused { what, cause },
        _ => Error::Unavailable { what, cause },
    }
}

/// The state of a topic and of its group, as the brokers report it.
#[derive(Debug)]
pub(super) struct Probe {
    /// The readable range of each partition.
    pub(super) bounds: Vec<Bounds>,
    /// The assignment of partitions to members; `None` while the group rebalances, and without a group.
    pub(super) assignment: Option<GroupAssignment>,
}

/// A client for requests; it neither consumes nor produces.
pub(super) struct KafkaClient {
    consumer: Arc<BackgroundDrop<BaseConsumer<LogContext>>>,
    log_context: LogContext,
    limit: Duration,
    partitions: u32,
}

impl fmt::Debug for KafkaClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl KafkaClient {
    pub(super) fn new(options: &KafkaOptions) -> Result<Self, Error> {
        let log_context = LogContext::default();
        let consumer = options
            .client()
            .create_with_context(log_context.clone())
            .map_err(|error| failure("connecting", &log_context, &error))?;
        Ok(Self {
            consumer: Arc::new(BackgroundDrop::new(consumer)),
            log_context,
            limit: options.delivery,
            partitions: options.partitions,
        })
    }

    /// Sends a request on a blocking thread, since librdkafka blocks.
    async fn ask<T, F>(&self, what: &str, question: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&BaseConsumer<LogContext>, Duration) -> Result<T, KafkaError> + Send + 'static,
    {
        let (consumer, limit) = (Arc::clone(&self.consumer), self.limit);
        let asked = tokio::task::spawn_blocking(move || {
            let answer = question(&consumer, limit);
            // Processes the callbacks of librdkafka; each poll handles one event.
            for _ in 0..MAX_EVENTS_PER_REQUEST {
                drop(consumer.poll(Duration::ZERO));
            }
            answer
        });
        match asked.await {
            Ok(answer) => answer.map_err(|error| failure(what, &self.log_context, &error)),
            // The task was cancelled, so the runtime is shutting down.
            Err(_end) => Err(Error::Closed),
        }
    }

    /// Returns an error if no broker answers.
    pub(super) async fn reach(&self) -> Result<(), Error> {
        let question =
            |consumer: &BaseConsumer<LogContext>, limit| consumer.fetch_metadata(Some("__none"), limit).map(drop);
        self.ask("connecting", question).await
    }

    /// Returns the number of partitions of a topic, or `None` if it does not exist.
    pub(super) async fn partitions(&self, name: &str) -> Result<Option<u32>, Error> {
        let topic = name.to_owned();
        let question = move |consumer: &BaseConsumer<LogContext>, limit| {
            let metadata = consumer.fetch_metadata(Some(&topic), limit)?;
            let found = metadata.topics().iter().find(|found| found.name() == topic);
            let Some(found) = found else { return Ok(None) };
            match found.error().map(RDKafkaErrorCode::from) {
                None => Ok(u32::try_from(found.partitions().len()).ok().filter(|count| *count > 0)),
                Some(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::LeaderNotAvailable) => Ok(None),
                Some(code) => Err(KafkaError::MetadataFetch(code)),
            }
        };
        self.ask(&format!("looking at topic `{name}`"), question).await
    }

    /// Returns the readable range of each partition; all zero if the topic does not exist.
    pub(super) async fn bounds(&self, name: &str) -> Result<Vec<Bounds>, Error> {
        let partitions = self.partitions;
        if self.partitions(name).await?.is_none() {
            return Ok(vec![Bounds { first: 0, next: 0 }; partitions as usize]);
        }
        let topic = name.to_owned();
        let question =
            move |consumer: &BaseConsumer<LogContext>, limit| agreed_bounds(consumer, &topic, partitions, limit);
        self.ask(&format!("asking for the bounds of topic `{name}`"), question)
            .await
    }

    /// Returns the bounds of a topic and the assignment of its group, or `None` if the brokers do not answer. Blocks.
    pub(super) fn probe(&self, name: &str, group: Option<&str>) -> Option<Probe> {
        // Metadata comes first. Without it the bounds would be requested from the previous
        // leaders of the partitions.
        // A failed request is not an anomaly of the subscription: the next probe asks again.
        let fetched = self
            .consumer
            .fetch_metadata(Some(name), self.limit)
            .and_then(|_metadata| bounds(&self.consumer, name, self.partitions, self.limit));
        let bounds = fetched
            .inspect_err(|error| tracing::debug!(topic = name, %error, "the end of the log is not known now"))
            .ok()?;
        let assignment = group.and_then(|group| self.assignment(name, group));
        Some(Probe { bounds, assignment })
    }

    /// Returns the assignment of a group, or `None` if it is not known now. Blocks.
    fn assignment(&self, name: &str, group: &str) -> Option<GroupAssignment> {
        let listed = self
            .consumer
            .fetch_group_list(Some(group), self.limit)
            .inspect_err(|error| tracing::debug!(topic = name, %error, "how it is shared is not known now"))
            .ok()?;
        let found = listed.groups().iter().find(|found| found.name() == group)?;
        GroupAssignment::of(found, name)
    }
}

/// Returns the readable range of each partition.
pub(super) fn bounds<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    topic: &str,
    partitions: u32,
    limit: Duration,
) -> Result<Vec<Bounds>, KafkaError> {
    // Two requests for all partitions: the times -2 and -1 of ListOffsets are the first and the next offset.
    let ask = |at: Offset| {
        let mut asked = TopicPartitionList::new();
        asked.add_partition_range(topic, 0, native(partitions) - 1);
        asked.set_all_offsets(at)?;
        let answered = consumer.offsets_for_times(asked, limit)?;
        let mut offsets = vec![0; partitions as usize];
        for partition in answered.elements() {
            partition.error()?;
            let at = usize::try_from(partition.partition())
                .ok()
                .and_then(|at| offsets.get_mut(at));
            if let (Some(at), Offset::Offset(offset)) = (at, partition.offset()) {
                *at = u64::try_from(offset).unwrap_or(0);
            }
        }
        Ok::<_, KafkaError>(offsets)
    };
    let first = ask(Offset::Beginning)?;
    let next = ask(Offset::End)?;
    Ok(first
        .into_iter()
        .zip(next)
        .map(|(first, next)| Bounds {
            first: first.min(next),
            next,
        })
        .collect())
}

/// Returns the readable range of each partition, and retries while the brokers disagree on the leaders, as after the
/// creation of a topic. Retries for `limit` at most; the last request may take another `limit`.
fn agreed_bounds(
    consumer: &BaseConsumer<LogContext>,
    topic: &str,
    partitions: u32,
    limit: Duration,
) -> Result<Vec<Bounds>, KafkaError> {
    use RDKafkaErrorCode::{FencedLeaderEpoch, LeaderNotAvailable, NotLeaderForPartition, UnknownLeaderEpoch};

    let begun = Instant::now();
    let mut wait = Duration::from_millis(10);
    loop {
        let found = bounds(consumer, topic, partitions, limit);
        let code = found.as_ref().err().and_then(KafkaError::rdkafka_error_code);
        let is_moving = matches!(
            code,
            Some(NotLeaderForPartition | LeaderNotAvailable | UnknownLeaderEpoch | FencedLeaderEpoch)
        );
        if !is_moving || begun.elapsed() + wait > limit {
            return found;
        }
        // This consumer has no assignment, so the poll only waits.
        drop(consumer.poll(wait));
        wait = (2 * wait).min(Duration::from_secs(1));
        consumer.fetch_metadata(Some(topic), limit)?;
    }
}
