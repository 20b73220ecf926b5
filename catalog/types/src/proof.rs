//! The hashes of a part, which every reader compares with the bytes that it read.
//!
//! Invariant: [`Proof::cut`] returns no byte that it did not hash in the same call.

use std::ops::Range;

use bytes::Bytes;
use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::mutate;

/// The bytes of a block; the last block of a file may have fewer.
pub const BLOCK_BYTES: u64 = BLOCK_LENGTH as u64;
/// The same, of bytes in memory.
const BLOCK_LENGTH: usize = 64 << 10;
/// Up to this size a part is read whole and held against its SHA-256; of a larger one each block has a hash.
pub const MAX_WHOLE_BYTES: u64 = 512 << 10;
/// The bytes of the hash of a block: the first of its BLAKE3.
const HASH_BYTES: usize = 16;

/// Bytes of a file are not what was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bytes {start} to {end} of it are not what was written")]
pub struct DamagedBytes {
    /// The first byte of what was read.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
}

impl From<&Range<u64>> for DamagedBytes {
    fn from(span: &Range<u64>) -> Self {
        Self {
            start: span.start,
            end: span.end,
        }
    }
}

/// The hashes of a file of a known size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    bytes: u64,
    hashes: ProofHashes,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
enum ProofHashes {
    /// The SHA-256 of the file.
    Whole([u8; 32]),
    /// The hash of each block, one after the other.
    Blocks(#[serde(with = "text")] Vec<u8>),
}

impl std::fmt::Debug for ProofHashes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(_) => f.write_str("Whole"),
            Self::Blocks(hashes) => write!(f, "Blocks({})", hashes.len() / HASH_BYTES),
        }
    }
}

impl Proof {
    /// The proof of a file that is read whole.
    pub const fn whole(bytes: u64, sha256: [u8; 32]) -> Self {
        Self {
            bytes,
            hashes: ProofHashes::Whole(sha256),
        }
    }

    /// The proof of a file by its blocks.
    pub fn of(file: &[u8]) -> Self {
        let mut blocks = Blocks::default();
        blocks.update(file);
        blocks.finish()
    }

    /// The proof of a file of `bytes` bytes by its blocks, from what [`Self::text`] gave; `None` where the text is not
    /// that.
    pub fn from_text(bytes: u64, text: &str) -> Option<Self> {
        let hashes = BASE64.decode(text.as_bytes()).ok()?;
        let proof = Self {
            bytes,
            hashes: ProofHashes::Blocks(hashes),
        };
        proof.is_complete().then_some(proof)
    }

    /// The hashes of the blocks as Base64 (RFC 4648 section 4); `None` of a file that is read whole.
    pub fn text(&self) -> Option<String> {
        match &self.hashes {
            ProofHashes::Whole(_) => None,
            ProofHashes::Blocks(hashes) => Some(BASE64.encode(hashes)),
        }
    }

    /// The size of the file.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether every read takes the whole file.
    pub const fn is_whole(&self) -> bool {
        matches!(self.hashes, ProofHashes::Whole(_))
    }

    /// The memory that the hashes take, in bytes.
    pub const fn memory(&self) -> usize {
        match &self.hashes {
            ProofHashes::Whole(_) => 0,
            ProofHashes::Blocks(hashes) => hashes.capacity(),
        }
    }

    fn is_complete(&self) -> bool {
        match &self.hashes {
            ProofHashes::Whole(_) => true,
            // A text with too few hashes would leave the last blocks unverified, so it is no proof.
            ProofHashes::Blocks(hashes) => {
                hashes.len().is_multiple_of(HASH_BYTES)
                    && (hashes.len() / HASH_BYTES) as u64 == self.bytes.div_ceil(BLOCK_BYTES)
            }
        }
    }

    /// The bytes to read for these ranges: whole blocks, ascending; blocks that touch are one.
    ///
    /// # Errors
    /// A range beyond the end of the file.
    pub fn spans(&self, ranges: &[Range<u64>]) -> Result<Vec<Range<u64>>, DamagedBytes> {
        if let Some(beyond) = ranges.iter().find(|range| range.end > self.bytes) {
            return Err(beyond.into());
        }
        let wanted = ranges.iter().filter(|range| !range.is_empty());
        let mut spans: Vec<_> = match self.hashes {
            // One hash covers the file, so one read of it serves every range.
            ProofHashes::Whole(_) => wanted.take(1).map(|_| 0..self.bytes).collect(),
            ProofHashes::Blocks(_) => wanted.map(|range| self.rounded(range)).collect(),
        };
        spans.sort_unstable_by_key(|span| span.start);
        spans.dedup_by(|next, span| {
            let touches = next.start <= span.end;
            if touches {
                span.end = span.end.max(next.end);
            }
            touches
        });
        Ok(spans)
    }

