//! Versions of knowledge units on their way to their review.
//!
//! Invariant: the text is compressed and follows the first line, as the records of a contribution do, so whatever reads
//! only the first line never sees it.

use bytes::Bytes;
use eventlog::Record;
use serde::{Deserialize, Serialize};
use types::knowledge::UnitText;
use types::trace::Origin;
use types::{AgentId, OperatorId, Timestamp, UnitId};

use crate::records::{compress, decompress};
use crate::{DecodeError, read, split};

/// Topic of [`UnitSubmission`]s, and the key of all of them and of their outcomes: one writer publishes all units.
pub const KNOWLEDGE_TOPIC: &str = "knowledge";

/// The format of a submission to the second judge. A build without appeals refuses it: its first judge must not decide.
pub const APPEAL_FORMAT: u32 = 2;

/// A version of a knowledge unit that is to be reviewed.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitSubmission {
    /// Format of the message: [`BASE_FORMAT`](crate::BASE_FORMAT), or [`APPEAL_FORMAT`] for the second judge.
    pub format: u32,
    /// Id of the version.
    pub unit: UnitId,
    /// The unit, by the id of its first version.
    pub chain: UnitId,
    /// The version that it revises; `None` for the first.
    pub predecessor: Option<UnitId>,
    /// Counts replays of a dead letter; 0 at first.
    pub generation: u32,
    /// The agent that submitted it.
    pub agent: AgentId,
    /// The operator of the agent.
    pub operator: OperatorId,
    /// Time of the acknowledgement.
    pub submitted_at: Timestamp,
    /// Title, body, category and source, as submitted.
    pub text: UnitText,
    /// The request that submitted it.
    pub origin: Option<Origin>,
}

/// The first line of a [`UnitSubmission`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UnitHead {
    format: u32,
    unit: UnitId,
    chain: UnitId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    predecessor: Option<UnitId>,
    generation: u32,
    agent: AgentId,
    operator: OperatorId,
    submitted_at: Timestamp,
    /// The length of the text's JSON.
    bytes: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<Origin>,
}

impl UnitSubmission {
    /// Encodes the submission as a record.
    pub fn record(&self) -> Result<Record, serde_json::Error> {
        let text = serde_json::to_vec(&self.text)?;
        let head = UnitHead {
            format: self.format,
            unit: self.unit,
            chain: self.chain,
            predecessor: self.predecessor,
            generation: self.generation,
            agent: self.agent,
            operator: self.operator,
            submitted_at: self.submitted_at,
            bytes: text.len(),
            origin: self.origin.clone(),
        };
        let mut value = serde_json::to_vec(&head)?;
        value.push(b'\n');
        value.extend_from_slice(&compress(&text));
        Ok(Record {
            // One key for all units puts them in one partition, whose worker publishes them in one
            // order.
            key: Bytes::from_static(KNOWLEDGE_TOPIC.as_bytes()),
            value: value.into(),
        })
    }

    /// Decodes the value of a record that [`Self::record`] returned.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let (head, block) = split(value);
        let head: UnitHead = read(head, APPEAL_FORMAT, |head: &UnitHead| head.format)?;
        // The head has only ids and times, so a dead letter or a span never shows text that nobody has
        // reviewed.
        let text = decompress(block, head.bytes)?;
        Ok(Self {
            format: head.format,
            unit: head.unit,
            chain: head.chain,
            predecessor: head.predecessor,
            generation: head.generation,
            agent: head.agent,
            operator: head.operator,
            submitted_at: head.submitted_at,
            text: serde_json::from_slice(&text).map_err(DecodeError::Malformed)?,
            origin: head.origin,
        })
    }

    /// Returns true if the second judge is to decide.
    pub const fn is_appeal(&self) -> bool {
        self.format == APPEAL_FORMAT
    }

    /// Returns the names of the submission.
    pub const fn address(&self) -> UnitAddress {
        UnitAddress {
            unit: self.unit,
            chain: self.chain,
            generation: self.generation,
        }
    }
}

/// As much of a submission as is needed to name it, whatever else is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct UnitAddress {
    /// Id of the version.
    pub unit: UnitId,
    /// The unit, by the id of its first version.
    pub chain: UnitId,
    /// Number of replays of the submission's dead letter; 0 at first.
    #[serde(default)]
    pub generation: u32,
}

impl UnitAddress {
    /// Reads the names of a message that may be malformed otherwise.
    pub fn read(value: &[u8]) -> Option<Self> {
        serde_json::from_slice(split(value).0).ok()
    }
}

#[cfg(test)]
mod tests;
