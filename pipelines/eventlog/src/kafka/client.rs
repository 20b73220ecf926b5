//! Questions to the brokers: metadata, bounds; and what librdkafka says by itself.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{Offset, TopicPartitionList};

use super::identity::Identities;
use super::options::Options;
use super::parting::Apart;
use super::shares::Shares;
use crate::{Bounds, Error};

/// How many things of librdkafka's are heard after a question.
const HEARD: usize = 32;

/// A partition as librdkafka counts it. Ours are at most 1024.
pub(super) fn native(partition: u32) -> i32 {
    i32::try_from(partition).unwrap_or(i32::MAX)
}

/// Passes on what librdkafka logs, remembers what went wrong last, and which topics were made anew.
#[derive(Clone, Debug, Default)]
pub(super) struct Voice {
    last: Arc<Mutex<Option<String>>>,
    identities: Arc<Mutex<Identities>>,
}

impl Voice {
    /// The error in its own words, with what was heard last.
    pub(super) fn told(&self, error: &KafkaError) -> String {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(last) => format!("{error} (last heard: {last})"),
            None => error.to_string(),
        }
    }

    fn identities(&self) -> MutexGuard<'_, Identities> {
        self.identities.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the topic was made anew, and nothing was done about it yet. Of clients whose debug log is heard.
    pub(super) fn is_anew(&self, topic: &str) -> bool {
        self.identities().is_anew(topic)
    }

    /// Says that what follows from it was done; whether there was something to do.
    pub(super) fn settle(&self, topic: &str) -> bool {
        self.identities().settle(topic)
    }
}

impl ClientContext for Voice {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        if matches!(level, RDKafkaLogLevel::Debug) {
            self.identities().hear(message);
        }
        match level {
            RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
                tracing::error!(facility, "kafka: {message}");
            }
            // Why not as errors: a broker that is away is one of them, over and over; what it keeps from being done is
            // said where it is not done.
            RDKafkaLogLevel::Error | RDKafkaLogLevel::Warning => tracing::warn!(facility, "kafka: {message}"),
            RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => tracing::info!(facility, "kafka: {message}"),
            RDKafkaLogLevel::Debug => tracing::debug!(facility, "kafka: {message}"),
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "kafka");
        // Why: that all are down is the sum of what was said of each.
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown) {
            return;
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_owned());
    }
}

impl ConsumerContext for Voice {}

/// Whether trying again cannot help: a credential, a permission or a request is wrong.
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

/// An error of librdkafka as one of the log.
pub(super) fn failure(what: impl Into<String>, voice: &Voice, error: &KafkaError) -> Error {
    let (what, cause) = (what.into(), voice.told(error));
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

/// What a look at a topic tells.
#[derive(Debug)]
pub(super) struct Look {
    /// The readable range of each partition.
    pub(super) kept: Vec<Bounds>,
    /// How the group shares it; `None` while it is sharing anew, where that is not known, and without a group.
    pub(super) shares: Option<Shares>,
}

/// A client that only asks.
pub(super) struct Client {
    consumer: Arc<Apart<BaseConsumer<Voice>>>,
    voice: Voice,
    limit: Duration,
    partitions: u32,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    pub(super) fn new(options: &Options) -> Result<Self, Error> {
        let voice = Voice::default();
        let consumer = options
            .client()
            .create_with_context(voice.clone())
            .map_err(|error| failure("connecting", &voice, &error))?;
        Ok(Self {
            consumer: Arc::new(Apart::new(consumer)),
            voice,
            limit: options.delivery,
            partitions: options.partitions,
        })
    }

    /// Asks on a thread of its own: librdkafka blocks.
    async fn ask<T, F>(&self, what: &str, question: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&BaseConsumer<Voice>, Duration) -> Result<T, KafkaError> + Send + 'static,
    {
        let (consumer, limit) = (Arc::clone(&self.consumer), self.limit);
        let asked = tokio::task::spawn_blocking(move || {
            let answer = question(&consumer, limit);
            // What librdkafka had to say meanwhile; each poll hears one thing.
            for _ in 0..HEARD {
                drop(consumer.poll(Duration::ZERO));
            }
            answer
        });
        match asked.await {
            Ok(answer) => answer.map_err(|error| failure(what, &self.voice, &error)),
            // The runtime is shutting down.
            Err(_end) => Err(Error::Closed),
        }
    }

    /// Whether a broker answers.
    pub(super) async fn reach(&self) -> Result<(), Error> {
        let question = |consumer: &BaseConsumer<Voice>, limit| consumer.fetch_metadata(Some("__none"), limit).map(drop);
        self.ask("connecting", question).await
    }

    /// How many partitions a topic has; `None` where it does not exist.
    pub(super) async fn partitions(&self, name: &str) -> Result<Option<u32>, Error> {
        let topic = name.to_owned();
        let question = move |consumer: &BaseConsumer<Voice>, limit| {
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

    /// The readable range of each partition; all zero where the topic does not exist.
    pub(super) async fn bounds(&self, name: &str) -> Result<Vec<Bounds>, Error> {
        let partitions = self.partitions;
        if self.partitions(name).await?.is_none() {
            return Ok(vec![Bounds { first: 0, next: 0 }; partitions as usize]);
        }
        let topic = name.to_owned();
        let question = move |consumer: &BaseConsumer<Voice>, limit| agreed_bounds(consumer, &topic, partitions, limit);
        self.ask(&format!("asking for the bounds of topic `{name}`"), question)
            .await
    }

    /// How far the log goes and how a group shares it, if that can be had now. Blocks.
    pub(super) fn look(&self, name: &str, group: Option<&str>) -> Option<Look> {
        // Why the metadata first: the bounds would be asked for where the partitions were led last.
        let looked = self
            .consumer
            .fetch_metadata(Some(name), self.limit)
            .and_then(|_metadata| bounds(&self.consumer, name, self.partitions, self.limit));
        let kept = looked
            .inspect_err(|error| tracing::debug!(topic = name, %error, "the end of the log is not known now"))
            .ok()?;
        let shares = group.and_then(|group| self.shares(name, group));
        Some(Look { kept, shares })
    }

    /// How a group shares the topic, if that can be had now. Blocks.
    fn shares(&self, name: &str, group: &str) -> Option<Shares> {
        let told = self
            .consumer
            .fetch_group_list(Some(group), self.limit)
            .inspect_err(|error| tracing::debug!(topic = name, %error, "how it is shared is not known now"))
            .ok()?;
        let found = told.groups().iter().find(|found| found.name() == group)?;
        Shares::of(found, name)
    }
}

/// The readable range of each partition.
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

/// The same, asked again while the brokers do not agree on who leads the partitions, as when a topic was just made. Asks for
/// as long as `limit`, and the last question may take as long as any.
fn agreed_bounds(
    consumer: &BaseConsumer<Voice>,
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
        // A consumer of nothing has nothing to poll for, and waits.
        drop(consumer.poll(wait));
        wait = (2 * wait).min(Duration::from_secs(1));
        consumer.fetch_metadata(Some(topic), limit)?;
    }
}
