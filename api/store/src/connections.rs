//! A connection pool: connections are opened on demand, reused while they are sound, and dropped when in doubt.
//!
//! Invariant: a connection whose last conversation did not end properly is not reused before it has answered a ping. No
//! slot of the pool is taken for longer than [`Limits`] allows, whatever happens to the server or the network.
//!
//! Reason for not using sqlx's pool: it takes a connection back after a round trip without a time limit, so each
//! connection to an unreachable peer holds a slot until the operating system gives up on it, minutes later. And while a
//! server refuses connections it retries until its whole time-out is over, although it could fail at once.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use parking_lot::{Mutex, MutexGuard};
use sqlx::any::{AnyConnectOptions, AnyQueryResult, AnyRow, AnyStatement, AnyTypeInfo};
use sqlx::{Any, AnyConnection, AssertSqlSafe, ConnectOptions, Connection, Either, Execute, Executor, SqlStr};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::error::is_lost;

/// The idle time during which a connection is assumed to be sound.
const FRESH: Duration = Duration::from_secs(1);
/// The time for a connection to finish a conversation that its caller abandoned, or to close.
const SETTLING: Duration = Duration::from_secs(1);

/// The limits of a pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The largest number of connections; at least 1.
    pub(crate) slots: u32,
    /// The time to wait for a free slot.
    pub(crate) waiting: Duration,
    /// The time to open a connection, including its settings.
    pub(crate) connecting: Duration,
}

/// A connection pool. Clones share it.
#[derive(Clone)]
pub(crate) struct Connections {
    inner: Arc<ConnectionsState>,
}

struct ConnectionsState {
    options: AnyConnectOptions,
    /// The statements that are run on every new connection.
    settings: Vec<String>,
    limits: Limits,
    slots: Arc<Semaphore>,
    idle: Mutex<Vec<(AnyConnection, Instant)>>,
    is_closed: AtomicBool,
}

impl Connections {
    pub(crate) fn new(options: AnyConnectOptions, settings: Vec<String>, limits: Limits) -> Self {
        Self {
            inner: Arc::new(ConnectionsState {
                options,
                settings,
                limits,
                slots: Arc::new(Semaphore::new(limits.slots as usize)),
                idle: Mutex::default(),
                is_closed: AtomicBool::new(false),
            }),
        }
    }

    /// Takes a connection from the pool.
    ///
    /// # Errors
    /// [`sqlx::Error::PoolTimedOut`] if no slot became free in time, [`sqlx::Error::PoolClosed`], or the error of
    /// connecting.
    pub(crate) async fn borrow(&self) -> Result<Borrowed, sqlx::Error> {
        if self.is_closed() {
            return Err(sqlx::Error::PoolClosed);
        }
        let waiting = Arc::clone(&self.inner.slots).acquire_owned();
        let slot = timeout(self.inner.limits.waiting, waiting)
            .await
            .map_err(|_late| sqlx::Error::PoolTimedOut)?
            .map_err(|_closed| sqlx::Error::PoolClosed)?;
        if self.is_closed() {
            return Err(sqlx::Error::PoolClosed);
        }
        // If an idle connection does not answer, a new one is opened: the other idle ones are
        // probably broken too.
        let connection = match self.reuse().await {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok(Borrowed {
            connection: Some((connection, slot)),
            owner: self.clone(),
            may_settle: false,
        })
    }

    /// Drops the idle connections. The failure that broke one has probably broken the others.
    pub(crate) fn forget_idle(&self) {
        self.idle().clear();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.inner.is_closed.load(Ordering::Acquire)
    }

    /// Closes the pool: waits for borrowed connections, at most as long as for a free slot, and closes the idle ones.
    pub(crate) async fn close(&self) {
        // Set first, so that no connection is returned to the pool from here on.
        self.inner.is_closed.store(true, Ordering::Release);
        let everybody = self.inner.slots.acquire_many(self.inner.limits.slots);
        let ended = timeout(self.inner.limits.waiting, everybody).await;
        self.inner.slots.close();
        drop(ended);
        let idle = std::mem::take(&mut *self.idle());
        for (connection, _) in idle {
            // A failure is ignored, since the server notices a lost connection by itself.
            timeout(SETTLING, connection.close()).await.ok();
        }
    }

    /// Returns an idle connection that answers, if there is one.
    async fn reuse(&self) -> Option<AnyConnection> {
        let (mut connection, since) = self.idle().pop()?;
        // A ping costs a round trip, which a connection used a moment ago does not need.
        if since.elapsed() < FRESH {
            return Some(connection);
        }
        if let Ok(Ok(())) = timeout(SETTLING, connection.ping()).await {
            Some(connection)
        } else {
            // It did not answer, so the other idle connections probably do not either.
            self.forget_idle();
            None
        }
    }

    async fn connect(&self) -> Result<AnyConnection, sqlx::Error> {
        let connecting = async {
            let mut connection = self.inner.options.connect().await?;
            for setting in &self.inner.settings {
                connection.execute(AssertSqlSafe(setting.clone())).await?;
            }
            Ok(connection)
        };
        timeout(self.inner.limits.connecting, connecting)
            .await
            .unwrap_or_else(|_late| Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())))
    }

    fn give_back(&self, connection: AnyConnection, slot: OwnedSemaphorePermit) {
        if !self.is_closed() {
            self.idle().push((connection, Instant::now()));
        }
        drop(slot);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(AnyConnection, Instant)>> {
        self.inner.idle.lock()
    }
}

