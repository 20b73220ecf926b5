//! The Delta log of a table: encoding of commits, and reading them in order.
//!
//! Commit numbers and versions both have no gaps, but they differ: a compaction is a commit without a version.
//!
//! Invariants: a commit that is empty, truncated, of another number, not written by this catalog, or that differs from
//! its checksum is an error that names the file. It is never taken for a version. A missing commit before an existing
//! one is an error, and never the end of the log.

pub(crate) mod checkpoint;
mod compacted;
mod deletion;
pub(crate) mod seal;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::DataType;
use bytes::Bytes;
use futures_util::future::try_join_all;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use types::{Contract, DatasetId, Proof, Timestamp};

use crate::action::{
    ACTION_FORMAT, Action, AddedFile, CommitInfo, MetaData, PartStats, Remove, StructField, StructType, TableFormat,
    TableProtocol, Tags, Txn,
};
use crate::part::{self, PartInfo};
use crate::{Error, Merge};

pub(crate) use self::compacted::{PartRewrite, compacted};
pub(crate) use self::deletion::{deleted, is_deletion, missing, was_deleted};
use self::seal::CHECKSUM_PLACEHOLDER;

/// Configuration key that contains the contract (Delta protocol, *metaData*).
pub(crate) const CONTRACT_KEY: &str = "sluice.contract";
/// Maximum number of commits that are read at once.
const READ_AHEAD: u64 = 32;

/// Decoded content of a commit.
#[derive(Clone, Debug)]
pub(crate) enum CommitContent {
    /// Commit 0: creates the table with this contract.
    Created(Arc<Contract>),
    /// Adds the next version in these parts.
    Merged(Box<Merge>, Vec<PartInfo>),
    /// Replaces adjacent parts by one part. The time has the precision of the log: milliseconds.
    Compacted(Box<PartRewrite>, Timestamp),
}

impl CommitContent {
    /// Drops the members that the version index does not need.
    pub(crate) fn without_notes(mut self) -> Self {
        if let Self::Merged(merge, _) = &mut self {
            merge.notes = serde_json::Value::Null;
            merge.duplicates = Vec::new();
        }
        self
    }
}

/// Returns the directory of the commits.
pub(crate) fn directory(dataset: DatasetId) -> Path {
    Path::from(format!("{dataset}/_delta_log"))
}

/// Returns the object path of commit `number`.
pub(crate) fn path(dataset: DatasetId, number: u64) -> Path {
    Path::from(format!("{dataset}/_delta_log/{number:020}.json"))
}

/// Returns the number of the commit with this object path. Returns `None` if it is no path of a commit.
pub(crate) fn number_of(path: &Path) -> Option<u64> {
    let stem = path.filename()?.strip_suffix(".json")?;
    let number = stem.parse().ok()?;
    (stem.len() == 20).then_some(number)
}

/// Encodes commit 0, which creates the table.
pub(crate) fn created(dataset: DatasetId, contract: &Contract, at: Timestamp) -> Result<Vec<u8>, serde_json::Error> {
    let configuration = [
        ("delta.appendOnly", "true".to_owned()),
        // Without this, other Delta writers may delete old commits, which this catalog reads.
        ("delta.enableExpiredLogCleanup", "false".to_owned()),
        (CONTRACT_KEY, serde_json::to_string(contract)?),
    ];
    lines(&[
        Action::CommitInfo(CommitInfo {
            checksum: Some(CHECKSUM_PLACEHOLDER.into()),
            timestamp: at.millis(),
            operation: "CREATE TABLE".to_owned(),
            operation_parameters: BTreeMap::new(),
            engine_info: "sluice".to_owned(),
            sluice: None,
            compaction: None,
        }),
        Action::Protocol(WRITTEN_PROTOCOL),
        Action::MetaData(MetaData {
            id: dataset,
            format: TableFormat {
                provider: "parquet".to_owned(),
                options: BTreeMap::new(),
            },
            schema_string: schema_string(contract)?,
            partition_columns: Vec::new(),
            configuration: configuration.map(|(key, value)| (key.to_owned(), value)).into(),
            created_time: at.millis(),
        }),
    ])
}

