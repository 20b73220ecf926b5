//! Changes that share a commit, and changes that do not.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::oneshot;
use types::{Classify, Kind, Retry, Timestamp};

use super::Change;
use crate::tests::fresh_file;
use crate::{Error, Options, Store};

/// The scenarios that hold whether changes share a transaction or not.
macro_rules! on_every_engine {
    ($($scenario:ident),*) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $scenario() {
                let (url, _folder) = crate::tests::fresh_file();
                super::$scenario(&url).await;
            })*
        }
        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[tokio::test]
            async fn $scenario() {
                let Some((url, ())) = crate::tests::server::fresh() else { return };
                super::$scenario(&url).await;
            })*
        }
    };
}

on_every_engine!(
    a_change_that_fails_takes_no_other_with_it,
    a_change_whose_caller_is_gone_before_it_begins_is_not_made,
    a_change_that_panics_fails_and_the_next_is_written
);

/// A change that holds a writer until it is told to go on.
struct Held {
    go_on: oneshot::Sender<()>,
    done: tokio::task::JoinHandle<Result<(), Error>>,
}

async fn hold(store: &Store) -> Held {
    let (started, begun) = oneshot::channel();
    let (go_on, gone_on) = oneshot::channel::<()>();
    let once = Arc::new(Mutex::new(Some((started, gone_on))));
    let store = store.clone();
    let done = tokio::spawn(async move {
        store
            .write(move |_| {
                Box::pin(async move {
                    let (started, gone_on) = once.lock().unwrap().take().unwrap();
                    started.send(()).ok();
                    gone_on.await.ok();
                    Ok(Change::Keep(()))
                })
            })
            .await
    });
    begun.await.unwrap();
    Held { go_on, done }
}

impl Held {
    async fn release(self) {
        self.go_on.send(()).unwrap();
        self.done.await.unwrap().unwrap();
    }
}

/// Takes a change as far as the queue.
fn queue<T>(change: Pin<&mut impl Future<Output = T>>) {
    let polled = change.poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Pending), "the writer is held");
}

async fn count(store: &Store, kind: &str) -> u64 {
    let counts = store.usage(1).await.unwrap();
    counts
        .iter()
        .find(|(name, _)| name == kind)
        .map_or(0, |(_, used)| *used)
}

#[tokio::test]
async fn changes_that_queue_up_share_a_commit() {
    let (url, _folder) = fresh_file();
    let store = Store::connect(&url, Options::default()).await.unwrap();
    let before = store.commits();
    let held = hold(&store).await;
    let mut changes: Vec<_> = (0..20).map(|_| Box::pin(store.usage_count(1, "kept", 1))).collect();
    for change in &mut changes {
        queue(change.as_mut());
    }
    held.release().await;
    for change in changes {
        change.await.unwrap();
    }
    assert_eq!(count(&store, "kept").await, 20);
    assert_eq!(store.commits() - before, 2);
}

async fn a_change_that_fails_takes_no_other_with_it(url: &str) {
    let store = Store::connect(url, Options::default()).await.unwrap();
    let held = hold(&store).await;
    let mut first = pin!(store.usage_count(1, "kept", 1));
    let mut failing = pin!(store.write(|cx| {
        Box::pin(async move {
            sqlx::query("INSERT INTO usage_counts (day, kind, used) VALUES (1, 'failing', 1)")
                .execute(&mut *cx)
                .await?;
            sqlx::query("INSERT INTO usage_counts (day, kind, used) VALUES (1, 'failing', 2)")
                .execute(&mut *cx)
                .await?;
            Ok(Change::Keep(()))
        })
    }));
    let mut undone = pin!(store.write(|cx| {
        Box::pin(async move {
            sqlx::query("UPDATE usage_counts SET used = 1000")
                .execute(&mut *cx)
                .await?;
            Ok(Change::Undo(7))
        })
    }));
    let mut last = pin!(store.usage_count(1, "kept", 1));
    queue(first.as_mut());
    queue(failing.as_mut());
    queue(undone.as_mut());
    queue(last.as_mut());
    held.release().await;

    first.await.unwrap();
    let error = failing.await.unwrap_err();
    assert_eq!((error.kind(), error.retry()), (Kind::Internal, Retry::Never));
    assert_eq!(undone.await.unwrap(), 7);
    last.await.unwrap();
    assert_eq!((count(&store, "kept").await, count(&store, "failing").await), (2, 0));
}

