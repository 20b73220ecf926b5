//! The durable, partitioned log between the marketplace and the workers.
//!
//! ```text
//!             first                    committed by a group            next
//!               │                              │                         │
//! partition 0   ▼ ┄ ┄ trimmed ┄ ┄ [ done ] [ done ] [ to be redelivered ] ▼ (first unwritten)
//! ```
//!
//! Invariants, which every backend proves by the suite `conformance` (feature `testing`):
//! - Records that [`EventLog::append`] acknowledged survive the death of the process and of the machine.
//! - Records of one key are in one partition, in the order of their appends.
//! - A group receives every record at least once: delivery begins at the group's committed position, or at the first
//!   record if the group has committed none.

#[cfg(feature = "testing")]
pub mod conformance;
mod embedded;
mod error;
#[cfg(feature = "kafka")]
pub mod kafka;
mod partition;
mod reopening;
#[cfg(feature = "testing")]
pub mod testing;
mod unwind;

use std::fmt::Debug;

use async_trait::async_trait;
use bytes::Bytes;

pub use embedded::{Embedded, EmbeddedOptions, EmbeddedStats};
pub use error::Error;
#[cfg(feature = "kafka")]
pub use kafka::Kafka;
pub use partition::partition_of;
pub use reopening::ReopeningLog;

/// The largest record in bytes, key and value together: 16 MiB.
pub const MAX_RECORD_BYTES: usize = 16 << 20;

/// The longest name of a topic or a group, in bytes.
pub const MAX_NAME_BYTES: usize = 128;

/// A message of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The key, which decides the partition. Records of one key stay in order.
    pub key: Bytes,
    /// The payload. The log does not interpret it.
    pub value: Bytes,
}

/// The address of a record within its topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The partition number, counted from 0.
    pub partition: u32,
    /// The offset within the partition, from 0, without gaps.
    pub offset: u64,
}

/// A record with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The address of the record.
    pub position: Position,
    /// The key and value, as they were appended.
    pub record: Record,
}

/// The readable range of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The first offset that can still be read; earlier records were removed.
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

    /// Appends records that the sender stores elsewhere and appends again until their work is done. Positions are
    /// returned under the same conditions as by [`Self::append`], but a backend may deliver the records before they are
    /// durable, so a delivered record can be lost in a power cut.
    async fn append_recoverable(&self, topic: &str, records: Vec<Record>) -> Result<Vec<Position>, Error> {
        self.append(topic, records).await
    }

    /// Reads `topic` from the position that `group` committed in every partition, or from the first record.
    ///
    /// Subscriptions of one group share the partitions, and the assignment may change at any time ([`Event`]). Within a
    /// process a group has at most one subscription of a topic at a time; a second call returns [`Error::Busy`].
    async fn subscribe(&self, topic: &str, group: &str) -> Result<Box<dyn Subscription>, Error>;

    /// Reads every partition of `topic` from `count` records before its current end, or from the first record if there
    /// are fewer, and continues with records appended later. The reader belongs to no group: it always has every
    /// partition, it cannot commit positions, and a reader that falls behind retention continues at the first record
    /// that is left.
    async fn recent(&self, topic: &str, count: u64) -> Result<Box<dyn Subscription>, Error>;

    /// Reads the records appended to `topic` from now on; the same as [`Self::recent`] with a count of 0.
    ///
    /// Every tail, in every process, receives each record whose append begins after this call returned, in order within
    /// its partition. A record may be delivered twice if its append was retried. A tail that failed must be opened
    /// again, and the new tail does not deliver the records appended in between.
    async fn tail(&self, topic: &str) -> Result<Box<dyn Subscription>, Error> {
        self.recent(topic, 0).await
    }

    /// Limits `topic` to the latest `count` records of each partition, from now on. Meant for topics that are read by
    /// [`Self::recent`] only, where no group commits positions. Records that a group has not committed are kept all the
    /// same. Backends that remove records by age ignore the call.
    async fn keep(&self, topic: &str, count: u64) -> Result<(), Error>;

    /// The readable range of each partition of `topic`.
    async fn bounds(&self, topic: &str) -> Result<Vec<Bounds>, Error>;
}

/// An event of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The reader now also has these partitions. Their records begin at the committed position, or at the first record
    /// if the group has committed none. Comes before the first record of each partition.
    Assigned(Vec<u32>),
    /// The reader lost these partitions. Records that it received and did not commit will be delivered to another
    /// reader, or to this one after the next [`Event::Assigned`]. Comes after the last record of each partition.
    /// Commits for a lost partition are ignored, so work still in progress must be harmless if it is done twice.
    Revoked(Vec<u32>),
    /// At least one record, in order within each partition.
    Records(Vec<Delivered>),
}

/// A reader of one topic.
#[async_trait]
pub trait Subscription: Debug + Send {
    /// Waits for a change of the assignment or for at least one record, and returns at most `max` records. Cancel-safe:
    /// a dropped call loses nothing. A distributed log treats a reader that does not call this for minutes as dead and
    /// revokes its partitions.
    async fn event(&mut self, max: usize) -> Result<Event, Error>;

    /// Waits for at least one record and returns at most `max`, skipping assignment events. Cancel-safe like
    /// [`Self::event`].
    async fn next(&mut self, max: usize) -> Result<Vec<Delivered>, Error> {
        loop {
            if let Event::Records(records) = self.event(max).await? {
                return Ok(records);
            }
        }
    }

    /// Commits a position per partition for the group: `offset` is the next record to deliver after a restart. The
    /// commit need not be durable on return, since losing it only causes redelivery. Positions of partitions that this
    /// reader does not have are ignored.
    async fn commit(&mut self, positions: &[Position]) -> Result<(), Error>;
}

/// Checks the name of a topic or group. Names are part of keys on disk and of topic names in Kafka, so every backend
/// accepts the same characters.
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

/// Checks the size of each record and returns the total size in bytes.
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
