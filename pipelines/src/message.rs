//! The messages between the marketplace and the workers.
//!
//! Invariant: every message names its format. A reader refuses a format it does not know, and the message goes to the
//! dead letters instead of being lost.

use crate::staging::objects::Cut;
use bytes::Bytes;
use catalog::KnownHead;
use eventlog::Record;
use operators::{RowVerdict, Tally};
use serde::{Deserialize, Serialize};
pub use types::Resolution;
use types::trace::Origin;
use types::{AgentId, Contract, ContributionId, DatasetId, Timestamp};

mod attempt;
mod records;

pub use attempt::{ATTEMPTS, Attempt, Step, Subject};
pub use records::Records;

/// Topic of [`Submission`]s; the key is the dataset's id.
pub const CONTRIBUTIONS: &str = "contributions";
/// Topic of [`Outcome`]s; the key is the dataset's id.
pub const OUTCOMES: &str = "outcomes";
/// The format this build writes.
pub const FORMAT: u32 = 1;
/// The reason of a submission that waits because its table lacks a known version.
pub const HISTORY_LOST: &str = "history_lost";

/// A batch on its way to its dataset: a line of JSON, which says what it is, and the compressed [`Records`].
#[derive(Clone, Debug, PartialEq)]
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
    pub records: Records,
    /// The upload that the records are in.
    pub upload: Option<Cut>,
    /// The request that submitted it; none in messages of builds before traces.
    pub origin: Option<Origin>,
    /// The latest version of the dataset that the marketplace knew of at the acknowledgement; none before the first,
    /// and in messages of builds that did not say. A table that lacks it has lost history, and nothing is merged into
    /// it.
    pub head: Option<KnownHead>,
}

/// The line of a [`Submission`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<C, U> {
    format: u32,
    contribution: ContributionId,
    generation: u32,
    dataset: DatasetId,
    agent: AgentId,
    private: bool,
    contract: C,
    submitted_at: Timestamp,
    /// The length of the records' text.
    bytes: usize,
    /// As in [`Submission`].
    #[serde(skip_serializing_if = "Option::is_none")]
    upload: Option<U>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<Origin>,
    /// The `head` of the [`Submission`].
    #[serde(default, rename = "head", skip_serializing_if = "Option::is_none")]
    known: Option<KnownHead>,
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
    /// Position of the worker's span in the trace of the submission's request: the value of a `traceparent` header. Set
    /// when the outcome is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// Why bytes are not a message.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON of the message's shape.
    #[error("the message is malformed")]
    Malformed(#[source] serde_json::Error),
    /// A record that is not strict JSON.
    #[error("a record is malformed")]
    Record(#[source] types::json::JsonError),
    /// Written by a build that this one does not know.
    #[error("the message has format {0}, this build reads {FORMAT}")]
    Format(u32),
    /// Records that cannot be decompressed.
    #[error("the records are damaged")]
    Compressed(#[source] lz4_flex::block::DecompressError),
    /// Records of another length than they say.
    #[error("the records do not have {0} bytes")]
    Length(usize),
}

#[derive(Deserialize)]
struct Envelope {
    format: u32,
}

/// Reads JSON of the format this build knows.
fn read<'de, T: Deserialize<'de>>(json: &'de [u8], format: impl Fn(&T) -> u32) -> Result<T, DecodeError> {
    let message =
        serde_json::from_slice::<T>(json).map_err(|error| match serde_json::from_slice::<Envelope>(json) {
            Ok(envelope) if envelope.format != FORMAT => DecodeError::Format(envelope.format),
            _ => DecodeError::Malformed(error),
        })?;
    match format(&message) {
        FORMAT => Ok(message),
        other => Err(DecodeError::Format(other)),
    }
}

impl Outcome {
    /// The message as a record of its dataset's key.
    pub fn record(&self) -> Result<Record, serde_json::Error> {
        Ok(Record {
            key: Bytes::copy_from_slice(self.dataset.as_bytes()),
            value: serde_json::to_vec(self)?.into(),
        })
    }

    /// Reads a message that [`Self::record`] wrote.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        read(value, |outcome: &Self| outcome.format)
    }
}

impl Submission {
    /// The message as a record of its dataset's key.
    pub fn record(&self) -> Result<Record, serde_json::Error> {
        let head = Head {
            format: self.format,
            contribution: self.contribution,
            generation: self.generation,
            dataset: self.dataset,
            agent: self.agent,
            private: self.private,
            contract: &self.contract,
            submitted_at: self.submitted_at,
            bytes: self.records.len(),
            upload: self.upload.as_ref(),
            origin: self.origin.clone(),
            known: self.head,
        };
        let mut value = serde_json::to_vec(&head)?;
        value.push(b'\n');
        value.extend_from_slice(&self.records.compressed());
        Ok(Record {
            key: Bytes::copy_from_slice(self.dataset.as_bytes()),
            value: value.into(),
        })
    }

    /// Reads a message that [`Self::record`] wrote.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let (head, block) = split(value);
        let head: Head<Contract, Cut> = read(head, |head: &Head<Contract, Cut>| head.format)?;
        Ok(Self {
            format: head.format,
            contribution: head.contribution,
            generation: head.generation,
            dataset: head.dataset,
            agent: head.agent,
            private: head.private,
            contract: head.contract,
            submitted_at: head.submitted_at,
            records: Records::decompressed(block, head.bytes)?,
            upload: head.upload,
            origin: head.origin,
            head: head.known,
        })
    }

    /// What the submission is called.
    pub const fn address(&self) -> Address {
        Address {
            contribution: self.contribution,
            generation: self.generation,
            dataset: self.dataset,
        }
    }
}