// Writer version 2 is the lowest with append-only tables (Delta protocol, *Append-only Tables*).
const WRITTEN_PROTOCOL: TableProtocol = TableProtocol {
    min_reader_version: 1,
    min_writer_version: 2,
};

/// Encodes the commit of a merge. Each large part comes with its proof.
pub(crate) fn merged<'a>(
    dataset: DatasetId,
    merge: &Merge,
    parts: impl IntoIterator<Item = (&'a PartInfo, Option<&'a Proof>)>,
) -> Result<Vec<u8>, serde_json::Error> {
    let timestamp = merge.at.millis();
    let mut actions = vec![
        Action::CommitInfo(CommitInfo {
            checksum: Some(CHECKSUM_PLACEHOLDER.into()),
            timestamp,
            operation: "WRITE".to_owned(),
            operation_parameters: [("mode".to_owned(), "Append".to_owned())].into(),
            engine_info: "sluice".to_owned(),
            sluice: Some(merge.into()),
            compaction: None,
        }),
        Action::Txn(Txn {
            app_id: dataset,
            version: merge.version,
            last_updated: timestamp,
        }),
    ];
    for (part, proof) in parts {
        actions.push(add(part, proof, timestamp, true)?);
    }
    lines(&actions)
}

/// Returns the action that adds a part. `at` is in milliseconds since the epoch.
fn add(
    part: &PartInfo,
    proof: Option<&Proof>,
    at: i64,
    data_change: bool,
) -> Result<Action<'static>, serde_json::Error> {
    let hashes = (&part.sha256, proof);
    added(part.name(), (part.rows, part.bytes), hashes, at, data_change)
}

/// Returns an `add` action for a file of this name, row count, byte size, SHA-256 and proof.
fn added(
    path: String,
    (rows, bytes): (u64, u64),
    (sha256, proof): (&[u8; 32], Option<&Proof>),
    at: i64,
    data_change: bool,
) -> Result<Action<'static>, serde_json::Error> {
    Ok(Action::Add(AddedFile {
        path,
        partition_values: BTreeMap::new(),
        size: bytes,
        modification_time: at,
        data_change,
        stats: serde_json::to_string(&PartStats { num_records: rows })?,
        tags: Tags {
            sha256: data_encoding::HEXLOWER.encode(sha256),
            blocks: proof.and_then(Proof::text),
        },
    }))
}

/// Returns the action that removes a part from the latest layout. `at` is in milliseconds since the epoch.
fn remove(part: &PartInfo, at: i64) -> Action<'static> {
    Action::Remove(Remove {
        path: part.name(),
        deletion_timestamp: at,
        data_change: false,
        extended_file_metadata: true,
        partition_values: BTreeMap::new(),
        size: part.bytes,
    })
}

fn lines(actions: &[Action<'_>]) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::with_capacity(2_048);
    for action in actions {
        serde_json::to_writer(&mut bytes, action)?;
        bytes.push(b'\n');
    }
    seal::seal(&mut bytes);
    Ok(bytes)
}

/// Returns the Delta schema of a table as JSON (Delta protocol, *Schema Serialization Format*).
fn schema_string(contract: &Contract) -> Result<String, serde_json::Error> {
    let schema = part::schema(contract);
    let fields = schema.fields().iter().map(|field| {
        Ok(StructField {
            name: field.name().clone(),
            kind: delta_type(field.data_type())?,
            nullable: true,
            metadata: BTreeMap::new(),
        })
    });
    serde_json::to_string(&StructType {
        kind: "struct",
        fields: fields.collect::<Result<_, _>>()?,
    })
}

/// Returns the type of a column for readers of Delta (Delta protocol, *Primitive Types*).
fn delta_type(kind: &DataType) -> Result<Cow<'static, str>, serde_json::Error> {
    let name = match kind {
        DataType::Utf8 => "string",
        DataType::Int64 => "long",
        DataType::Float64 => "double",
        DataType::Boolean => "boolean",
        DataType::Timestamp(_, _) => "timestamp",
        DataType::Binary => "binary",
        DataType::Date32 => "date",
        DataType::Decimal128(precision, scale) => return Ok(format!("decimal({precision},{scale})").into()),
        // Another name would make readers take the values for something else.
        other => {
            let problem = format!("a column of type {other} has no type of Delta");
            return Err(serde::ser::Error::custom(problem));
        }
    };
    Ok(name.into())
}

