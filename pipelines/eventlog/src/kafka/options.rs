//! Options of the log on Kafka, and the settings of librdkafka derived from them.
//!
//! Invariant: no property that the guarantees of the log depend on can be set from outside.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;

use crate::{Error, MAX_NAME_BYTES, MAX_RECORD_BYTES};

/// The most partitions a topic can have.
const MAX_PARTITIONS: u32 = 1024;
/// The largest batch in bytes: a record of the largest size plus Kafka's framing.
pub(super) const BATCH_BYTES: usize = MAX_RECORD_BYTES + (1 << 20);
/// The most bytes that are being appended at a time; further appends wait. librdkafka's own queue is twice as large, so
/// it never fills first.
pub(super) const QUEUE_BYTES: usize = 64 << 20;
/// The most bytes that a consumer fetches ahead.
const PREFETCH_BYTES: usize = 16 << 20;

/// Properties that the guarantees of the log depend on, and those that options set.
const RESERVED_PROPERTIES: [&str; 33] = [
    "acks",
    "allow.auto.create.topics",
    "auto.commit.enable",
    "auto.commit.interval.ms",
    "auto.offset.reset",
    "bootstrap.servers",
    "check.crcs",
    "delivery.timeout.ms",
    "dr_cb",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.gapless.guarantee",
    "enable.idempotence",
    "enable.partition.eof",
    "group.id",
    "group.instance.id",
    "group.protocol",
    "group.remote.assignor",
    "isolation.level",
    "log.queue",
    "max.in.flight",
    "max.in.flight.requests.per.connection",
    "max.poll.interval.ms",
    "message.max.bytes",
    "message.send.max.retries",
    "message.timeout.ms",
    "metadata.broker.list",
    "partition.assignment.strategy",
    "queue.buffering.max.kbytes",
    "request.required.acks",
    "retries",
    "session.timeout.ms",
    "transactional.id",
];

/// Options of the log on a Kafka cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct KafkaOptions {
    /// The brokers as `host:port`, separated by commas.
    pub brokers: String,
    /// The prefix of topic and group names, so that several services can share a cluster; may be empty.
    pub prefix: String,
    /// The number of partitions of each topic, 1 to 1024. An existing topic must have this many, because another number
    /// would move keys to other partitions.
    pub partitions: u32,
    /// The replication factor of topics that are created, at least 1.
    pub replication: u16,
    /// The number of replicas that must have a record before it is acknowledged (`min.insync.replicas`), at most
    /// `replication`. Applies to topics that are created.
    pub min_in_sync: u16,
    /// The time that records stay in topics that are created. It must exceed the longest absence of any reader.
    pub retention: Duration,
    /// The name of this process in its groups (`group.instance.id`). A process that returns under its name within
    /// `session` keeps its partitions without a rebalance. No two processes may have the same name. With `None` every
    /// stop gives the partitions back.
    pub instance: Option<String>,
    /// The time without a heartbeat after which the group reassigns a reader's partitions (`session.timeout.ms`).
    pub session: Duration,
    /// The time without a call of [`Subscription::event`](crate::Subscription::event) after which a reader counts as
    /// dead (`max.poll.interval.ms`); at least `session`.
    pub patience: Duration,
    /// The time limit of an append, and of any other request to the brokers; at least one second. A failing append
    /// returns within twice this time.
    pub delivery: Duration,
    /// The interval of the health check of a waiting reader: positions within the log, arrival of records, unassigned
    /// partitions. At least 100 ms.
    pub watch: Duration,
    /// Properties of librdkafka, such as TLS and SASL settings.
    /// <https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md>
    pub properties: BTreeMap<String, String>,
}

/// Shows the names of the properties, never their values, because some are secret.
impl fmt::Debug for KafkaOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("brokers", &self.brokers)
            .field("prefix", &self.prefix)
            .field("partitions", &self.partitions)
            .field("replication", &self.replication)
            .field("min_in_sync", &self.min_in_sync)
            .field("retention", &self.retention)
            .field("instance", &self.instance)
            .field("session", &self.session)
            .field("patience", &self.patience)
            .field("delivery", &self.delivery)
            .field("watch", &self.watch)
            .field("properties", &self.properties.keys())
            .finish()
    }
}