    /// Verifies the bytes of these spans, which [`Self::spans`] gave, and cuts the ranges out of them.
    ///
    /// # Errors
    /// The first span whose bytes are not what was written, or are too few.
    pub fn cut(
        &self,
        spans: &[Range<u64>],
        pieces: &[Bytes],
        ranges: &[Range<u64>],
    ) -> Result<Vec<Bytes>, DamagedBytes> {
        // All spans are verified before the first range is cut, so that a caller gets no byte of a damaged read.
        for (index, span) in spans.iter().enumerate() {
            let piece = pieces.get(index).ok_or_else(|| DamagedBytes::from(span))?;
            self.check(span, piece)?;
        }
        let cut = |range: &Range<u64>| {
            if range.is_empty() {
                return Ok(Bytes::new());
            }
            // Spans ascend and do not touch, so only the first that ends late enough can hold the range.
            let index = spans.partition_point(|span| span.end < range.end);
            let found = spans.get(index).zip(pieces.get(index));
            let (span, piece) = found.ok_or_else(|| DamagedBytes::from(range))?;
            let at = |offset: u64| offset.checked_sub(span.start).and_then(|at| usize::try_from(at).ok());
            let within = at(range.start)
                .zip(at(range.end))
                .filter(|(_, end)| *end <= piece.len());
            let (start, end) = within.ok_or_else(|| DamagedBytes::from(range))?;
            Ok(piece.slice(start..end))
        };
        ranges.iter().map(cut).collect()
    }

    /// The blocks that have bytes of this range.
    fn rounded(&self, range: &Range<u64>) -> Range<u64> {
        range.start / BLOCK_BYTES * BLOCK_BYTES
            ..range
                .end
                .div_ceil(BLOCK_BYTES)
                .saturating_mul(BLOCK_BYTES)
                .min(self.bytes)
    }

    fn check(&self, span: &Range<u64>, piece: &[u8]) -> Result<(), DamagedBytes> {
        let damaged = || Err(span.into());
        // A store may return fewer bytes than were asked for, and the hash of a missing block would never be compared.
        if piece.len() as u64 != span.end - span.start {
            return damaged();
        }
        mutate!(Bug::BlindReads => return Ok(()));
        match &self.hashes {
            ProofHashes::Whole(sha256) if Sha256::digest(piece)[..] == *sha256 => Ok(()),
            ProofHashes::Whole(_) => damaged(),
            ProofHashes::Blocks(hashes) => {
                let first = usize::try_from(span.start / BLOCK_BYTES).unwrap_or(usize::MAX);
                let mut expected = hashes.chunks_exact(HASH_BYTES).skip(first);
                let same = |block: &[u8]| expected.next() == Some(&blake3::hash(block).as_bytes()[..HASH_BYTES]);
                let all = piece.chunks(BLOCK_LENGTH).all(same);
                if all { Ok(()) } else { damaged() }
            }
        }
    }
}

/// Hashes the blocks of a file as it is written or read.
#[derive(Debug, Default)]
pub struct Blocks {
    hashes: Vec<u8>,
    /// The block that is not full.
    open: blake3::Hasher,
    filled: usize,
    bytes: u64,
}

impl Blocks {
    /// Takes the next bytes of the file.
    pub fn update(&mut self, mut bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            let (taken, rest) = bytes.split_at(bytes.len().min(BLOCK_LENGTH - self.filled));
            self.open.update(taken);
            self.filled += taken.len();
            if self.filled == BLOCK_LENGTH {
                self.end();
            }
            bytes = rest;
        }
    }

    /// The proof of the file that ends here.
    pub fn finish(mut self) -> Proof {
        if self.filled > 0 {
            self.end();
        }
        Proof {
            bytes: self.bytes,
            hashes: ProofHashes::Blocks(self.hashes),
        }
    }

    fn end(&mut self) {
        // Half of the hash finds damage as surely, and halves what is kept in memory and in commits. Against forgery
        // there are the SHA-256 and the content root of the manifest.
        self.hashes
            .extend_from_slice(&self.open.finalize().as_bytes()[..HASH_BYTES]);
        self.open.reset();
        self.filled = 0;
    }
}

/// Hashes as text in JSON.
mod text {
    use data_encoding::BASE64;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(hashes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(hashes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        BASE64.decode(text.as_bytes()).map_err(D::Error::custom)
    }
}

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "ranges are what is tested, and some lists have one"
)]
mod tests {
    use super::*;

