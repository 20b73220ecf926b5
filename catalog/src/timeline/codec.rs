//! The derived file that spares an opening the commits it was made from.
//!
//! Invariant: a file that is not whole, of another format or of another table decodes to nothing.

use std::sync::Arc;

use types::{ContributionId, DatasetId, Version};

use super::{Layer, Timeline};
use crate::Root;
use crate::part::PartInfo;

/// Starts every file of this format.
const MAGIC: &[u8; 16] = b"sluice timeline4";
/// More times than rows are ever rewritten: each time there are at least twice as many parts below.
const HIGHEST: usize = 64;

impl Timeline {
    /// The timeline as bytes; nothing to write before the table exists.
    pub(crate) fn encode(&self, dataset: DatasetId) -> Option<Vec<u8>> {
        let contract = serde_json::to_vec(self.contract.as_deref()?).ok()?;
        let mut bytes = Vec::with_capacity(256 + contract.len() + self.parts.len() * 132);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(dataset.as_bytes());
        bytes.extend_from_slice(&(contract.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&contract);
        bytes.extend_from_slice(&self.commits.to_le_bytes());
        bytes.extend_from_slice(&(self.parts.len() as u64).to_le_bytes());
        for entry in &self.parts {
            let PartInfo {
                version,
                compacted: _,
                contribution,
                index,
                attempt,
                rows,
                bytes: size,
                sha256,
            } = &entry.part;
            bytes.extend_from_slice(&version.0.to_le_bytes());
            bytes.extend_from_slice(contribution.as_bytes());
            bytes.extend_from_slice(&index.to_le_bytes());
            bytes.extend_from_slice(&attempt.to_le_bytes());
            bytes.extend_from_slice(&rows.to_le_bytes());
            bytes.extend_from_slice(&size.to_le_bytes());
            bytes.extend_from_slice(sha256);
            bytes.extend_from_slice(entry.root.as_bytes());
            bytes.extend_from_slice(&entry.commit.to_le_bytes());
        }
        for (height, Layer { part, covers, commit }) in self.layers.iter() {
            for number in [
                height as u64,
                covers.start as u64,
                covers.end as u64,
                *commit,
                part.bytes,
            ] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            bytes.extend_from_slice(&part.sha256);
        }
        let checksum = *blake3::hash(&bytes).as_bytes();
        bytes.extend_from_slice(&checksum);
        Some(bytes)
    }

    /// The timeline in these bytes, if they are whole and of this table.
    pub(crate) fn decode(dataset: DatasetId, bytes: &[u8]) -> Option<Self> {
        let (body, checksum) = bytes.split_last_chunk::<32>()?;
        if blake3::hash(body) != *checksum {
            return None;
        }
        let mut reader = Reader(body);
        if reader.take()? != *MAGIC || reader.take()? != *dataset.as_bytes() {
            return None;
        }
        let length = usize::try_from(reader.number()?).ok()?;
        let (contract, rest) = reader.0.split_at_checked(length)?;
        let mut timeline = Self {
            contract: Some(Arc::new(serde_json::from_slice(contract).ok()?)),
            ..Self::default()
        };
        reader.0 = rest;
        timeline.commits = reader.number()?;
        for _ in 0..reader.number()? {
            let part = PartInfo {
                version: Version(reader.number()?),
                compacted: None,
                contribution: ContributionId::from_bytes(reader.take()?),
                index: u32::from_le_bytes(reader.take()?),
                attempt: u32::from_le_bytes(reader.take()?),
                rows: reader.number()?,
                bytes: reader.number()?,
                sha256: reader.take()?,
            };
            let expected = match timeline.parts.last() {
                Some(last) if part.index > 0 => (last.part.version, last.part.index + 1),
                _ => (timeline.head().next(), 0),
            };
            if (part.version, part.index) != expected {
                return None;
            }
            timeline.push(part, Root::from_bytes(reader.take()?), reader.number()?);
        }
        while !reader.0.is_empty() {
            let height = usize::try_from(reader.number()?).ok()?;
            let covers = usize::try_from(reader.number()?).ok()?..usize::try_from(reader.number()?).ok()?;
            if !(1..=HIGHEST).contains(&height) || covers.is_empty() || covers.end > timeline.parts.len() {
                return None;
            }
            timeline.cover(height, covers, reader.number()?, (reader.number()?, reader.take()?));
        }
        Some(timeline)
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}
