//! The log on Apache Kafka.
//!
//! ```text
//!  append ── bounded by bytes ──▶ producer (idempotent, acks=all) ──▶ partition_of(key)
//!  event ◀── buffer ◀── one thread per subscription ◀── consumer, in a group or alone
//! ```
//!
//! Invariants:
//! - A record is acknowledged when every replica in sync has it. Kafka answers before the record is on a disk. That is
//!   enough because the marketplace's row is the outbox, and unfinished contributions are appended again.
//! - Offsets move only by [`Subscription::commit`], and only for partitions that the reader has. A reader that its
//!   group expelled cannot commit: the brokers refuse its generation.
//! - A position that retention has passed is never skipped silently: reading continues at the first record left, logs
//!   an error, and counts it ([`KafkaStats::out_of_range`]).
//! - A topic that is deleted and created again is read from its first record, also while it is being read. This is
//!   logged and counted as well ([`KafkaStats::consumers_restarted`]).
//! - No wait is unbounded: every request to the brokers has a timeout, and every queue a limit in bytes.
//!
//! Records of up to [`MAX_RECORD_BYTES`](crate::MAX_RECORD_BYTES) go through Kafka whole (`max.message.bytes` of our
//! topics), not by reference to an object store: the largest message is a contribution of 4 MiB, uploads travel by
//! reference anyway, and a claim check would be a second object that can be lost.

mod assignment;
mod client;
mod health;
mod lease;
mod options;
mod poller;
mod producer;
mod reader;
mod recreation;
mod restart;
mod shutdown;
mod start;
mod state;
mod stats;
mod topics;

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;

use crate::{Bounds, Error, EventLog, Position, Record, Subscription, check_name, check_size};
pub use options::KafkaOptions;
pub use stats::KafkaStats;

use client::KafkaClient;
use lease::KafkaLeases;
use parking_lot::Mutex;
use producer::Appender;
use reader::{KafkaReader, ReadFrom};
use state::BufferShared;
use stats::KafkaCounters;
use topics::Topics;

/// The time that closing waits for subscriptions to leave their groups.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(10);

/// The most requests to the brokers in one call. Each may take [`KafkaOptions::delivery`].
const MAX_REQUESTS: u32 = 10;

/// The log on a Kafka cluster. Dropping it closes it: committed positions are sent, and subscriptions that are still
/// alive return [`Error::Closed`].
pub struct Kafka {
    options: Arc<KafkaOptions>,
    client: Arc<KafkaClient>,
    topics: Topics,
    appender: Appender,
    leases: Arc<KafkaLeases>,
    counters: Arc<KafkaCounters>,
    readers: Mutex<Vec<Weak<BufferShared>>>,
}

