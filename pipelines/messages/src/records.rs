//! The records of a submission: text, which nobody between the contributor and the gates has a use for as anything
//! else.
//!
//! Invariant: the text is a JSON object whose member `records` has the records in their order. On its way it is
//! compressed (LZ4 block, `lz4_flex`): it lies in the database and in the log, where every page of it costs.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use types::batch::LineDecoder;
use types::{Batch, Contract};

use crate::DecodeError;

/// Greatest ratio of a text to its compressed form (LZ4 block format, *Limits*).
pub(crate) const MOST_EXPANSION: usize = 255;

/// The records of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records(Bytes);

#[derive(Serialize)]
struct RecordsWritten<'a> {
    records: &'a [Value],
}

#[derive(Deserialize)]
struct RecordsRead {
    records: Vec<Value>,
}

/// As [`RecordsRead`], each record as the text that it is.
#[derive(Deserialize)]
struct ReadTexts<'a> {
    #[serde(borrow)]
    // The records stay text until their contract decodes them: a parsed value in between would round
    // large numbers and drop duplicate keys that the gates are to refuse.
    records: Vec<&'a RawValue>,
}

impl Records {
    /// No records, as in the message of an upload.
    pub(crate) const NONE: Self = Self(Bytes::from_static(br#"{"records":[]}"#));

    /// The records of a body, which must be a JSON object that has them in its member `records`.
    pub const fn of_body(body: Bytes) -> Self {
        Self(body)
    }

    /// These records.
    pub fn of(records: &[Value]) -> Result<Self, serde_json::Error> {
        Ok(Self(serde_json::to_vec(&RecordsWritten { records })?.into()))
    }

    /// The records as values.
    pub fn values(&self) -> Result<Vec<Value>, DecodeError> {
        let read: Result<RecordsRead, _> = serde_json::from_slice(&self.0);
        Ok(read.map_err(DecodeError::Malformed)?.records)
    }

    /// The records decoded by a contract.
    pub fn decode(&self, contract: &Arc<Contract>) -> Result<Batch, DecodeError> {
        let read: Result<ReadTexts<'_>, _> = serde_json::from_slice(&self.0);
        let texts = read.map_err(DecodeError::Malformed)?.records;
        let mut records = LineDecoder::new(contract, texts.len(), self.0.len());
        // One malformed record makes the whole message unreadable: the API has checked the body as
        // strictly before, so what fails here was damaged on the way.
        for text in texts {
            records.push(text.get().as_bytes()).map_err(DecodeError::Record)?;
        }
        Ok(records.finish())
    }

    /// The text.
    pub fn text(&self) -> &[u8] {
        &self.0
    }

    /// The number of bytes of the text.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn compressed(&self) -> Vec<u8> {
        compress(&self.0)
    }

    /// The text of `length` bytes that was compressed.
    pub(crate) fn decompressed(block: &[u8], length: usize) -> Result<Self, DecodeError> {
        decompress(block, length).map(|text| Self(text.into()))
    }
}

/// Compresses a text as an LZ4 block without its length.
pub(crate) fn compress(text: &[u8]) -> Vec<u8> {
    lz4_flex::block::compress(text)
}

/// Returns the text of `length` bytes that was compressed.
pub(crate) fn decompress(block: &[u8], length: usize) -> Result<Vec<u8>, DecodeError> {
    // A damaged length must not ask for all memory.
    if length / MOST_EXPANSION > block.len() {
        return Err(DecodeError::Length(length));
    }
    // A block does not hold its length, so the length of the first line is the only bound on what a
    // damaged or forged block may expand to.
    let text = lz4_flex::block::decompress(block, length).map_err(DecodeError::Compressed)?;
    if text.len() == length {
        Ok(text)
    } else {
        Err(DecodeError::Length(length))
    }
}
