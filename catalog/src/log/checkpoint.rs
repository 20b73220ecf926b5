//! Delta checkpoints: the state of the log at a commit in one file, for readers that would otherwise read every commit
//! (Delta protocol, *Checkpoints*, classic, V1 spec). This catalog never reads one back.
//!
//! Invariants:
//! - A checkpoint has the same actions as the commits, with `dataChange` false. A `remove` stays for
//!   [`TOMBSTONE_RETENTION_MS`].
//! - The same log gives the same bytes, whichever process of this build writes them.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;
use object_store::ObjectStore;
use object_store::path::Path;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde::{Deserialize, Serialize};
use types::DatasetId;

use super::{Txn, actions, add, bytes_of, decode, missing, path, remove};
use crate::Error;
use crate::action::Action;
use crate::version_index::LatestState;

/// Time in milliseconds that a `remove` stays in checkpoints. Delta's default is a week (Delta protocol, *Table
/// Properties*, `delta.deletedFileRetentionDuration`).
pub(crate) const TOMBSTONE_RETENTION_MS: i64 = 7 * 24 * 60 * 60 * 1_000;
/// Number of actions that are encoded at once.
const ACTIONS_AT_ONCE: usize = 4_096;

/// An encoded checkpoint, and the pointer to it.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    pub(crate) bytes: Vec<u8>,
    pub(crate) last: LastCheckpoint,
}

/// Pointer to the newest checkpoint (Delta protocol, *Last Checkpoint File Schema*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LastCheckpoint {
    /// Number of the checkpoint's commit.
    pub(crate) version: u64,
    /// Number of actions in the checkpoint.
    pub(crate) size: u64,
    #[serde(default)]
    pub(crate) size_in_bytes: u64,
    /// Number of parts of the table.
    #[serde(default)]
    pub(crate) num_of_add_files: u64,
}

/// Returns the object path of the checkpoint at commit `number`.
pub(crate) fn path_of(dataset: DatasetId, number: u64) -> Path {
    Path::from(format!("{dataset}/_delta_log/{number:020}.checkpoint.parquet"))
}

/// Returns the object path of [`LastCheckpoint`], which is stored as JSON.
pub(crate) fn path_of_last(dataset: DatasetId) -> Path {
    Path::from(format!("{dataset}/_delta_log/_last_checkpoint"))
}

/// Reads the actions of commit 0 that hold for every later commit: protocol and metadata.
pub(crate) async fn creation(
    objects: &Arc<dyn ObjectStore>,
    dataset: DatasetId,
) -> Result<Vec<Action<'static>>, Error> {
    let path = path(dataset, 0);
    let Some(bytes) = bytes_of(objects, &path).await? else {
        return Err(missing(objects, dataset, 0).await);
    };
    let damaged = |problem: &dyn ToString| Error::corrupt(&path, &problem.to_string());
    // The commit is verified first. A reader believes the copy in a checkpoint, even after the commit was repaired.
    decode(dataset, 0, &bytes).map_err(|problem| damaged(&problem))?;
    let mut creation = actions(&bytes).map_err(|problem| damaged(&problem))?;
    creation.retain(|action| matches!(action, Action::Protocol(_) | Action::MetaData(_)));
    Ok(creation)
}

/// Encodes a checkpoint from the table's creation and its latest state.
pub(crate) fn encode(
    dataset: DatasetId,
    creation: Vec<Action<'static>>,
    latest: &LatestState,
) -> Result<Checkpoint, ParquetError> {
    let LatestState {
        commit,
        merged: (version, last_updated),
        live,
        replaced,
    } = latest;
    let txn = Action::Txn(Txn {
        app_id: dataset,
        version: *version,
        last_updated: *last_updated,
    });
    let adds = live.iter().map(|(part, at)| add(part, None, *at, false));
    let removes = replaced.iter().map(|(part, at)| Ok(remove(part, *at)));
    let first = creation.into_iter().chain([txn]).map(Ok);
    let (bytes, size) = write(first.chain(adds).chain(removes))?;
    let last = LastCheckpoint {
        version: *commit,
        size,
        // A reader compares the size with the file, so an incomplete file is recognised.
        size_in_bytes: bytes.len() as u64,
        num_of_add_files: live.len() as u64,
    };
    Ok(Checkpoint { bytes, last })
}

