//! The handle on the database: how to connect, how to read, how to write.
//!
//! Invariant: reads run on their own connections and never wait behind a write; writes go through the one queue of
//! `writer`. Neither waits longer than [`Options::timeout`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sqlx::{AnyConnection, AnyPool};

use crate::Error;
use crate::engine::{Engine, Role};
use crate::writer::{Work, Writer};

/// How to use a database.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether to make the database when it does not exist.
    pub create: bool,
    /// How many reads can run at once; at least 1.
    pub readers: u32,
    /// How many changes may share one commit; at least 1. A lone change never waits for company.
    pub group: usize,
    /// The longest that a call takes, waiting included.
    pub timeout: Duration,
    /// How long to wait for another process that is writing; less than `timeout`.
    pub busy_timeout: Duration,
    /// When to submit a waiting contribution again whose outcome does not say.
    pub waiting_retry: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create: true,
            readers: 4,
            group: 32,
            timeout: Duration::from_secs(10),
            busy_timeout: Duration::from_secs(5),
            waiting_retry: Duration::from_mins(1),
        }
    }
}

/// The metadata database. Clones share its connections.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    readers: AnyPool,
    writer: Writer,
    options: Options,
}

impl Store {
    /// Connects to the database at `url` and brings its schema up to date.
    ///
    /// `sqlite:///path/to/file` is the one form so far; characters that a URL cannot hold are percent-encoded. The file
    /// may be in use by other processes. Must be called within a Tokio runtime, which then runs the writer.
    ///
    /// # Errors
    /// [`Error::Scheme`] for an engine that this build lacks, [`Error::Url`], [`Error::Schema`] when a newer build
    /// wrote the database, [`Error::Unavailable`] when it cannot be opened in time.
    pub async fn connect(url: &str, options: Options) -> Result<Self, Error> {
        let engine = Engine::of(url)?;
        let opening = async {
            // The writer first: it makes the file and its schema.
            let writers = engine.pool(Role::Writer, url, &options).await?;
            engine.migrate(&mut *writers.acquire().await?).await?;
            let readers = engine.pool(Role::Reader, url, &options).await?;
            Ok::<_, Error>((writers, readers))
        };
        let (writers, readers) = within(options.timeout, opening).await?;
        Ok(Self {
            inner: Arc::new(Inner {
                engine,
                readers,
                writer: Writer::start(engine, writers, options.group),
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

    /// Finishes the changes under way and closes every connection; later calls answer [`Error::Closed`] or
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

    pub(crate) fn readers(&self) -> &AnyPool {
        &self.inner.readers
    }

    /// Runs queries on the [`readers`](Self::readers), within the time that a call may take.
    pub(crate) async fn read<T>(&self, queries: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        within(self.inner.options.timeout, queries).await
    }

    /// Runs `work` in a write transaction and answers after the commit. The work runs also when the caller is gone by
    /// the time it has begun, and not at all when the caller is gone before.
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Send + 'static,
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
