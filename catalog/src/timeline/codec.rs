//! Encoding of the timeline as a derived file, which replaces reading the commits when a table is opened.
//!
//! Invariant: a file that is incomplete, of another format or of another table decodes to `None`.

use std::sync::Arc;

use types::{ContributionId, DatasetId, Version};

use super::{Layer, Timeline};
use crate::Root;
use crate::part::PartInfo;

/// First bytes of every file of this format.
const MAGIC: &[u8; 16] = b"sluice timeline5";
/// Upper bound of a compaction's height. Each rewrite covers at least two parts of the height below, so no real height
/// comes near it.
const MAX_LEVEL: usize = 64;

impl Timeline {
    /// Encodes the timeline. Returns `None` before the table exists.
    pub(crate) fn encode(&self, dataset: DatasetId) -> Option<Vec<u8>> {
        let contract = serde_json::to_vec(self.contract.as_deref()?).ok()?;
        let mut bytes = Vec::with_capacity(256 + contract.len() + self.parts.len() * 140);
        bytes.extend_from_slice(MAGIC);
        // The dataset's id prevents the use of another table's file after a wrong copy.
        bytes.extend_from_slice(dataset.as_bytes());
        bytes.extend_from_slice(&(contract.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&contract);
        bytes.extend_from_slice(&self.commits.to_le_bytes());
        bytes.extend_from_slice(&self.at.to_le_bytes());
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
            bytes.extend_from_slice(&entry.at.to_le_bytes());
        }
        for (height, layer) in self.layers.iter() {
            let Layer {
                part,
                covers,
                commit,
                at,
            } = layer;
            for number in [
                height as u64,
                covers.start as u64,
                covers.end as u64,
                *commit,
                part.bytes,
            ] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            bytes.extend_from_slice(&at.to_le_bytes());
            bytes.extend_from_slice(&part.sha256);
        }
        // The checksum is last and covers everything before it.
        let checksum = *blake3::hash(&bytes).as_bytes();
        bytes.extend_from_slice(&checksum);
        Some(bytes)
    }

    /// Decodes a timeline. Returns `None` unless the bytes are complete and belong to this dataset.
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
        timeline.at = reader.instant()?;
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
            // Versions ascend by one, and the parts of a version have ascending indexes.
            let expected = match timeline.parts.last() {
                Some(last) if part.index > 0 => (last.part.version, last.part.index + 1),
                _ => (timeline.head().next(), 0),
            };
            if (part.version, part.index) != expected {
                return None;
            }
            let root = Root::from_bytes(reader.take()?);
            timeline.push(part, root, reader.number()?, reader.instant()?);
        }
        // The compacted parts have no count. They fill the rest of the file.
        while !reader.0.is_empty() {
            let height = usize::try_from(reader.number()?).ok()?;
            let covers = usize::try_from(reader.number()?).ok()?..usize::try_from(reader.number()?).ok()?;
            let (commit, bytes) = (reader.number()?, reader.number()?);
            // Memory grows with the height, so a wrong one must not get through.
            if !(1..=MAX_LEVEL).contains(&height) || covers.is_empty() || covers.end > timeline.parts.len() {
                return None;
            }
            let at = reader.instant()?;
            timeline.cover(height, covers, (commit, at), (bytes, reader.take()?));
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

    fn instant(&mut self) -> Option<i64> {
        self.take().map(i64::from_le_bytes)
    }
}
