//! The handle on the database: how to connect, how to read, how to write.
//!
//! Invariant: reads run on their own connections and never wait behind a write; writes go through the one queue of
//! `writer`. Neither waits longer than [`Options::timeout`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sqlx::AnyConnection;

use crate::Error;
use crate::connections::Connections;
use crate::engine::{Engine, Role};
use crate::writer::{Work, Writer};

/// How to use a database.
#[derive(Clone, Debug)]
pub struct Options {
    /// What may be done to the database at the opening.
    pub schema: Schema,
    /// How many reads can run at once; at least 1.
    pub readers: u32,
    /// How many changes can be under way at once where the engine can write so; at least 1. `SQLite` writes one at a
    /// time.
    pub writers: u32,
    /// How many changes may share one commit where the engine writes one at a time; at least 1. A lone change never
    /// waits for company.
    pub group: usize,
    /// The longest that a call takes, waiting included.
    pub timeout: Duration,
    /// How long to wait for what another process is writing; less than `timeout`.
    pub busy_timeout: Duration,
    /// The longest that bringing the schema up to date may take, another process that does so included.
    pub migration_timeout: Duration,
    /// When to submit a waiting contribution again whose outcome does not say.
    pub waiting_retry: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            schema: Schema::Migrated,
            readers: 4,
            writers: 8,
            group: 32,
            timeout: Duration::from_secs(10),
            busy_timeout: Duration::from_secs(5),
            migration_timeout: Duration::from_mins(5),
            waiting_retry: Duration::from_mins(1),
        }
    }
}

/// What a database has when it is open: the tables of this build. On `PostgreSQL` the database itself is made by whoever
/// runs the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// It has them; nothing is changed.
    Current,
    /// It has them, or gets them where it has none.
    Made,
    /// The same, and those of an older build are brought up to this one's: for the service itself, as older processes do
    /// not open the database any more.
    Migrated,
}

/// The metadata database. Clones share its connections.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    readers: Connections,
    writer: Writer,
    options: Options,
}

impl Store {
    /// Connects to the database at `url` and brings its schema up to date.
    ///
    /// `sqlite:///path/to/file`, or with the feature `postgres` `postgres://user:password@host:port/database`; what a URL
    /// cannot hold is percent-encoded. The database may be in use by other processes. Must be called within a Tokio
    /// runtime, which then runs the writers.
    ///
    /// # Errors
    /// [`Error::Scheme`] for an engine that this build lacks, [`Error::Url`] also when the server knows no such user,
    /// password or database, [`Error::Absent`], [`Error::Schema`] when a newer build wrote the database, [`Error::Outdated`],
    /// [`Error::Unavailable`] or [`Error::TimedOut`] when it cannot be opened in time.
    pub async fn connect(url: &str, options: Options) -> Result<Self, Error> {
        let engine = Engine::of(url)?;
        // The writers first: they make the database and its schema.
        let writers = engine.connections(Role::Writer, url, &options)?;
        let readers = engine.connections(Role::Reader, url, &options)?;
        let opening = async {
            let mut first = writers.borrow().await?;
            engine.examine(&mut first).await?;
            Ok::<_, Error>(first)
        };
        let mut first = within(options.timeout, opening).await.map_err(Error::of_connecting)?;
        within(options.migration_timeout, engine.migrate(&mut first, options.schema)).await?;
        first.done();
        let reading = async { Ok(readers.borrow().await?) };
        within(options.timeout, reading).await?.done();
        Ok(Self {
            inner: Arc::new(Inner {
                engine,
                readers,
                writer: Writer::start(engine.writing(&options), writers),
                options,
            }),
        })
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), Error> {
        if self.inner.writer.is_closed() {
            return Err(Error::Closed);
        }
        self.read(async {
            let _one: i64 = sqlx::query_scalar("SELECT CAST(1 AS BIGINT)")
                .fetch_one(self.readers())
                .await?;
            Ok(())
        })
        .await
    }

    /// Lets the changes under way finish, no longer than a call may take, and closes every connection; later calls answer [`Error::Closed`] or
    /// [`Error::Unavailable`].
    pub async fn close(&self) {
        self.inner.writer.close().await;
        self.inner.readers.close().await;
    }

    /// How many transactions this handle and its clones have committed. Changes that came at the same time share one.
    pub fn commits(&self) -> u64 {
        self.inner.writer.commits()
    }

    pub(crate) fn options(&self) -> &Options {
        &self.inner.options
    }

    pub(crate) fn engine(&self) -> Engine {
        self.inner.engine
    }

    pub(crate) fn readers(&self) -> &Connections {
        &self.inner.readers
    }

    /// Runs queries on the [`readers`](Self::readers), within the time that a call may take.
    pub(crate) async fn read<T>(&self, queries: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        within(self.inner.options.timeout, queries).await
    }

    /// Runs `work` in a write transaction and answers after the commit. The work runs also when the caller is gone by
    /// the time it has begun, and not at all when the caller is gone before; it runs again when it lost a race with
    /// another process, or shared a transaction with work that had to be undone, and then only the last run counts. It
    /// must pass on every error of the database: the transaction may be gone with it.
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Clone + Send + 'static,
    {
        within(self.inner.options.timeout, self.inner.writer.write(work)).await
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("engine", &self.inner.engine)
            .field("options", &self.inner.options)
            .finish_non_exhaustive()
    }
}

async fn within<T>(limit: Duration, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(limit, call)
        .await
        .unwrap_or(Err(Error::TimedOut { after: limit }))
}
