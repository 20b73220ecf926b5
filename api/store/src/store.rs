//! The handle of the database: connecting, reading, writing.
//!
//! Invariant: reads run on their own connections and never wait behind a write; writes go through the one queue of
//! `writer`. Neither takes longer than [`Options::timeout`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sqlx::AnyConnection;
use tracing::Instrument as _;
use types::{AgentId, DatasetId};

use crate::Error;
use crate::audit::{self, AuditEntry};
use crate::call_keys::{self, CallKey};
use crate::connections::Connections;
use crate::engine::{Engine, Role};
use crate::stamps::{Stamp, Stamps, Touched};
use crate::writer::{Change, Work, Writer};

/// Options of a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The changes to the schema that are allowed when opening.
    pub schema: Schema,
    /// The number of concurrent reads; at least 1.
    pub readers: u32,
    /// The number of concurrent changes, on engines that allow more than one; at least 1. `SQLite` writes one at a
    /// time.
    pub writers: u32,
    /// The most changes that share one commit, on engines that write one at a time; at least 1. A lone change never
    /// waits for others.
    pub group: usize,
    /// The longest that a call takes, waiting included.
    pub timeout: Duration,
    /// The longest wait for the write of another process; less than `timeout`.
    pub busy_timeout: Duration,
    /// The longest time of a migration, including the wait for another process that migrates.
    pub migration_timeout: Duration,
    /// The time until a waiting contribution is submitted again if its outcome does not say when.
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

/// The required state of the schema. On `PostgreSQL` the administrator of the server creates the database itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// The tables of this build exist; nothing is changed.
    Current,
    /// The tables of this build exist, or are created in an empty database.
    Made,
    /// As `Made`, and the tables of an older build are migrated. For the service itself, because older processes cannot
    /// open the database afterwards.
    Migrated,
}

/// The metadata database. Clones share its connections.
#[derive(Clone)]
pub struct Store {
    inner: Arc<StoreState>,
    /// Row that the changes of this handle leave in the audit trail.
    audit: Option<Arc<AuditEntry>>,
    /// Idempotency key of the call that this handle serves.
    key: Option<Arc<CallKey>>,
}

struct StoreState {
    engine: Engine,
    readers: Connections,
    writer: Writer,
    options: Options,
    stamps: Arc<Stamps>,
}

impl Store {
    /// Connects to the database at `url` and brings its schema to the state of `options.schema`.
    ///
    /// `sqlite:///path/to/file`, or with the feature `postgres` `postgres://user:password@host:port/database`;
    /// characters that a URL cannot contain are percent-encoded. The database may be in use by other processes. Must be
    /// called within a Tokio runtime, which then runs the writers.
    ///
    /// # Errors
    /// [`Error::Scheme`] for an engine that this build lacks, [`Error::Url`] also for a wrong user, password or
    /// database, [`Error::Untrusted`], [`Error::Absent`], [`Error::Schema`] if a newer build wrote the database,
    /// [`Error::Outdated`], [`Error::Unavailable`] or [`Error::TimedOut`] if it cannot be opened in time.
    pub async fn connect(url: &str, options: Options) -> Result<Self, Error> {
        let engine = Engine::of(url)?;
        // Writers come first, because they create the database and its schema.
        let writers = engine.connections(Role::Writer, url, &options)?;
        let readers = engine.connections(Role::Reader, url, &options)?;
        let opening = async {
            let mut first = writers.borrow().await?;
            engine.examine(&mut first).await?;
            Ok::<_, Error>(first)
        };
        // The first connection shows whether the URL is right, before anything is changed.
        let mut first = within(options.timeout, opening).await.map_err(Error::of_connecting)?;
        within(options.migration_timeout, engine.migrate(&mut first, &options)).await?;
        // The connection is sound and serves the first change.
        first.done();
        // A reader is opened now, so that a failure shows here and not at the first read.
        let reading = async { Ok(readers.borrow().await?) };
        within(options.timeout, reading).await?.done();
        Ok(Self {
            inner: Arc::new(StoreState {
                engine,
                readers,
                writer: Writer::start(engine.writing(&options), writers),
                options,
                stamps: Arc::default(),
            }),
            audit: None,
            key: None,
        })
    }

    /// Returns a handle whose changes leave `entry` in the audit trail, in the transaction of the first of them. A
    /// change that is undone leaves nothing.
    #[must_use]
    pub fn audited(&self, entry: AuditEntry) -> Self {
        Self {
            audit: Some(Arc::new(entry)),
            ..self.clone()
        }
    }

    /// Returns a handle whose row in the trail also names the agent that a person acts as.
    #[must_use]
    pub fn acting_as(&self, agent: AgentId) -> Self {
        let named = |entry: &Arc<AuditEntry>| {
            Arc::new(AuditEntry {
                actor: Some(agent.to_string()),
                ..AuditEntry::clone(entry)
            })
        };
        Self {
            audit: self.audit.as_ref().map(named),
            ..self.clone()
        }
    }

