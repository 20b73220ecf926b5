//! The service as it outgrows one machine: replicas of the interface and workers, each a process with a folder of its
//! own, on Apache Kafka, `PostgreSQL`, an S3 server and Redis.
//!
//! Invariant: everything that is started here is a real server on loopback, and is ended here.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use api::state::limit::testing::RedisServer;
use eventlog::testing::Broker;
use s3_server::{ACCESS_KEY, BUCKET, SECRET_KEY};
use store::testing::Postgres;
use tempfile::TempDir;

use crate::server::{Options, Server};

/// The parts that every process reaches.
#[derive(Debug)]
pub struct Parts {
    /// The broker.
    pub broker: Broker,
    /// The database.
    pub postgres: Postgres,
    /// The bucket's server.
    pub objects: s3_server::Server,
    /// The cache.
    pub cache: RedisServer,
    database: String,
    binary: PathBuf,
    environment: Vec<(String, String)>,
    folder: TempDir,
}

impl Parts {
    /// Starts them; `None` where one of them is not on this machine, which fails with `CI=true` and is said otherwise.
    pub async fn start(binary: &Path) -> Option<Self> {
        let libraries = Broker::libraries().unwrap()?;
        let postgres = tokio::task::block_in_place(Postgres::start)?;
        let cache = RedisServer::start().await?;
        let folder = tempfile::tempdir().unwrap();
        Some(Self {
            broker: Broker::start(libraries).await.unwrap(),
            database: tokio::task::block_in_place(|| postgres.fresh_database()),
            postgres,
            objects: s3_server::Server::start(&folder.path().join("objects")).unwrap(),
            cache,
            binary: binary.to_owned(),
            environment: Vec::new(),
            folder,
        })
    }

    /// The same, for processes that all have this in their environment.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Display) -> Self {
        self.environment.push((name.to_owned(), value.to_string()));
        self
    }

    /// How a process of this name is started on them.
    pub fn options(&self, name: &str) -> Options {
        let options = Options::new(&self.binary, self.folder.path().join(name))
            .with("SLUICE__DATABASE__URL", &self.database)
            .with("SLUICE__DATABASE__TIMEOUT", "3s")
            .with("SLUICE__LOG__BACKEND", "kafka")
            .with("SLUICE__LOG__BROKERS", self.broker.address())
            .with("SLUICE__LOG__PARTITIONS", 6)
            .with("SLUICE__LOG__REPLICATION", 1)
            .with("SLUICE__LOG__MIN_IN_SYNC", 1)
            .with("SLUICE__LOG__SESSION", "6s")
            .with("SLUICE__LOG__DELIVERY", "3s")
            .with("SLUICE__OBJECTS__BACKEND", "s3")
            .with("SLUICE__OBJECTS__ENDPOINT", self.objects.endpoint())
            .with("SLUICE__OBJECTS__BUCKET", BUCKET)
            .with("SLUICE__OBJECTS__PREFIX", "tables")
            .with("SLUICE__OBJECTS__ACCESS_KEY", ACCESS_KEY)
            .with("SLUICE__OBJECTS__SECRET_KEY", SECRET_KEY)
            .with("SLUICE__OBJECTS__ATTEMPT", "2s")
            .with("SLUICE__CACHE__URL", self.cache.url())
            .with("SLUICE__SWEEPER__FIRST", "3s")
            .with("SLUICE__WORKER__RETRY_MOST", "2s");
        let environment = self.environment.iter();
        environment.fold(options, |options, (name, value)| options.with(name, value))
    }

    /// Starts a replica of the interface.
    pub async fn replica(&self, name: &str) -> Server {
        Server::start(&self.options(name).role("api")).await
    }

    /// Starts a worker.
    pub async fn worker(&self, name: &str) -> Server {
        Server::start(&self.options(name).role("worker")).await
    }

    /// A folder for what a test keeps.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}
