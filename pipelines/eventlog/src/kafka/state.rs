//! What a subscription's thread and its reader share.
//!
//! Invariants:
//! - The reader is told of a partition before it is given its records, and given nothing of it after it was told of
//!   its loss.
//! - The buffer has a bound in bytes and in records; the thread polls only while the reader waits, so a reader that is
//!   stuck stops the polling, and its group notices.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use super::watchdog::Positions;
use crate::{Delivered, Error, Event, Position, Record};

/// A buffer is full with the record that brings it to this many bytes, or to this many records.
const BUFFER_BYTES: usize = 8 << 20;
const BUFFER_RECORDS: usize = 4096;

/// What both sides see.
#[derive(Debug, Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// Wakes the thread.
    asked: Condvar,
    /// Wakes the reader.
    told: Notify,
}

#[derive(Debug, Default)]
pub(super) struct State {
    waiting: bool,
    closed: bool,
    failure: Option<Error>,
    changes: VecDeque<Event>,
    pub(super) owned: BTreeMap<u32, Owned>,
    bytes: usize,
    records: usize,
    /// The partition that comes first in the next delivery.
    turn: u32,
}

/// A partition that the reader has.
#[derive(Debug, Default)]
pub(super) struct Owned {
    /// The next offset to come from the brokers, where that is known.
    pub(super) next: Option<u64>,
    /// The highest position committed.
    pub(super) committed: Option<u64>,
    buffer: VecDeque<Delivered>,
}

impl State {
    /// Gives partitions to the reader.
    pub(super) fn assign(&mut self, partitions: impl IntoIterator<Item = (u32, Option<u64>)>) {
        let mut assigned = Vec::new();
        for (partition, next) in partitions {
            self.lose(partition);
            let owned = Owned {
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

    /// Takes partitions from the reader; how many it had of them.
    pub(super) fn revoke(&mut self, partitions: &[u32]) -> usize {
        let revoked: Vec<u32> = partitions.iter().copied().filter(|at| self.lose(*at)).collect();
        let count = revoked.len();
        if count > 0 {
            self.changes.push_back(Event::Revoked(revoked));
        }
        count
    }

    /// The partitions that the reader has, with the next offset to come of each.
    pub(super) fn positions(&self) -> Positions {
        self.owned.iter().map(|(at, owned)| (*at, owned.next)).collect()
    }

    /// Takes all partitions from the reader; where it was in them.
    pub(super) fn revoke_all(&mut self) -> Positions {
        let had = self.positions();
        let partitions: Vec<u32> = had.keys().copied().collect();
        self.revoke(&partitions);
        had
    }

    /// Whether the reader knows by now that it has the partition: it was told of all that happened to it.
    pub(super) fn is_told(&self, partition: u32) -> bool {
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
            self.bytes -= weight(&delivered.record);
            self.records -= 1;
        }
        true
    }

    /// Takes in what came from the brokers. What comes late of a partition that was lost is left out.
    pub(super) fn push(&mut self, position: Position, key: &[u8], value: &[u8]) {
        let Some(owned) = self.owned.get_mut(&position.partition) else {
            return;
        };
        let record = Record {
            key: Bytes::copy_from_slice(key),
            value: Bytes::copy_from_slice(value),
        };
        self.bytes += weight(&record);
        self.records += 1;
        owned.next = Some(position.offset + 1);
        owned.buffer.push_back(Delivered { position, record });
    }

    const fn is_full(&self) -> bool {
        self.bytes >= BUFFER_BYTES || self.records >= BUFFER_RECORDS
    }

    /// Whether there is something for the reader.
    pub(super) fn is_ready(&self) -> bool {
        self.closed || self.failure.is_some() || !self.changes.is_empty() || self.records > 0
    }

    fn take(&mut self, max: usize) -> Option<Result<Event, Error>> {
        if self.closed {
            return Some(Err(Error::Closed));
        }
        if let Some(change) = self.changes.pop_front() {
            return Some(Ok(change));
        }
        if self.records > 0 {
            return Some(Ok(Event::Records(self.deliver(max))));
        }
        self.failure.clone().map(Err)
    }

    /// At most `max` records and about the bytes of a buffer, divided among the partitions that have some, beginning
    /// with the one whose turn it is.
    fn deliver(&mut self, max: usize) -> Vec<Delivered> {
        let (before, after): (Vec<u32>, Vec<u32>) = self
            .owned
            .iter()
            .filter(|(_, owned)| !owned.buffer.is_empty())
            .map(|(at, _)| *at)
            .partition(|at| *at < self.turn);
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
                taken += weight(&next.record);
                left -= 1;
                delivered.push(next);
            }
            bytes = bytes.saturating_sub(taken);
            self.bytes -= taken;
            self.turn = partition + 1;
            if bytes == 0 {
                break;
            }
        }
        self.records -= delivered.len();
        delivered
    }
}

/// What a record counts in the buffer, in bytes.
fn weight(record: &Record) -> usize {
    record.key.len() + record.value.len()
}

/// While it lives, the reader waits.
#[derive(Debug)]
struct Waiting<'a>(&'a Shared);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting = false;
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for what the reader is told next.
    pub(super) async fn event(&self, max: usize) -> Result<Event, Error> {
        let _waiting = {
            self.lock().waiting = true;
            self.asked.notify_one();
            Waiting(self)
        };
        loop {
            let mut told = std::pin::pin!(self.told.notified());
            told.as_mut().enable();
            if let Some(event) = self.lock().take(max) {
                return event;
            }
            told.await;
        }
    }

    /// Wakes the reader if there is something for it.
    pub(super) fn tell(&self) {
        if self.lock().is_ready() {
            self.told.notify_waiters();
        }
    }

    /// Waits until the thread is to poll; `false` once it is to end.
    pub(super) fn is_asked(&self) -> bool {
        let state = self
            .asked
            .wait_while(self.lock(), |state| {
                !state.closed && (!state.waiting || state.failure.is_some() || state.is_full())
            })
            .unwrap_or_else(PoisonError::into_inner);
        !state.closed
    }

    /// Whether the thread may go on taking in what has come already.
    pub(super) fn has_room(&self) -> bool {
        let state = self.lock();
        !state.closed && !state.is_full()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Ends the subscription, for both sides.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.asked.notify_one();
        self.told.notify_waiters();
    }

    /// Ends the subscription with an error, after what was taken in.
    pub(super) fn fail(&self, error: Error) {
        self.lock().failure.get_or_insert(error);
        self.told.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(state: &mut State, partition: u32, offset: u64, bytes: usize) {
        state.push(Position { partition, offset }, b"", &vec![0; bytes]);
    }

    fn partitions(delivered: &[Delivered]) -> Vec<u32> {
        delivered.iter().map(|delivered| delivered.position.partition).collect()
    }

    #[test]
    fn partitions_take_turns_and_share_a_delivery() {
        let mut state = State::default();
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
        let mut state = State::default();
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
        let mut state = State::default();
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
