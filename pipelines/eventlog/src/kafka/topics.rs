//! Topics: created with the settings that the log needs, refused where theirs would break what it promises.
//!
//! Invariant: a topic is used only after its number of partitions was compared, so a key has one partition in every
//! process for the life of the topic.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::error::RDKafkaErrorCode;
use tokio::sync::Mutex as Turn;
use tokio::time::{sleep, timeout};

use super::client::{Client, Voice, failure};
use super::options::{BATCH_BYTES, Options};
use super::parting::Apart;
use crate::Error;

/// The topics that this process has looked at.
#[derive(Debug)]
pub(super) struct Topics {
    options: Arc<Options>,
    client: Arc<Client>,
    known: Mutex<Known>,
    /// Held by who looks at a topic, so that one that does not exist is created once.
    looking: Turn<()>,
}

#[derive(Debug, Default)]
struct Known {
    topics: HashSet<String>,
    /// How often each was to be looked at again.
    forgotten: HashMap<String, u64>,
}

impl Topics {
    pub(super) fn new(options: Arc<Options>, client: Arc<Client>) -> Self {
        Self {
            options,
            client,
            known: Mutex::default(),
            looking: Turn::default(),
        }
    }

    /// Makes sure that a topic exists and is as it must be; its name in the cluster. Waits for nothing where that is known.
    pub(super) async fn ensure(&self, topic: &str) -> Result<String, Error> {
        let name = self.options.topic(topic);
        if self.known().topics.contains(topic) {
            return Ok(name);
        }
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
        // What was seen may be of before.
        if known.forgotten.get(topic).copied() == forgotten {
            known.topics.insert(topic.to_owned());
        }
        drop(known);
        Ok(name)
    }

    /// Creates the topic where it does not exist, and compares it with what is needed.
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
                act: "set `log.partitions` to what it has: with another number keys would change their partition",
            }),
            None => Err(Error::Unavailable {
                what: format!("creating topic `{name}`"),
                cause: "it is not known to the brokers yet".to_owned(),
            }),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many partitions a topic has that was just created: the brokers learn of it one after another.
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

    /// Looks at the topic again before it is used next.
    pub(super) fn forget(&self, topic: &str) {
        let mut known = self.known();
        known.topics.remove(topic);
        *known.forgotten.entry(topic.to_owned()).or_default() += 1;
    }

    fn admin(&self, voice: &Voice) -> Result<Apart<AdminClient<Voice>>, Error> {
        let created = self.options.client().create_with_context(voice.clone());
        // Why not what is wrong with the options: the log was opened with them, so it is something that passes.
        created.map(Apart::new).map_err(|error| Error::Unavailable {
            what: "connecting".to_owned(),
            cause: voice.told(&error),
        })
    }

    fn limits(&self) -> AdminOptions {
        AdminOptions::new()
            .request_timeout(Some(self.options.delivery))
            .operation_timeout(Some(self.options.delivery))
    }

    async fn create(&self, name: &str) -> Result<(), Error> {
        let what = || format!("creating topic `{name}`");
        let voice = Voice::default();
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
            .set("unclean.leader.election.enable", "false");
        let admin = self.admin(&voice)?;
        let created = admin.create_topics([&topic], &self.limits()).await;
        let created = created.map_err(|error| failure(what(), &voice, &error))?;
        match created.into_iter().next() {
            Some(Err((_, code))) if code != RDKafkaErrorCode::TopicAlreadyExists => {
                let error = rdkafka::error::KafkaError::AdminOp(code);
                Err(failure(what(), &voice, &error))
            }
            Some(Ok(_)) => {
                tracing::info!(topic = name, partitions, "created");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Refuses settings that lose records; warns of those that only weaken.
    async fn compare(&self, name: &str) -> Result<(), Error> {
        let voice = Voice::default();
        let admin = self.admin(&voice)?;
        let described = admin
            .describe_configs([&ResourceSpecifier::Topic(name)], &self.limits())
            .await
            .map_err(|error| failure(format!("looking at topic `{name}`"), &voice, &error))?;
        let settings = match described.into_iter().next() {
            Some(Ok(settings)) => settings,
            Some(Err(code)) => {
                tracing::warn!(topic = name, %code, "the settings of the topic cannot be read; they are not compared");
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
                "the topic acknowledges with fewer copies than wanted"
            );
        }
        Ok(())
    }
}
