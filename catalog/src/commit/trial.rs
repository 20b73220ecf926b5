//! A merge that keeps nothing, for a process that tries a batch out.

use types::{DatasetId, Version};

use super::unencodable;
use crate::part::{self, PartInfo};
use crate::{Error, Merge, Proposal, Root, log};

/// Encodes the part and the commit of a proposal as the first merge of a table would, and keeps neither.
pub fn try_merge(dataset: DatasetId, proposal: Proposal) -> Result<Merge, Error> {
    let Proposal {
        contribution,
        agent,
        batch,
        at,
        notes,
    } = proposal;
    let (version, rows) = (Version::EMPTY.next(), batch.len() as u64);
    let encoded = part::encode(&batch, contribution, agent, version)?;
    let part = PartInfo {
        version,
        compacted: None,
        contribution,
        index: 0,
        attempt: 0,
        rows,
        bytes: encoded.bytes.len() as u64,
        sha256: encoded.sha256,
    };
    let root = Root::EMPTY.extend((0..batch.len()).map(|row| batch.canonical(row)));
    let merge = Merge {
        contribution,
        agent,
        version,
        accepted: rows,
        record_count: rows,
        root: root.to_string(),
        duplicates: Vec::new(),
        at,
        notes,
    };
    let proof = part::proof_of(&encoded.bytes);
    log::merged(dataset, &merge, [(&part, proof.as_ref())]).map_err(unencodable)?;
    Ok(merge)
}
