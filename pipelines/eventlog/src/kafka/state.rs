//! State shared by the thread of a subscription and its reader.
//!
//! Invariants:
//! - The reader receives [`Event::Assigned`] before the first record of a partition, and no record of it after
//!   [`Event::Revoked`].
//! - The buffer is bounded in bytes and in records. The thread polls only while the reader waits, so a stuck reader
//!   stops the polling, and its group notices.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::Notify;

use super::health::Positions;
use crate::{Delivered, Error, Event, Position, Record};

/// A buffer is full with the record that brings it to this many bytes, or to this many records.
const BUFFER_BYTES: usize = 8 << 20;
const BUFFER_RECORDS: usize = 4096;

/// State behind a lock, with a wake-up for each side.
#[derive(Debug, Default)]
pub(super) struct BufferShared {
    state: Mutex<BufferState>,
    /// Wakes the thread.
    thread_wake: Condvar,
    /// Wakes the reader.
    reader_wake: Notify,
}

#[derive(Debug, Default)]
pub(super) struct BufferState {
    waiting: bool,
    closed: bool,
    failure: Option<Error>,
    changes: VecDeque<Event>,
    pub(super) owned: BTreeMap<u32, OwnedPartition>,
    bytes: usize,
    records: usize,
    /// The partition that comes first in the next delivery.
    next_partition: u32,
}

/// A partition that the reader has.
#[derive(Debug, Default)]
pub(super) struct OwnedPartition {
    /// The next offset expected from the brokers, if known.
    pub(super) next: Option<u64>,
    /// The highest committed position.
    pub(super) committed: Option<u64>,
    buffer: VecDeque<Delivered>,
}

impl BufferState {
    /// Assigns partitions to the reader. A partition that it has already starts again.
    pub(super) fn assign(&mut self, partitions: impl IntoIterator<Item = (u32, Option<u64>)>) {
        let mut assigned = Vec::new();
        for (partition, next) in partitions {
            // A partition that is assigned again starts over; buffered records of the old
            // assignment are dropped.
            self.lose(partition);
            let owned = OwnedPartition {
                next,
                committed: next,
                buffer: VecDeque::new(),
            };
            self.owned.insert(partition, owned);
            assigned.push(partition);
        }
        if !assigned.is_empty() {
            self.changes.push_back(Event::Assigned(assigned));
        }
    }

    /// Revokes partitions and returns how many of them the reader had.
    pub(super) fn revoke(&mut self, partitions: &[u32]) -> usize {
        let revoked: Vec<u32> = partitions.iter().copied().filter(|at| self.lose(*at)).collect();
        let count = revoked.len();
        if count > 0 {
            self.changes.push_back(Event::Revoked(revoked));
        }
        count
    }

    /// Returns the next expected offset of each partition of the reader.
    pub(super) fn positions(&self) -> Positions {
        self.owned.iter().map(|(at, owned)| (*at, owned.next)).collect()
    }

    /// Revokes all partitions and returns the reader's positions in them.
    pub(super) fn revoke_all(&mut self) -> Positions {
        let had = self.positions();
        let partitions: Vec<u32> = had.keys().copied().collect();
        self.revoke(&partitions);
        had
    }

    /// Returns true if the reader has the partition and has received every event about it.
    pub(super) fn has_seen_assignment(&self, partition: u32) -> bool {
        let concerns = |change: &Event| match change {
            Event::Assigned(partitions) | Event::Revoked(partitions) => partitions.contains(&partition),
            Event::Records(_) => false,
        };
        self.owned.contains_key(&partition) && !self.changes.iter().any(concerns)
    }

    fn lose(&mut self, partition: u32) -> bool {
        let Some(owned) = self.owned.remove(&partition) else {
            return false;
        };
        for delivered in &owned.buffer {
            self.bytes -= size(&delivered.record);
            self.records -= 1;
        }
        true
    }

    /// Buffers a record. Records of a lost partition are dropped.
    pub(super) fn push(&mut self, position: Position, key: &[u8], value: &[u8]) {
        let Some(owned) = self.owned.get_mut(&position.partition) else {
            return;
        };
        let record = Record {
            key: Bytes::copy_from_slice(key),
            value: Bytes::copy_from_slice(value),
        };
        self.bytes += size(&record);
        self.records += 1;
        owned.next = Some(position.offset + 1);
        owned.buffer.push_back(Delivered { position, record });
    }

    const fn is_full(&self) -> bool {
        self.bytes >= BUFFER_BYTES || self.records >= BUFFER_RECORDS
    }

    /// Returns true if the reader has something to receive.
    pub(super) fn is_ready(&self) -> bool {
        self.closed || self.failure.is_some() || !self.changes.is_empty() || self.records > 0
    }

    fn take(&mut self, max: usize) -> Option<Result<Event, Error>> {
        if self.closed {
            return Some(Err(Error::Closed));
        }
        // Assignment changes come before records, so the reader knows a partition before its
        // records arrive.
        if let Some(change) = self.changes.pop_front() {
            return Some(Ok(change));
        }
        if self.records > 0 {
            return Some(Ok(Event::Records(self.deliver(max))));
        }
        self.failure.clone().map(Err)
    }