/// Shows the limits, never the address, which may contain a password.
impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections")
            .field("limits", &self.inner.limits)
            .finish_non_exhaustive()
    }
}

/// Runs one statement on a connection of the pool and reads its whole result.
impl<'c> Executor<'c> for &'c Connections {
    type Database = Any;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Either<AnyQueryResult, AnyRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Any>,
    {
        let answer = async move {
            let mut connection = self.borrow().await?;
            // A single statement leaves no transaction open, so the connection can be reused
            // after a ping.
            connection.may_settle = true;
            let answer = connection.fetch_many(query).try_collect::<Vec<_>>().await;
            connection.end(answer)
        };
        stream::once(answer)
            .map_ok(|answer| stream::iter(answer.into_iter().map(Ok)))
            .try_flatten()
            .boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<AnyRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Any>,
    {
        Box::pin(async move {
            let mut connection = self.borrow().await?;
            connection.may_settle = true;
            let answer = connection.fetch_optional(query).await;
            connection.end(answer)
        })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [AnyTypeInfo],
    ) -> BoxFuture<'e, Result<AnyStatement, sqlx::Error>>
    where
        'c: 'e,
    {
        Box::pin(async move {
            let mut connection = self.borrow().await?;
            let statement = connection.prepare_with(sql, parameters).await;
            connection.end(statement)
        })
    }
}

/// A connection that is used by one borrower at a time.
///
/// Dropping it means that its conversation did not end properly, so it is not reused. After a single statement it may
/// first finish ([`SETTLING`]), because callers come and go and opening connections is expensive.
pub(crate) struct Borrowed {
    connection: Option<(AnyConnection, OwnedSemaphorePermit)>,
    owner: Connections,
    may_settle: bool,
}

impl Borrowed {
    /// Returns the connection to the pool after a completed conversation.
    pub(crate) fn done(mut self) {
        if let Some((connection, slot)) = self.connection.take() {
            self.owner.give_back(connection, slot);
        }
    }

    /// Returns the connection to the pool after `answer`, unless the error shows that it is broken.
    pub(crate) fn end<T>(mut self, answer: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        match answer {
            Ok(answer) => {
                self.done();
                Ok(answer)
            }
            Err(error) => {
                // The server is gone, so a ping would only wait for its timeout.
                if is_lost(&error) {
                    self.may_settle = false;
                    self.owner.forget_idle();
                }
                Err(error)
            }
        }
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let Some((mut connection, slot)) = self.connection.take() else {
            return;
        };
        // Outside a runtime nothing can be awaited; dropping the connection closes its socket.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if self.may_settle && !self.owner.is_closed() {
            let owner = self.owner.clone();
            runtime.spawn(async move {
                // The ping waits until the abandoned statement has ended on the server.
                if let Ok(Ok(())) = timeout(SETTLING, connection.ping()).await {
                    owner.give_back(connection, slot);
                }
            });
        }
    }
}

impl Deref for Borrowed {
    type Target = AnyConnection;

    #[expect(
        clippy::expect_used,
        reason = "only `done` and `drop` take it, and both end the guard"
    )]
    fn deref(&self) -> &AnyConnection {
        &self
            .connection
            .as_ref()
            .expect("the connection is there until the guard ends")
            .0
    }
}

impl DerefMut for Borrowed {
    #[expect(
        clippy::expect_used,
        reason = "only `done` and `drop` take it, and both end the guard"
    )]
    fn deref_mut(&mut self) -> &mut AnyConnection {
        &mut self
            .connection
            .as_mut()
            .expect("the connection is there until the guard ends")
            .0
    }
}
