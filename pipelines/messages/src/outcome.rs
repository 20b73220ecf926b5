//! Outcomes: the results of judging, in one topic for contributions and knowledge units.
//!
//! Invariant: an outcome names what it is about and the generation of it, never a position in the log.

use bytes::Bytes;
use eventlog::Record;
use operators::{RowVerdict, Tally};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use types::unit::{ReviewEntry, UnitResolution};
use types::{ContributionId, DatasetId, Resolution, Timestamp, UnitId};

use crate::{BASE_FORMAT, DecodeError, KNOWLEDGE_TOPIC, read};

/// Topic of [`Outcome`]s; the key is the id of the dataset, or [`KNOWLEDGE_TOPIC`].
pub const OUTCOMES_TOPIC: &str = "outcomes";

/// The result of judging a submission.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Result of judging a contribution to a dataset.
    Contribution(ContributionOutcome),
    /// Result of reviewing a version of a knowledge unit.
    Unit(UnitOutcome),
}

/// The result of judging a contribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContributionOutcome {
    /// Format of the message; this build writes [`BASE_FORMAT`].
    pub format: u32,
    /// Id of the contribution that was judged.
    pub contribution: ContributionId,
    /// Number of replays of the submission's dead letter; 0 at first.
    pub generation: u32,
    /// Dataset that the contribution is for.
    pub dataset: DatasetId,
    /// Time of the decision.
    pub at: Timestamp,
    /// Decision that the judging ended with.
    pub resolution: Resolution,
    /// The number of records submitted.
    pub rows: u32,
    /// The verdicts other than pass, in row order. Shortened or left out where the log would not take them.
    pub verdicts: Vec<RowVerdict>,
    /// Counts of each gate.
    pub tallies: Vec<Tally>,
    /// Position of the worker's span in the trace of the submission's request: the value of a `traceparent` header. Set
    /// when the outcome is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// The result of reviewing a version of a knowledge unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitOutcome {
    /// Format of the message; this build writes [`BASE_FORMAT`].
    pub format: u32,
    /// Id of the version.
    pub unit: UnitId,
    /// The unit, by the id of its first version.
    pub chain: UnitId,
    /// Number of replays of the submission's dead letter; 0 at first.
    pub generation: u32,
    /// Time of the decision.
    pub at: Timestamp,
    /// Decision that the review ended with.
    pub resolution: UnitResolution,
    /// The steps of the review in their order.
    pub report: Vec<ReviewEntry>,
    /// Trace of the submission's request, as in [`ContributionOutcome`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl Outcome {
    /// Encodes the outcome as a record of its key.
    pub fn record(&self) -> Result<Record, serde_json::Error> {
        match self {
            Self::Contribution(outcome) => outcome.record(),
            Self::Unit(outcome) => outcome.record(),
        }
    }

    /// Decodes the value of a record that [`Self::record`] returned.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        struct OfUnit {
            #[serde(rename = "unit")]
            _unit: IgnoredAny,
        }
        // Most outcomes are of contributions, and their verdicts are long, so these are read once only.
        match ContributionOutcome::decode(value) {
            Err(DecodeError::Malformed(_)) if serde_json::from_slice::<OfUnit>(value).is_ok() => {
                UnitOutcome::decode(value).map(Self::Unit)
            }
            decoded => decoded.map(Self::Contribution),
        }
    }
}

impl ContributionOutcome {
    /// Encodes the outcome as a record of its dataset's key.
    pub fn record(&self) -> Result<Record, serde_json::Error> {
        Ok(Record {
            key: Bytes::copy_from_slice(self.dataset.as_bytes()),
            value: serde_json::to_vec(self)?.into(),
        })
    }

    /// Decodes the value of a record that [`Self::record`] returned.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        read(value, BASE_FORMAT, |outcome: &Self| outcome.format)
    }
}

impl UnitOutcome {
    /// Creates an outcome of this format that has no position in a trace.
    pub const fn new(subject: (UnitId, UnitId), generation: u32, at: Timestamp, resolution: UnitResolution) -> Self {
        let (unit, chain) = subject;
        Self {
            format: BASE_FORMAT,
            unit,
            chain,
            generation,
            at,
            resolution,
            report: Vec::new(),
            traceparent: None,
        }
    }

    /// Encodes the outcome as a record of the key of all units.
    pub fn record(&self) -> Result<Record, serde_json::Error> {
        Ok(Record {
            key: Bytes::from_static(KNOWLEDGE_TOPIC.as_bytes()),
            value: serde_json::to_vec(self)?.into(),
        })
    }

    /// Decodes the value of a record that [`Self::record`] returned.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        read(value, BASE_FORMAT, |outcome: &Self| outcome.format)
    }
}

#[cfg(test)]
mod tests;
