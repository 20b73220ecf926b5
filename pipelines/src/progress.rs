//! Which messages are done: the low-water mark of each partition.
//!
//! Invariant: a mark never passes a message that is not done, so that a restart redelivers it.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use eventlog::Position;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Tracks the messages of one subscription.
#[derive(Clone, Debug)]
pub struct Progress {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    partitions: Mutex<HashMap<u32, Partition>>,
    moved: Notify,
    stop: CancellationToken,
}

#[derive(Debug, Default)]
struct Partition {
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
        let mut partitions = self.shared.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        let partition = partitions.entry(position.partition).or_insert_with(|| Partition {
            marked: position.offset,
            ..Partition::default()
        });
        partition.open.insert(position.offset);
        partition.next = partition.next.max(position.offset + 1);
        Ticket {
            position,
            progress: self.clone(),
            finished: false,
        }
    }

    /// Waits until a mark may have moved since the last call of [`Self::marks`].
    pub async fn moved(&self) {
        self.shared.moved.notified().await;
    }

    /// The marks that moved since the last call.
    pub fn marks(&self) -> Vec<Position> {
        let mut partitions = self.shared.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        let mut marks = Vec::new();
        for (&number, partition) in partitions.iter_mut() {
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

    fn done(&self, position: Position) {
        let mut partitions = self.shared.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(partition) = partitions.get_mut(&position.partition) {
            partition.open.remove(&position.offset);
            if partition.mark() > partition.marked {
                self.shared.moved.notify_one();
            }
        }
    }
}

/// One open message.
///
/// Dropped when the worker stops, it leaves the message open: it will be redelivered after a restart. Dropped at any
/// other time, which only the death of a lane does, it ends the message: it would pin the mark of its partition for
/// ever, and the marketplace appends it again for as long as it has no outcome.
#[derive(Debug)]
pub struct Ticket {
    position: Position,
    progress: Progress,
    finished: bool,
}

impl Ticket {
    /// Where the message is.
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
            self.progress.done(self.position);
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
}
