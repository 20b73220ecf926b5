//! Blocking work, and the threads that may be blocked.
//!
//! Invariant: on a multi-threaded runtime, no function here blocks a thread of the runtime, except [`in_place`] after
//! it has moved the runtime's tasks to another thread. Blocking steps that belong together run on one thread, because a
//! handover to another thread and back costs more than some of the steps.

use std::cell::Cell;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, spawn_blocking};
use tracing::{Instrument as _, Span};

thread_local! {
    /// True while this thread runs a future of [`BlockingPool::run`]. It says something of the thread alone, so it is no
    /// state that catalogs share.
    static ON_BLOCKING_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Maximum number of futures on blocking threads at once: a quarter of tokio's default of 512 blocking threads.
const MAX_BLOCKING_FUTURES: usize = 128;
/// Row groups of exports that are encoded at once. Each may have all its columns in memory.
const MAX_ENCODED_GROUPS: usize = 2;

/// Futures of one catalog that run on blocking threads.
#[derive(Debug)]
pub(crate) struct BlockingPool {
    permits: Arc<Semaphore>,
    /// Places for the encoding of row groups of exports.
    encoding: Arc<Semaphore>,
    /// Number of futures that run on blocking threads now.
    in_flight: Arc<AtomicUsize>,
    processors: usize,
}

impl Default for BlockingPool {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(MAX_BLOCKING_FUTURES)),
            encoding: Arc::new(Semaphore::new(MAX_ENCODED_GROUPS)),
            in_flight: Arc::default(),
            // Kept, because each question to the system reads the limits of the control group again.
            processors: available_parallelism().map_or(1, NonZero::get),
        }
    }
}

impl BlockingPool {
    /// Returns true if more futures run on blocking threads than there are processors. Another thread for one of them
    /// would then take processor time from the others.
    pub(crate) fn exceeds_processors(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > self.processors
    }

    /// Waits for a place to encode a row group of an export. Dropping it frees the place.
    pub(crate) async fn encoding_place(&self) -> Option<OwnedSemaphorePermit> {
        // `acquire` fails only on a closed semaphore, and this one is never closed.
        Arc::clone(&self.encoding).acquire_owned().await.ok()
    }

    /// Polls a future to completion on one blocking thread. The future continues if the caller is dropped. At most
    /// [`MAX_BLOCKING_FUTURES`] run at once, because such a future may wait for work on another blocking thread.
    pub(crate) async fn run<F>(&self, future: F) -> Result<F::Output, JoinError>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let runtime = Handle::current();
        // The result is not inspected: the semaphore is never closed, so `acquire` always succeeds.
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let in_flight = Arc::clone(&self.in_flight);
        let span = Span::current();
        spawn_blocking(move || {
            let _permit = permit;
            // The guard resets the thread even if the future panics.
            let _in_flight = InFlight::begin(in_flight);
            runtime.block_on(future.instrument(span))
        })
        .await
    }
}

/// Runs blocking work: on this thread if it runs a future of [`BlockingPool::run`], otherwise on another blocking thread.
pub(crate) async fn blocking<T, W>(work: W) -> Result<T, JoinError>
where
    T: Send + 'static,
    W: FnOnce() -> T + Send + 'static,
{
    // This thread may be blocked, so the work needs no handover.
    if ON_BLOCKING_THREAD.get() {
        Ok(work())
    } else {
        let span = Span::current();
        spawn_blocking(move || span.in_scope(work)).await
    }
}

/// Runs blocking work on the calling thread, so that the work may borrow. On a multi-threaded runtime the thread's
/// other tasks are moved away first.
pub(crate) fn in_place<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

struct InFlight(Arc<AtomicUsize>);

impl InFlight {
    fn begin(in_flight: Arc<AtomicUsize>) -> Self {
        // Set on this thread only, because a future of `BlockingPool::run` never changes its thread.
        ON_BLOCKING_THREAD.set(true);
        in_flight.fetch_add(1, Ordering::Relaxed);
        Self(in_flight)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
        ON_BLOCKING_THREAD.set(false);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use tokio::sync::watch;

    use super::*;

    #[tokio::test]
    async fn a_future_stays_on_one_thread_that_is_not_the_runtimes() {
        let here = thread::current().id();
        let pool = BlockingPool::default();
        let threads = pool.run(async {
            let first = blocking(|| thread::current().id()).await.unwrap();
            tokio::task::yield_now().await;
            [first, blocking(|| thread::current().id()).await.unwrap()]
        });
        let [first, second] = threads.await.unwrap();
        assert_eq!(first, second);
        assert_ne!(first, here);
    }

    #[test]
    fn work_that_many_blocking_futures_wait_for_finds_a_thread() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(MAX_BLOCKING_FUTURES + 1)
            .enable_time()
            .build()
            .unwrap();
        let (asked, (open, opened)) = (Arc::new(AtomicUsize::new(0)), watch::channel(false));
        let pool = Arc::new(BlockingPool::default());
        let all = async {
            let ask = || {
                let (asked, mut opened, pool) = (Arc::clone(&asked), opened.clone(), Arc::clone(&pool));
                tokio::spawn(async move {
                    asked.fetch_add(1, Ordering::Relaxed);
                    let running = pool.run(async move {
                        opened.wait_for(|opened| *opened).await.unwrap();
                        spawn_blocking(|| ()).await.unwrap();
                    });
                    running.await.unwrap();
                })
            };
            let running: Vec<_> = (0..MAX_BLOCKING_FUTURES * 2).map(|_| ask()).collect();
            while asked.load(Ordering::Relaxed) < MAX_BLOCKING_FUTURES * 2 {
                tokio::task::yield_now().await;
            }
            open.send_replace(true);
            for running in running {
                running.await.unwrap();
            }
        };
        let ended = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), all).await });
        runtime.shutdown_background();
        ended.expect("they end");
    }

    #[tokio::test]
    async fn a_blocking_thread_is_no_longer_marked_after_a_panic() {
        let panics = async { assert!(!ON_BLOCKING_THREAD.get(), "the future panics") };
        let pool = BlockingPool::default();
        assert!(pool.run(panics).await.unwrap_err().is_panic());
        assert_eq!(pool.in_flight.load(Ordering::Relaxed), 0);
        assert!(!spawn_blocking(|| ON_BLOCKING_THREAD.get()).await.unwrap());
        assert!(!blocking(|| ON_BLOCKING_THREAD.get()).await.unwrap());
    }
}
