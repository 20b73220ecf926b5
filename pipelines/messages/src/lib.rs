//! The messages between the marketplace and the workers.
//!
//! Invariant: every message names its format. A reader refuses a format it does not know, and the message goes to the
//! dead letters instead of being lost. A message is of the lowest format that can say it, so that what earlier builds
//! can read stays as they wrote it.

mod dead_letter;
mod outcome;
mod records;
mod submission;
mod unit;

use serde::Deserialize;

pub use dead_letter::{DEAD_LETTERS, DeadLetter};
pub use outcome::{ContributionOutcome, OUTCOMES_TOPIC, Outcome, UnitOutcome};
pub use records::Records;
pub use submission::{Address, CONTRIBUTIONS_TOPIC, Source, Submission};
pub use types::knowledge::UnitText;
pub use types::{Resolution, UploadLayout};
pub use unit::{APPEAL_FORMAT, KNOWLEDGE_TOPIC, UnitAddress, UnitSubmission};

/// The format of every message that needs no later one.
pub const BASE_FORMAT: u32 = 1;
/// The latest format of submissions. Its first line has no member that a reader does not know, so a build never works on a
/// submission of which it understands only a part.
pub const SUBMISSION_FORMAT: u32 = 2;
/// The reason of a submission that waits because its table lacks a known version.
pub const HISTORY_LOST: &str = "history_lost";

/// The reason why bytes are not a message.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON of the message's shape.
    #[error("the message is malformed")]
    Malformed(#[source] serde_json::Error),
    /// A record that is not strict JSON.
    #[error("a record is malformed")]
    Record(#[source] types::json::JsonError),
    /// Written by a build that this one does not know.
    #[error("the message has format {0}, which this build does not read")]
    Format(u32),
    /// A member of a submission that a later build added.
    #[error("the message has the member `{0}`, which this build does not read")]
    Member(String),
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

/// Reads JSON of a format up to the `latest` that this build knows.
fn read<'de, T: Deserialize<'de>>(json: &'de [u8], latest: u32, format: impl Fn(&T) -> u32) -> Result<T, DecodeError> {
    let is_known = |format: u32| (BASE_FORMAT..=latest).contains(&format);
    let message =
        // A later format may not parse as this one at all. Its reader is told to upgrade, not that the
        // bytes are damaged, so the format is read on its own before the parse error is believed.
        serde_json::from_slice::<T>(json).map_err(|error| match serde_json::from_slice::<Envelope>(json) {
            Ok(envelope) if !is_known(envelope.format) => DecodeError::Format(envelope.format),
            _ => DecodeError::Malformed(error),
        })?;
    // The format is checked on success too: a later build may keep the shape and change what it means.
    match format(&message) {
        known if is_known(known) => Ok(message),
        other => Err(DecodeError::Format(other)),
    }
}

/// Returns at least how many bytes of memory a submission takes once it is read: those of its text, uncompressed. Of
/// other bytes, their length.
pub fn weight(value: &[u8]) -> usize {
    #[derive(Deserialize)]
    struct Length {
        bytes: usize,
    }
    let length = serde_json::from_slice(head(value)).map_or(0, |Length { bytes }| bytes);
    // The length is bounded, because it cannot be trusted before the text is read.
    length
        .min(value.len().saturating_mul(records::MOST_EXPANSION))
        .max(value.len())
}

/// Returns the first line of a submission, which says what it is.
pub fn head(value: &[u8]) -> &[u8] {
    split(value).0
}

/// Returns the first line of a submission, and the bytes after it.
fn split(value: &[u8]) -> (&[u8], &[u8]) {
    // Only the first line end separates: the block after it is binary and may contain the same byte.
    let mut parts = value.splitn(2, |byte| *byte == b'\n');
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}
