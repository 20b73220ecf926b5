//! The queue of changes: tasks take what has queued up, run it in a transaction and answer after the commit.
//!
//! Invariant: a change that fails or undoes itself takes no other with it: it has its transaction for itself, or shares one
//! in which nothing had to be undone, or has a savepoint of its own there. A change is answered only after the commit that
//! holds it; when the commit fails, every change of its group fails. A change of which nothing was kept, as it lost a race
//! or was in a group that was undone, is made again, a bounded number of times; one whose commit was not answered never
//! is, for nobody knows whether it was made.
//!
//! Where an engine has one writer, changes that arrive during a commit share the next one, so under load the cost of
//! making a commit durable is shared, while a lone change commits at once.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use sqlx::{AnyConnection, Connection};
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::Error;
use crate::connections::Connections;

#[cfg(test)]
mod tests;

/// For how many groups each change has a savepoint of its own, after one in which something had to be undone.
const CAREFUL: u32 = 32;
/// How long a change that lost a race stands back before it is made again, times how often it has lost.
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

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

/// How an engine's changes are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writing {
    /// The statement that begins a transaction that writes.
    pub(crate) begin: &'static str,
    /// How many transactions can be under way at once.
    pub(crate) writers: u32,
    /// How many changes may share a transaction.
    pub(crate) group: usize,
    /// How often a change is made that loses a race each time; only where it has its transaction for itself.
    pub(crate) attempts: u32,
    /// The longest that a transaction may take; then its connection is dropped, and what became of it is not known.
    pub(crate) limit: Option<Duration>,
}

/// The sending end of the queue.
pub(crate) struct Writer {
    queue: mpsc::Sender<Box<dyn Job>>,
    connections: Connections,
    commits: Arc<AtomicU64>,
}

