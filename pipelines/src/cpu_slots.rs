//! Where judging runs: blocking threads, about as many at once as there are cores.
//!
//! Invariant: a future is polled on a blocking thread, with a slot of its writer and one of all; while it waits it has
//! neither, nor once it was given up. So a long judgement stops no asynchronous thread, a judge that waits stops no other,
//! and no writer takes every slot.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::available_parallelism;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::timeout;

/// Reason for which a future has no output.
#[derive(Debug)]
pub(crate) enum NoOutput {
    /// The future panicked.
    Panicked(JoinError),
    /// One poll of the future took longer than the limit. Its thread goes on until that poll ends.
    TooLong,
}

/// The slots of one writer among those of all.
#[derive(Clone, Debug)]
pub(crate) struct CpuSlots {
    all: Arc<Semaphore>,
    writer: Arc<Semaphore>,
    /// Number of slots of a writer.
    share: usize,
}

impl CpuSlots {
    /// One slot per core and at least two; half of them for each writer.
    pub(crate) fn new() -> Self {
        let cores = available_parallelism().map_or(1, usize::from).max(2);
        let share = (cores / 2).max(1);
        Self {
            all: Arc::new(Semaphore::new(cores)),
            writer: Arc::new(Semaphore::new(share)),
            share,
        }
    }

    /// The slots of another writer.
    pub(crate) fn of_writer(&self) -> Self {
        Self {
            all: Arc::clone(&self.all),
            writer: Arc::new(Semaphore::new(self.share)),
            share: self.share,
        }
    }

    /// Runs a future to its end, one poll at a time, each in a slot. Fails where the future panics; never ends where
    /// the runtime does.
    pub(crate) async fn run<F>(&self, future: F) -> Result<F::Output, JoinError>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        match self.run_until(None, future).await {
            Ok(output) => Ok(output),
            Err(NoOutput::Panicked(error)) => Err(error),
            Err(NoOutput::TooLong) => std::future::pending().await,
        }
    }

    /// Does the same, and gives the future up if one poll takes longer than `limit`.
    pub(crate) async fn run_within<F>(&self, limit: Duration, future: F) -> Result<F::Output, NoOutput>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.run_until(Some(limit), future).await
    }

    async fn run_until<F>(&self, limit: Option<Duration>, future: F) -> Result<F::Output, NoOutput>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let mut future = Box::pin(future);
        let woken = Arc::new(Woken::default());
        loop {
            // The writer's own slot comes first: what waits for its writer is not in the queue of all, so
            // that every writer with work has its turn.
            let own = Arc::clone(&self.writer).acquire_owned().await;
            let slot = Arc::clone(&self.all).acquire_owned().await;
            let held = Arc::new(Mutex::new(Some((slot, own))));
            let waker = Waker::from(Arc::clone(&woken));
            let polling = spawn_blocking({
                let held = Arc::clone(&held);
                move || {
                    let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
                    // Given back on the blocking thread: a poll whose writer was stopped goes on to its end, and
                    // holds its slot until then.
                    drop(held.lock().take());
                    (future, polled)
                }
            });
            let polled = match limit {
                Some(limit) => timeout(limit, polling).await,
                None => Ok(polling.await),
            };
            match polled {
                Ok(Ok((_, Poll::Ready(output)))) => return Ok(output),
                Ok(Ok((back, Poll::Pending))) => future = back,
                Ok(Err(end)) if end.is_panic() => {
                    drop(held.lock().take());
                    return Err(NoOutput::Panicked(end));
                }
                Ok(Err(_cancelled)) => return std::future::pending().await,
                Err(_late) => {
                    drop(held.lock().take());
                    return Err(NoOutput::TooLong);
                }
            }
            woken.0.notified().await;
        }
    }
}

/// Remembers that the future may go on.
#[derive(Debug, Default)]
struct Woken(Notify);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    fn one() -> CpuSlots {
        CpuSlots {
            all: Arc::new(Semaphore::new(1)),
            writer: Arc::new(Semaphore::new(1)),
            share: 1,
        }
    }

    #[tokio::test]
    async fn what_waits_has_no_slot() {
        let slots = one();
        let (go, waiting) = oneshot::channel();
        let (begun, has_begun) = oneshot::channel();
        let waits = tokio::spawn({
            let slots = slots.clone();
            async move {
                let work = async move {
                    begun.send(()).unwrap();
                    waiting.await.unwrap()
                };
                slots.run(work).await.unwrap()
            }
        });
        has_begun.await.unwrap();
        assert_eq!(slots.run(async { 1 }).await.unwrap(), 1);
        assert_eq!(slots.of_writer().run(async { 2 }).await.unwrap(), 2);
        go.send(3).unwrap();
        assert_eq!(waits.await.unwrap(), 3);
    }

    #[tokio::test]
    async fn a_panic_gives_its_slot_back() {
        let slots = one();
        let panics = async { assert!(tokio::runtime::Handle::try_current().is_err(), "a judge that panics") };
        assert!(slots.run(panics).await.unwrap_err().is_panic());
        assert_eq!(slots.run(async { 1 }).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn what_is_given_up_gives_its_slot_back() {
        let slots = one();
        let (go, blocked) = std::sync::mpsc::channel::<()>();
        let works = async move { blocked.recv().is_ok() };
        let ended = slots.run_within(Duration::from_millis(10), works).await;
        assert!(matches!(ended, Err(NoOutput::TooLong)), "{ended:?}");
        assert_eq!(slots.run(async { 1 }).await.unwrap(), 1, "its thread is busy still");
        go.send(()).unwrap();
    }

    #[tokio::test]
    async fn long_work_leaves_the_asynchronous_thread_free() {
        // The runtime has one thread: were the work on it, nobody would let it go on.
        let (go, blocked) = std::sync::mpsc::channel();
        let slots = one();
        let works = tokio::spawn(async move { slots.run(async move { blocked.recv().unwrap() }).await.unwrap() });
        tokio::task::yield_now().await;
        go.send(7).unwrap();
        assert_eq!(works.await.unwrap(), 7);
    }
}
