//! The messages between the marketplace and the workers.
//!
//! Invariant: every message names its format. A reader refuses a format it does not know, and the message goes to the
//! dead letters instead of being lost.

use crate::staging::objects::Cut;
use bytes::Bytes;
use eventlog::Record;
use operators::{RowVerdict, Tally};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use types::{AgentId, Contract, ContributionId, DatasetId, Timestamp, Version};

/// Topic of [`Submission`]s; the key is the dataset's id.
pub const CONTRIBUTIONS: &str = "contributions";
/// Topic of [`Outcome`]s; the key is the dataset's id.
pub const OUTCOMES: &str = "outcomes";
/// The format this build writes.
pub const FORMAT: u32 = 1;

/// A batch on its way to its dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Submission {
    /// [`FORMAT`].
    pub format: u32,
    /// The guard against merging it twice.
    pub contribution: ContributionId,
    /// Counts replays of a dead letter; 0 at first.
    pub generation: u32,
    /// The dataset it is for.
    pub dataset: DatasetId,
    /// The agent that contributed it.
    pub agent: AgentId,
    /// Whether the dataset is private: the model screen is skipped.
    pub private: bool,
    /// The dataset's contract, so that a worker needs nothing else to create the table.
    pub contract: Contract,
    /// When it was acknowledged.
    pub submitted_at: Timestamp,
    /// The records; none for an upload.
    pub records: Vec<Value>,
    /// The upload that the records are in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<Cut>,
}

/// What became of a submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// [`FORMAT`].
    pub format: u32,
    /// The submission's id.
    pub contribution: ContributionId,
    /// The submission's generation.
    pub generation: u32,
    /// The submission's dataset.
    pub dataset: DatasetId,
    /// When it was decided.
    pub at: Timestamp,
    /// What was decided.
    pub resolution: Resolution,
    /// The number of records submitted.
    pub rows: u32,
    /// The verdicts other than pass, in row order. Where the log would not take what they say, they say less, or are
    /// left out.
    pub verdicts: Vec<RowVerdict>,
    /// What each gate did.
    pub tallies: Vec<Tally>,
}

/// How a submission was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Resolution {
    /// Its new records are a version.
    Merged {
        /// The version they are.
        version: Version,
        /// How many records were new.
        accepted: u64,
        /// How many records the version has in all.
        record_count: u64,
        /// The version's content root, 64 hexadecimal digits.
        root: String,
    },
    /// Nothing of it was merged.
    Rejected {
        /// `refused`, `duplicates`, or `unprocessable` for a dead letter.
        code: String,
        /// One sentence for the contributor.
        message: String,
    },
    /// It cannot be judged now; it will be submitted again.
    Waiting {
        /// `budget`, `provider` or `paused`.
        reason: String,
        /// When, where known.
        #[serde(skip_serializing_if = "Option::is_none")]
        resumes_after: Option<Timestamp>,
    },
}

/// Why bytes are not a message.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON of the message's shape.
    #[error("the message is malformed")]
    Malformed(#[source] serde_json::Error),
    /// Written by a build that this one does not know.
    #[error("the message has format {0}, this build reads {FORMAT}")]
    Format(u32),
}

#[derive(Deserialize)]
struct Envelope {
    format: u32,
}

macro_rules! coded {
    ($($name:ident)*) => {$(
        impl $name {
            /// The message as a record of its dataset's key.
            pub fn record(&self) -> Result<Record, serde_json::Error> {
                Ok(Record {
                    key: Bytes::copy_from_slice(self.dataset.as_bytes()),
                    value: serde_json::to_vec(self)?.into(),
                })
            }

            /// Reads a message that [`Self::record`] wrote.
            pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
                serde_json::from_slice::<Self>(value)
                    .map_err(DecodeError::Malformed)
                    .and_then(|message| {
                        if message.format == FORMAT { Ok(message) } else { Err(DecodeError::Format(message.format)) }
                    })
                    .map_err(|error| match serde_json::from_slice::<Envelope>(value) {
                        Ok(envelope) if envelope.format != FORMAT => DecodeError::Format(envelope.format),
                        _ => error,
                    })
            }
        }
    )*};
}

coded! { Submission Outcome }

impl Submission {
    /// What the submission is called.
    pub const fn address(&self) -> Address {
        Address {
            contribution: self.contribution,
            generation: self.generation,
            dataset: self.dataset,
        }
    }
}

/// Topic of [`DeadLetter`]s; the key is the one of the message that died.
pub const DEAD_LETTERS: &str = "dead-letters";

/// A message that no worker can process, kept for an operator to look at and to replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// [`FORMAT`].
    pub format: u32,
    /// The topic it was read from.
    pub topic: String,
    /// The partition it was read from.
    pub partition: u32,
    /// Its offset there; with topic and partition the letter's identity.
    pub offset: u64,
    /// The contribution it is about, where that could be read.
    pub contribution: Option<ContributionId>,
    /// Why it cannot be processed.
    pub reason: String,
    /// When it died.
    pub at: Timestamp,
    /// The message's key, base64.
    pub key: String,
    /// The message's value, base64. Empty where it is too large for a letter: then it is at its position only, for as
    /// long as the log keeps it.
    pub value: String,
}

/// As much of a submission as is needed to name it, whatever else is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Address {
    /// The submission's id.
    pub contribution: ContributionId,
    /// The submission's generation.
    #[serde(default)]
    pub generation: u32,
    /// The submission's dataset.
    pub dataset: DatasetId,
}

impl Address {
    /// Reads the address of a message that may be malformed otherwise.
    pub fn read(value: &[u8]) -> Option<Self> {
        serde_json::from_slice(value).ok()
    }
}
