//! The metadata database: all SQL text of the product, behind one type, [`Store`].
//!
//! Invariant: every method that changes data is one transaction, and it returns only after the commit is durable. A
//! lost race is a variant of the method's result, never an [`Error`]. An error means that the result is unknown. No
//! call takes longer than [`Options::timeout`].
//!
//! Invariant: the SQL text is the portable subset of `SQLite` and `PostgreSQL`. Columns are `TEXT`, `BIGINT` or bytes;
//! flags are 0 or 1, times microseconds, money micro-USDC, JSON text; sums are cast; placeholders are `$n`; ids and
//! times come from the caller. Differences between the engines are in `engine` and in one folder of migrations each.
//!
//! A transaction locks a row before it decides on its content by writing it (`UPDATE … RETURNING`), which works on
//! every engine. Uniqueness is decided by `ON CONFLICT`, limits by a conditional update or under such a lock.

mod accounts;
mod audit;
mod check;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
mod connections;
mod contributions;
mod counters;
mod dead_letters;
mod engine;
mod error;
mod jobs;
mod losses;
mod outcomes;
mod projects;
mod reading;
mod row;
mod service_keys;
mod stamps;
mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(feature = "postgres")]
mod tls;
mod uploads;
mod usage;
mod writer;

#[cfg(test)]
mod tests;

pub use accounts::{
    Accounts, Agent, AgentCreated, AgentKey, Approval, Claim, ClaimCode, ClaimCodeAdded, Claimed, CodeRefused,
    InviteRequest, LinkRefused, LinkRequest, LinkRequested, MAX_WRONG_TRIES, Mail, MailLink, NewAgent, NewClaim,
    NewClaimCode, NewLink, NewOperator, NewSession, NewSignUp, NewToken, Operator, OperatorCreated, Payout, Polled,
    Principal, Rejection, Session, SignedUp, Token, TokenAdded,
};
pub use audit::AuditEntry;
pub use check::{ContributionEntry, ProjectEntries, ProjectEntry, VersionEntry};
pub use contributions::{
    Allowance, Contribution, ContributionLoss, Due, Idempotency, NewContribution, Outbox, SubmitOutcome, Swept,
};
pub use counters::{Counted, Event};
pub use dead_letters::{DeadLetter, DeadLetterAdded, DeadLetterEntry, Replay};
pub use error::Error;
pub use jobs::{Flow, Job, NewJob};
pub use losses::{Loss, LossAccepted, LostVersion, NewLoss};
pub use outcomes::{Applied, OutcomeRow};
pub use projects::{
    Contributor, NewProject, ParseCursorError, Project, ProjectChanges, ProjectCreated, ProjectCursor, ProjectFilter,
    ProjectHead, ProjectSummary, ProjectUpdated, ProjectVersion,
};
pub use reading::{Egress, LeaseTaken};
pub use service_keys::{KeyAdded, KeyEndorsement, KeyRevoked, NewServiceKey, ServiceKey};
pub use stamps::Stamp;
pub use store::{Options, Schema, Store};
pub use types::Resolution;
pub use types::vocabulary::{
    Access, ClaimStatus, Compression, ContributionStatus, LinkPurpose, ProjectStatus, UnknownWord, UploadStatus,
    Visibility,
};
pub use uploads::{Upload, UploadBounds, UploadCompleted, UploadCreated};
