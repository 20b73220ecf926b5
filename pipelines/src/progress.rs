//! Which messages are done: the low-water mark of each partition.
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
pub struct Progress {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    partitions: Mutex<Partitions>,
    moved: Notify,
    stop: CancellationToken,
}

#[derive(Debug, Default)]
struct Partitions {
    by_number: HashMap<u32, Partition>,
    /// Number of times that partitions were lost.
    losses: u64,
}

#[derive(Debug, Default)]
struct Partition {
    /// The losses before its first message: tickets of an earlier time say nothing about this one.
    since: u64,
    open: BTreeSet<u64>,
    /// The offset after the last delivered message.
    next: u64,
    /// The mark handed out last.
    marked: u64,
}

impl Partition {
    fn mark(&self) -> u64 {
        self.open.first().copied().unwrap_or(self.next)
    }
}

impl Progress {
    /// Of a subscription that is read until `stop`.
    pub fn new(stop: CancellationToken) -> Self {
        Self {
            shared: Arc::new(Shared {
                partitions: Mutex::default(),
                moved: Notify::new(),
                stop,
            }),
        }
    }

    /// Opens a message; it is done when the ticket is [finished](Ticket::finish).
    pub fn open(&self, position: Position) -> Ticket {
        let mut partitions = self.shared.partitions.lock();
        let since = partitions.losses;
        let partition = partitions
            .by_number
            .entry(position.partition)
            .or_insert_with(|| Partition {
                since,
                // Nothing before the first message was read here, so nothing is to be committed until
                // it is done.
                marked: position.offset,
                ..Partition::default()
            });
        partition.open.insert(position.offset);
        // Offsets may have gaps, after retention for one, so the mark is an offset and not a count.
        partition.next = partition.next.max(position.offset + 1);
        Ticket {
            position,
            since: partition.since,
            progress: self.clone(),
            finished: false,
        }
    }

    /// Forgets partitions that were lost, with the messages that are open in them: another worker has them now. Should
    /// they come back, they begin anew.
    pub fn lose(&self, lost: &[u32]) {
        let mut partitions = self.shared.partitions.lock();
        partitions.losses += 1;
        partitions.by_number.retain(|number, _| !lost.contains(number));
    }

    /// Waits until a mark may have moved since the last call of [`Self::marks`].
    pub async fn moved(&self) {
        self.shared.moved.notified().await;
    }

    /// The marks that moved since the last call.
    pub fn marks(&self) -> Vec<Position> {
        let mut partitions = self.shared.partitions.lock();
        let mut marks = Vec::new();
        for (&number, partition) in &mut partitions.by_number {
            let mark = partition.mark();
            if mark > partition.marked {
                partition.marked = mark;
                marks.push(Position {
                    partition: number,
                    offset: mark,
                });
            }
        }
        marks
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
/// other time, which only the end of a lane does that died or gave up its table, it ends the message: it would pin the
/// mark of its partition for ever, and the marketplace appends it again for as long as it has no outcome.
#[derive(Debug)]
pub struct Ticket {
    position: Position,
    since: u64,
    progress: Progress,
    finished: bool,
}

impl Ticket {
    /// Returns the position of the message.
    pub const fn position(&self) -> Position {
        self.position
    }

    /// Marks the message done.
    pub fn finish(mut self) {
        self.finished = true;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.finished || !self.progress.shared.stop.is_cancelled() {
            self.progress.done(self.position, self.since);
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
        let progress = Progress::new(CancellationToken::new());
        let mut tickets: Vec<_> = (10..14).map(|offset| progress.open(at(offset))).collect();
        tickets.pop().unwrap().finish();
        tickets.remove(1).finish();
        assert_eq!(progress.marks(), []);
        tickets.remove(0).finish();
        assert_eq!(progress.marks(), [at(12)]);
        assert_eq!(progress.marks(), []);
        tickets.remove(0).finish();
        assert_eq!(progress.marks(), [at(14)]);
    }

    #[test]
    fn a_ticket_dropped_when_the_worker_stops_stays_open() {
        let stop = CancellationToken::new();
        let progress = Progress::new(stop.clone());
        let (first, second) = (progress.open(at(0)), progress.open(at(1)));
        drop(first);
        assert_eq!(progress.marks(), [at(1)]);
        stop.cancel();
        drop(second);
        progress.open(at(2)).finish();
        assert_eq!(progress.marks(), []);
    }

    #[test]
    fn a_partition_that_was_lost_has_no_mark_and_begins_anew() {
        let progress = Progress::new(CancellationToken::new());
        let kept = Position {
            partition: 4,
            offset: 0,
        };
        let (other, early, late) = (progress.open(kept), progress.open(at(10)), progress.open(at(11)));
        progress.lose(&[3]);
        early.finish();
        assert_eq!(progress.marks(), [], "it was lost");
        // It comes back from the position that is committed; the old tickets say nothing about it.
        let again = progress.open(at(2));
        let mut rest: Vec<_> = (3..12).map(|offset| progress.open(at(offset))).collect();
        late.finish();
        assert_eq!(progress.marks(), []);
        again.finish();
        assert_eq!(progress.marks(), [at(3)]);
        rest.drain(..).for_each(Ticket::finish);
        assert_eq!(progress.marks(), [at(12)]);
        other.finish();
        assert_eq!(progress.marks().len(), 1, "the others were not lost");
    }
}