#[tokio::test]
async fn work_that_finds_nothing_to_do_makes_no_group_run_again_and_commits_nothing() {
    let (url, _folder) = fresh_file();
    let store = Store::connect(&url, Options::default()).await.unwrap();
    let (before, now) = (store.commits(), Timestamp::from_micros(1_795_000_000_000_000));
    let runs = Arc::new(AtomicU32::new(0));
    for has_change in [true, false] {
        let held = hold(&store).await;
        let counted = Arc::clone(&runs);
        let mut change = pin!(store.write(move |cx| {
            counted.fetch_add(1, Ordering::Relaxed);
            Box::pin(async move {
                sqlx::query("INSERT INTO usage_counts (day, kind, used) VALUES (1, 'kept', 1)")
                    .execute(&mut *cx)
                    .await?;
                Ok(Change::Keep(()))
            })
        }));
        if has_change {
            queue(change.as_mut());
        }
        let (flow, knowledge, payments) = (store.flow(), store.knowledge(), store.payments());
        let mut counters = pin!(store.counters_prune(now));
        let mut permits = pin!(knowledge.permits_prune(now));
        let mut jobs = pin!(flow.jobs_lease(now, Duration::from_secs(1), 10));
        let mut due = pin!(payments.due(now, now, 10));
        queue(counters.as_mut());
        queue(permits.as_mut());
        queue(jobs.as_mut());
        queue(due.as_mut());
        held.release().await;
        assert_eq!((counters.await.unwrap(), permits.await.unwrap()), (0, 0));
        assert!(jobs.await.unwrap().is_empty() && due.await.unwrap().is_empty());
        if has_change {
            change.await.unwrap();
        }
    }
    assert_eq!((runs.load(Ordering::Relaxed), count(&store, "kept").await), (1, 1));
    // Those of the two that hold the writer, and one.
    assert_eq!(store.commits() - before, 3);
}

async fn a_change_whose_caller_is_gone_before_it_begins_is_not_made(url: &str) {
    let store = Store::connect(url, Options::default()).await.unwrap();
    let held = hold(&store).await;
    {
        let mut abandoned = Box::pin(store.usage_count(1, "abandoned", 1));
        queue(abandoned.as_mut());
    }
    let mut kept = pin!(store.usage_count(1, "kept", 1));
    queue(kept.as_mut());
    held.release().await;
    kept.await.unwrap();
    assert_eq!((count(&store, "kept").await, count(&store, "abandoned").await), (1, 0));
}

#[tokio::test]
async fn a_group_that_loses_its_transaction_fails_whole_and_the_next_is_made() {
    let (url, _folder) = fresh_file();
    let store = Store::connect(&url, Options::default()).await.unwrap();
    let held = hold(&store).await;
    let mut first = pin!(store.usage_count(1, "lost", 1));
    // An engine may end the transaction of a group by itself if a disk is full.
    let mut fatal = pin!(store.write(|cx| {
        Box::pin(async move {
            sqlx::query("ROLLBACK").execute(&mut *cx).await?;
            sqlx::query("RELEASE nothing").execute(&mut *cx).await?;
            Ok(Change::Keep(()))
        })
    }));
    let mut last = pin!(store.usage_count(1, "lost", 1));
    queue(first.as_mut());
    queue(fatal.as_mut());
    queue(last.as_mut());
    held.release().await;
    assert!(first.await.is_err());
    assert!(fatal.await.is_err());
    assert!(last.await.is_err());
    store.usage_count(1, "kept", 1).await.unwrap();
    assert_eq!((count(&store, "kept").await, count(&store, "lost").await), (1, 0));
}

#[tokio::test]
async fn reads_do_not_wait_behind_a_write_and_other_writers_give_up_in_time() {
    let (url, _folder) = fresh_file();
    let store = Store::connect(&url, Options::default()).await.unwrap();
    let impatient = Options {
        busy_timeout: Duration::from_millis(20),
        ..Options::default()
    };
    let other = Store::connect(&url, impatient).await.unwrap();
    store.usage_count(1, "kept", 1).await.unwrap();

    let held = hold(&store).await;
    assert_eq!((count(&store, "kept").await, count(&other, "kept").await), (1, 1));
    store.ping().await.unwrap();
    let error = other.usage_count(1, "kept", 1).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    assert_eq!(error.retry(), Retry::Backoff);
    held.release().await;
    other.usage_count(1, "kept", 1).await.unwrap();
    assert_eq!(count(&store, "kept").await, 2);
}

#[tokio::test]
async fn a_change_that_does_not_end_in_time_is_unavailable() {
    let (url, _folder) = fresh_file();
    let hasty = Options {
        timeout: Duration::from_millis(200),
        ..Options::default()
    };
    let store = Store::connect(&url, hasty).await.unwrap();
    let held = hold(&store).await;
    let error = store.usage_count(1, "late", 1).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error:?}");
    assert_eq!((error.kind(), error.retry()), (Kind::Unavailable, Retry::Backoff));
    drop(held.go_on);
    store.usage_count(1, "kept", 1).await.unwrap();
    assert_eq!((count(&store, "kept").await, count(&store, "late").await), (1, 0));
}

async fn a_change_that_panics_fails_and_the_next_is_written(url: &str) {
    let store = Store::connect(url, Options::default()).await.unwrap();
    let panicked: Result<(), Error> = store
        .write(|_| Box::pin(async { unreachable!("a change that panics") }))
        .await;
    assert_eq!(panicked.unwrap_err().kind(), Kind::Unavailable);
    assert_eq!(
        store.write(|_| Box::pin(async { Ok(Change::Keep(7)) })).await.unwrap(),
        7
    );
}