/// Parses the actions of a commit, one per line.
fn actions(bytes: &[u8]) -> Result<Vec<Action<'static>>, String> {
    let mut actions = Vec::with_capacity(3);
    for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        actions.push(serde_json::from_slice(line).map_err(|error| error.to_string())?);
    }
    Ok(actions)
}

/// Verifies the checksum of a commit, without parsing it. The error describes the damage.
pub(crate) fn verify(bytes: &[u8]) -> Result<(), String> {
    // A power cut can leave an empty file on a store that does not sync. Other readers would take it for a commit
    // without actions.
    if bytes.is_empty() {
        return Err("it is empty".to_owned());
    }
    seal::check(bytes)
}

/// Decodes commit `number`. The error describes the damage and becomes an [`Error::Corrupt`].
pub(crate) fn decode(dataset: DatasetId, number: u64, bytes: &[u8]) -> Result<CommitContent, String> {
    verify(bytes)?;
    let actions = actions(bytes)?;
    // Only a compaction has a `remove` as its second action.
    if number > 0 && matches!(actions.get(1), Some(Action::Remove(_))) {
        return compacted::decode(actions);
    }
    let mut actions = actions.into_iter();
    match (actions.next(), actions.next(), actions.next()) {
        (Some(Action::CommitInfo(_)), Some(Action::Protocol(WRITTEN_PROTOCOL)), Some(Action::MetaData(table)))
            if number == 0 && actions.len() == 0 =>
        {
            decode_created(dataset, &table)
        }
        (Some(Action::CommitInfo(info)), Some(Action::Txn(txn)), Some(first @ Action::Add(_))) if number > 0 => {
            decode_merged(dataset, number, info, &txn, std::iter::once(first).chain(actions))
        }
        _ => Err("it does not have the actions of a commit with its number".to_owned()),
    }
}

fn decode_created(dataset: DatasetId, table: &MetaData) -> Result<CommitContent, String> {
    if table.id != dataset {
        return Err(format!("it is of table `{}`", table.id));
    }
    let contract = table.configuration.get(CONTRACT_KEY).ok_or("it has no contract")?;
    let contract = serde_json::from_str(contract).map_err(|error| error.to_string())?;
    Ok(CommitContent::Created(Arc::new(contract)))
}

fn decode_merged<'a>(
    dataset: DatasetId,
    number: u64,
    info: CommitInfo<'_>,
    txn: &Txn,
    adds: impl Iterator<Item = Action<'a>>,
) -> Result<CommitContent, String> {
    let sluice = info.sluice.ok_or("it names no contribution")?;
    if sluice.format != ACTION_FORMAT {
        return Err(format!("it has format `{}`", sluice.format));
    }
    let merge = Merge::from(sluice);
    // A version is at most the number of its commit, because compactions use up numbers but no versions.
    if txn.app_id != dataset || txn.version != merge.version || !(1..=number).contains(&merge.version.0) {
        return Err("its version cannot be that of its number".to_owned());
    }
    let mut parts = Vec::with_capacity(1);
    for add in adds {
        let Action::Add(add) = add else {
            return Err("it does not have the actions of a commit with its number".to_owned());
        };
        let part = decode_part(&merge, &add)?;
        if usize::try_from(part.index) != Ok(parts.len()) {
            return Err("its parts are not in order".to_owned());
        }
        parts.push(part);
    }
    if parts.iter().map(|part| part.rows).sum::<u64>() != merge.accepted {
        return Err("its part does not have as many rows as it accepted".to_owned());
    }
    Ok(CommitContent::Merged(Box::new(merge), parts))
}

fn decode_part(merge: &Merge, add: &AddedFile) -> Result<PartInfo, String> {
    let stats: PartStats = serde_json::from_str(&add.stats).map_err(|error| error.to_string())?;
    // The name must be the one that this catalog gives, so a commit cannot name a foreign file.
    let place = part::place_of(&add.path, merge.version, merge.contribution);
    let (index, attempt) = place.ok_or("its part has the name of another version")?;
    let sha256 = data_encoding::HEXLOWER
        .decode(add.tags.sha256.as_bytes())
        .unwrap_or_default();
    Ok(PartInfo {
        version: merge.version,
        compacted: None,
        contribution: merge.contribution,
        index,
        attempt,
        rows: stats.num_records,
        bytes: add.size,
        sha256: sha256.try_into().map_err(|_wrong: Vec<u8>| "its part has no SHA-256")?,
    })
}