    fn file(length: u64) -> Bytes {
        let mut bytes = vec![0; usize::try_from(length).unwrap()];
        blake3::Hasher::new().finalize_xof().fill(&mut bytes);
        bytes.into()
    }

    fn read(proof: &Proof, file: &Bytes, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, DamagedBytes> {
        let spans = proof.spans(ranges)?;
        let part = |range: &Range<u64>| {
            let at = |offset: u64| usize::try_from(offset).unwrap().min(file.len());
            file.slice(at(range.start)..at(range.end))
        };
        let pieces: Vec<_> = spans.iter().map(part).collect();
        let found = proof.cut(&spans, &pieces, ranges);
        if let Ok(found) = &found {
            assert_eq!(*found, ranges.iter().map(part).collect::<Vec<_>>());
        }
        found
    }

    #[test]
    fn ranges_are_read_by_the_blocks_that_have_them() {
        let bytes = 5 * BLOCK_BYTES + 7;
        let proof = Proof::of(&file(bytes));
        for (ranges, spans) in [
            (vec![], vec![]),
            (vec![7..7], vec![]),
            (vec![0..1], vec![0..BLOCK_BYTES]),
            (vec![BLOCK_BYTES - 1..BLOCK_BYTES + 1], vec![0..2 * BLOCK_BYTES]),
            (vec![bytes - 1..bytes], vec![5 * BLOCK_BYTES..bytes]),
            (
                vec![3 * BLOCK_BYTES..4 * BLOCK_BYTES, 1..2, 5..6],
                vec![0..BLOCK_BYTES, 3 * BLOCK_BYTES..4 * BLOCK_BYTES],
            ),
            (vec![BLOCK_BYTES..BLOCK_BYTES + 1, 0..1, 0..bytes], vec![0..bytes]),
        ] {
            assert_eq!(proof.spans(&ranges).unwrap(), spans, "{ranges:?}");
            read(&proof, &file(bytes), &ranges).unwrap();
        }
        assert!(proof.spans(&[0..bytes + 1]).is_err());
        let whole = Proof::whole(bytes, Sha256::digest(file(bytes)).into());
        assert_eq!(whole.spans(&[9..10, 3..4]).unwrap(), [0..bytes]);
        read(&whole, &file(bytes), &[9..10, 3..4]).unwrap();
    }

    #[test]
    fn a_wrong_bit_is_damage_where_its_block_is_read() {
        let sound = file(3 * BLOCK_BYTES + 100);
        let whole = Proof::whole(sound.len() as u64, Sha256::digest(&sound).into());
        let blocks = Proof::of(&sound);
        for at in [
            0,
            BLOCK_BYTES - 1,
            BLOCK_BYTES,
            2 * BLOCK_BYTES + 5,
            3 * BLOCK_BYTES + 99,
        ] {
            let mut flipped = sound.to_vec();
            flipped[usize::try_from(at).unwrap()] ^= 0x10;
            let flipped = Bytes::from(flipped);
            for other in [0, BLOCK_BYTES, 2 * BLOCK_BYTES, 3 * BLOCK_BYTES] {
                let range = other..other + 1;
                let damaged = read(&blocks, &flipped, std::slice::from_ref(&range)).is_err();
                assert_eq!(damaged, at / BLOCK_BYTES == other / BLOCK_BYTES, "{at} {other}");
                assert!(read(&whole, &flipped, &[range]).is_err());
            }
        }
        let cut = sound.slice(..sound.len() - 1);
        assert!(read(&blocks, &cut, &[3 * BLOCK_BYTES..3 * BLOCK_BYTES + 1]).is_err());
        assert!(read(&whole, &cut, &[0..1]).is_err());
    }

    #[test]
    fn a_proof_is_the_same_from_its_text_and_from_bytes_as_they_come() {
        for length in [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES] {
            let file = file(length);
            let proof = Proof::of(&file);
            let mut blocks = Blocks::default();
            for some in file.chunks(10_007) {
                blocks.update(some);
            }
            assert_eq!(blocks.finish(), proof);
            let text = proof.text().unwrap();
            assert_eq!(Proof::from_text(length, &text).as_ref(), Some(&proof));
            assert_eq!(Proof::from_text(length + BLOCK_BYTES, &text), None);
            let json = serde_json::to_string(&proof).unwrap();
            assert_eq!(serde_json::from_str::<Proof>(&json).unwrap(), proof);
        }
    }
}
