//! The queue of changes. Tasks take the queued changes, run them in a transaction, and answer after the commit.
//!
//! Invariant: a change that fails or undoes itself does not affect others: it has a transaction of its own, or shares
//! one in which no change was undone, or has a savepoint there. A change is answered only after its commit. If the
//! commit fails, every change of its group fails. A change that was rolled back, because it lost a race or was in a
//! group that was undone, is repeated a bounded number of times. A change whose commit got no answer is never repeated,
//! because it may have been committed.
//!
//! On an engine with one writer, changes that arrive during a commit share the next one. Under load they share the cost
//! of durability, while a lone change commits at once.

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

/// The number of groups that use a savepoint per change, after a group in which a change had to be undone.
const CAREFUL: u32 = 32;
/// The pause before a change that lost a race is repeated, times the number of races lost.
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

/// The effect of a change on its transaction.
#[derive(Debug)]
pub(crate) enum Change<T> {
    /// Commit the writes of the change.
    Keep(T),
    /// Undo the writes of the change; the answer stands.
    Undo(T),
    /// There are no writes, so those of other changes in the transaction are committed as if there were no such change.
    Nothing(T),
}

impl<T> Change<T> {
    /// Returns the change that wrote something if `wrote`, and nothing otherwise.
    pub(crate) fn written_if(wrote: bool, answer: T) -> Self {
        if wrote {
            Self::Keep(answer)
        } else {
            Self::Nothing(answer)
        }
    }
}

/// A future that runs on a connection.
pub(crate) type Running<'c, T> = Pin<Box<dyn Future<Output = T> + Send + 'c>>;

/// A change that runs on the writer's connection.
pub(crate) type Work<'c, T> = Running<'c, Result<Change<T>, Error>>;

/// The way that an engine's changes are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writing {
    /// The statement that begins a transaction that writes.
    pub(crate) begin: &'static str,
    /// The number of concurrent transactions.
    pub(crate) writers: u32,
    /// The most changes that share a transaction.
    pub(crate) group: usize,
    /// The attempts for a change that loses a race each time, if it has a transaction of its own.
    pub(crate) attempts: u32,
    /// The longest time of a transaction. After it the connection is dropped, and it is unknown whether the transaction
    /// was committed.
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
        // A full queue makes callers wait, which bounds the memory of queued changes.
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

    /// Lets changes in progress commit; queued changes fail.
    pub(crate) async fn close(&self) {
        self.connections.close().await;
    }

    /// Queues `work` and waits for its commit. Before the answer, and also if nobody waits for it any more, `ended` is
    /// told of the writes: the answer of the work if they were committed, `None` if that is unknown.
    pub(crate) async fn write<T, F, E>(&self, work: F, ended: E) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Clone + Send + 'static,
        E: FnOnce(Option<&T>) + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let task = Task {
            work: Some(work),
            result: Err(Error::Closed),
            is_kept: false,
            ended,
            reply,
        };
        self.queue.send(Box::new(task)).await.map_err(|_gone| Error::Closed)?;
        answer.await.unwrap_or(Err(Error::Closed))
    }
}

/// The next step for the writes of a change.
enum Ran {
    Keep,
    Undo,
    /// There are none.
    Nothing,
    /// The change lost a race and must run again; it has no answer yet.
    Again,
}

/// A queued change, whatever its answer's type.
trait Job: Send {
    /// Returns true if no caller waits for the answer any more.
    fn is_abandoned(&self) -> bool;
    /// Runs the change and stores its answer. It can run again only after a run with `may_run_again`.
    fn run<'c>(&'c mut self, connection: &'c mut AnyConnection, may_run_again: bool) -> Running<'c, Ran>;
    /// Answers the caller, after the result of the transaction is known.
    fn answer(self: Box<Self>, fate: Result<(), Error>);
}

struct Task<F, T, E> {
    work: Option<F>,
    result: Result<T, Error>,
    /// True if the last run of the work is to be committed.
    is_kept: bool,
    ended: E,
    reply: oneshot::Sender<Result<T, Error>>,
}

impl<F, T, E> Job for Task<F, T, E>
where
    T: Send + 'static,
    F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Clone + Send + 'static,
    E: FnOnce(Option<&T>) + Send + 'static,
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
        // Unreachable: a job without work has run for the last time.
        let Some(work) = work else {
            return Box::pin(std::future::ready(Ran::Undo));
        };
        Box::pin(async move {
            let (result, ran) = match work(connection).await {
                Ok(Change::Keep(answer)) => (Ok(answer), Ran::Keep),
                Ok(Change::Undo(answer)) => (Ok(answer), Ran::Undo),
                Ok(Change::Nothing(answer)) => (Ok(answer), Ran::Nothing),
                Err(error) if may_run_again && error.is_conflict() => (Err(error), Ran::Again),
                Err(error) => (Err(error), Ran::Undo),
            };
            self.result = result;
            self.is_kept = matches!(ran, Ran::Keep);
            ran
        })
    }

    fn answer(self: Box<Self>, fate: Result<(), Error>) {
        let result = fate.and(self.result);
        // Without an answer to the commit, the writes may have been committed.
        if self.is_kept {
            (self.ended)(result.as_ref().ok());
        }
        // A caller that gave up learns no less than after a lost answer.
        self.reply.send(result).ok();
    }
}

