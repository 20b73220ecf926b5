//! Domain types shared by all packages: ids, contracts, batches, record keys, time, money, faults.
//!
//! Invariant: this package does no I/O, starts no thread or task and knows no runtime. A type moves here only when a
//! second package needs it.

mod backoff;
pub mod batch;
pub mod canonical;
pub mod class;
pub mod clock;
pub mod contract;
pub mod date;
pub mod decimal;
pub mod error;
pub mod fault;
pub mod host;
pub mod id;
pub mod json;
pub mod key;
pub mod knowledge;
pub mod metric;
pub mod money;
pub mod proof;
mod quantities;
pub mod render;
mod resolution;
pub mod trace;
pub mod unit;
mod upload;
pub mod vocabulary;

pub use backoff::{Backoff, jittered};
pub use batch::{Batch, Defect};
pub use class::{Classify, Kind, Retry};
pub use clock::{Clock, Timestamp};
pub use contract::{Contract, Field, FieldType};
pub use date::Date;
pub use id::{
    AgentId, ApprovalId, ClaimCodeId, ClaimId, ContributionId, DatasetId, DisputeId, LedgerEventId, LinkId, OperatorId,
    PaymentId, PointsEventId, ReportId, RequestId, SaleId, SessionId, TakedownId, TokenId, UnitId, Version,
};
pub use key::RecordKey;
pub use proof::Proof;
pub use quantities::{HumanDuration, QuantityError, Size};
pub use resolution::Resolution;
pub use upload::UploadLayout;