impl fmt::Debug for Kafka {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kafka")
            .field("options", &self.options)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl Kafka {
    /// Connects to the brokers and creates the topics in `topics` that do not exist.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an option that breaks a rule, [`Error::Topic`] for a topic that has another number of
    /// partitions or a setting that loses records, [`Error::Unavailable`] when no broker answers.
    pub async fn open(options: KafkaOptions, topics: &[&str]) -> Result<Arc<Self>, Error> {
        options.check()?;
        let options = Arc::new(options);
        let counters = Arc::new(KafkaCounters::default());
        let client = Arc::new(KafkaClient::new(&options)?);
        let log = Self {
            topics: Topics::new(Arc::clone(&options), Arc::clone(&client)),
            appender: Appender::new(Arc::clone(&options), Arc::clone(&counters))?,
            leases: Arc::default(),
            readers: Mutex::default(),
            options,
            client,
            counters,
        };
        // Fails at the start, with the cause, if no broker can be reached.
        log.client.reach().await?;
        for topic in topics {
            check_name("topic", topic)?;
            log.topics.ensure(topic).await?;
        }
        Ok(Arc::new(log))
    }

    /// Returns the counters since the log was opened.
    pub fn stats(&self) -> KafkaStats {
        self.counters.stats()
    }

    /// Limits the time of a call that sends several requests to the brokers. Each request has a timeout of its own;
    /// this one covers a request that never returns, so that the caller can try again.
    async fn within<T>(
        &self,
        what: &str,
        topic: &str,
        asked: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let limit = MAX_REQUESTS * self.options.delivery;
        let answered = tokio::time::timeout(limit, asked).await;
        answered.unwrap_or_else(|_elapsed| {
            tracing::error!(topic, ?limit, "the brokers did not answer in time: {what} a topic");
            Err(Error::Unavailable {
                what: format!("{what} topic `{topic}`"),
                cause: format!("no answer within {limit:?}"),
            })
        })
    }

    fn read(&self, start: ReadFrom) -> Result<Box<dyn Subscription>, Error> {
        let reader = KafkaReader::start(&self.options, &self.client, &self.counters, start)?;
        let mut readers = self.readers.lock();
        // Ended subscriptions are dropped here, so the list does not grow.
        readers.retain(|reader| reader.strong_count() > 0);
        readers.push(Arc::downgrade(reader.shared()));
        Ok(Box::new(reader))
    }
}

#[async_trait]
impl EventLog for Kafka {
    async fn append(&self, topic: &str, records: Vec<Record>) -> Result<Vec<Position>, Error> {
        check_name("topic", topic)?;
        check_size(&records)?;
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let appending = async {
            // Checked before each append, since the old producer would send to leaders of the
            // deleted topic.
            if self.appender.replace_if_recreated(&self.options.topic(topic)) {
                // The process that created the topic may have given it other settings.
                self.topics.forget(topic);
            }
            let name = self.topics.ensure(topic).await?;
            let appended = self.appender.append(&name, records).await;
            if appended.is_err() {
                // The topic may have been deleted. Another look costs little compared to a
                // failure.
                self.topics.forget(topic);
            }
            appended
        };
        self.within("appending to", topic, appending).await
    }

    async fn subscribe(&self, topic: &str, group: &str) -> Result<Box<dyn Subscription>, Error> {
        check_name("topic", topic)?;
        check_name("group", group)?;
        self.within("looking at", topic, self.topics.ensure(topic)).await?;
        let lease = KafkaLeases::take(&self.leases, topic, group, self.options.delivery).await?;
        self.read(ReadFrom::Group { lease })
    }

    async fn recent(&self, topic: &str, count: u64) -> Result<Box<dyn Subscription>, Error> {
        check_name("topic", topic)?;
        let looking = async {
            let name = self.topics.ensure(topic).await?;
            self.client.bounds(&name).await
        };
        let bounds = self.within("looking at", topic, looking).await?;
        // `count` may exceed the records that are left.
        let first = |bounds: &Bounds| bounds.next.saturating_sub(count).max(bounds.first);
        self.read(ReadFrom::Recent {
            topic: topic.to_owned(),
            positions: bounds.iter().map(first).collect(),
        })
    }

    async fn keep(&self, topic: &str, _count: u64) -> Result<(), Error> {
        // Kafka removes records by age, so there is nothing to do.
        check_name("topic", topic)
    }

    async fn bounds(&self, topic: &str) -> Result<Vec<Bounds>, Error> {
        check_name("topic", topic)?;
        let name = self.options.topic(topic);
        self.within("asking for the bounds of", topic, self.client.bounds(&name))
            .await
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        // Every subscription must leave its group before the process ends; otherwise the group
        // waits for the session timeout before it reassigns the partitions.
        let readers = std::mem::take(&mut *self.readers.lock());
        for shared in readers.iter().filter_map(Weak::upgrade) {
            shared.close();
        }
        if !self.leases.wait_all(LEAVE_TIMEOUT) {
            tracing::warn!(
                "a subscription did not leave its group in time; the group reassigns its partitions after the session timeout"
            );
        }
    }
}
