//! Configuration: loaded once, checked, then passed down as values.
//!
//! Invariants:
//! - `default.toml` names every key; a key that it does not name is refused. No type here has a `Default`.
//! - This module is the only reader of the environment; after [`Loaded::load`] nobody reads configuration again.

mod check;
#[cfg(feature = "faults")]
mod faults;
mod home;
mod listen;
mod objects;
mod parts;
mod show;
mod units;

use std::fmt;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};

use config::{ConfigError, Environment, File, FileFormat};
use serde::Deserialize;
use serde_json::Value;

#[cfg(feature = "faults")]
pub use faults::Faults;
pub use home::{data_home, state_home};
pub use listen::{Listen, ListenError};
pub use objects::{Backend, Objects};
pub use units::{Size, Span, UnitError};

/// Every key with its default and a comment.
const DEFAULTS: &str = include_str!("../default.toml");
/// What the names of environment variables begin with, and what divides their parts.
const PREFIX: &str = "SLUICE";
const SEPARATOR: &str = "__";

/// The whole configuration; each field is a section of the file.
#[derive(Clone, Debug, Deserialize)]
pub struct Config {
    /// The HTTP server.
    pub server: Server,
    /// What is kept.
    pub data: Data,
    /// The metadata database.
    pub database: Database,
    /// Where tables are kept.
    pub objects: Objects,
    /// The time.
    pub clock: Clock,
    /// What is logged.
    pub telemetry: Telemetry,
    /// The terms of service.
    pub terms: Terms,
    /// Who may sign up.
    pub signup: Signup,
    /// The limits of the interface.
    pub limits: Limits,
    /// The event log.
    pub log: Log,
    /// The processes that queries run in.
    pub sql: Sql,
    /// The worker.
    pub worker: Worker,
    /// The cache that replicas share.
    pub cache: Cache,
    /// The compaction of tables.
    pub compaction: Compaction,
    /// The sweeper of open contributions.
    pub sweeper: Sweeper,
}

/// The HTTP server.
#[derive(Clone, Debug, Deserialize)]
pub struct Server {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The address callers use; empty for the one listened on.
    pub public_url: String,
    /// How many proxies stand before the service.
    pub trusted_proxies: u8,
    /// How long a peer may take to send the head of a request.
    pub header_timeout: Span,
    /// How many connections are served at a time.
    pub connections: NonZeroUsize,
    /// How long running requests may take to end when the service stops.
    pub drain_timeout: Span,
    /// How long the service still serves once it says that it is to be left alone.
    pub drain_notice: Span,
}

/// What is kept.
#[derive(Clone, Debug, Deserialize)]
pub struct Data {
    /// The folder of everything the service keeps.
    pub dir: PathBuf,
    /// How much of the disk stays free.
    pub reserve: Size,
}

