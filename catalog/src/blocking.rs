//! Blocking work, and the threads that may be blocked.
//!
//! Invariant: on a multi-threaded runtime, no function here blocks a thread of the runtime, except [`in_place`] after
//! it has moved the runtime's tasks to another thread. Blocking steps that belong together run on one thread, because a
//! handover to another thread and back costs more than some of the steps.

use std::cell::Cell;
use std::num::NonZero;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};
use tracing::{Instrument as _, Span};

thread_local! {
    /// True while this thread runs a future of [`run_blocking`].
    static ON_BLOCKING_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Maximum number of futures on blocking threads at once: a quarter of tokio's default of 512 blocking threads.
const MAX_BLOCKING_FUTURES: usize = 128;

static BLOCKING_PERMITS: Semaphore = Semaphore::const_new(MAX_BLOCKING_FUTURES);

/// Number of futures that run on blocking threads now.
static BLOCKING_IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);
static PROCESSORS: LazyLock<usize> = LazyLock::new(|| available_parallelism().map_or(1, NonZero::get));

/// Returns true if more futures run on blocking threads than there are processors. Another thread for one of them would
/// then take processor time from the others.
pub(crate) fn blocking_exceeds_processors() -> bool {
    BLOCKING_IN_FLIGHT.load(Ordering::Relaxed) > *PROCESSORS
}

/// Runs blocking work: on this thread if it runs a future of [`run_blocking`], otherwise on another blocking thread.
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

/// Polls a future to completion on one blocking thread. The future continues if the caller is dropped. At most
/// [`MAX_BLOCKING_FUTURES`] run at once, because such a future may wait for work on another blocking thread.
pub(crate) async fn run_blocking<F>(future: F) -> Result<F::Output, JoinError>
where
    F: Future<Output: Send> + Send + 'static,
{
    let runtime = Handle::current();
    // The result is not inspected: the semaphore is never closed, so `acquire` always succeeds.
    let permit = BLOCKING_PERMITS.acquire().await;
    let span = Span::current();
    spawn_blocking(move || {
        let _permit = permit;
        // The guard resets the thread even if the future panics.
        let _in_flight = InFlight::begin();
        runtime.block_on(future.instrument(span))
    })
    .await
}

struct InFlight;

impl InFlight {
    fn begin() -> Self {
        // Set on this thread only, because a future of `run_blocking` never changes its thread.
        ON_BLOCKING_THREAD.set(true);
        BLOCKING_IN_FLIGHT.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        BLOCKING_IN_FLIGHT.fetch_sub(1, Ordering::Relaxed);
        ON_BLOCKING_THREAD.set(false);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use tokio::sync::watch;

    use super::*;

    #[tokio::test]
    async fn a_future_stays_on_one_thread_that_is_not_the_runtimes() {
        let here = thread::current().id();
        let threads = run_blocking(async {
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
        let all = async {
            let ask = || {
                let (asked, mut opened) = (Arc::clone(&asked), opened.clone());
                tokio::spawn(async move {
                    asked.fetch_add(1, Ordering::Relaxed);
                    let running = run_blocking(async move {
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
        assert!(run_blocking(panics).await.unwrap_err().is_panic());
        assert!(!spawn_blocking(|| ON_BLOCKING_THREAD.get()).await.unwrap());
        assert!(!blocking(|| ON_BLOCKING_THREAD.get()).await.unwrap());
    }
}
