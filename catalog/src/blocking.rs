//! Work that blocks its thread, and the threads that may be blocked.
//!
//! Invariant: nothing here blocks a thread of the runtime, but one that was told so first. Several pieces of such work that
//! belong together are carried by one thread, because handing each to another and back costs more than some of them.

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
    /// Whether this thread carries a future to its end.
    static CARRIES: Cell<bool> = const { Cell::new(false) };
}

/// The most futures that are carried: a quarter of the threads for work that blocks which a runtime of `tokio` has.
const MOST: usize = 128;

static TURNS: Semaphore = Semaphore::const_new(MOST);

/// How many futures are carried.
static CARRIED: AtomicUsize = AtomicUsize::new(0);
static PROCESSORS: LazyLock<usize> = LazyLock::new(|| available_parallelism().map_or(1, NonZero::get));

/// Whether more futures are carried than there are processors, so that another thread for one of them takes its time from
/// the others.
pub(crate) fn many_are_carried() -> bool {
    CARRIED.load(Ordering::Relaxed) > *PROCESSORS
}

/// Does work that blocks: here, where the future that asks is carried, else on another thread.
pub(crate) async fn blocking<T, W>(work: W) -> Result<T, JoinError>
where
    T: Send + 'static,
    W: FnOnce() -> T + Send + 'static,
{
    if CARRIES.get() {
        Ok(work())
    } else {
        let span = Span::current();
        spawn_blocking(move || span.in_scope(work)).await
    }
}

/// Does work that blocks on the thread that asks, as it borrows what it works on.
pub(crate) fn in_place<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Polls a future on one thread that may be blocked, until it is done. It goes on when nobody waits for it any more. So
/// many are carried at once that threads are left for what they wait for, which may be on another thread.
pub(crate) async fn carry<F>(future: F) -> Result<F::Output, JoinError>
where
    F: Future<Output: Send> + Send + 'static,
{
    let runtime = Handle::current();
    // Why ignored: a semaphore that is never closed always gives its turn.
    let turn = TURNS.acquire().await;
    let span = Span::current();
    spawn_blocking(move || {
        let _turn = turn;
        let _carrying = Carrying::begin();
        runtime.block_on(future.instrument(span))
    })
    .await
}

struct Carrying;

impl Carrying {
    fn begin() -> Self {
        CARRIES.set(true);
        CARRIED.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Carrying {
    fn drop(&mut self) {
        CARRIED.fetch_sub(1, Ordering::Relaxed);
        CARRIES.set(false);
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
    async fn what_is_carried_stays_on_one_thread_that_is_not_the_runtimes() {
        let here = thread::current().id();
        let threads = carry(async {
            let first = blocking(|| thread::current().id()).await.unwrap();
            tokio::task::yield_now().await;
            [first, blocking(|| thread::current().id()).await.unwrap()]
        });
        let [first, second] = threads.await.unwrap();
        assert_eq!(first, second);
        assert_ne!(first, here);
    }

    #[test]
    fn what_many_wait_for_while_they_are_carried_finds_a_thread() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(MOST + 1)
            .enable_time()
            .build()
            .unwrap();
        let (asked, (open, opened)) = (Arc::new(AtomicUsize::new(0)), watch::channel(false));
        let all = async {
            let ask = || {
                let (asked, mut opened) = (Arc::clone(&asked), opened.clone());
                tokio::spawn(async move {
                    asked.fetch_add(1, Ordering::Relaxed);
                    let carried = carry(async move {
                        opened.wait_for(|opened| *opened).await.unwrap();
                        spawn_blocking(|| ()).await.unwrap();
                    });
                    carried.await.unwrap();
                })
            };
            let carried: Vec<_> = (0..MOST * 2).map(|_| ask()).collect();
            while asked.load(Ordering::Relaxed) < MOST * 2 {
                tokio::task::yield_now().await;
            }
            open.send_replace(true);
            for carried in carried {
                carried.await.unwrap();
            }
        };
        let ended = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), all).await });
        runtime.shutdown_background();
        ended.expect("they end");
    }

    #[tokio::test]
    async fn a_thread_that_carried_a_panic_carries_nothing_more() {
        let panics = async { assert!(!CARRIES.get(), "what is carried panics") };
        assert!(carry(panics).await.unwrap_err().is_panic());
        assert!(!spawn_blocking(|| CARRIES.get()).await.unwrap());
        assert!(!blocking(|| CARRIES.get()).await.unwrap());
    }
}
