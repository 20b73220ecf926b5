//! Actions of the Delta log that this catalog writes and reads (Delta protocol, *Actions*).
//!
//! Invariant: an action that this module does not know is an error, because only this catalog writes a table.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use types::{AgentId, ContributionId, DatasetId, Timestamp, Version};

use crate::Merge;

/// Format number of [`Sluice`] and of [`CompactedVersions`].
pub(crate) const ACTION_FORMAT: u32 = 1;

/// One line of a commit.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Action<'a> {
    CommitInfo(CommitInfo<'a>),
    Protocol(TableProtocol),
    MetaData(MetaData),
    Txn(Txn),
    Add(AddedFile),
    Remove(Remove),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommitInfo<'a> {
    /// Checksum of the commit, the first member of the first line. Absent in commits that are older than checksums.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) checksum: Option<Cow<'a, str>>,
    /// Milliseconds since the epoch.
    pub(crate) timestamp: i64,
    pub(crate) operation: String,
    pub(crate) operation_parameters: BTreeMap<String, String>,
    pub(crate) engine_info: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sluice: Option<Sluice<'a>>,
    /// Present in the commit of a compaction, absent in all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) compaction: Option<CompactedVersions>,
}

/// Range of the versions in the part that a compaction adds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CompactedVersions {
    pub(crate) format: u32,
    pub(crate) first_version: Version,
    pub(crate) last_version: Version,
}

/// The merge in a commit: a borrowed [`Merge`] with its format number.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sluice<'a> {
    pub(crate) format: u32,
    pub(crate) contribution: ContributionId,
    pub(crate) agent: AgentId,
    pub(crate) version: Version,
    pub(crate) accepted: u64,
    pub(crate) record_count: u64,
    pub(crate) root: Cow<'a, str>,
    pub(crate) duplicates: Cow<'a, [u32]>,
    pub(crate) at: Timestamp,
    pub(crate) notes: Cow<'a, serde_json::Value>,
}

impl<'a> From<&'a Merge> for Sluice<'a> {
    fn from(merge: &'a Merge) -> Self {
        Self {
            format: ACTION_FORMAT,
            contribution: merge.contribution,
            agent: merge.agent,
            version: merge.version,
            accepted: merge.accepted,
            record_count: merge.record_count,
            root: Cow::Borrowed(&merge.root),
            duplicates: Cow::Borrowed(&merge.duplicates),
            at: merge.at,
            notes: Cow::Borrowed(&merge.notes),
        }
    }
}

impl From<Sluice<'_>> for Merge {
    fn from(sluice: Sluice<'_>) -> Self {
        Self {
            contribution: sluice.contribution,
            agent: sluice.agent,
            version: sluice.version,
            accepted: sluice.accepted,
            record_count: sluice.record_count,
            root: sluice.root.into_owned(),
            duplicates: sluice.duplicates.into_owned(),
            at: sluice.at,
            notes: sluice.notes.into_owned(),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TableProtocol {
    pub(crate) min_reader_version: u32,
    pub(crate) min_writer_version: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MetaData {
    pub(crate) id: DatasetId,
    pub(crate) format: TableFormat,
    pub(crate) schema_string: String,
    pub(crate) partition_columns: Vec<String>,
    pub(crate) configuration: BTreeMap<String, String>,
    /// Milliseconds since the epoch.
    pub(crate) created_time: i64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TableFormat {
    pub(crate) provider: String,
    pub(crate) options: BTreeMap<String, String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Txn {
    pub(crate) app_id: DatasetId,
    pub(crate) version: Version,
    /// Milliseconds since the epoch.
    pub(crate) last_updated: i64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AddedFile {
    pub(crate) path: String,
    pub(crate) partition_values: BTreeMap<String, String>,
    pub(crate) size: u64,
    /// Milliseconds since the epoch.
    pub(crate) modification_time: i64,
    pub(crate) data_change: bool,
    /// Statistics ([`PartStats`]) as JSON text, which Delta embeds as a string.
    pub(crate) stats: String,
    pub(crate) tags: Tags,
}

/// A part that readers of the latest commit no longer read. Its file stays, because older versions need it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Remove {
    pub(crate) path: String,
    /// Milliseconds since the epoch.
    pub(crate) deletion_timestamp: i64,
    pub(crate) data_change: bool,
    pub(crate) extended_file_metadata: bool,
    pub(crate) partition_values: BTreeMap<String, String>,
    pub(crate) size: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Tags {
    /// 64 lower-case hexadecimal digits.
    pub(crate) sha256: String,
    /// Hashes of the blocks of a large part, as Base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) blocks: Option<String>,
}

/// Statistics of a part. Minima and maxima are optional in Delta and left out.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PartStats {
    pub(crate) num_records: u64,
}

/// Schema of a table's rows (Delta protocol, *Schema Serialization Format*).
#[derive(Debug, Serialize)]
pub(crate) struct StructType {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) fields: Vec<StructField>,
}

/// One column. It is always nullable: a gate checks required fields before a row is written.
#[derive(Debug, Serialize)]
pub(crate) struct StructField {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: Cow<'static, str>,
    pub(crate) nullable: bool,
    pub(crate) metadata: BTreeMap<String, String>,
}
