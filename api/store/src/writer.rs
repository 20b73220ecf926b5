//! The one queue of changes: a task takes what has queued up, runs it in one transaction and answers after the commit.
//!
//! Invariant: each change runs in a savepoint of its own, so one that fails or undoes itself takes no other with it. A
//! change is answered only after the commit that holds it; when the commit fails, every change of its group fails.
//!
//! Changes that arrive during a commit share the next one, so under load the cost of making a commit durable is shared,
//! while a lone change commits at once.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt as _;
use sqlx::{AnyConnection, AnyPool, Connection};
use tokio::sync::{mpsc, oneshot};

use crate::Error;
use crate::engine::Engine;

#[cfg(test)]
mod tests;

/// What a change did to its transaction.
#[derive(Debug)]
pub(crate) enum Change<T> {
    /// Commit what it wrote.
    Keep(T),
    /// Undo what it wrote; the answer stands.
    Undo(T),
}

/// Something under way on a connection.
pub(crate) type Running<'c, T> = Pin<Box<dyn Future<Output = T> + Send + 'c>>;

/// A change under way on the writer's connection.
pub(crate) type Work<'c, T> = Running<'c, Result<Change<T>, Error>>;

/// The sending end of the queue.
pub(crate) struct Writer {
    queue: mpsc::Sender<Box<dyn Job>>,
    pool: AnyPool,
    commits: Arc<AtomicU64>,
}

impl Writer {
    /// Starts the task that writes on the connections of `pool`; it ends with the last handle.
    pub(crate) fn start(engine: Engine, pool: AnyPool, group: usize) -> Self {
        let group = group.max(1);
        let (queue, waiting) = mpsc::channel(group * 32);
        let commits = Arc::new(AtomicU64::new(0));
        let begin = engine.begin_write();
        tokio::spawn(run(begin, pool.clone(), waiting, group, Arc::clone(&commits)));
        Self { queue, pool, commits }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.queue.is_closed() || self.pool.is_closed()
    }

    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Lets the group under way commit; what has queued up behind it fails.
    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }

    /// Queues `work` and waits for its commit.
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let task = Task {
            work: Some(work),
            result: Err(Error::Closed),
            reply,
        };
        self.queue.send(Box::new(task)).await.map_err(|_gone| Error::Closed)?;
        answer.await.unwrap_or(Err(Error::Closed))
    }
}

/// A queued change, whatever its answer's type.
trait Job: Send {
    /// Whether nobody waits for the answer any more.
    fn is_abandoned(&self) -> bool;
    /// Runs the change and keeps its answer; whether to keep what it wrote.
    fn run<'c>(&'c mut self, connection: &'c mut AnyConnection) -> Running<'c, bool>;
    /// Answers the caller, once the fate of the transaction is known.
    fn answer(self: Box<Self>, fate: Result<(), Error>);
}

struct Task<F, T> {
    work: Option<F>,
    result: Result<T, Error>,
    reply: oneshot::Sender<Result<T, Error>>,
}

impl<F, T> Job for Task<F, T>
where
    T: Send + 'static,
    F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Send + 'static,
{
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn run<'c>(&'c mut self, connection: &'c mut AnyConnection) -> Running<'c, bool> {
        let Some(work) = self.work.take() else {
            return Box::pin(std::future::ready(false));
        };
        Box::pin(async move {
            let (result, keep) = match work(connection).await {
                Ok(Change::Keep(answer)) => (Ok(answer), true),
                Ok(Change::Undo(answer)) => (Ok(answer), false),
                Err(error) => (Err(error), false),
            };
            self.result = result;
            keep
        })
    }

    fn answer(self: Box<Self>, fate: Result<(), Error>) {
        // Why ignored: the caller has given up, and learns the same as after any lost answer.
        self.reply.send(fate.and(self.result)).ok();
    }
}

async fn run(
    begin: &'static str,
    pool: AnyPool,
    mut waiting: mpsc::Receiver<Box<dyn Job>>,
    group: usize,
    commits: Arc<AtomicU64>,
) {
    let mut jobs = Vec::with_capacity(group);
    while waiting.recv_many(&mut jobs, group).await > 0 {
        jobs.retain(|job| !job.is_abandoned());
        if jobs.is_empty() {
            continue;
        }
        // Why: a change that panics must fail its group, not end the only task that writes.
        let committing = AssertUnwindSafe(commit(begin, &pool, &mut jobs)).catch_unwind();
        let fate = committing
            .await
            .unwrap_or_else(|_panic| Err(Error::from(sqlx::Error::WorkerCrashed)));
        match &fate {
            Ok(kept) => {
                commits.fetch_add(u64::from(*kept), Ordering::Relaxed);
            }
            Err(error) => tracing::warn!(%error, changes = jobs.len(), "a group of changes was not committed"),
        }
        for job in jobs.drain(..) {
            job.answer(fate.clone().map(drop));
        }
    }
}

/// Runs `jobs` in one transaction and ends it; whether anything was kept.
async fn commit(begin: &'static str, pool: &AnyPool, jobs: &mut [Box<dyn Job>]) -> Result<bool, Error> {
    let mut connection = pool.acquire().await?;
    let fate = transact(begin, &mut connection, jobs).await;
    if fate.is_err() {
        // Why: the engine may have ended the transaction on its own, so the connection's state is not known.
        connection.close().await.ok();
    }
    Ok(fate?)
}

async fn transact(
    begin: &'static str,
    connection: &mut AnyConnection,
    jobs: &mut [Box<dyn Job>],
) -> Result<bool, sqlx::Error> {
    let mut transaction = connection.begin_with(begin).await?;
    let mut kept = false;
    if let [lone] = jobs {
        // The transaction itself is all the savepoint that a lone change needs.
        kept = lone.run(&mut transaction).await;
    } else {
        for job in jobs {
            let mut savepoint = transaction.begin().await?;
            if job.run(&mut savepoint).await {
                savepoint.commit().await?;
                kept = true;
            } else {
                savepoint.rollback().await?;
            }
        }
    }
    if kept {
        transaction.commit().await?;
    } else {
        transaction.rollback().await?;
    }
    Ok(kept)
}
