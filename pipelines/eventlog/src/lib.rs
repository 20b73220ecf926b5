//! The durable, partitioned log between the marketplace and the workers.
//!
//! ```text
//!             first                    committed by a group            next
//!               │                              │                         │
//! partition 0   ▼ ┄ ┄ trimmed ┄ ┄ [ done ] [ done ] [ to be redelivered ] ▼ (first unwritten)
//! ```
//!
//! Invariants, which every backend proves by the suite `conformance` (feature `testing`):
//! - What [`EventLog::append`] acknowledged survives the death of the process and of the machine.
//! - Records of one key are in one partition, in the order of their appends.
//! - A group sees every record at least once: delivery begins at the group's committed position, or at the first
//!   record where it has none.

#[cfg(feature = "testing")]
pub mod conformance;
mod embedded;
mod error;
#[cfg(feature = "kafka")]
pub mod kafka;
mod partition;
#[cfg(feature = "testing")]
pub mod testing;
mod unwind;

use std::fmt::Debug;

use async_trait::async_trait;
use bytes::Bytes;

pub use embedded::{Embedded, Options, Stats};
pub use error::Error;
#[cfg(feature = "kafka")]
pub use kafka::Kafka;
pub use partition::partition_of;

/// The largest record in bytes, key and value together: 16 MiB.
pub const MAX_RECORD_BYTES: usize = 16 << 20;

/// The longest name of a topic or a group, in bytes.
pub const MAX_NAME_BYTES: usize = 128;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Decides the partition: records of one key stay in order.
    pub key: Bytes,
    /// The payload.
    pub value: Bytes,
}

/// Where a record is in its topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The partition, from 0.
    pub partition: u32,
    /// The offset within the partition, from 0, without gaps.
    pub offset: u64,
}

/// A record with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Where it is.
    pub position: Position,
    /// What it says.
    pub record: Record,
}

/// The readable range of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The first offset that can still be read.
    pub first: u64,
    /// The first offset that is not yet written.
    pub next: u64,
}

/// A durable, partitioned log.
#[async_trait]
pub trait EventLog: Debug + Send + Sync {
    /// Appends records to `topic` and returns their positions, in order, once all are durable. Concurrent appends
    /// share their fsync. On an error none, some or all of the records may be in the log: append them again.
    async fn append(&self, topic: &str, records: Vec<Record>) -> Result<Vec<Position>, Error>;

    /// Appends records that their sender has elsewhere for good, and appends again unless what they ask for is done. The
    /// answer is that of [`Self::append`], but a log may deliver the records before they are durable: what was
    /// delivered then can be gone after a power cut.
    async fn append_kept(&self, topic: &str, records: Vec<Record>) -> Result<Vec<Position>, Error> {
        self.append(topic, records).await
    }

    /// Reads `topic` from the position that `group` committed in every partition, or from the first record.
    ///
    /// The subscriptions of a group share the partitions; which one reads which partition may change at any time
    /// ([`Event`]). Within a process a group has one subscription of a topic at a time: another is refused by
    /// [`Error::Busy`].
    async fn subscribe(&self, topic: &str, group: &str) -> Result<Box<dyn Subscription>, Error>;

    /// Reads every partition of `topic` from `count` records before its end as of now, or from the first record left,
    /// and goes on with what is appended. For nobody's account: it is never given less than all partitions, positions
    /// cannot be committed, and a reader that lags behind what is kept goes on at the first record that is left.
    async fn recent(&self, topic: &str, count: u64) -> Result<Box<dyn Subscription>, Error>;

    /// Reads what is appended to `topic` from now on: [`Self::recent`] with nothing of the past.
    ///
    /// Every record whose append begins after this returned is delivered to every tail, in every process, each
    /// partition's in order. A record may be delivered again where appending it was tried again; a tail that ended
    /// with an error is made anew, and what was appended in between it has not seen.
    async fn tail(&self, topic: &str) -> Result<Box<dyn Subscription>, Error> {
        self.recent(topic, 0).await
    }

    /// Lets go of all but the latest `count` records of each partition of `topic`, from now on: for topics that are read by
    /// [`Self::recent`] only, of which no group ever says that they are done. What a group has not done stays. A log
    /// whose records go by their age does nothing.
    async fn keep(&self, topic: &str, count: u64) -> Result<(), Error>;

    /// The readable range of each partition of `topic`.
    async fn bounds(&self, topic: &str) -> Result<Vec<Bounds>, Error>;
}

/// What a reader is told next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The reader has these partitions now, in addition; their records come from the committed position on, or where
    /// none was committed from the first record. Comes before the first record of each.
    Assigned(Vec<u32>),
    /// The reader lost these partitions: what it was given of them and has not committed is given to another, or
    /// again to this one after another [`Event::Assigned`]. Comes after the last record of each. Positions of a lost
    /// partition are not committed any more. Work that goes on meanwhile must be harmless when it is done twice.
    Revoked(Vec<u32>),
    /// At least one record, each partition's in order.
    Records(Vec<Delivered>),
}

/// A reader of one topic.
#[async_trait]
pub trait Subscription: Debug + Send {
    /// Waits for a change of the partitions that this reader has, or for at least one record and returns at most
    /// `max`. Cancel-safe: a dropped call loses nothing. A reader that does not call it for minutes is taken for dead
    /// by a distributed log, and loses its partitions.
    async fn event(&mut self, max: usize) -> Result<Event, Error>;

    /// Waits for at least one record and returns at most `max`, for readers to which it makes no difference which
    /// partitions they have. Cancel-safe like [`Self::event`].
    async fn next(&mut self, max: usize) -> Result<Vec<Delivered>, Error> {
        loop {
            if let Event::Records(records) = self.event(max).await? {
                return Ok(records);
            }
        }
    }

    /// Marks everything before each position as done for the group: `offset` is the next one to deliver after a
    /// restart. Need not be durable on return; losing it only redelivers. Positions of partitions that this reader
    /// does not have are left out.
    async fn commit(&mut self, positions: &[Position]) -> Result<(), Error>;
}

/// Names are part of keys on disk and of topic names in Kafka, so both take the same ones.
fn check_name(field: &'static str, name: &str) -> Result<(), Error> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(legal) {
        return Err(Error::Invalid {
            field,
            rule: format!("must be 1 to {MAX_NAME_BYTES} of a-z, A-Z, 0-9, `.`, `_`, `-`, not {name:?}"),
        });
    }
    Ok(())
}

/// Checks the size of each record; the size of all, in bytes.
fn check_size(records: &[Record]) -> Result<usize, Error> {
    let mut bytes = 0;
    for record in records {
        let size = record.key.len() + record.value.len();
        if size > MAX_RECORD_BYTES {
            return Err(Error::TooLarge {
                bytes: size,
                limit: MAX_RECORD_BYTES,
            });
        }
        bytes += size;
    }
    Ok(bytes)
}
