//! Contributions on their way to their dataset.
//!
//! Invariant: the first line says what the message is and where its records are; the records follow it, compressed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use eventlog::Record;
use proof::KnownHead;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tabular::reading::Reading;
use types::trace::Origin;
use types::vocabulary::OnRefused;
use types::{AgentId, Contract, ContributionId, DatasetId, Timestamp, UploadLayout};

use crate::{BASE_FORMAT, DecodeError, Records, SUBMISSION_FORMAT, read, split};

/// Topic of [`Submission`]s; the key is the dataset's id.
pub const CONTRIBUTIONS_TOPIC: &str = "contributions";

/// A batch on its way to its dataset: a line of JSON, which says what it is, and the compressed [`Records`].
#[derive(Clone, Debug, PartialEq)]
pub struct Submission {
    /// Format of the message: the result of [`Self::format_for`].
    pub format: u32,
    /// The guard against merging it twice.
    pub contribution: ContributionId,
    /// Counts replays of a dead letter; 0 at first.
    pub generation: u32,
    /// The dataset it is for.
    pub dataset: DatasetId,
    /// The agent that contributed it.
    pub agent: AgentId,
    /// True if the dataset is private: the model screen is skipped.
    pub private: bool,
    /// The rules of the dataset's contract, so that a worker needs nothing else to create the table.
    pub contract: Contract,
    /// Time of the acknowledgement.
    pub submitted_at: Timestamp,
    /// The place of the records.
    pub source: Source,
    /// The request that submitted it; none in messages of builds before traces.
    pub origin: Option<Origin>,
    /// The latest version of the dataset that the marketplace knew of at the acknowledgement; none before the first,
    /// and in messages of builds that did not say. A table that lacks it has lost history, and nothing is merged into
    /// it.
    pub head: Option<KnownHead>,
    /// Policy for refused records. Format 1 has no member for it and always means [`OnRefused::Reject`].
    pub on_refused: OnRefused,
    /// How the bytes of an upload become records; none if each line is one. Format 1 has no member for it.
    pub reading: Option<Reading>,
}

/// The place of a submission's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Records that the message itself holds.
    Inline(Records),
    /// An upload, whose parts are in a store of their own.
    Upload(UploadLayout),
}

/// The line of a [`Submission`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SubmissionHead<C, U, R> {
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
    /// Layout of an upload; absent where the message holds the records.
    #[serde(skip_serializing_if = "Option::is_none")]
    upload: Option<U>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<Origin>,
    /// The `head` of the [`Submission`].
    #[serde(default, rename = "head", skip_serializing_if = "Option::is_none")]
    known: Option<KnownHead>,
    /// Present in format 2 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    on_refused: Option<OnRefused>,
    /// Present in format 2 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reading: Option<R>,
}

/// The members of [`SubmissionHead`].
const SUBMISSION_MEMBERS: [&str; 14] = [
    "format",
    "contribution",
    "generation",
    "dataset",
    "agent",
    "private",
    "contract",
    "submittedAt",
    "bytes",
    "upload",
    "origin",
    "head",
    "onRefused",
    "reading",
];

impl Submission {
    /// Returns the lowest format of a submission with this policy and contract.
    pub fn format_for(on_refused: OnRefused, contract: &Contract) -> u32 {
        match on_refused {
            // A worker that knows format 1 only would take a type that it does not know for a damaged message.
            OnRefused::Reject if !contract.has_new_types() => BASE_FORMAT,
            OnRefused::Reject | OnRefused::Drop => SUBMISSION_FORMAT,
        }
    }

    /// The message as a record of its dataset's key.
    pub fn record(&self) -> Result<Record, serde_json::Error> {
        let (records, upload) = match &self.source {
            Source::Inline(records) => (records, None),
            Source::Upload(layout) => (&Records::NONE, Some(layout)),
        };
        let head = SubmissionHead {
            format: self.format,
            contribution: self.contribution,
            generation: self.generation,
            dataset: self.dataset,
            agent: self.agent,
            private: self.private,
            contract: &self.contract,
            submitted_at: self.submitted_at,
            bytes: records.len(),
            upload,
            origin: self.origin.clone(),
            known: self.head,
            on_refused: (self.format > BASE_FORMAT).then_some(self.on_refused),
            reading: self.reading.as_ref().filter(|_| self.format > BASE_FORMAT),
        };
        // JSON has no line end outside of strings, and escapes it within them, so the first line end is
        // the one that ends the head.
        let mut value = serde_json::to_vec(&head)?;
        value.push(b'\n');
        value.extend_from_slice(&records.compressed());
        Ok(Record {
            key: Bytes::copy_from_slice(self.dataset.as_bytes()),
            value: value.into(),
        })
    }

    /// Reads a message that [`Self::record`] wrote.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let (line, block) = split(value);
        let head: SubmissionHead<Contract, UploadLayout, Reading> =
            read(line, SUBMISSION_FORMAT, |head: &SubmissionHead<_, _, _>| head.format)?;
        let (on_refused, reading) = if head.format == BASE_FORMAT {
            // Format 1 is older than both, so its writers expect a rejection, and lines of the contract.
            (OnRefused::Reject, None)
        } else {
            check_members(line)?;
            (head.on_refused.unwrap_or_default(), head.reading)
        };
        // An upload has a block too, that of no records, so one path reads both kinds.
        let records = Records::decompressed(block, head.bytes)?;
        Ok(Self {
            format: head.format,
            contribution: head.contribution,
            generation: head.generation,
            dataset: head.dataset,
            agent: head.agent,
            private: head.private,
            contract: head.contract,
            submitted_at: head.submitted_at,
            source: head.upload.map_or(Source::Inline(records), Source::Upload),
            origin: head.origin,
            head: head.known,
            on_refused,
            reading,
        })
    }

    /// Returns the id and the generation of the submission.
    pub const fn address(&self) -> Address {
        Address {
            contribution: self.contribution,
            generation: self.generation,
            dataset: self.dataset,
        }
    }
}

/// Refuses a first line with a member that this build does not know.
fn check_members(line: &[u8]) -> Result<(), DecodeError> {
    let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(line).map_err(DecodeError::Malformed)?;
    let unknown = members.into_keys().find(|name| !SUBMISSION_MEMBERS.contains(&&**name));
    unknown.map_or(Ok(()), |name| Err(DecodeError::Member(name.into_owned())))
}

/// As much of a submission as is needed to name it, whatever else is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Address {
    /// Id of the contribution that is submitted.
    pub contribution: ContributionId,
    /// Number of replays of the submission's dead letter; 0 at first.
    #[serde(default)]
    pub generation: u32,
    /// Dataset that the submission is for.
    pub dataset: DatasetId,
}

impl Address {
    /// Reads the address of a message that may be malformed otherwise.
    pub fn read(value: &[u8]) -> Option<Self> {
        // Only ids are read, by a type that ignores every other member: a message whose contract or
        // records are damaged can still be rejected by name instead of leaving its contributor to wait.
        serde_json::from_slice(split(value).0).ok()
    }
}

#[cfg(test)]
mod tests;
