//! Configuration: loaded once, checked, then passed down as values.
//!
//! Invariants:
//! - `default.toml` names every key. Any other key is refused. No type here has a `Default`.
//! - This module is the only reader of the environment. After [`LoadedConfig::load`] nothing reads configuration again.

mod check;
mod collectors;
mod convert;
mod error;
#[cfg(feature = "faults")]
mod faults;
mod home;
mod listen;
mod mail;
mod models;
mod objects;
mod pay;
mod show;

use std::fmt;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};

use config::{Environment, File, FileFormat};
use serde::Deserialize;
use serde_json::Value;
use types::{HumanDuration, Size};

pub use self::collectors::Collectors;
pub use self::models::Models;
pub use self::pay::Pay;
pub use error::Error;
#[cfg(feature = "faults")]
pub use faults::Faults;
pub use home::{config_home, data_home, has_cursor, has_key_of_environment, is_key_of_environment, state_home};
pub use listen::{Listen, ListenError};
pub use mail::{Mail, MailBackend, MailSecurity};
pub use objects::{Backend, Objects};

/// Every key with its default and a comment.
const DEFAULT_CONFIG: &str = include_str!("../default.toml");
/// First part of the names of environment variables, and the separator of their parts.
const ENVIRONMENT_PREFIX: &str = "SLUICE";
const ENVIRONMENT_SEPARATOR: &str = "__";

/// The whole configuration. Each field is a section of the file.
#[derive(Clone, Debug, Deserialize)]
pub struct Config {
    /// Settings of the HTTP server.
    pub server: Server,
    /// Settings of the data folder.
    pub data: Data,
    /// Settings of the metadata database.
    pub database: Database,
    /// Settings of the store of the tables.
    pub objects: Objects,
    /// Settings of the service's clock.
    pub clock: Clock,
    /// Settings of the log, the metrics and the traces.
    pub telemetry: Telemetry,
    /// Version and address of the terms of service.
    pub terms: Terms,
    /// Settings of the registration of operators.
    pub signup: Signup,
    /// Settings of the delivery of letters.
    pub mail: Mail,
    /// Settings of requests to servers that strangers name.
    pub outbound: Outbound,
    /// Limits that the API enforces.
    pub limits: api::Limits,
    /// Prices, the platform's fee and the money that they are in.
    pub pay: Pay,
    /// The provider of models.
    pub models: Models,
    /// Settings of the event log.
    pub log: Log,
    /// Settings of the messages that are written to the event log.
    pub messages: Messages,
    /// Settings of the processes that run queries.
    pub sql: Sql,
    /// Settings of the collectors.
    pub collectors: Collectors,
    /// Settings of the worker.
    pub worker: Worker,
    /// Settings of the cache that replicas share.
    pub cache: Cache,
    /// Settings of the compaction of tables.
    pub compaction: Compaction,
    /// Settings of the building of profiles.
    pub profiles: api::state::profiling::ProfileConfig,
    /// Settings of the sweeper of open contributions.
    pub sweeper: api::state::sweeper_config::SweeperConfig,
}

/// Section `server`: the HTTP server.
#[derive(Clone, Debug, Deserialize)]
pub struct Server {
    /// The address and port to listen on. Port 0 takes a free one.
    pub listen: SocketAddr,
    /// The address that callers use. Empty means the address listened on.
    pub public_url: String,
    /// The number of proxies in front of the service, which selects the entry of `X-Forwarded-For`. 0 ignores the
    /// header.
    pub trusted_proxies: u8,
    /// The time-out for the first head of a connection.
    pub header_timeout: HumanDuration,
    /// The time-out of a connection between two requests, with the head of the second.
    pub idle_timeout: HumanDuration,
    /// The most connections that are served at a time, at most half of the open files. More wait in the queue of the
    /// operating system.
    pub connections: NonZeroUsize,
    /// The most connections of one address; behind proxies the most requests under way of one client. 0 for any number.
    pub connections_per_address: usize,
    /// The time that running requests have to end when the service stops.
    pub drain_timeout: HumanDuration,
    /// The time that a stopping service still serves requests while `/drainz` answers 503.
    pub drain_notice: HumanDuration,
}

/// Section `data`: the data folder.
#[derive(Clone, Debug, Deserialize)]
pub struct Data {
    /// The folder of everything that the service keeps.
    pub dir: PathBuf,
    /// The disk space that stays free. With less, contributions and upload parts are refused with 503. 0 checks
    /// nothing.
    pub reserve: Size,
}

/// Section `database`: the metadata database.
#[derive(Clone, Deserialize)]
pub struct Database {
    /// The URL with its password. Empty means a file in the data folder.
    pub url: String,
    /// The number of connections for reads.
    pub readers: NonZeroU32,
    /// The number of connections for writes. It applies to `PostgreSQL` only.
    pub writers: NonZeroU32,
    /// The longest that a call may wait for the database.
    pub timeout: HumanDuration,
}

/// Shows everything but the URL.
impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("readers", &self.readers)
            .field("writers", &self.writers)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Section `clock`: the service's clock.
