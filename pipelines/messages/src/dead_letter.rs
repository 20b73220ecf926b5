//! Messages that no worker can process, kept for an operator to look at and to replay.

use serde::{Deserialize, Serialize};
use types::{ContributionId, Timestamp, UnitId};

/// Topic of [`DeadLetter`]s; the key is the one of the message that died.
pub const DEAD_LETTERS: &str = "dead-letters";

/// A message that no worker can process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// Format of the message; this build writes [`FORMAT`](crate::FORMAT).
    pub format: u32,
    /// The topic it was read from.
    pub topic: String,
    /// The partition it was read from.
    pub partition: u32,
    /// Its offset there; with topic and partition the letter's identity.
    pub offset: u64,
    /// The contribution it is about, where that could be read.
    pub contribution: Option<ContributionId>,
    /// The version of a knowledge unit that it is about, where that could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<UnitId>,
    /// Reason for which it cannot be processed.
    pub reason: String,
    /// Time at which the letter was written.
    pub at: Timestamp,
    /// The message's key, base64.
    pub key: String,
    /// The message's value, base64. Empty where it is too large for a letter: then it is at its position only, for as
    /// long as the log keeps it.
    pub value: String,
}
