use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt as _;
use tokio::sync::Notify;
use types::Clock as _;

use super::*;
use crate::testing::Service;

/// A value about no project, which counts as this many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sized(u64, usize);

impl Remembered for Sized {
    fn project(&self) -> Option<DatasetId> {
        None
    }

    fn bytes(&self) -> usize {
        self.1
    }
}

/// A query that counts itself and answers when it is released.
#[derive(Clone, Default)]
struct Asked {
    count: Arc<AtomicU64>,
    released: Arc<Notify>,
}

impl Asked {
    fn now(&self) -> Ready<Result<Option<Sized>, Error>> {
        ready(Ok(Some(Sized(self.count.fetch_add(1, Ordering::SeqCst) + 1, 1))))
    }

    async fn later(self) -> Result<Option<Sized>, Error> {
        let count = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        self.released.notified().await;
        Ok(Some(Sized(count, 1)))
    }
}

#[tokio::test]
async fn a_value_is_asked_for_again_when_it_is_old() {
    let service = Service::start().await;
    let (store, asked) = (&service.app.store, Asked::default());
    let values = FreshCache::new(1 << 20);
    let get = async || {
        let now = service.clock.now();
        let found = values.get(store, "key", now, || asked.now()).await;
        found.unwrap().unwrap().0
    };
    assert_eq!((get().await, get().await), (1, 1));
    let (almost, rest) = (Duration::from_micros(499_999), Duration::from_micros(1));
    service.clock.advance(almost);
    assert_eq!(get().await, 1);
    service.clock.advance(rest);
    assert_eq!((get().await, get().await), (2, 2));
    // A value of the future may be of any age.
    let earlier = service.clock.now().minus(Duration::from_micros(1));
    assert_eq!(values.peek(store, &"key", earlier), None);
}

#[tokio::test]
async fn callers_at_the_same_time_share_a_query_and_none_that_knows_of_a_change_joins_an_older_one() {
    let service = Service::start().await;
    let (store, now, asked) = (&service.app.store, service.clock.now(), Asked::default());
    let values = FreshCache::new(1 << 20);
    let mut first = Box::pin(values.get(store, "key", now, || asked.clone().later()));
    let mut second = Box::pin(values.get(store, "key", now, || asked.clone().later()));
    assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
    assert_eq!(asked.count.load(Ordering::SeqCst), 1);
    // Any change that this process answers.
    service.operator().await;
    let mut third = Box::pin(values.get(store, "key", now, || asked.clone().later()));
    assert!(third.as_mut().now_or_never().is_none());
    asked.released.notify_waiters();
    let found = tokio::join!(first, second, third);
    let numbers = [found.0, found.1, found.2].map(|found| found.unwrap().unwrap().0);
    assert_eq!(numbers, [1, 1, 2]);
    assert_eq!(
        values.peek(store, &"key", now),
        Some(Sized(2, 1)),
        "the newer query is remembered"
    );
}

#[tokio::test]
async fn a_query_that_a_change_overtook_is_not_remembered() {
    let service = Service::start().await;
    let (store, now, asked) = (&service.app.store, service.clock.now(), Asked::default());
    let values = FreshCache::new(1 << 20);
    let mut getting = Box::pin(values.get(store, "key", now, || asked.clone().later()));
    assert!(getting.as_mut().now_or_never().is_none());
    service.operator().await;
    asked.released.notify_waiters();
    assert_eq!(getting.await.unwrap(), Some(Sized(1, 1)));
    assert_eq!(values.peek(store, &"key", now), None);
}

#[tokio::test]
async fn callers_that_leave_end_their_query() {
    let service = Service::start().await;
    let (store, now, asked) = (&service.app.store, service.clock.now(), Asked::default());
    let values = FreshCache::new(1 << 20);
    let mut left = Box::pin(values.get(store, "key", now, || asked.clone().later()));
    assert!(left.as_mut().now_or_never().is_none());
    drop(left);
    assert_eq!(Arc::strong_count(&asked.count), 1, "the query is gone");
    let found = values.get(store, "key", now, || asked.now()).await;
    assert_eq!(found.unwrap(), Some(Sized(2, 1)));
}

#[tokio::test]
async fn what_is_missing_or_failed_is_asked_for_each_time_and_takes_no_room() {
    let service = Service::start().await;
    let (store, now) = (&service.app.store, service.clock.now());
    let values = FreshCache::<u64, Sized>::new(1 << 20);
    for key in 0..1_000 {
        assert_eq!(values.get(store, key, now, async || Ok(None)).await.unwrap(), None);
        let failed = values.get(store, key, now, async || Err(Error::Closed)).await;
        assert!(matches!(failed, Err(Error::Closed)));
    }
    assert_eq!(values.weight(), 0);
}

#[tokio::test]
async fn values_take_no_more_room_than_they_may() {
    const MOST: usize = 64 << 10;
    let service = Service::start().await;
    let (store, now) = (&service.app.store, service.clock.now());
    let values = FreshCache::new(MOST);
    for key in 0..10_000_u64 {
        let bytes = usize::try_from(key % 3_000).unwrap();
        let found = values
            .get(store, key, now, async move || Ok(Some(Sized(key, bytes))))
            .await;
        assert_eq!(found.unwrap(), Some(Sized(key, bytes)));
        assert!(values.weight() <= MOST, "{}", values.weight());
        assert!(values.peek(store, &key, now).is_some(), "the newest is remembered");
    }
    let nothing = FreshCache::new(0);
    let found = nothing.get(store, 1, now, async || Ok(Some(Sized(1, 1)))).await;
    assert_eq!(
        (found.unwrap(), nothing.peek(store, &1, now)),
        (Some(Sized(1, 1)), None)
    );
}
