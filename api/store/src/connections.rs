//! Connections to a database: made when one is needed, used again while they are sound, dropped when in doubt.
//!
//! Invariant: a connection whose last conversation did not come to its end serves nobody again before it has answered,
//! and no place of the set is taken for longer than [`Limits`] says, whatever became of the server or of the network.
//!
//! Why not sqlx's pool: it takes a connection back after a round trip without a time limit, so each peer that was cut
//! off takes a place until the operating system gives up on it, minutes later; and while a server refuses connections
//! it goes on asking until its whole time-out is over, where a caller could be told at once.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use sqlx::any::{AnyConnectOptions, AnyQueryResult, AnyRow, AnyStatement, AnyTypeInfo};
use sqlx::{Any, AnyConnection, AssertSqlSafe, ConnectOptions, Connection, Either, Execute, Executor, SqlStr};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::error::is_lost;

/// For how long a connection that was not used is taken to be sound.
const FRESH: Duration = Duration::from_secs(1);
/// How long a connection may take to end a conversation that its caller gave up, or to part.
const SETTLING: Duration = Duration::from_secs(1);

/// How many connections there are and how long they may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How many at most; at least 1.
    pub(crate) places: u32,
    /// How long to wait for a place.
    pub(crate) waiting: Duration,
    /// How long making a connection may take, settings included.
    pub(crate) connecting: Duration,
}

/// A set of connections. Clones share it.
#[derive(Clone)]
pub(crate) struct Connections {
    inner: Arc<Inner>,
}

struct Inner {
    options: AnyConnectOptions,
    /// The statements that a fresh connection begins with.
    settings: Vec<String>,
    limits: Limits,
    places: Arc<Semaphore>,
    idle: Mutex<Vec<(AnyConnection, Instant)>>,
    is_closed: AtomicBool,
}

impl Connections {
    pub(crate) fn new(options: AnyConnectOptions, settings: Vec<String>, limits: Limits) -> Self {
        Self {
            inner: Arc::new(Inner {
                options,
                settings,
                limits,
                places: Arc::new(Semaphore::new(limits.places as usize)),
                idle: Mutex::default(),
                is_closed: AtomicBool::new(false),
            }),
        }
    }

    /// A connection of the caller's own, until it is given back or dropped.
    ///
    /// # Errors
    /// [`sqlx::Error::PoolTimedOut`] when none got free in time, [`sqlx::Error::PoolClosed`], and whatever connecting
    /// fails with.
    pub(crate) async fn borrow(&self) -> Result<Borrowed, sqlx::Error> {
        if self.is_closed() {
            return Err(sqlx::Error::PoolClosed);
        }
        let waiting = Arc::clone(&self.inner.places).acquire_owned();
        let place = timeout(self.inner.limits.waiting, waiting)
            .await
            .map_err(|_late| sqlx::Error::PoolTimedOut)?
            .map_err(|_closed| sqlx::Error::PoolClosed)?;
        if self.is_closed() {
            return Err(sqlx::Error::PoolClosed);
        }
        let connection = match self.reuse().await {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok(Borrowed {
            connection: Some((connection, place)),
            owner: self.clone(),
            may_settle: false,
        })
    }

    /// Drops the idle connections: what cut off one has cut off the others.
    pub(crate) fn forget_idle(&self) {
        self.idle().clear();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.inner.is_closed.load(Ordering::Acquire)
    }

    /// Waits for what is under way, as long as for a place, and parts from every connection.
    pub(crate) async fn close(&self) {
        self.inner.is_closed.store(true, Ordering::Release);
        let everybody = self.inner.places.acquire_many(self.inner.limits.places);
        let ended = timeout(self.inner.limits.waiting, everybody).await;
        self.inner.places.close();
        drop(ended);
        let idle = std::mem::take(&mut *self.idle());
        for (connection, _) in idle {
            // Why ignored: the server notices by itself.
            timeout(SETTLING, connection.close()).await.ok();
        }
    }

    /// An idle connection that answers, if there is one.
    async fn reuse(&self) -> Option<AnyConnection> {
        let (mut connection, since) = self.idle().pop()?;
        if since.elapsed() < FRESH {
            return Some(connection);
        }
        if let Ok(Ok(())) = timeout(SETTLING, connection.ping()).await {
            Some(connection)
        } else {
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

    fn give_back(&self, connection: AnyConnection, place: OwnedSemaphorePermit) {
        if !self.is_closed() {
            self.idle().push((connection, Instant::now()));
        }
        drop(place);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(AnyConnection, Instant)>> {
        // Nothing that holds the lock can leave the list half changed.
        self.inner.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows how many places there are, never the address: it may hold a password.
impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections")
            .field("limits", &self.inner.limits)
            .finish_non_exhaustive()
    }
}

/// Runs one statement on a connection of the set and reads its whole answer.
impl<'c> Executor<'c> for &'c Connections {
    type Database = Any;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Either<AnyQueryResult, AnyRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Any>,
    {
        let answer = async move {
            let mut connection = self.borrow().await?;
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

/// A connection that serves its borrower alone.
///
/// Dropping it says that its conversation did not come to its end: it is not used again. Only a lone statement may
/// [settle](SETTLING) first, because callers come and go, and making connections is dear.
pub(crate) struct Borrowed {
    connection: Option<(AnyConnection, OwnedSemaphorePermit)>,
    owner: Connections,
    may_settle: bool,
}

impl Borrowed {
    /// Gives the connection back after a conversation that came to its end.
    pub(crate) fn done(mut self) {
        if let Some((connection, place)) = self.connection.take() {
            self.owner.give_back(connection, place);
        }
    }

    /// Gives the connection back after `answer`, unless that shows it is of no use any more.
    pub(crate) fn end<T>(mut self, answer: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        match answer {
            Ok(answer) => {
                self.done();
                Ok(answer)
            }
            Err(error) => {
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
        let Some((mut connection, place)) = self.connection.take() else {
            return;
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if self.may_settle && !self.owner.is_closed() {
            let owner = self.owner.clone();
            runtime.spawn(async move {
                if let Ok(Ok(())) = timeout(SETTLING, connection.ping()).await {
                    owner.give_back(connection, place);
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