#[derive(Clone, Debug, Deserialize)]
pub struct Clock {
    /// The time that the service's clock is ahead of the system's.
    pub offset: HumanDuration,
}

/// Section `telemetry`: log, metrics and traces.
#[derive(Clone, Debug, Deserialize)]
pub struct Telemetry {
    /// The level or directives for the log.
    pub filter: String,
    /// The format of the log's lines.
    pub format: Format,
    /// The address and port where Prometheus fetches metrics. Empty means that nothing is measured.
    pub metrics: Listen,
    /// Address of the collector of traces; empty for none.
    pub traces: String,
    /// The level or directives for the spans that are sent to the collector.
    pub trace_filter: String,
}

/// The format of the log's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Text for people, with colours on a terminal.
    Text,
    /// One JSON object per line.
    Json,
}

/// Section `terms`: the terms of service.
#[derive(Clone, Debug, Deserialize)]
pub struct Terms {
    /// The version in force, which new operators accept.
    pub version: String,
    /// The address of the terms. Empty means a page of the service.
    pub url: String,
}

/// Section `signup`: the registration of operators.
#[derive(Clone, Debug, Deserialize)]
pub struct Signup {
    /// True if anyone may sign up. Otherwise operators need an invitation.
    pub open: bool,
}

/// Section `outbound`: requests to servers that strangers name.
#[derive(Clone, Debug, Deserialize)]
pub struct Outbound {
    /// True if addresses that are not public, `http` and every port are permitted, for tests and development.
    pub allow_private: bool,
}

/// Section `sql`: the processes that run queries.
#[derive(Clone, Debug, Deserialize)]
pub struct Sql {
    /// The number of idle processes that are kept ready.
    pub standby: usize,
    /// The most queries that run at once. More wait, within their own time-out.
    pub at_once: NonZeroUsize,
    /// The threads that run one query.
    pub threads: NonZeroUsize,
    /// The most address space of one process.
    pub memory: Size,
}

/// Section `log`: the event log.
#[derive(Clone, Deserialize)]
pub struct Log {
    /// The backend that keeps messages.
    pub backend: LogBackend,
    /// The partitions of each topic. The number is fixed once the log exists.
    pub partitions: NonZeroU32,
    /// Embedded: the number of records per partition that stay after every reader is done with them. The topic of
    /// contributions keeps at most 63 of them.
    pub retain: u64,
    /// Kafka: the brokers as `host:port`, separated by commas. All fields that follow apply to Kafka only.
    pub brokers: String,
    /// First part of the names of topics and groups.
    pub prefix: String,
    /// The number of copies of each partition, for topics that are created.
    pub replication: u16,
    /// The number of copies that must have a record before it is acknowledged, for topics that are created.
    pub min_in_sync: u16,
    /// The retention time of records, for topics that are created.
    pub retention: HumanDuration,
    /// The name of this process in its groups, under which it keeps its partitions over a short restart. Empty means
    /// none.
    pub instance: String,
    /// The time without a heartbeat after which a process loses its partitions.
    pub session: HumanDuration,
    /// The time without a poll after which a process loses its partitions.
    pub patience: HumanDuration,
    /// The time for which an append is retried.
    pub delivery: HumanDuration,
    /// Properties of librdkafka as `name=value`, separated by `;` or line ends. They are secret.
    pub properties: String,
}

/// Shows everything but the properties, some of which are secret.
impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("backend", &self.backend)
            .field("partitions", &self.partitions)
            .field("brokers", &self.brokers)
            .finish_non_exhaustive()
    }
}

/// Backend of the event log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogBackend {
    /// Files in the data folder, for one process.
    Embedded,
    /// Topics on a Kafka cluster, for many processes.
    Kafka,
}

/// Section `messages`: the messages that are written to the event log.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Messages {
    /// The latest format of submissions that is written. 0 takes the latest if no other process reads the log, else 1.
    pub write_format: u32,
}

/// Section `worker`: the worker.
#[derive(Clone, Debug, Deserialize)]
pub struct Worker {
    /// The most submissions of a dataset that are judged ahead of the one being committed.
    pub judged_ahead: NonZeroUsize,
    /// The most bytes that one dataset may have queued in memory.
    pub dataset_queue: Size,
    /// The most bytes that all datasets together may have queued in memory.
    pub queue: Size,
    /// The time without work after which the table of a dataset is closed.
    pub idle: HumanDuration,
    /// The wait after the first failure. It doubles up to `retry_most`.
    pub retry_first: HumanDuration,
    /// The longest wait between two tries.
    pub retry_most: HumanDuration,
    /// The time that a stopping worker gives its table writers to finish.
    pub grace: HumanDuration,
    /// The time that the trial of a message may take. A large upload may take longer.
    pub isolation_timeout: HumanDuration,
    /// The number of processes of trials that a message has ended when it becomes a dead letter, at least 2. 0 tries
    /// nothing out.
    pub max_strikes: usize,
}