impl KafkaOptions {
    /// Returns the defaults for the brokers at `brokers`: 8 partitions, 3 replicas of which 2 must be in sync, a week
    /// of retention.
    pub fn new(brokers: &str) -> Self {
        Self {
            brokers: brokers.to_owned(),
            prefix: "sluice.".to_owned(),
            partitions: 8,
            replication: 3,
            min_in_sync: 2,
            retention: Duration::from_hours(7 * 24),
            instance: None,
            session: Duration::from_secs(30),
            patience: Duration::from_mins(5),
            delivery: Duration::from_secs(10),
            watch: Duration::from_secs(10),
            properties: BTreeMap::new(),
        }
    }

    /// Checks the rules that the types do not express.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the option and its rule.
    pub fn check(&self) -> Result<(), Error> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let named = |name: &str| name.len() <= MAX_NAME_BYTES / 2 && name.bytes().all(legal);
        let second = Duration::from_secs(1);
        let most = Duration::from_hours(24);
        let rules = [
            (
                "brokers",
                !self.brokers.trim().is_empty(),
                "must name at least one broker as `host:port`".to_owned(),
            ),
            (
                "prefix",
                named(&self.prefix),
                format!("must be at most {} of a-z, A-Z, 0-9, `.`, `_`, `-`", MAX_NAME_BYTES / 2),
            ),
            (
                "partitions",
                (1..=MAX_PARTITIONS).contains(&self.partitions),
                format!("must be from 1 to {MAX_PARTITIONS}, not {}", self.partitions),
            ),
            (
                "replication",
                (1..=u16::from(u8::MAX)).contains(&self.replication),
                format!("must be from 1 to {}, not {}", u8::MAX, self.replication),
            ),
            (
                "min_in_sync",
                (1..=self.replication).contains(&self.min_in_sync),
                format!("must be from 1 to `replication`, not {}", self.min_in_sync),
            ),
            ("retention", self.retention >= second, "must be at least 1s".to_owned()),
            (
                "instance",
                self.instance
                    .as_deref()
                    .is_none_or(|name| !name.is_empty() && named(name)),
                format!("must be 1 to {} of a-z, A-Z, 0-9, `.`, `_`, `-`", MAX_NAME_BYTES / 2),
            ),
            (
                "session",
                (second..=most).contains(&self.session),
                "must be from 1s to 24h".to_owned(),
            ),
            (
                "patience",
                (self.session..=most).contains(&self.patience),
                "must be from `session` to 24h".to_owned(),
            ),
            (
                "delivery",
                (second..=most).contains(&self.delivery),
                "must be from 1s to 24h".to_owned(),
            ),
            (
                "watch",
                (second / 10..=most).contains(&self.watch),
                "must be from 100ms to 24h".to_owned(),
            ),
        ];
        if let Some((field, _, rule)) = rules.into_iter().find(|(_, kept, _)| !kept) {
            return Err(Error::Invalid { field, rule });
        }
        if let Some(name) = self
            .properties
            .keys()
            .find(|name| RESERVED_PROPERTIES.contains(&name.as_str()))
        {
            return Err(Error::Invalid {
                field: "properties",
                rule: format!(
                    "must not set `{name}`: a guarantee of the log depends on it, or an option of its own sets it"
                ),
            });
        }
        Ok(())
    }

    /// Returns the name of a topic in the cluster.
    pub(super) fn topic(&self, topic: &str) -> String {
        format!("{}{topic}", self.prefix)
    }

    /// Returns the name of the group that reads the topic `name`. Each topic has a group of its own, so a rebalance of
    /// one topic moves no partition of another. No name contains a colon, so no two groups collide.
    pub(super) fn group(name: &str, group: &str) -> String {
        format!("{name}:{group}")
    }

    fn common(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set("client.id", "sluice")
            .set("reconnect.backoff.ms", "50")
            .set("reconnect.backoff.max.ms", "1000")
            .set("socket.keepalive.enable", "true")
            .set("socket.timeout.ms", millis(self.delivery))
            .set("topic.metadata.refresh.interval.ms", "30000");
        // Properties are set before the settings below, which the log depends on and which thus
        // win.
        for (name, value) in &self.properties {
            config.set(name, value);
        }
        config
            .set("bootstrap.servers", &self.brokers)
            .set("allow.auto.create.topics", "false")
            .set("message.max.bytes", BATCH_BYTES.to_string());
        config
    }

    /// Returns settings of a client with the metadata debug log, where librdkafka reports recreated topics.
    fn with_recreation_log(&self) -> ClientConfig {
        let mut config = self.common();
        let debug = match self.properties.get("debug") {
            Some(debug) => format!("{debug},metadata"),
            None => "metadata".to_owned(),
        };
        config.set("debug", debug).set_log_level(RDKafkaLogLevel::Debug);
        config
    }

    /// Returns settings of a client that only sends requests.
    pub(super) fn client(&self) -> ClientConfig {
        self.common()
    }

    pub(super) fn producer(&self) -> ClientConfig {
        let mut config = self.with_recreation_log();
        // Half of the delivery time leaves room for one retry.
        let request = (self.delivery / 2).max(Duration::from_secs(1));
        let defaults = [("linger.ms", "1"), ("compression.type", "lz4")];
        for (name, value) in defaults {
            if !self.properties.contains_key(name) {
                config.set(name, value);
            }
        }
        config
            .set("acks", "all")
            .set("enable.idempotence", "true")
            // With more, a request whose answer is lost counts as stored once a later one is answered, and its offsets
            // stay unknown. Records that come meanwhile go into the next request.
            .set("max.in.flight.requests.per.connection", "1")
            .set("delivery.timeout.ms", millis(self.delivery))
            .set("request.timeout.ms", millis(request))
            .set("queue.buffering.max.messages", "0")
            .set("queue.buffering.max.kbytes", (2 * QUEUE_BYTES / 1024).to_string());
        config
    }

    /// Returns settings of a consumer in `group`, or of one without a group.
    pub(super) fn consumer(&self, group: Option<&str>) -> ClientConfig {
        let mut config = self.with_recreation_log();
        let heartbeat = (self.session / 6).min(Duration::from_secs(3));
        config
            // Only `commit` moves offsets, and only explicit start offsets are used.
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", "error")
            .set("check.crcs", "true")
            .set("fetch.error.backoff.ms", "100")
            .set("fetch.queue.backoff.ms", "20")
            .set("fetch.max.bytes", BATCH_BYTES.to_string())
            .set("queued.max.messages.kbytes", (PREFETCH_BYTES / 1024).to_string())
            .set("partition.assignment.strategy", "cooperative-sticky")
            .set("session.timeout.ms", millis(self.session))
            .set("heartbeat.interval.ms", millis(heartbeat))
            .set("max.poll.interval.ms", millis(self.patience));
        match group {
            Some(group) => {
                config.set("group.id", group);
                if let Some(instance) = &self.instance {
                    config.set("group.instance.id", instance);
                }
            }
            // librdkafka assigns partitions only if `group.id` is set. The consumer never joins
            // this group.
            None => {
                config.set("group.id", format!("{}:recent", self.prefix));
            }
        }
        config
    }
}

