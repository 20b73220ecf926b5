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
mod partition;

use std::fmt::Debug;

use async_trait::async_trait;
use bytes::Bytes;

pub use embedded::{Embedded, Options, Stats};
pub use error::Error;
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

    /// Reads `topic` from the position that `group` committed in every partition, or from the first record.
    /// One subscription of a group is alive at a time in a process: another is refused by [`Error::Busy`].
    async fn subscribe(&self, topic: &str, group: &str) -> Result<Box<dyn Subscription>, Error>;

    /// Reads what is appended to `topic` from now on, for nobody's account: positions cannot be committed, and a
    /// tail that lags behind what is kept for the groups goes on at the first record that is left.
    async fn tail(&self, topic: &str) -> Result<Box<dyn Subscription>, Error>;

    /// The readable range of each partition of `topic`.
    async fn bounds(&self, topic: &str) -> Result<Vec<Bounds>, Error>;
}

/// A reader of one topic.
#[async_trait]
pub trait Subscription: Debug + Send {
    /// Waits for at least one record and returns at most `max`, each partition's in order. Cancel-safe: a dropped
    /// call loses no record.
    async fn next(&mut self, max: usize) -> Result<Vec<Delivered>, Error>;

    /// Marks everything before each position as done for the group: `offset` is the next one to deliver after a
    /// restart. Need not be durable on return; losing it only redelivers.
    async fn commit(&mut self, positions: &[Position]) -> Result<(), Error>;
}
