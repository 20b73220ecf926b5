//! Changes to the topics of a broker as made by operators, retention and other programs.
//!
//! Invariant: topics are named as the cluster names them, and no code of the log is used.

use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use super::Broker;

/// The time limit of a request to the broker.
const LIMIT: Duration = Duration::from_secs(30);
/// The pause before a request is repeated.
const AGAIN: Duration = Duration::from_millis(100);

impl Broker {
    /// Deletes all records that a topic has now, as retention does with old ones; positions go on.
    ///
    /// # Errors
    /// The broker's.
    pub async fn delete_records(&self, topic: &str) -> Result<(), KafkaError> {
        self.delete_records_before(topic, None).await
    }

    /// Deletes the records of each partition before this offset; all of them where there is none.
    ///
    /// # Errors
    /// The broker's.
    pub async fn delete_records_before(&self, topic: &str, offset: Option<i64>) -> Result<(), KafkaError> {
        let ends = tokio::task::block_in_place(|| self.ends(topic))?;
        let mut before = TopicPartitionList::new();
        for (partition, end) in (0..).zip(ends) {
            let offset = offset.map_or(end, |offset| offset.min(end));
            before.add_partition_offset(topic, partition, Offset::Offset(offset))?;
        }
        let admin: AdminClient<DefaultClientContext> = self.client().create()?;
        let deleted = admin.delete_records(&before, &AdminOptions::new()).await?;
        deleted
            .elements()
            .iter()
            .try_for_each(rdkafka::topic_partition_list::TopicPartitionListElem::error)
    }

    /// Deletes a topic; returns when the broker does not know it any more.
    ///
    /// # Errors
    /// The broker's.
    pub async fn delete_topic(&self, topic: &str) -> Result<(), KafkaError> {
        let admin: AdminClient<DefaultClientContext> = self.client().create()?;
        let deleted = admin.delete_topics(&[topic], &AdminOptions::new()).await?;
        deleted
            .into_iter()
            .try_for_each(|topic| topic.map(drop).map_err(|(_, code)| KafkaError::AdminOp(code)))?;
        tokio::task::block_in_place(|| {
            let client: BaseConsumer = self.client().create()?;
            let is_known = || {
                let metadata = client.fetch_metadata(None, LIMIT)?;
                Ok::<_, KafkaError>(metadata.topics().iter().any(|known| known.name() == topic))
            };
            while is_known()? {
                // A consumer of nothing has nothing to poll for, and waits.
                drop(client.poll(AGAIN));
            }
            Ok(())
        })
    }

    /// Puts a record into a partition, whatever it is.
    ///
    /// # Errors
    /// The broker's.
    pub async fn put(&self, topic: &str, partition: i32, key: &[u8], value: &[u8]) -> Result<(), KafkaError> {
        let producer: FutureProducer = self.client().create()?;
        let record = FutureRecord::to(topic).partition(partition).key(key).payload(value);
        producer.send(record, LIMIT).await.map(drop).map_err(|(error, _)| error)
    }

    /// Returns the number of records ever written to a topic, since it was last created.
    pub fn count(&self, topic: &str) -> Result<i64, KafkaError> {
        tokio::task::block_in_place(|| Ok(self.ends(topic)?.iter().sum()))
    }

    /// The next offset of each partition. A topic that was just made has a leader a little later.
    fn ends(&self, topic: &str) -> Result<Vec<i64>, KafkaError> {
        let client: BaseConsumer = self.client().create()?;
        let begun = Instant::now();
        let ends = || {
            let metadata = client.fetch_metadata(Some(topic), LIMIT)?;
            let partitions = metadata
                .topics()
                .iter()
                .flat_map(rdkafka::metadata::MetadataTopic::partitions);
            partitions
                .map(|partition| Ok(client.fetch_watermarks(topic, partition.id(), LIMIT)?.1))
                .collect()
        };
        loop {
            match ends() {
                // A consumer of nothing has nothing to poll for, and waits.
                Err(_leaderless) if begun.elapsed() < LIMIT => drop(client.poll(AGAIN)),
                told => return told,
            }
        }
    }

    fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.address());
        config
    }
}
