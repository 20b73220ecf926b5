//! The commit of a compaction: one part replaces adjacent parts and has the same rows in the same order.
//!
//! Invariant: no action of the commit changes data (Delta protocol, *Append-only Tables*), and it has no version.

use types::{Proof, Timestamp, Version};

use super::{CHECKSUM_PLACEHOLDER, CommitContent, added, lines, remove};
use crate::action::{ACTION_FORMAT, Action, CommitInfo, CompactedVersions, PartStats};
use crate::part::{self, PartInfo};

/// A part that replaces others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartRewrite {
    /// Version of its first row.
    pub(crate) first: Version,
    /// Version of its last row.
    pub(crate) last: Version,
    pub(crate) rows: u64,
    /// Size of the file in bytes.
    pub(crate) bytes: u64,
    /// SHA-256 of the file.
    pub(crate) sha256: [u8; 32],
    /// Names of the replaced parts, in the order of the rows.
    pub(crate) replaces: Vec<String>,
}

impl PartRewrite {
    /// Returns the file's name within the table.
    pub(crate) fn name(&self) -> String {
        part::compacted_name(self.first, self.last, &self.sha256)
    }
}

/// Encodes the commit. `inputs` are the replaced parts, and `proof` belongs to the new part if that is large.
pub(crate) fn compacted(
    rewrite: &PartRewrite,
    proof: Option<&Proof>,
    inputs: &[PartInfo],
    at: Timestamp,
) -> Result<Vec<u8>, serde_json::Error> {
    let timestamp = at.millis();
    let parameters = [
        ("parts", inputs.len().to_string()),
        // The files stay: versions that end within the new part are read from the old parts for ever.
        ("removedFiles", "kept".to_owned()),
    ];
    let mut actions = vec![Action::CommitInfo(CommitInfo {
        checksum: Some(CHECKSUM_PLACEHOLDER.into()),
        timestamp,
        operation: "OPTIMIZE".to_owned(),
        operation_parameters: parameters.map(|(key, value)| (key.to_owned(), value)).into(),
        engine_info: "sluice".to_owned(),
        sluice: None,
        compaction: Some(CompactedVersions {
            format: ACTION_FORMAT,
            first_version: rewrite.first,
            last_version: rewrite.last,
        }),
    })];
    actions.extend(inputs.iter().map(|part| remove(part, timestamp)));
    let size = (rewrite.rows, rewrite.bytes);
    let hashes = (&rewrite.sha256, proof);
    actions.push(added(rewrite.name(), size, hashes, timestamp, false)?);
    lines(&actions)
}

/// Decodes the actions of a compaction. The error describes the damage.
pub(super) fn decode(actions: Vec<Action<'_>>) -> Result<CommitContent, String> {
    let mut actions = actions.into_iter();
    // `commitInfo` is first and `add` last. Everything between must be a `remove`.
    let (Some(Action::CommitInfo(info)), Some(Action::Add(add))) = (actions.next(), actions.next_back()) else {
        return Err("it does not begin and end as a compaction does".to_owned());
    };
    let told = info.compaction.ok_or("it removes parts and says no compaction")?;
    if told.format != ACTION_FORMAT {
        return Err(format!("it has format `{}`", told.format));
    }
    let mut replaces = Vec::with_capacity(actions.len());
    for action in actions {
        match action {
            Action::Remove(remove) if !remove.data_change => replaces.push(remove.path),
            _ => return Err("it does more than a compaction does".to_owned()),
        }
    }
    let stats: PartStats = serde_json::from_str(&add.stats).map_err(|error| error.to_string())?;
    let sha256 = data_encoding::HEXLOWER
        .decode(add.tags.sha256.as_bytes())
        .unwrap_or_default();
    let rewrite = PartRewrite {
        first: told.first_version,
        last: told.last_version,
        rows: stats.num_records,
        bytes: add.size,
        sha256: sha256.try_into().map_err(|_wrong: Vec<u8>| "its part has no SHA-256")?,
        replaces,
    };
    if add.data_change || add.path != rewrite.name() {
        return Err("its part is not that of its versions".to_owned());
    }
    let at = Timestamp::from_micros(info.timestamp.saturating_mul(1_000));
    Ok(CommitContent::Compacted(Box::new(rewrite), at))
}
