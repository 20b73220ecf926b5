//! Reports of items, the decisions on them, and the people who decide.
//!
//! Invariants:
//! - An item is hidden and shown again only by a decision, in the transaction that records it with its letters.
//! - An item has at most one takedown in force.

mod decided;
mod evidence;
mod items;
mod people;
mod reports;
mod takedowns;
mod undo;

pub use decided::{DecidedFilter, DecidedReport, Desk, TitledTakedown, WaitingReport};
pub use evidence::{Evidence, EvidenceBuyers};
pub use reports::{ReportCount, ReporterRecord, SAME as SAME_REPORT};
use std::time::Duration;

use types::vocabulary::{ReportKind, ReportReason, ReportStatus};
use types::{AgentId, OperatorId, ReportId, TakedownId, Timestamp};
pub use undo::{UNDO_LASTS, Undone};

use crate::row::row;
use crate::{Mail, Store};

/// The part of the database about reports and takedowns.
#[derive(Clone, Copy, Debug)]
pub struct Moderation<'s>(pub(crate) &'s Store);

impl Store {
    /// Returns the part of the database about reports and takedowns.
    pub const fn moderation(&self) -> Moderation<'_> {
        Moderation(self)
    }
}

/// A report to keep.
#[derive(Clone, Debug)]
pub struct NewReport {
    /// Id of the report.
    pub id: ReportId,
    /// Kind of the item.
    pub kind: ReportKind,
    /// The chain of a unit, the id of a dataset, a request or an agent, the number of a comment or review.
    pub item: String,
    /// The item as the reporter named it.
    pub named: String,
    /// Reason that the reporter chose.
    pub reason: ReportReason,
    /// Explanation of the reporter.
    pub detail: String,
    /// The agent's id, or a hash that stands for who reports without a key.
    pub reporter: String,
    /// Agent that reports; `None` for one without a key.
    pub agent: Option<AgentId>,
    /// E-mail address that the reporter left.
    pub email: Option<String>,
    /// Letter that tells moderators of the reports of a while.
    pub digest: Digest,
    /// Letter with the address of the outcome, to who reports without a key and leaves an address.
    pub letter: Option<Mail>,
    /// Time of the report.
    pub now: Timestamp,
}

/// Letter to every moderator, one for each slot of time.
#[derive(Clone, Debug)]
pub struct Digest {
    /// Number of the slot.
    pub slot: i64,
    /// Kind of the job that sends it.
    pub kind: String,
    /// Input of the job.
    pub payload: String,
    /// End of the slot.
    pub due_at: Timestamp,
}

/// The result of [`Moderation::report`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Reported {
    /// The report is kept.
    New(Report),
    /// The reporter sent this one within the last day.
    Before(Report),
}

row! {
    /// A report as stored.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Report {
        /// Id of the report.
        pub id: ReportId,
        /// Kind of the item.
        pub kind: ReportKind,
        /// Id of the item.
        pub item: String = "item_id",
        /// The item as the reporter named it.
        pub named: String,
        /// Reason that the reporter chose.
        pub reason: ReportReason,
        /// Explanation of the reporter.
        pub detail: String,
        /// Agent that reported; `None` for one without a key.
        pub agent: Option<AgentId> = "agent_id",
        /// E-mail address that the reporter left.
        pub email: Option<String>,
        /// State of the report: open, upheld or dismissed.
        pub status: ReportStatus,
        /// Time of the report.
        pub created_at: Timestamp,
        /// Time of the decision.
        pub decided_at: Option<Timestamp>,
        /// Takedown that the decision made.
        pub takedown: Option<TakedownId> = "takedown_id",
        /// The agent's id, or a hash that stands for who reported without a key.
        pub reporter: String,
        /// Operator that owned the item when it was reported.
        pub owner: Option<OperatorId> = "owner_id",
        /// Reason for which it was dismissed, for the staff.
        pub note: Option<String>,
        /// Operator that dismissed it; `None` for an administrator at the command line.
        pub decided_by: Option<OperatorId>,
    }
}

/// A takedown as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Takedown {
    /// Id of the takedown.
    pub id: TakedownId,
    /// Kind of the item.
    pub kind: ReportKind,
    /// Id of the item.
    pub item: String,
    /// The item as its reporter named it.
    pub named: String,
    /// Reason for which the item was taken down.
    pub reason: ReportReason,
    /// Words of the moderator for the owner.
    pub note: Option<String>,
    /// Operator that owns the item.
    pub owner: OperatorId,
    /// Time of the decision.
    pub at: Timestamp,
    /// Operator that decided; `None` for an administrator at the command line.
    pub decided_by: Option<OperatorId>,
    /// Answer of the owner, with its time.
    pub answer: Option<(Timestamp, String)>,
    /// Time at which the item was shown again.
    pub restored_at: Option<Timestamp>,
    /// Operator that showed it again; `None` for an administrator at the command line.
    pub restored_by: Option<OperatorId>,
    /// Words of who showed it again, for the owner.
    pub restored_note: Option<String>,
}

/// A decision to take an item down.
#[derive(Clone, Debug)]
pub struct Uphold {
    /// Report that is upheld.
    pub report: ReportId,
    /// Id of the takedown.
    pub takedown: TakedownId,
    /// Words for the owner.
    pub note: Option<String>,
    /// Moderator; `None` for an administrator at the command line.
    pub by: Option<OperatorId>,
    /// Letters of the decision.
    pub letters: DecisionLetters,
    /// Time of the decision.
    pub now: Timestamp,
}

/// Letters of a decision: the same input for each of a kind; the job names the operator.
#[derive(Clone, Debug)]
pub struct DecisionLetters {
    /// Kind of the jobs that send them.
    pub kind: String,
    /// Input of the owner's.
    pub owner: String,
    /// Input of the buyers'.
    pub buyers: String,
    /// Time for which they wait. Until they leave, the decision can be taken back as if it had not been made.
    pub wait: Duration,
}

/// The result of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Decided {
    /// The decision is in force.
    Done(Box<Takedown>),
    /// There is no such report or takedown.
    Unknown,
    /// It was decided before.
    Before,
    /// The item does not exist any more.
    Gone,
}
