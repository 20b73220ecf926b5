//! What workers note about submissions that they work on alone.

use bytes::Bytes;
use data_encoding::HEXLOWER;
use eventlog::Record;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use types::{ContributionId, LifeId, UnitId};

use crate::{Address, DecodeError, UnitAddress, read};

/// Topic of [`Attempt`]s; the key is their subject's, so that the notes about one subject are in order.
pub const ATTEMPTS: &str = "attempts";

/// A note of a worker about a submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// Format of the message; this build writes [`FORMAT`](crate::FORMAT).
    pub format: u32,
    /// The worker's consumer group: groups work on everything independently of each other.
    pub group: String,
    /// The worker, in one of its lives.
    pub life: LifeId,
    /// Counts the notes of this life from 1: the last one says what it was doing.
    pub turn: u64,
    /// Step that the submission took.
    pub step: Step,
    /// Submission that the step is about.
    #[serde(flatten)]
    pub subject: Subject,
    /// The partition of the submission.
    pub partition: u32,
    /// Its offset there.
    pub offset: u64,
}

/// Step of a submission in a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// The worker begins to work on it, and on nothing else.
    Begun,
    /// The worker outlived it, or left it to another.
    Acquitted,
    /// The same, because it took long: the others wait for it no more.
    Long,
}

/// Suspect: a submission, at any position. Positions begin again when a topic does, and the marketplace
/// appends an open submission again; a replay has another generation, and thus no past.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Subject {
    /// A generation of a contribution.
    Contribution {
        /// Id of the contribution.
        contribution: ContributionId,
        /// Its generation.
        generation: u32,
    },
    /// A generation of a version of a knowledge unit.
    Unit {
        /// Id of the version.
        unit: UnitId,
        /// Its generation.
        generation: u32,
    },
    /// A message that names neither.
    Unreadable {
        /// The SHA-256 of its value, hexadecimal.
        digest: String,
    },
}

impl Subject {
    /// Returns the subject of a message.
    pub fn of(address: Option<&Address>, value: &[u8]) -> Self {
        match address {
            Some(address) => Self::Contribution {
                contribution: address.contribution,
                generation: address.generation,
            },
            None => Self::unreadable(value),
        }
    }

    /// Returns the subject of a message about a version of a unit.
    pub fn of_unit(address: Option<&UnitAddress>, value: &[u8]) -> Self {
        match address {
            Some(address) => Self::Unit {
                unit: address.unit,
                generation: address.generation,
            },
            None => Self::unreadable(value),
        }
    }

    fn unreadable(value: &[u8]) -> Self {
        // A hash and not the position: the marketplace appends the message again, at another position, and it must be
        // known as the same suspect there.
        Self::Unreadable {
            digest: HEXLOWER.encode(&Sha256::digest(value)),
        }
    }

    fn key(&self) -> Bytes {
        match self {
            Self::Contribution { contribution, .. } => Bytes::copy_from_slice(contribution.as_bytes()),
            Self::Unit { unit, .. } => Bytes::copy_from_slice(unit.as_bytes()),
            Self::Unreadable { digest } => Bytes::copy_from_slice(digest.as_bytes()),
        }
    }
}

impl Attempt {
    /// The message as a record of its subject's key.
    pub fn record(&self) -> Result<Record, serde_json::Error> {
        Ok(Record {
            key: self.subject.key(),
            value: serde_json::to_vec(self)?.into(),
        })
    }

    /// Reads a message that [`Self::record`] wrote.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        read(value, |attempt: &Self| attempt.format)
    }
}

#[cfg(test)]
mod tests {
    use types::{DatasetId, Timestamp};

    use super::*;
    use crate::FORMAT;

    #[test]
    fn an_attempt_comes_back_as_it_was() {
        let at = Timestamp::from_micros(1_790_000_000_000_000);
        let address = Address {
            contribution: ContributionId::new(at),
            generation: 2,
            dataset: DatasetId::new(at),
        };
        let unit = UnitAddress {
            unit: UnitId::new(at),
            chain: UnitId::new(at),
            generation: 2,
        };
        let subjects = [
            Subject::of(Some(&address), b""),
            Subject::of_unit(Some(&unit), b""),
            Subject::of(None, b"{"),
        ];
        for subject in subjects {
            let attempt = Attempt {
                format: FORMAT,
                group: "workers".to_owned(),
                life: LifeId::new(at),
                turn: 7,
                step: Step::Begun,
                subject,
                partition: 3,
                offset: 12,
            };
            let record = attempt.record().unwrap();
            assert!(record.value.len() < 300, "{}", record.value.len());
            assert_eq!(Attempt::decode(&record.value).unwrap(), attempt);
        }
    }
}
