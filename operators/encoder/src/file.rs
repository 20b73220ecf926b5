//! The file of the model, which is a part of the program. `make.py` makes it and says how it is laid out.
//!
//! Invariant: what is read is what was committed: the packed file is that of the constant, and each section that of the
//! header.

use std::io::Read as _;

use crate::ENCODER_ID;

/// The packed file.
static PACKED: &[u8] = include_bytes!("../use-m3.zst");
/// BLAKE3 of the packed file, which belongs to [`ENCODER_ID`].
const CHECKSUM: &str = "90314a856145bd755a8f8a7b562becf0ffb5a1220a4e80914bd43e18dfd87149";

const MAGIC: &[u8; 8] = b"SLUICEEN";
const HEADER_BYTES: usize = 256;
/// The bytes of the id in the header, behind the magic number.
const ID_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 32;
/// Offset, length and checksum.
const SECTION_BYTES: usize = 8 + 8 + CHECKSUM_BYTES;
/// The most bytes of the unpacked file.
const MAX_UNPACKED_BYTES: u64 = 1 << 27;

/// A program whose model cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncoderError {
    /// The packed file is another one.
    #[error("the weights of `{ENCODER_ID}` in this program are damaged: their checksum is `{found}`; install it again")]
    Damaged {
        /// BLAKE3 of the file.
        found: String,
    },
    /// The packed file cannot be unpacked.
    #[error("the weights of `{ENCODER_ID}` cannot be unpacked: {reason}")]
    Unpacking {
        /// Message of the decoder.
        reason: String,
    },
    /// The unpacked file is not laid out as this program reads it.
    #[error("the weights of `{ENCODER_ID}` are not those that this program reads: {part}")]
    Layout {
        /// The part of the file that differs.
        part: &'static str,
    },
}

/// Checks that the weights in this program are the committed ones, without unpacking them. It takes some 10 ms; a
/// process that searches or judges does so when it starts.
pub fn check() -> Result<(), EncoderError> {
    check_packed(PACKED)
}

fn check_packed(packed: &[u8]) -> Result<(), EncoderError> {
    let found = blake3::hash(packed).to_hex();
    if found.as_str() == CHECKSUM {
        return Ok(());
    }
    Err(EncoderError::Damaged {
        found: found.to_string(),
    })
}

/// The sections of the unpacked file.
#[derive(Debug)]
pub(crate) struct ModelFile {
    pub(crate) vocabulary: Vec<u8>,
    pub(crate) table: Vec<u8>,
    pub(crate) dense: Vec<u8>,
    pub(crate) small: Vec<u8>,
}

impl ModelFile {
    pub(crate) fn unpack() -> Result<Self, EncoderError> {
        Self::read(PACKED)
    }

    /// Reads section by section, so that no moment holds the whole file beside them.
    fn read(packed: &[u8]) -> Result<Self, EncoderError> {
        let failed = |error: std::io::Error| EncoderError::Unpacking {
            reason: error.to_string(),
        };
        let decoder = zstd::stream::read::Decoder::with_buffer(packed).map_err(failed)?;
        let mut decoder = decoder.take(MAX_UNPACKED_BYTES);
        let mut header = [0; HEADER_BYTES];
        decoder.read_exact(&mut header).map_err(failed)?;
        let rest = header
            .strip_prefix(MAGIC)
            .ok_or(EncoderError::Layout { part: "magic number" })?;
        let (id, sections) = rest.split_at(ID_BYTES);
        if id.split(|byte| *byte == 0).next() != Some(ENCODER_ID.as_bytes()) {
            return Err(EncoderError::Layout { part: "id" });
        }
        let mut at = HEADER_BYTES as u64;
        let mut read = |number: usize, part: &'static str| {
            let wrong = EncoderError::Layout { part };
            let section = &sections[number * SECTION_BYTES..(number + 1) * SECTION_BYTES];
            let (offset, length, checksum) = section_of(section).ok_or_else(|| wrong.clone())?;
            if offset != at || length > MAX_UNPACKED_BYTES {
                return Err(wrong);
            }
            at += length;
            let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
            decoder.read_exact(&mut bytes).map_err(failed)?;
            if blake3::hash(&bytes) != checksum {
                return Err(wrong);
            }
            Ok(bytes)
        };
        Ok(Self {
            vocabulary: read(0, "vocabulary")?,
            table: read(1, "table")?,
            dense: read(2, "dense matrices")?,
            small: read(3, "scales and biases")?,
        })
    }
}

/// Returns offset, length and checksum of a section of the header.
fn section_of(bytes: &[u8]) -> Option<(u64, u64, [u8; CHECKSUM_BYTES])> {
    let (offset, rest) = bytes.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    Some((
        u64::from_le_bytes(*offset),
        u64::from_le_bytes(*length),
        *rest.first_chunk()?,
    ))
}

/// Returns numbers of four bytes.
pub(crate) fn words<T>(bytes: &[u8], word: impl Fn([u8; 4]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|bytes| word(*bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_refused() {
        assert_eq!(check(), Ok(()));
        let mut damaged = PACKED.to_vec();
        damaged[20_000_000] ^= 1;
        let error = check_packed(&damaged).unwrap_err();
        assert!(matches!(error, EncoderError::Damaged { .. }), "{error}");
        // Each part has a checksum too, for a file whose own was replaced with it.
        let error = ModelFile::read(&damaged).unwrap_err();
        let known = EncoderError::Layout { part: "table" };
        assert!(
            error == known || matches!(error, EncoderError::Unpacking { .. }),
            "{error}"
        );
    }

    #[test]
    fn a_file_of_another_layout_is_refused() {
        let packed = |header: &[u8]| zstd::encode_all(header, 1).unwrap();
        let short = ModelFile::read(&packed(MAGIC)).unwrap_err();
        assert!(matches!(short, EncoderError::Unpacking { .. }), "{short}");
        let mut header = [0; HEADER_BYTES];
        let refused = ModelFile::read(&packed(&header)).unwrap_err();
        assert_eq!(refused, EncoderError::Layout { part: "magic number" });
        header[..8].copy_from_slice(MAGIC);
        let refused = ModelFile::read(&packed(&header)).unwrap_err();
        assert_eq!(refused, EncoderError::Layout { part: "id" });
        header[8..8 + ENCODER_ID.len()].copy_from_slice(ENCODER_ID.as_bytes());
        let refused = ModelFile::read(&packed(&header)).unwrap_err();
        assert_eq!(refused, EncoderError::Layout { part: "vocabulary" });
    }
}