fn millis(span: Duration) -> String {
    span.as_millis().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut KafkaOptions)) -> String {
        let mut options = KafkaOptions::new("127.0.0.1:9092");
        options.check().expect("the defaults are good");
        change(&mut options);
        options.check().expect_err("it must be refused").to_string()
    }

    #[test]
    fn an_option_that_breaks_its_rule_is_refused_by_name() {
        assert!(refused(|options| options.brokers.clear()).contains("`brokers`"));
        assert!(refused(|options| options.prefix = "a b".to_owned()).contains("`prefix`"));
        assert!(refused(|options| options.partitions = 0).contains("`partitions`"));
        assert!(refused(|options| options.min_in_sync = 4).contains("`min_in_sync`"));
        assert!(refused(|options| options.instance = Some(String::new())).contains("`instance`"));
        assert!(refused(|options| options.patience = Duration::from_secs(29)).contains("`patience`"));
        assert!(refused(|options| options.delivery = Duration::ZERO).contains("`delivery`"));
        assert!(refused(|options| options.watch = Duration::ZERO).contains("`watch`"));
    }

    #[test]
    fn a_property_that_the_guarantees_rest_on_is_refused_by_name() {
        for name in ["acks", "enable.idempotence", "auto.offset.reset", "enable.auto.commit"] {
            let refused = refused(|options| {
                options.properties.insert(name.to_owned(), "false".to_owned());
            });
            assert!(refused.contains(&format!("`{name}`")), "{refused}");
        }
    }

    #[test]
    fn values_of_properties_are_never_shown() {
        let mut options = KafkaOptions::new("127.0.0.1:9092");
        options
            .properties
            .insert("sasl.password".to_owned(), "swordfish".to_owned());
        let shown = format!("{options:?}");
        assert!(
            shown.contains("sasl.password") && !shown.contains("swordfish"),
            "{shown}"
        );
    }
}