/// Encodes actions as a Parquet file with one action per row. Returns the bytes and the number of actions.
fn write(
    mut actions: impl Iterator<Item = Result<Action<'static>, serde_json::Error>>,
) -> Result<(Vec<u8>, u64), ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .build();
    let options = ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(true);
    let schema = schema();
    let mut writer = ArrowWriter::try_new_with_options(Vec::new(), Arc::clone(&schema), options)?;
    let mut size = 0;
    loop {
        let rows: Result<Vec<_>, _> = actions.by_ref().take(ACTIONS_AT_ONCE).collect();
        let rows = rows.map_err(|error| ParquetError::External(Box::new(error)))?;
        if rows.is_empty() {
            return Ok((writer.into_inner()?, size));
        }
        size += rows.len() as u64;
        writer.write(&columns(&schema, &rows)?)?;
    }
}

fn columns(schema: &SchemaRef, rows: &[Action<'_>]) -> Result<RecordBatch, ArrowError> {
    // Strict mode fails on a member without a column. Otherwise the member would be dropped silently.
    let reader = ReaderBuilder::new(Arc::clone(schema)).with_strict_mode(true);
    let mut decoder = reader.build_decoder()?;
    decoder.serialize(rows)?;
    Ok(decoder
        .flush()?
        .unwrap_or_else(|| RecordBatch::new_empty(Arc::clone(schema))))
}

/// Returns the schema: one column per kind of action, with the members that this catalog writes (Delta protocol,
/// *Checkpoint Schema*).
fn schema() -> SchemaRef {
    let [path, data_change] = [("path", DataType::Utf8), ("dataChange", DataType::Boolean)];
    let [partition_values, tags] = ["partitionValues", "tags"].map(|name| (name, texts_by_name()));
    let size = ("size", DataType::Int64);
    let element = Arc::new(Field::new("element", DataType::Utf8, true));
    let format = [("provider", DataType::Utf8), ("options", texts_by_name())];
    let kinds = [
        (
            "txn",
            members([
                ("appId", DataType::Utf8),
                ("version", DataType::Int64),
                ("lastUpdated", DataType::Int64),
            ]),
        ),
        (
            "add",
            members([
                path.clone(),
                partition_values.clone(),
                size.clone(),
                ("modificationTime", DataType::Int64),
                data_change.clone(),
                ("stats", DataType::Utf8),
                tags,
            ]),
        ),
        (
            "remove",
            members([
                path,
                ("deletionTimestamp", DataType::Int64),
                data_change,
                ("extendedFileMetadata", DataType::Boolean),
                partition_values,
                size,
            ]),
        ),
        (
            "metaData",
            members([
                ("id", DataType::Utf8),
                // This catalog never writes `name` and `description`, but they belong to the schema.
                ("name", DataType::Utf8),
                ("description", DataType::Utf8),
                ("format", members(format)),
                ("schemaString", DataType::Utf8),
                ("partitionColumns", DataType::List(element)),
                ("configuration", texts_by_name()),
                ("createdTime", DataType::Int64),
            ]),
        ),
        (
            "protocol",
            members([
                ("minReaderVersion", DataType::Int32),
                ("minWriterVersion", DataType::Int32),
            ]),
        ),
    ];
    Arc::new(Schema::new(fields(kinds)))
}

fn members<const N: usize>(of: [(&str, DataType); N]) -> DataType {
    DataType::Struct(fields(of))
}

fn fields<const N: usize>(of: [(&str, DataType); N]) -> Fields {
    of.into_iter()
        .map(|(name, kind)| FieldRef::new(Field::new(name, kind, true)))
        .collect()
}

/// Returns the type of a map from text to text, with the field names that Parquet requires (Parquet format, *Maps*).
fn texts_by_name() -> DataType {
    let [key, value] = [("key", false), ("value", true)].map(|(name, null)| Field::new(name, DataType::Utf8, null));
    let entries = DataType::Struct(Fields::from(vec![key, value]));
    DataType::Map(Arc::new(Field::new("key_value", entries, false)), false)
}
