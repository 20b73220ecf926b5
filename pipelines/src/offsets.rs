//! The low-water mark of each partition: the offset up to which every delivery is acknowledged.
//!
//! Invariant: a mark never passes a message that is not done, so that a restart redelivers it. A partition that was
//! lost has no mark, whatever becomes of the messages that were open in it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use eventlog::Position;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Tracks the messages of one subscription.
#[derive(Clone, Debug)]
pub(crate) struct OffsetTracker {
    shared: Arc<SharedOffsets>,
}

#[derive(Debug)]
struct SharedOffsets {
    partitions: Mutex<PartitionOffsets>,
    moved: Notify,
    stop: CancellationToken,
}

#[derive(Debug, Default)]
struct PartitionOffsets {
    by_number: HashMap<u32, OpenOffsets>,
    /// Number of times that partitions were lost.
    losses: u64,
}

#[derive(Debug, Default)]
struct OpenOffsets {
    /// The losses before its first message: handles of an earlier time say nothing about this one.
    since: u64,
    open: BTreeSet<u64>,
    /// The offset after the last delivered message.
    next: u64,
    /// The mark handed out last.
    marked: u64,
}

impl OpenOffsets {
    fn mark(&self) -> u64 {
        self.open.first().copied().unwrap_or(self.next)
    }
}

impl OffsetTracker {
    /// Of a subscription that is read until `stop`.
    pub(crate) fn new(stop: CancellationToken) -> Self {
        Self {
            shared: Arc::new(SharedOffsets {
                partitions: Mutex::default(),
                moved: Notify::new(),
                stop,
            }),
        }
    }

    /// Opens a message; it is done when the handle is [acknowledged](AckHandle::ack).
    pub(crate) fn track(&self, position: Position) -> AckHandle {
        let mut partitions = self.shared.partitions.lock();
        let since = partitions.losses;
        let partition = partitions
            .by_number
            .entry(position.partition)
            .or_insert_with(|| OpenOffsets {
                since,
                // Nothing before the first message was read here, so nothing is to be committed until
                // it is done.
                marked: position.offset,
                ..OpenOffsets::default()
            });
        partition.open.insert(position.offset);
        // Offsets may have gaps, after retention for one, so the mark is an offset and not a count.
        partition.next = partition.next.max(position.offset + 1);
        AckHandle {
            position,
            since: partition.since,
            tracker: self.clone(),
            acknowledged: false,
        }
    }

    /// Forgets partitions that were lost, with the messages that are open in them: another worker has them now. Should
    /// they come back, they begin anew.
    pub(crate) fn revoke(&self, lost: &[u32]) {
        let mut partitions = self.shared.partitions.lock();
        partitions.losses += 1;
        partitions.by_number.retain(|number, _| !lost.contains(number));
    }

    /// Waits until a mark may have moved since the last call of [`Self::committable`].
    pub(crate) async fn moved(&self) {
        self.shared.moved.notified().await;
    }

    /// The marks that moved since the last call.
    pub(crate) fn committable(&self) -> Vec<Position> {
        let mut partitions = self.shared.partitions.lock();
        let mut moved = Vec::new();
        for (&number, partition) in &mut partitions.by_number {
            let mark = partition.mark();
            if mark > partition.marked {
                partition.marked = mark;
                moved.push(Position {
                    partition: number,
                    offset: mark,
                });
            }
        }
        moved
    }

    fn done(&self, position: Position, since: u64) {
        let mut partitions = self.shared.partitions.lock();
        let partition = partitions.by_number.get_mut(&position.partition);
        if let Some(partition) = partition.filter(|partition| partition.since == since) {
            partition.open.remove(&position.offset);
            // Only the oldest open message moves the mark; the others would wake the reader for
            // nothing.
            if partition.mark() > partition.marked {
                self.shared.moved.notify_one();
            }
        }
    }
}

/// One open message.
///
/// Dropped when the worker stops, it leaves the message open: it will be redelivered after a restart. Dropped at any
/// other time, which only the end of a writer does that died or gave up its table, it ends the message: it would pin the
/// mark of its partition for ever, and the marketplace appends it again for as long as it has no outcome.
#[derive(Debug)]
pub(crate) struct AckHandle {
    position: Position,
    since: u64,
    tracker: OffsetTracker,
    acknowledged: bool,
}

impl AckHandle {
    /// Returns the position of the message.
    pub(crate) const fn position(&self) -> Position {
        self.position
    }

    /// Returns true if another worker has the partition of the message now.
    pub(crate) fn is_lost(&self) -> bool {
        let partitions = self.tracker.shared.partitions.lock();
        let partition = partitions.by_number.get(&self.position.partition);
        partition.is_none_or(|partition| partition.since != self.since)
    }

    /// Marks the message done.
    pub(crate) fn ack(mut self) {
        self.acknowledged = true;
    }
}

impl Drop for AckHandle {
    fn drop(&mut self) {
        if self.acknowledged || !self.tracker.shared.stop.is_cancelled() {
            self.tracker.done(self.position, self.since);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64) -> Position {
        Position { partition: 3, offset }
    }

    #[test]
    fn a_mark_waits_for_the_oldest_open_message() {
        let offsets = OffsetTracker::new(CancellationToken::new());
        let mut handles: Vec<_> = (10..14).map(|offset| offsets.track(at(offset))).collect();
        handles.pop().unwrap().ack();
        handles.remove(1).ack();
        assert_eq!(offsets.committable(), []);
        handles.remove(0).ack();
        assert_eq!(offsets.committable(), [at(12)]);
        assert_eq!(offsets.committable(), []);
        handles.remove(0).ack();
        assert_eq!(offsets.committable(), [at(14)]);
    }

    #[test]
    fn a_handle_dropped_when_the_worker_stops_stays_open() {
        let stop = CancellationToken::new();
        let offsets = OffsetTracker::new(stop.clone());
        let (first, second) = (offsets.track(at(0)), offsets.track(at(1)));
        drop(first);
        assert_eq!(offsets.committable(), [at(1)]);
        stop.cancel();
        drop(second);
        offsets.track(at(2)).ack();
        assert_eq!(offsets.committable(), []);
    }

    #[test]
    fn a_partition_that_was_lost_has_no_mark_and_begins_anew() {
        let offsets = OffsetTracker::new(CancellationToken::new());
        let kept = Position {
            partition: 4,
            offset: 0,
        };
        let (other, early, late) = (offsets.track(kept), offsets.track(at(10)), offsets.track(at(11)));
        offsets.revoke(&[3]);
        assert_eq!([&other, &early].map(AckHandle::is_lost), [false, true]);
        early.ack();
        assert_eq!(offsets.committable(), [], "it was lost");
        // It comes back from the position that is committed; the old handles say nothing about it.
        let again = offsets.track(at(2));
        assert_eq!([&again, &late].map(AckHandle::is_lost), [false, true]);
        let mut rest: Vec<_> = (3..12).map(|offset| offsets.track(at(offset))).collect();
        late.ack();
        assert_eq!(offsets.committable(), []);
        again.ack();
        assert_eq!(offsets.committable(), [at(3)]);
        rest.drain(..).for_each(AckHandle::ack);
        assert_eq!(offsets.committable(), [at(12)]);
        other.ack();
        assert_eq!(offsets.committable().len(), 1, "the others were not lost");
    }
}