/// Reads one commit. Returns `None` if it does not exist.
///
/// # Errors
/// [`Error::Deleted`] if the commit says that the table was deleted.
pub(crate) async fn read(
    objects: &Arc<dyn ObjectStore>,
    dataset: DatasetId,
    number: u64,
) -> Result<Option<CommitContent>, Error> {
    let path = path(dataset, number);
    let Some(bytes) = bytes_of(objects, &path).await? else {
        return Ok(None);
    };
    if is_deletion(dataset, &bytes) {
        return Err(Error::Deleted { dataset });
    }
    decode(dataset, number, &bytes)
        .map(Some)
        .map_err(|problem| Error::corrupt(&path, &problem))
}

/// Reads the proof of a part from commit `number`, which adds it. Returns `None` if the commit has none, because it is
/// older than proofs.
pub(crate) async fn proof_of(
    objects: &Arc<dyn ObjectStore>,
    dataset: DatasetId,
    number: u64,
    part: &PartInfo,
) -> Result<Option<Proof>, Error> {
    let path = path(dataset, number);
    let Some(bytes) = bytes_of(objects, &path).await? else {
        return Err(missing(objects, dataset, number).await);
    };
    let actions = actions(&bytes).map_err(|problem| Error::corrupt(&path, &problem))?;
    let name = part.name();
    let tags = actions.into_iter().find_map(|action| match action {
        Action::Add(add) if add.path == name => Some(add.tags),
        _ => None,
    });
    let tags = tags.ok_or_else(|| Error::corrupt(&path, &format!("it does not add `{name}`")))?;
    let Some(text) = tags.blocks else {
        return Ok(None);
    };
    let proof = Proof::from_text(part.bytes, &text);
    let proof = proof.ok_or_else(|| Error::corrupt(&path, "the hashes of a part are not as many as its blocks"))?;
    Ok(Some(proof))
}

/// Reads an object. Returns `None` if it does not exist.
pub(crate) async fn bytes_of(objects: &Arc<dyn ObjectStore>, path: &Path) -> Result<Option<Bytes>, Error> {
    let read = async { objects.get(path).await?.bytes().await };
    match read.await {
        Ok(bytes) => Ok(Some(bytes)),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(Error::storage(path, error)),
    }
}

/// Reads every commit from `first` to the head, in order, and passes each with its number to `apply`. It never lists
/// the directory: the log ends at the first commit that does not exist.
///
/// # Errors
/// [`Error::Gap`] if a commit is missing and a later one exists, [`Error::Deleted`] if the table was deleted.
pub(crate) async fn read_from(
    objects: &Arc<dyn ObjectStore>,
    dataset: DatasetId,
    first: u64,
    mut apply: impl FnMut(u64, CommitContent) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut next = first;
    let mut ahead = 2;
    loop {
        // Reads run ahead of the first missing commit, so a log of many commits needs few round trips.
        let commits = try_join_all((next..next + ahead).map(|number| read(objects, dataset, number))).await?;
        if commits[0].is_none() {
            let Some(later) = commits.iter().position(Option::is_some) else {
                return Ok(());
            };
            // Both commits may have been put during the reads. If the earlier one is still missing now, it is a gap.
            if read(objects, dataset, next).await?.is_none() {
                let error = missing(objects, dataset, next).await;
                if matches!(error, Error::Gap { .. }) {
                    tracing::error!(%dataset, missing = next, found = next + later as u64, "the log has a gap");
                }
                return Err(error);
            }
            continue;
        }
        for commit in commits.into_iter().map_while(|commit| commit) {
            apply(next, commit)?;
            next += 1;
        }
        // The read-ahead starts small, because the log usually has no new commit.
        ahead = (ahead * 2).min(READ_AHEAD);
    }
}

#[cfg(test)]
mod tests;
