//! An outcome of a version as it is applied, and its effect.
//!
//! Invariant: what is applied is what the worker decided; nothing here changes it.

use types::unit::{ReviewEntry, UnitResolution};
use types::{Timestamp, UnitId};

/// The code of versions whose message could not be processed. Their use of the allowance is given back.
pub(super) const UNPROCESSABLE: &str = "unprocessable";

/// An outcome to apply.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitOutcome {
    /// Id of the version.
    pub id: UnitId,
    /// Generation of the judged submission.
    pub generation: u32,
    /// Time of the decision.
    pub at: Timestamp,
    /// Decision on the version.
    pub resolution: UnitResolution,
    /// Entries of the steps of the review, in order.
    pub report: Vec<ReviewEntry>,
}

/// The effect of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct UnitApplied {
    /// Id of the version.
    pub id: UnitId,
    /// True if the outcome changed the version. False if it is unknown, decided, or of another generation.
    pub changed: bool,
    /// True if the outcome was the last hold of a text that spoils its answers, and rejected the version.
    pub given_up: bool,
}
