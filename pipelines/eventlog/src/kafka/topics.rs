//! Topics: created with the settings that the log needs, and refused if their settings break its guarantees.
//!
//! Invariant: a topic is used only after its number of partitions was compared, so a key has one partition in every
//! process for the life of the topic.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::error::RDKafkaErrorCode;
use tokio::sync::Mutex as Turn;
use tokio::time::{sleep, timeout};

use super::client::{KafkaClient, LogContext, failure};
use super::options::{BATCH_BYTES, KafkaOptions};
use super::shutdown::BackgroundDrop;
use crate::Error;

/// The topics that this process has checked.
#[derive(Debug)]
pub(super) struct Topics {
    options: Arc<KafkaOptions>,
    client: Arc<KafkaClient>,
    known: Mutex<KnownTopics>,
    /// Serialises checks, so that a missing topic is created once.
    looking: Turn<()>,
}

#[derive(Debug, Default)]
struct KnownTopics {
    topics: HashSet<String>,
    /// The number of times that each topic was forgotten.
    forgotten: HashMap<String, u64>,
}

impl Topics {
    pub(super) fn new(options: Arc<KafkaOptions>, client: Arc<KafkaClient>) -> Self {
        Self {
            options,
            client,
            known: Mutex::default(),
            looking: Turn::default(),
        }
    }

    /// Makes sure that a topic exists with the needed settings, and returns its name in the cluster. Returns at once if
    /// the topic was checked before.
    pub(super) async fn ensure(&self, topic: &str) -> Result<String, Error> {
        let name = self.options.topic(topic);
        if self.known().topics.contains(topic) {
            return Ok(name);
        }
        // Another task may have checked the topic while this one waited, so the lookup is
        // repeated.
        let _turn = self.looking.lock().await;
        let forgotten = {
            let known = self.known();
            if known.topics.contains(topic) {
                return Ok(name);
            }
            known.forgotten.get(topic).copied()
        };
        self.look(&name).await?;
        let mut known = self.known();
        // If the topic was forgotten meanwhile, the check may have seen the topic that was
        // deleted.
        if known.forgotten.get(topic).copied() == forgotten {
            known.topics.insert(topic.to_owned());
        }
        drop(known);
        Ok(name)
    }

    /// Creates the topic if it does not exist, and compares its settings.
    async fn look(&self, name: &str) -> Result<(), Error> {
        let found = match self.client.partitions(name).await? {
            None => {
                self.create(name).await?;
                self.appear(name).await?
            }
            found => found,
        };
        match found {
            Some(found) if found == self.options.partitions => self.compare(name).await,
            Some(found) => Err(Error::Topic {
                topic: name.to_owned(),
                setting: "partitions",
                found: found.to_string(),
                needed: self.options.partitions.to_string(),
                act: "set `log.partitions` to this number: another number would move keys to other partitions",
            }),
            None => Err(Error::Unavailable {
                what: format!("creating topic `{name}`"),
                cause: "the brokers do not list it yet".to_owned(),
            }),
        }
    }