    /// Returns a handle that makes one thing for a call with this idempotency key: the methods that make something
    /// return [`Error::Repeated`] if an earlier call used the key, and change nothing then.
    #[must_use]
    pub fn keyed(&self, key: CallKey) -> Self {
        Self {
            key: Some(Arc::new(key)),
            ..self.clone()
        }
    }

    /// Returns an error if the database does not answer.
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

    /// Closes the store: waits for changes in progress, no longer than a call may take, and closes every connection.
    /// Later calls return [`Error::Closed`] or [`Error::Unavailable`].
    pub async fn close(&self) {
        self.inner.writer.close().await;
        self.inner.readers.close().await;
    }

    /// Returns the number of transactions that this handle and its clones have committed. Concurrent changes share one.
    pub fn commits(&self) -> u64 {
        self.inner.writer.commits()
    }

    /// Returns the number of changes by this handle and its clones to rows that callers may remember.
    pub fn changes(&self) -> u64 {
        self.inner.stamps.changes()
    }

    /// Returns the stamp of a project and its versions, or, without a project, of the rows that belong to none.
    ///
    /// What was read is up to date, as far as this process knows, if [`Self::changes`] was the same before the read and
    /// after the stamp was taken, and the stamp is still the same.
    pub fn stamp(&self, project: Option<DatasetId>) -> Stamp {
        self.inner.stamps.of(project)
    }

    /// Notes that another process has changed a project, so that nobody here relies on what it remembers of it.
    pub fn touch(&self, project: DatasetId) {
        self.inner.stamps.count(&Touched::Projects(vec![project]));
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

    /// Runs queries on the [`readers`](Self::readers), within the time limit of a call.
    pub(crate) async fn read<T>(&self, queries: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let reading = within(self.inner.options.timeout, queries);
        reading.instrument(tracing::debug_span!("read database")).await
    }

    /// Runs `work` in a write transaction and returns after the commit. Callers then remember nothing from before.
    ///
    /// The work is skipped if the caller gave up before it begins, and completes if the caller gives up later. It runs
    /// again if it lost a race with another process, or shared a transaction with work that had to be undone; only the
    /// last run counts. It must return every error of the database, because the transaction may have ended with it.
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Clone + Send + 'static,
    {
        self.write_touching(|_| Touched::Everything, work).await
    }

    /// Runs `work` like [`Self::write`], for a frequent change that alters only rows that no caller remembers.
    pub(crate) async fn write_aside<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Clone + Send + 'static,
    {
        self.write_touching(|_| Touched::Nothing, work).await
    }

    /// Runs `work` like [`Self::write`], for the change that makes what a call is for. If the handle has an idempotency
    /// key, that is stored with it, beside the name that `made` gives the thing.
    pub(crate) async fn make<T, F, M>(&self, made: M, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Clone + Send + 'static,
        M: FnOnce(&T) -> String + Clone + Send + 'static,
    {
        self.make_touching(Touched::Everything, made, work).await
    }

    /// Runs `work` like [`Self::make`], for a thing whose rows no caller remembers.
    pub(crate) async fn make_aside<T, F, M>(&self, made: M, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Clone + Send + 'static,
        M: FnOnce(&T) -> String + Clone + Send + 'static,
    {
        self.make_touching(Touched::Nothing, made, work).await
    }

    async fn make_touching<T, F, M>(&self, touched: Touched, made: M, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Clone + Send + 'static,
        M: FnOnce(&T) -> String + Clone + Send + 'static,
    {
        let Some(key) = self.key.clone() else {
            return self.write_touching(|_| touched, work).await;
        };
        self.write_touching(
            |_| touched,
            move |cx: &mut AnyConnection| {
                Box::pin(async move {
                    // The key comes first: a repeated call is recognised whatever has changed since.
                    call_keys::claim(&mut *cx, &key).await?;
                    let change = work(&mut *cx).await?;
                    if let Change::Keep(answer) = &change {
                        let made = made(answer);
                        call_keys::name(cx, &key, &made).await?;
                    }
                    Ok(change)
                })
            },
        )
        .await
    }

    /// Runs `work` like [`Self::write`]. Its answer says which rows it altered.
    pub(crate) async fn write_touching<T, F>(
        &self,
        touched: impl FnOnce(&T) -> Touched + Send + 'static,
        work: F,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Clone + Send + 'static,
    {
        let (audit, stamps) = (self.audit.clone(), Arc::clone(&self.inner.stamps));
        // A commit without an answer may have happened, so anything may have changed.
        let ended = move |answer: Option<&T>| stamps.count(&answer.map_or(Touched::Everything, touched));
        let writing = self.inner.writer.write(
            move |cx: &mut AnyConnection| {
                Box::pin(async move {
                    let change = work(&mut *cx).await?;
                    if let (Change::Keep(_), Some(entry)) = (&change, &audit) {
                        audit::insert(cx, entry).await?;
                    }
                    Ok(change)
                })
            },
            ended,
        );
        let writing = within(self.inner.options.timeout, writing);
        writing.instrument(tracing::debug_span!("write database")).await
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
