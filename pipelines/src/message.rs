//! The messages that workers read and write, under the names that this package uses.

pub use messages::{
    Address, BASE_FORMAT, CONTRIBUTIONS_TOPIC, ContributionOutcome as Outcome, DEAD_LETTERS, DeadLetter, DecodeError,
    HISTORY_LOST, OUTCOMES_TOPIC, Records, Resolution, SUBMISSION_FORMAT, Source, Submission,
};
pub(crate) use messages::{head, weight};
