//! What the scenarios, and tests of one backend, are made of.
//!
//! Invariant: nothing here waits for time; the one limit of time turns a hang into a failure.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;

use crate::{Bounds, Delivered, Error, Position, Record, Subscription};

/// Far more than any step takes.
const LIMIT: Duration = Duration::from_mins(1);

/// A record of text.
pub fn record(key: &str, value: &str) -> Record {
    Record {
        key: Bytes::copy_from_slice(key.as_bytes()),
        value: Bytes::copy_from_slice(value.as_bytes()),
    }
}

/// Records whose keys and values are the numbers.
pub fn numbered(numbers: std::ops::Range<u32>) -> Vec<Record> {
    numbers.map(|n| record(&format!("{n}"), &format!("{n}"))).collect()
}

/// Exactly `count` records, in deliveries of at most `max`.
pub async fn take(reader: &mut dyn Subscription, count: usize, max: usize) -> Result<Vec<Delivered>, Error> {
    let mut taken = Vec::with_capacity(count);
    while taken.len() < count {
        taken.extend(within(reader.next(max.min(count - taken.len()))).await?);
    }
    Ok(taken)
}

/// The positions to commit once `delivered` is done.
pub fn after(delivered: &[Delivered]) -> Vec<Position> {
    let mut ends = BTreeMap::new();
    for Delivered { position, .. } in delivered {
        ends.insert(position.partition, position.offset + 1);
    }
    ends.into_iter()
        .map(|(partition, offset)| Position { partition, offset })
        .collect()
}

/// Asserts that `delivered` is exactly what `bounds` says, each partition in order.
pub fn assert_gapless(delivered: &[Delivered], bounds: &[Bounds]) {
    for (partition, bounds) in (0_u32..).zip(bounds) {
        let of_it = delivered
            .iter()
            .filter(|delivered| delivered.position.partition == partition);
        let offsets: Vec<u64> = of_it.map(|delivered| delivered.position.offset).collect();
        assert_eq!(
            offsets,
            (bounds.first..bounds.next).collect::<Vec<_>>(),
            "offsets of partition {partition}"
        );
    }
}

/// The output of a future that must come.
pub async fn within<F: Future>(future: F) -> F::Output
where
    F::Output: Debug,
{
    let output = tokio::time::timeout(LIMIT, future).await;
    assert!(output.is_ok(), "nothing happened for {LIMIT:?}");
    match output {
        Ok(output) => output,
        Err(_) => std::future::pending().await,
    }
}

/// Polls a future once and drops it.
pub(super) async fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

pub(super) fn sorted(mut delivered: Vec<Delivered>) -> Vec<Delivered> {
    delivered.sort_by_key(|delivered| delivered.position);
    delivered
}