    /// Takes at most `max` records and about [`BUFFER_BYTES`], divided among the partitions that have some, beginning
    /// with [`Self::next_partition`].
    fn deliver(&mut self, max: usize) -> Vec<Delivered> {
        let (before, after): (Vec<u32>, Vec<u32>) = self
            .owned
            .iter()
            .filter(|(_, owned)| !owned.buffer.is_empty())
            .map(|(at, _)| *at)
            .partition(|at| *at < self.next_partition);
        let order: Vec<u32> = after.into_iter().chain(before).take(max).collect();
        let (mut left, mut bytes) = (max, BUFFER_BYTES);
        let mut delivered = Vec::new();
        for (index, partition) in order.iter().enumerate() {
            let others = order.len() - index;
            let (share, room) = (left.div_ceil(others), bytes.div_ceil(others));
            let Some(owned) = self.owned.get_mut(partition) else {
                continue;
            };
            let mut taken = 0;
            for _ in 0..share {
                if taken >= room {
                    break;
                }
                let Some(next) = owned.buffer.pop_front() else { break };
                taken += size(&next.record);
                left -= 1;
                delivered.push(next);
            }
            bytes = bytes.saturating_sub(taken);
            self.bytes -= taken;
            self.next_partition = partition + 1;
            if bytes == 0 {
                break;
            }
        }
        self.records -= delivered.len();
        delivered
    }
}

/// Returns the bytes that a record takes in the buffer.
fn size(record: &Record) -> usize {
    record.key.len() + record.value.len()
}

/// A guard: while it lives, the reader waits.
#[derive(Debug)]
struct WaitingReader<'a>(&'a BufferShared);

impl Drop for WaitingReader<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting = false;
    }
}

impl BufferShared {
    pub(super) fn lock(&self) -> MutexGuard<'_, BufferState> {
        self.state.lock()
    }

    /// Waits for the next event of the reader.
    pub(super) async fn event(&self, max: usize) -> Result<Event, Error> {
        let _waiting = {
            self.lock().waiting = true;
            self.thread_wake.notify_one();
            WaitingReader(self)
        };
        loop {
            // Subscribes to the wake-up before looking, so that an event in between is not
            // missed.
            let mut woken = std::pin::pin!(self.reader_wake.notified());
            woken.as_mut().enable();
            if let Some(event) = self.lock().take(max) {
                return event;
            }
            woken.await;
        }
    }

    /// Wakes the reader if it has something to receive.
    pub(super) fn wake_reader(&self) {
        if self.lock().is_ready() {
            self.reader_wake.notify_waiters();
        }
    }

    /// Blocks the thread until the reader waits for records. Returns false once the subscription is closed.
    pub(super) fn wait_until_wanted(&self) -> bool {
        let mut state = self.lock();
        self.thread_wake.wait_while(&mut state, |state| {
            !state.closed && (!state.waiting || state.failure.is_some() || state.is_full())
        });
        !state.closed
    }

    /// Returns true if the thread may buffer more records.
    pub(super) fn has_room(&self) -> bool {
        let state = self.lock();
        !state.closed && !state.is_full()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Closes the subscription for both sides.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.thread_wake.notify_one();
        self.reader_wake.notify_waiters();
    }

    /// Ends the subscription with an error, after the reader received the buffered records.
    pub(super) fn fail(&self, error: Error) {
        self.lock().failure.get_or_insert(error);
        self.reader_wake.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(state: &mut BufferState, partition: u32, offset: u64, bytes: usize) {
        state.push(Position { partition, offset }, b"", &vec![0; bytes]);
    }

    fn partitions(delivered: &[Delivered]) -> Vec<u32> {
        delivered.iter().map(|delivered| delivered.position.partition).collect()
    }

    #[test]
    fn partitions_take_turns_and_share_a_delivery() {
        let mut state = BufferState::default();
        state.assign([(0, None), (1, None), (2, None)]);
        for offset in 0..10 {
            push(&mut state, 1, offset, 1);
        }
        push(&mut state, 0, 0, 1);
        push(&mut state, 2, 0, 1);
        assert_eq!(partitions(&state.deliver(1)), [0]);
        assert_eq!(partitions(&state.deliver(1)), [1]);
        assert_eq!(partitions(&state.deliver(1)), [2]);
        push(&mut state, 0, 1, 1);
        assert_eq!(partitions(&state.deliver(4)), [0, 1, 1, 1]);
        assert_eq!(partitions(&state.deliver(100)).len(), 6);
        assert_eq!((state.bytes, state.records), (0, 0));
    }

    #[test]
    fn a_delivery_is_bounded_by_bytes_and_passes_at_least_one_record() {
        let mut state = BufferState::default();
        state.assign([(0, None)]);
        for offset in 0..3 {
            push(&mut state, 0, offset, BUFFER_BYTES / 2 + 1);
        }
        assert!(state.is_full());
        assert_eq!(state.deliver(100).len(), 2);
        assert_eq!(state.deliver(100).len(), 1);
    }

    #[test]
    fn nothing_of_a_lost_partition_is_delivered() {
        let mut state = BufferState::default();
        state.assign([(0, Some(5)), (1, None)]);
        push(&mut state, 0, 5, 1);
        push(&mut state, 1, 0, 1);
        assert_eq!(state.revoke(&[0, 7]), 1);
        push(&mut state, 0, 6, 1);
        let told: Vec<Event> = std::iter::from_fn(|| state.take(10).and_then(Result::ok)).collect();
        assert_eq!(told.len(), 3, "{told:?}");
        assert_eq!(told[0], Event::Assigned(vec![0, 1]));
        assert_eq!(told[1], Event::Revoked(vec![0]));
        assert!(
            matches!(&told[2], Event::Records(records) if partitions(records) == [1]),
            "{told:?}"
        );
    }
}
