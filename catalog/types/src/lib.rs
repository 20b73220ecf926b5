//! Domain types shared by every plane: ids, contracts, batches, record keys, time, money, faults.
//!
//! Invariant: this crate does no I/O, spawns nothing and knows no runtime. A type moves here only when a second
//! package needs it.

pub mod batch;
pub mod canonical;
pub mod class;
pub mod clock;
pub mod contract;
pub mod fault;
pub mod id;
pub mod json;
pub mod key;
pub mod metric;
pub mod money;
pub mod render;

pub use batch::{Batch, Defect};
pub use class::{Classify, Kind, Retry};
pub use clock::{Clock, Timestamp};
pub use contract::{Contract, Field, FieldType};
pub use id::{AgentId, ContributionId, DatasetId, LifeId, OperatorId, Version};
pub use key::RecordKey;