/// The metadata database.
#[derive(Clone, Deserialize)]
pub struct Database {
    /// Its URL, with its password; empty for a file in the data folder.
    pub url: String,
    /// How many reads run at once.
    pub readers: NonZeroU32,
    /// How many changes run at once where the database can.
    pub writers: NonZeroU32,
    /// The longest that a call may take.
    pub timeout: Span,
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

/// The time.
#[derive(Clone, Debug, Deserialize)]
pub struct Clock {
    /// How far the service's clock runs ahead.
    pub offset: Span,
}

/// What is logged.
#[derive(Clone, Debug, Deserialize)]
pub struct Telemetry {
    /// A level or directives.
    pub filter: String,
    /// How a line looks.
    pub format: Format,
    /// Where measures are fetched.
    pub metrics: Listen,
    /// Address of the collector of traces; empty for none.
    pub traces: String,
    /// Level or directives for the spans that are sent there.
    pub trace_filter: String,
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object.
    Json,
}

/// The terms of service.
#[derive(Clone, Debug, Deserialize)]
pub struct Terms {
    /// The version in force.
    pub version: String,
    /// Where they are; empty for a page of the service.
    pub url: String,
}

/// Who may sign up.
#[derive(Clone, Debug, Deserialize)]
pub struct Signup {
    /// Whether anyone may.
    pub open: bool,
}

/// The limits of the interface.
#[derive(Clone, Debug, Deserialize)]
pub struct Limits {
    /// API calls of one address in a minute.
    pub calls_per_ip_per_minute: NonZeroU32,
    /// Registrations of agents by one address in an hour.
    pub agent_registrations_per_ip_per_hour: u32,
    /// Agents of one operator.
    pub agents_per_operator: u32,
    /// Projects of one operator that are not archived.
    pub active_projects_per_operator: u32,
    /// Contributions of one operator to public datasets in a UTC day.
    pub public_contributions_per_day: u32,
    /// Contributions without an outcome beyond which none is acknowledged.
    pub open_contributions: u64,
    /// Bytes of them beyond which none is acknowledged.
    pub open_bytes: Size,
    /// Records of one contribution.
    pub records_per_contribution: NonZeroU32,
    /// The largest body of a contribution or a dry run.
    pub contribution_body: Size,
    /// The largest body of any other call.
    pub body: Size,
    /// The bodies of one operator that are in memory at once.
    pub bodies_per_operator: Size,
    /// All bodies that are in memory at once.
    pub bodies: Size,
    /// The time-out of a body; every 16 KiB that arrive extend it by a second.
    pub body_patience: Span,
    /// The longest `wait` for an outcome.
    pub wait: Span,
    /// How long an idempotency key replays its first answer.
    pub idempotency_window: Span,
    /// How long after a change of its price a project's price stays.
    pub price_change_window: Span,
    /// Records of one page of data at most.
    pub page_records: NonZeroU32,
    /// Records of one page of data where the caller does not say.
    pub default_page_records: NonZeroU32,
    /// Records of one page of a diff at most.
    pub diff_records: NonZeroU32,
    /// Records of one page of a diff where the caller does not say.
    pub default_diff_records: NonZeroU32,
    /// Characters of a query's statement.
    pub query_characters: NonZeroU32,
    /// Rows of the answer to a query at most.
    pub query_rows: NonZeroU32,
    /// Rows of the answer to a query where the caller does not say.
    pub default_query_rows: NonZeroU32,
    /// How long a query may take.
    pub query_timeout: Span,
    /// The largest version that can be queried.
    pub query_version: Size,
    /// How long the addresses of parts are good.
    pub part_urls: Span,
    /// The largest upload.
    pub upload: Size,
    /// How long an upload may take to be completed.
    pub upload_window: Span,
    /// Uploads of one operator that are open.
    pub open_uploads: u32,
    /// What the datasets and uploads of one operator may take.
    pub storage_per_operator: Size,
}

/// The processes that queries run in.
#[derive(Clone, Debug, Deserialize)]
pub struct Sql {
    /// How many are kept ready.
    pub standby: usize,
    /// How many queries run at once.
    pub at_once: NonZeroUsize,
    /// How many threads run one query.
    pub threads: NonZeroUsize,
    /// The address space of one process.
    pub memory: Size,
}

/// The event log.
#[derive(Clone, Deserialize)]
pub struct Log {
    /// Where messages are kept.
    pub backend: LogBackend,
    /// The partitions of each topic.
    pub partitions: NonZeroU32,
    /// Embedded: how many records per partition stay after every reader has done them; of
    /// contributions none but up to 63.
    pub retain: u64,
    /// Kafka, with all that follows: where the brokers are.
    pub brokers: String,
    /// What the names of topics and groups begin with.
    pub prefix: String,
    /// The copies of each partition.
    pub replication: u16,
    /// How many copies must have a record before it is acknowledged.
    pub min_in_sync: u16,
    /// How long records stay.
    pub retention: Span,
    /// The name of this process in its groups; empty for none.
    pub instance: String,
    /// After how long without a sign of life a process loses its partitions.
    pub session: Span,
    /// After how long without reading on it does.
    pub patience: Span,
    /// How long an append is tried.
    pub delivery: Span,
    /// Properties of librdkafka; secret.
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

/// Where messages are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogBackend {
    /// In the data directory.
    Embedded,
    /// On a Kafka cluster.
    Kafka,
}

/// The worker.
#[derive(Clone, Debug, Deserialize)]
pub struct Worker {
    /// How many submissions of a dataset are judged ahead.
    pub judged_ahead: NonZeroUsize,
    /// The most bytes that one dataset may have queued in memory.
    pub dataset_queue: Size,
    /// The most bytes that all datasets together may have queued in memory.
    pub queue: Size,
    /// After how long without work a dataset's table is closed.
    pub idle: Span,
    /// The first wait after a failure.
    pub retry_first: Span,
    /// The longest wait after a failure.
    pub retry_most: Span,
    /// How long a stopping worker lets its datasets end what they have begun.
    pub grace: Span,
    /// How long everything else waits for what may have ended the process before.
    pub alone: Span,
    /// How many processes may end with a submission alone in work before it becomes a dead letter; 0 for any number.
    pub ends: usize,
}

/// The cache that replicas share.
#[derive(Clone, Deserialize)]
pub struct Cache {
    /// Its address, with its password; empty for none.
    pub url: String,
    /// How long a call may wait for it.
    pub timeout: Span,
}

/// Why by hand: the address may have a password.
impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// The compaction of tables.
#[derive(Clone, Debug, Deserialize)]
pub struct Compaction {
    /// Whether there is any.
    pub enabled: bool,
    /// How many adjacent parts become one.
    pub fan_in: NonZeroUsize,
    /// The largest part that is made so.
    pub target: Size,
}

/// The sweeper of open contributions.
#[derive(Clone, Debug, Deserialize)]
pub struct Sweeper {
    /// How often contributions that are due are looked for.
    pub every: Span,
    /// How long a contribution may be open before it is appended again for the first time.
    pub first: Span,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A source cannot be read, or a value has the wrong type.
    #[error("the configuration is not valid")]
    Invalid(#[from] ConfigError),
    /// A source has a key that does not exist.
    #[error("`{key}` is not a key of the configuration; `sluice config --show` lists them all")]
    UnknownKey {
        /// The key, with its section.
        key: String,
    },
    /// A duration is finer than what it measures.
    #[error("`{key}` must be a whole number of {unit}, at least one")]
    Fraction {
        /// The key, with its section.
        key: &'static str,
        /// What it is counted in.
        unit: &'static str,
    },
    /// A time is too short to do anything in.
    #[error("`{key}` must be at least one millisecond")]
    Instant {
        /// The key, with its section.
        key: &'static str,
    },
    /// A number is too small for what it is about.
    #[error("`{key}` must be at least {least}")]
    TooSmall {
        /// The key, with its section.
        key: &'static str,
        /// The least that works.
        least: &'static str,
    },
    /// A value is more than the parts of the service can have.
    #[error("`{key}` must be at most {most}")]
    TooLarge {
        /// The key, with its section.
        key: &'static str,
        /// The most that works.
        most: String,
    },
    /// A default is more than what it is a default for may be.
    #[error("`{key}` must not be more than `{most}`")]
    Beyond {
        /// The key, with its section.
        key: &'static str,
        /// The key of the most.
        most: &'static str,
    },
    /// Something that is no address of a service.
    #[error("`{key}` must begin with http:// or https:// and a host, and have no query")]
    Address {
        /// The key, with its section.
        key: &'static str,
    },
    /// What a crash test asks for does not exist.
    #[cfg(feature = "faults")]
    #[error("{0}")]
    Fault(String),
}

/// A configuration with what it was made of.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// What a crash test asks for.
    #[cfg(feature = "faults")]
    pub faults: Faults,
    merged: Value,
}

impl Loaded {
    /// Merges the defaults, the file, the environment and the flags, in this order.
    ///
    /// Flags are keys with their section, such as `server.listen`.
    pub fn load(file: Option<&Path>, flags: &[(&str, String)]) -> Result<Self, Error> {
        Self::merge(file, environment(), flags)
    }

    fn merge(file: Option<&Path>, environment: Environment, flags: &[(&str, String)]) -> Result<Self, Error> {
        let defaults = || config::Config::builder().add_source(File::from_str(DEFAULTS, FileFormat::Toml));
        let mut builder = defaults();
        if let Some(file) = file {
            builder = builder.add_source(File::new(&file.to_string_lossy(), FileFormat::Toml));
        }
        builder = builder.add_source(environment);
        for (key, value) in flags {
            builder = builder.set_override(key, value.as_str())?;
        }
        let merged = builder.build()?;
        let values: Value = merged.clone().try_deserialize()?;
        let known: Value = defaults().build()?.try_deserialize()?;
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
        })
    }

    /// The configuration as a commented TOML file, secrets masked.
    pub fn show(&self) -> String {
        show::show(DEFAULTS, &self.merged)
    }
}

fn environment() -> Environment {
    Environment::with_prefix(PREFIX)
        .prefix_separator(SEPARATOR)
        .separator(SEPARATOR)
}

/// The first key of `values` that `known` does not have.
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
