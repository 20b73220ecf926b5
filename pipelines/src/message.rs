//! The messages that workers read and write, under the names that this package uses.

pub use messages::{
    Address, CONTRIBUTIONS, ContributionOutcome as Outcome, DEAD_LETTERS, DeadLetter, DecodeError, FORMAT,
    HISTORY_LOST, OUTCOMES, Records, Resolution, Source, Submission,
};
pub(crate) use messages::{head, weight};