/// How many bytes of memory a submission takes, at the least, once it is read: those of its records as text, whatever
/// they are compressed to. Of what is no submission, its own.
pub fn weight(value: &[u8]) -> usize {
    #[derive(Deserialize)]
    struct Length {
        bytes: usize,
    }
    let length = serde_json::from_slice(split(value).0).map_or(0, |Length { bytes }| bytes);
    // Why at most: the length is not to be believed before the records are read.
    length
        .min(value.len().saturating_mul(records::MOST_EXPANSION))
        .max(value.len())
}

/// The line of a submission, which says what it is.
pub(crate) fn head(value: &[u8]) -> &[u8] {
    split(value).0
}

/// The line of a submission, and what follows it.
fn split(value: &[u8]) -> (&[u8], &[u8]) {
    let mut parts = value.splitn(2, |byte| *byte == b'\n');
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
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
        serde_json::from_slice(split(value).0).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use types::Version;

    use super::*;

    fn submission(records: &[Value]) -> Submission {
        let at = Timestamp::from_micros(1_790_000_000_000_000);
        Submission {
            format: FORMAT,
            contribution: ContributionId::new(at),
            generation: 3,
            dataset: DatasetId::new(at),
            agent: AgentId::new(at),
            private: true,
            contract: serde_json::from_value(json!({"fields": [{"name": "note", "type": "string"}]})).unwrap(),
            submitted_at: at,
            records: Records::of(records).unwrap(),
            upload: None,
            origin: Some(Origin {
                request_id: "0199".to_owned(),
                traceparent: None,
            }),
            head: Some(KnownHead {
                version: Version(7),
                root: catalog::Root::from_bytes([7; 32]),
            }),
        }
    }

    #[test]
    fn a_submission_comes_back_as_it_was_and_takes_little_room() {
        let records: Vec<Value> = (0..500)
            .map(|row| json!({"note": format!("line one\nof {row}")}))
            .collect();
        let submission = submission(&records);
        let record = submission.record().unwrap();
        assert!(record.value.len() < serde_json::to_vec(&records).unwrap().len() / 2);
        let decoded = Submission::decode(&record.value).unwrap();
        assert_eq!(decoded, submission);
        assert_eq!(decoded.records.values().unwrap(), records);
        assert_eq!(Address::read(&record.value), Some(submission.address()));
    }

    #[test]
    fn a_submission_of_a_build_that_named_no_head_is_read() {
        let submission = submission(&[json!({"note": "a"})]);
        let record = submission.record().unwrap();
        let (line, block) = split(&record.value);
        let mut line: Value = serde_json::from_slice(line).unwrap();
        assert!(line.as_object_mut().unwrap().remove("head").is_some());
        let before = [serde_json::to_vec(&line).unwrap(), b"\n".to_vec(), block.to_vec()].concat();
        let decoded = Submission::decode(&before).unwrap();
        assert_eq!(
            decoded,
            Submission {
                head: None,
                ..submission
            }
        );
    }

    #[test]
    fn records_are_those_of_a_body_whatever_else_it_says() {
        let body = r#"{"sourceDeclaration": "x", "records": [{"note": "é"}, {}]}"#;
        let records = Records::of_body(Bytes::from_static(body.as_bytes()));
        assert_eq!(records.values().unwrap(), [json!({"note": "é"}), json!({})]);
    }

    #[test]
    fn a_damaged_submission_is_an_error_and_keeps_its_address() {
        let submission = submission(&[json!({"note": "a"})]);
        let whole = submission.record().unwrap().value;
        for end in 1..whole.len() {
            assert!(Submission::decode(&whole[..end]).is_err(), "{end}");
        }
        let text = |from: &str, to: &str| {
            let line = split(&whole).0;
            let line = str::from_utf8(line).unwrap().replace(from, to);
            [line.as_bytes(), b"\n", split(&whole).1].concat()
        };
        let other = text("\"format\":1", "\"format\":7");
        assert!(matches!(Submission::decode(&other), Err(DecodeError::Format(7))));
        let bytes = submission.records.len();
        for wrong in [bytes - 1, bytes + 1, usize::MAX] {
            let long = text(&format!("\"bytes\":{bytes}"), &format!("\"bytes\":{wrong}"));
            assert!(Submission::decode(&long).is_err(), "{wrong}");
            assert_eq!(Address::read(&long), Some(submission.address()));
        }
        assert!(Submission::decode(b"").is_err());
        assert_eq!(Address::read(b""), None);
    }
}
