//! Encoding of the version index as a derived file, which replaces reading the commits when a table is opened.
//!
//! Invariant: a file that is incomplete, of another format or of another table decodes to `None`.

use std::sync::Arc;

use types::{ContributionId, DatasetId, Version};

use super::{CompactedPart, VersionIndex};
use crate::Root;
use crate::part::PartInfo;

/// First bytes of every file of this format.
const VERSION_INDEX_MAGIC: &[u8; 16] = b"sluice timeline5";
/// Upper bound of a compaction's level. Each rewrite covers at least two parts of the level below, so no real level
/// comes near it.
const MAX_LEVEL: usize = 64;

impl VersionIndex {
    /// Encodes the version index. Returns `None` before the table exists.
    pub(crate) fn encode(&self, dataset: DatasetId) -> Option<Vec<u8>> {
        let contract = serde_json::to_vec(self.contract.as_deref()?).ok()?;
        let mut bytes = Vec::with_capacity(256 + contract.len() + self.parts.len() * 140);
        bytes.extend_from_slice(VERSION_INDEX_MAGIC);
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
        for (level, compacted) in self.levels.iter() {
            let CompactedPart {
                part,
                merged_parts,
                commit,
                at,
            } = compacted;
            for number in [
                level as u64,
                merged_parts.start as u64,
                merged_parts.end as u64,
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

    /// Decodes a version index. Returns `None` unless the bytes are complete and belong to this dataset.
    pub(crate) fn decode(dataset: DatasetId, bytes: &[u8]) -> Option<Self> {
        let (body, checksum) = bytes.split_last_chunk::<32>()?;
        if blake3::hash(body) != *checksum {
            return None;
        }
        let mut reader = CodecReader(body);
        if reader.take()? != *VERSION_INDEX_MAGIC || reader.take()? != *dataset.as_bytes() {
            return None;
        }
        let length = usize::try_from(reader.number()?).ok()?;
        let (contract, rest) = reader.0.split_at_checked(length)?;
        let mut version_index = Self {
            contract: Some(Arc::new(serde_json::from_slice(contract).ok()?)),
            ..Self::default()
        };
        reader.0 = rest;
        version_index.commits = reader.number()?;
        version_index.at = reader.instant()?;
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
            let expected = match version_index.parts.last() {
                Some(last) if part.index > 0 => (last.part.version, last.part.index + 1),
                _ => (version_index.head().next(), 0),
            };
            if (part.version, part.index) != expected {
                return None;
            }
            let root = Root::from_bytes(reader.take()?);
            version_index.push(part, root, reader.number()?, reader.instant()?);
        }
        // The compacted parts have no count. They fill the rest of the file.
        while !reader.0.is_empty() {
            let level = usize::try_from(reader.number()?).ok()?;
            let merged_parts = usize::try_from(reader.number()?).ok()?..usize::try_from(reader.number()?).ok()?;
            let (commit, bytes) = (reader.number()?, reader.number()?);
            // Memory grows with the level, so a wrong one must not get through.
            if !(1..=MAX_LEVEL).contains(&level)
                || merged_parts.is_empty()
                || merged_parts.end > version_index.parts.len()
            {
                return None;
            }
            let at = reader.instant()?;
            version_index.add_compacted(level, merged_parts, (commit, at), (bytes, reader.take()?));
        }
        Some(version_index)
    }
}

struct CodecReader<'a>(&'a [u8]);

impl CodecReader<'_> {
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