/// Section `cache`: the cache that replicas share.
#[derive(Clone, Deserialize)]
pub struct Cache {
    /// The address with its password. Empty means no cache.
    pub url: String,
    /// The longest that a call may wait for the cache.
    pub timeout: HumanDuration,
}

/// Shows everything but the address, which may contain a password.
impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Section `compaction`: the compaction of tables.
#[derive(Clone, Debug, Deserialize)]
pub struct Compaction {
    /// True if tables are compacted.
    pub enabled: bool,
    /// The number of adjacent parts that become one, at least 2.
    pub fan_in: NonZeroUsize,
    /// The most bytes of a compacted part.
    pub target: Size,
}

/// Keys that were renamed: section, old name, new name. The old names are removed with the next release.
const RENAMED_KEYS: [(&str, &str, &str); 2] = [
    ("worker", "alone", "isolation_timeout"),
    ("worker", "ends", "max_strikes"),
];

/// A configuration, with the merged values that it was read from.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    /// The values as typed sections.
    pub config: Config,
    /// The faults that the environment asks for.
    #[cfg(feature = "faults")]
    pub faults: Faults,
    merged: Value,
    /// Keys that were given by an old name, with their new names.
    renamed: Vec<(&'static str, &'static str)>,
}

impl LoadedConfig {
    /// Merges the defaults, the file, the environment and the flags, in this order.
    ///
    /// Flags are keys with their section, such as `server.listen`.
    pub fn load(file: Option<&Path>, flags: &[(&str, String)]) -> Result<Self, Error> {
        // The environment is an argument, so that tests do not change that of the process.
        Self::merge(file, environment(), flags)
    }

    fn merge(file: Option<&Path>, environment: Environment, flags: &[(&str, String)]) -> Result<Self, Error> {
        let defaults = || config::Config::builder().add_source(File::from_str(DEFAULT_CONFIG, FileFormat::Toml));
        let mut builder = defaults();
        if let Some(file) = file {
            builder = builder.add_source(File::new(&file.to_string_lossy(), FileFormat::Toml));
        }
        builder = builder.add_source(environment);
        // The defaults name every key, so a key outside of them is a mistake.
        let known: Value = defaults().build()?.try_deserialize()?;
        let given = builder.build_cloned()?;
        let mut values: Value = given.clone().try_deserialize()?;
        let mut renamed = Vec::new();
        for (section, old, new) in RENAMED_KEYS {
            if take(&mut values, section, old).is_none() {
                continue;
            }
            renamed.push((old, new));
            // A value that is given by the new name wins.
            if values[section][new] == known[section][new] {
                let value: config::Value = given.get(&format!("{section}.{old}"))?;
                builder = builder.set_override(format!("{section}.{new}"), value)?;
            }
        }
        for (key, value) in flags {
            // Flags are set last, so they win over every source.
            builder = builder.set_override(key, value.as_str())?;
        }
        let merged = builder.build()?;
        let mut values: Value = merged.clone().try_deserialize()?;
        for (section, old, _) in RENAMED_KEYS {
            take(&mut values, section, old);
        }
        // Serde would ignore a misspelt key, and the service would run with the default in its place.
        if let Some(key) = unknown_key(&values, &known) {
            return Err(Error::UnknownKey { key });
        }
        let config: Config = merged.try_deserialize()?;
        config.check()?;
        Ok(Self {
            config,
            #[cfg(feature = "faults")]
            faults: Faults::read()?,
            merged: values,
            renamed,
        })
    }

    /// Logs a warning for each key that was given by an old name.
    pub fn warn_of_renamed(&self) {
        for (old, new) in &self.renamed {
            tracing::warn!(
                old,
                new,
                "a key of the configuration has another name now; the old one works for one release"
            );
        }
    }

    /// Returns the configuration as a commented TOML file with masked secrets.
    pub fn show(&self) -> String {
        show::show(DEFAULT_CONFIG, &self.merged)
    }

    /// Returns the configuration as one JSON object with a member for each section, with masked secrets.
    pub fn show_json(&self) -> Value {
        show::json(&self.show())
    }
}

/// Removes a key from a section and returns its value.
fn take(values: &mut Value, section: &str, key: &str) -> Option<Value> {
    values.get_mut(section)?.as_object_mut()?.remove(key)
}

fn environment() -> Environment {
    Environment::with_prefix(ENVIRONMENT_PREFIX)
        .prefix_separator(ENVIRONMENT_SEPARATOR)
        .separator(ENVIRONMENT_SEPARATOR)
}

/// Returns the first key of `values` that `known` does not have, with its section.
fn unknown_key(values: &Value, known: &Value) -> Option<String> {
    let (Value::Object(values), Value::Object(known)) = (values, known) else {
        return None;
    };
    values.iter().find_map(|(key, value)| match known.get(key) {
        None => Some(key.clone()),
        Some(known) => unknown_key(value, known).map(|rest| format!("{key}.{rest}")),
    })
}

#[cfg(test)]
mod tests;