impl Writer {
    /// Starts the tasks that write on `connections`; they end with the last handle.
    pub(crate) fn start(writing: Writing, connections: Connections) -> Self {
        let (queue, waiting) = mpsc::channel(writing.group.max(writing.writers as usize) * 32);
        let waiting = Arc::new(Mutex::new(waiting));
        let commits = Arc::new(AtomicU64::new(0));
        for _ in 0..writing.writers {
            let task = WriterTask {
                writing,
                connections: connections.clone(),
                commits: Arc::clone(&commits),
                careful: 0,
            };
            tokio::spawn(task.run(Arc::clone(&waiting)));
        }
        Self {
            queue,
            connections,
            commits,
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.queue.is_closed() || self.connections.is_closed()
    }

    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Lets what is under way commit; what has queued up behind it fails.
    pub(crate) async fn close(&self) {
        self.connections.close().await;
    }

    /// Queues `work` and waits for its commit.
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Clone + Send + 'static,
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

/// What to do with what a change wrote.
enum Ran {
    Keep,
    Undo,
    /// It lost a race and has to run again: it has no answer yet.
    Again,
}

/// A queued change, whatever its answer's type.
trait Job: Send {
    /// Whether nobody waits for the answer any more.
    fn is_abandoned(&self) -> bool;
    /// Runs the change and keeps its answer; it can run again only after a run with `may_run_again`.
    fn run<'c>(&'c mut self, connection: &'c mut AnyConnection, may_run_again: bool) -> Running<'c, Ran>;
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
    F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Clone + Send + 'static,
{
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn run<'c>(&'c mut self, connection: &'c mut AnyConnection, may_run_again: bool) -> Running<'c, Ran> {
        let work = if may_run_again {
            self.work.clone()
        } else {
            self.work.take()
        };
        let Some(work) = work else {
            return Box::pin(std::future::ready(Ran::Undo));
        };
        Box::pin(async move {
            let (result, ran) = match work(connection).await {
                Ok(Change::Keep(answer)) => (Ok(answer), Ran::Keep),
                Ok(Change::Undo(answer)) => (Ok(answer), Ran::Undo),
                Err(error) if may_run_again && error.is_conflict() => (Err(error), Ran::Again),
                Err(error) => (Err(error), Ran::Undo),
            };
            self.result = result;
            ran
        })
    }

    fn answer(self: Box<Self>, fate: Result<(), Error>) {
        // Why ignored: the caller has given up, and learns the same as after any lost answer.
        self.reply.send(fate.and(self.result)).ok();
    }
}

/// One of the tasks that write.
struct WriterTask {
    writing: Writing,
    connections: Connections,
    commits: Arc<AtomicU64>,
    /// For how many more groups each change has a savepoint of its own.
    careful: u32,
}

impl WriterTask {
    async fn run(mut self, waiting: Arc<Mutex<mpsc::Receiver<Box<dyn Job>>>>) {
        let mut jobs = Vec::with_capacity(self.writing.group);
        loop {
            // The lock is held while there is nothing to do: the other tasks wait for their turn to wait.
            let received = waiting.lock().await.recv_many(&mut jobs, self.writing.group).await;
            if received == 0 {
                return;
            }
            jobs.retain(|job| !job.is_abandoned());
            if jobs.is_empty() {
                continue;
            }
            let fate = self.end(&mut jobs).await;
            match &fate {
                Ok(kept) => {
                    self.commits.fetch_add(u64::from(*kept), Ordering::Relaxed);
                }
                Err(error) => {
                    tracing::warn!(
                        %error, changes = jobs.len(),
                        "cannot commit a group of changes to the database; their callers get an error"
                    );
                }
            }
            for job in jobs.drain(..) {
                job.answer(fate.clone().map(drop));
            }
        }
    }

    /// Commits `jobs` in the time there is, whatever they do; whether anything was kept.
    async fn end(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<bool, Error> {
        let (limit, connections) = (self.writing.limit, self.connections.clone());
        // Why: a change that panics must fail its group, not end the task that writes.
        let committing = AssertUnwindSafe(self.commit(jobs)).catch_unwind();
        let ended = match limit {
            None => committing.await,
            Some(limit) => match tokio::time::timeout(limit, committing).await {
                Ok(ended) => ended,
                Err(_late) => {
                    // The server is silent or gone, for the connections that are idle as well.
                    connections.forget_idle();
                    Ok(Err(Error::TimedOut { after: limit }))
                }
            },
        };
        ended.unwrap_or_else(|_panic| Err(Error::from(sqlx::Error::WorkerCrashed)))
    }

    /// Runs `jobs` in one transaction and ends it. A connection on which that failed is not used again: the engine may
    /// have ended the transaction on its own, so its state is not known.
    async fn commit(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<bool, Error> {
        let mut connection = self.connections.borrow().await?;
        for attempt in 1.. {
            let may_run_again = attempt < self.writing.attempts;
            let begin = self.writing.begin;
            let ran = match transact(begin, &mut connection, jobs, may_run_again, &mut self.careful).await {
                Ok(ran) => ran,
                Err(error) => return Ok(connection.end(Err(error))?),
            };
            match ran {
                Ran::Again => {
                    tracing::debug!(attempt, "a change lost a race and is made again");
                    // Why: a row's lock is not queued for, so at once it would overtake the change it lost to, and the
                    // two would wait for each other again.
                    tokio::time::sleep(PAUSE * attempt).await;
                }
                Ran::Keep | Ran::Undo => {
                    connection.done();
                    return Ok(matches!(ran, Ran::Keep));
                }
            }
        }
        Ok(false)
    }
}

/// Runs `jobs` one after the other while nothing has to be undone; whether all of them are to be kept. They can run again.
///
/// A savepoint for each would cost two more statements, and nearly always nothing has to be undone.
async fn all_keep(transaction: &mut AnyConnection, jobs: &mut [Box<dyn Job>]) -> bool {
    for job in jobs {
        if !matches!(job.run(transaction, true).await, Ran::Keep) {
            return false;
        }
    }
    true
}

/// Runs `jobs` in one transaction and ends it; a lone one may ask to run again in another.
async fn transact(
    begin: &'static str,
    connection: &mut AnyConnection,
    jobs: &mut [Box<dyn Job>],
    may_run_again: bool,
    careful: &mut u32,
) -> Result<Ran, sqlx::Error> {
    let mut transaction = connection.begin_with(begin).await?;
    if jobs.len() > 1 {
        if *careful > 0 {
            *careful -= 1;
        } else if all_keep(&mut transaction, jobs).await {
            transaction.commit().await?;
            return Ok(Ran::Keep);
        } else {
            // Why: what is undone seldom comes alone, and a group that is made twice costs more than savepoints.
            *careful = CAREFUL;
            transaction.rollback().await?;
            transaction = connection.begin_with(begin).await?;
        }
    }
    let mut end = Ran::Undo;
    if let [lone] = jobs {
        // The transaction itself is all the savepoint that a lone change needs.
        end = lone.run(&mut transaction, may_run_again).await;
    } else {
        for job in jobs {
            let mut savepoint = transaction.begin().await?;
            if let Ran::Keep = job.run(&mut savepoint, false).await {
                savepoint.commit().await?;
                end = Ran::Keep;
            } else {
                savepoint.rollback().await?;
            }
        }
    }
    match end {
        Ran::Keep => transaction.commit().await?,
        Ran::Undo | Ran::Again => transaction.rollback().await?,
    }
    Ok(end)
}