    fn known(&self) -> MutexGuard<'_, KnownTopics> {
        self.known.lock()
    }

    /// Waits until a new topic appears in the metadata and returns its number of partitions. Brokers learn of it one
    /// after another.
    async fn appear(&self, name: &str) -> Result<Option<u32>, Error> {
        let looking = async {
            let mut wait = Duration::from_millis(10);
            loop {
                let found = self.client.partitions(name).await?;
                if found.is_some() {
                    return Ok(found);
                }
                sleep(wait).await;
                wait = (2 * wait).min(Duration::from_secs(1));
            }
        };
        timeout(self.options.delivery, looking).await.unwrap_or(Ok(None))
    }

    /// Has the topic checked again before its next use.
    pub(super) fn forget(&self, topic: &str) {
        let mut known = self.known();
        known.topics.remove(topic);
        *known.forgotten.entry(topic.to_owned()).or_default() += 1;
    }

    fn admin(&self, log_context: &LogContext) -> Result<BackgroundDrop<AdminClient<LogContext>>, Error> {
        let created = self.options.client().create_with_context(log_context.clone());
        // Not `Error::Invalid`: the log was opened with these options, so the failure is
        // temporary.
        created.map(BackgroundDrop::new).map_err(|error| Error::Unavailable {
            what: "connecting".to_owned(),
            cause: log_context.describe(&error),
        })
    }

    fn limits(&self) -> AdminOptions {
        AdminOptions::new()
            .request_timeout(Some(self.options.delivery))
            .operation_timeout(Some(self.options.delivery))
    }

    async fn create(&self, name: &str) -> Result<(), Error> {
        let what = || format!("creating topic `{name}`");
        let log_context = LogContext::default();
        let partitions = i32::try_from(self.options.partitions).unwrap_or(i32::MAX);
        let replication = TopicReplication::Fixed(i32::from(self.options.replication));
        let bytes = BATCH_BYTES.to_string();
        let retention = self.options.retention.as_millis().to_string();
        let in_sync = self.options.min_in_sync.to_string();
        let topic = NewTopic::new(name, partitions, replication)
            .set("cleanup.policy", "delete")
            .set("max.message.bytes", &bytes)
            .set("retention.ms", &retention)
            .set("min.insync.replicas", &in_sync)
            // An unclean leader may lack acknowledged records.
            .set("unclean.leader.election.enable", "false");
        let admin = self.admin(&log_context)?;
        let created = admin.create_topics([&topic], &self.limits()).await;
        let created = created.map_err(|error| failure(what(), &log_context, &error))?;
        match created.into_iter().next() {
            Some(Err((_, code))) if code != RDKafkaErrorCode::TopicAlreadyExists => {
                let error = rdkafka::error::KafkaError::AdminOp(code);
                Err(failure(what(), &log_context, &error))
            }
            Some(Ok(_)) => {
                tracing::info!(topic = name, partitions, "created the topic");
                Ok(())
            }
            // Another process created it first.
            _ => Ok(()),
        }
    }

    /// Refuses settings that lose records; warns about settings that only weaken durability.
    async fn compare(&self, name: &str) -> Result<(), Error> {
        let log_context = LogContext::default();
        let admin = self.admin(&log_context)?;
        let described = admin
            .describe_configs([&ResourceSpecifier::Topic(name)], &self.limits())
            .await
            .map_err(|error| failure(format!("looking at topic `{name}`"), &log_context, &error))?;
        let settings = match described.into_iter().next() {
            Some(Ok(settings)) => settings,
            Some(Err(code)) => {
                tracing::warn!(topic = name, %code, "cannot read the settings of the topic; they are not compared");
                return Ok(());
            }
            None => return Ok(()),
        };
        let value = |setting: &str| settings.get(setting).and_then(|entry| entry.value.as_deref());
        let refuse = |setting: &'static str, found: &str, needed: String, act| {
            Err(Error::Topic {
                topic: name.to_owned(),
                setting,
                found: found.to_owned(),
                needed,
                act,
            })
        };
        if let Some(found) = value("cleanup.policy")
            && found != "delete"
        {
            let act = "change it: compaction removes records that are still to be read";
            return refuse("cleanup.policy", found, "delete".to_owned(), act);
        }
        if let Some(found) = value("max.message.bytes")
            && found.parse::<usize>().is_ok_and(|bytes| bytes < BATCH_BYTES)
        {
            let act = "change it: large records would be refused";
            return refuse("max.message.bytes", found, BATCH_BYTES.to_string(), act);
        }
        if let Some(found) = value("min.insync.replicas")
            && found.parse::<u16>().is_ok_and(|count| count < self.options.min_in_sync)
        {
            let wanted = self.options.min_in_sync;
            tracing::warn!(
                topic = name,
                found,
                wanted,
                "the topic has a lower `min.insync.replicas` than configured"
            );
        }
        Ok(())
    }
}