/// A task that writes.
struct WriterTask {
    writing: Writing,
    connections: Connections,
    commits: Arc<AtomicU64>,
    /// The number of further groups with a savepoint per change.
    careful: u32,
}

impl WriterTask {
    async fn run(mut self, waiting: Arc<Mutex<mpsc::Receiver<Box<dyn Job>>>>) {
        let mut jobs = Vec::with_capacity(self.writing.group);
        loop {
            // The lock is held while waiting: the other tasks wait for the lock instead of the
            // queue.
            let received = waiting.lock().await.recv_many(&mut jobs, self.writing.group).await;
            // Every sender is gone, so the store was dropped.
            if received == 0 {
                return;
            }
            // A change whose caller gave up before it began is not made.
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
            // Every caller is answered, also those whose change was undone.
            for job in jobs.drain(..) {
                job.answer(fate.clone().map(drop));
            }
        }
    }

    /// Commits `jobs` within the time limit. Returns true if any change was kept.
    async fn end(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<bool, Error> {
        let (limit, connections) = (self.writing.limit, self.connections.clone());
        // A change that panics must fail its group, but not end the writing task.
        let committing = AssertUnwindSafe(self.commit(jobs)).catch_unwind();
        let ended = match limit {
            None => committing.await,
            Some(limit) => match tokio::time::timeout(limit, committing).await {
                Ok(ended) => ended,
                Err(_late) => {
                    // The server is silent or gone, so idle connections are useless too.
                    connections.forget_idle();
                    Ok(Err(Error::TimedOut { after: limit }))
                }
            },
        };
        ended.unwrap_or_else(|_panic| Err(Error::from(sqlx::Error::WorkerCrashed)))
    }

    /// Runs `jobs` in one transaction and ends it. A connection on which that failed is not reused: the engine may have
    /// ended the transaction, so its state is unknown.
    async fn commit(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<bool, Error> {
        let mut connection = self.connections.borrow().await?;
        for attempt in 1.. {
            // The last attempt reports its error instead of asking for another.
            let may_run_again = attempt < self.writing.attempts;
            let begin = self.writing.begin;
            let ran = match transact(begin, &mut connection, jobs, may_run_again, &mut self.careful).await {
                Ok(ran) => ran,
                Err(error) => return Ok(connection.end(Err(error))?),
            };
            match ran {
                Ran::Again => {
                    tracing::debug!(attempt, "a change lost a race; repeating it");
                    // Row locks are not queued. Without the pause the change would overtake the
                    // one it lost to, and the two would wait for each other again.
                    tokio::time::sleep(PAUSE * attempt).await;
                }
                Ran::Keep | Ran::Undo | Ran::Nothing => {
                    connection.done();
                    return Ok(matches!(ran, Ran::Keep));
                }
            }
        }
        Ok(false)
    }
}

/// Runs `jobs` in order until one must be undone, which is the answer then. All of them can run again.
///
/// A savepoint for each would cost two more statements, and changes are rarely undone.
async fn run_until_undone(transaction: &mut AnyConnection, jobs: &mut [Box<dyn Job>]) -> Ran {
    let mut end = Ran::Nothing;
    for job in jobs {
        match job.run(transaction, true).await {
            Ran::Keep => end = Ran::Keep,
            Ran::Nothing => {}
            Ran::Undo | Ran::Again => return Ran::Undo,
        }
    }
    end
}

/// Runs `jobs` in one transaction and ends it. A lone change may ask to run again in another.
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
        } else {
            let end = run_until_undone(&mut transaction, jobs).await;
            if matches!(end, Ran::Keep) {
                transaction.commit().await?;
                return Ok(end);
            }
            transaction.rollback().await?;
            if matches!(end, Ran::Nothing) {
                return Ok(end);
            }
            // Changes that are undone tend to come in series, and running a group twice costs
            // more than savepoints.
            *careful = CAREFUL;
            transaction = connection.begin_with(begin).await?;
        }
    }
    // The transaction is committed if at least one change is kept.
    let mut end = Ran::Undo;
    if let [lone] = jobs {
        // A lone change needs no savepoint, since the transaction serves as one.
        end = lone.run(&mut transaction, may_run_again).await;
    } else {
        for job in jobs {
            // Within a transaction `begin` sets a savepoint.
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
        Ran::Undo | Ran::Nothing | Ran::Again => transaction.rollback().await?,
    }
    Ok(end)
}
