//! The platform's own table: one row for each published version of a knowledge unit.
//!
//! Invariant: the table holds ids, hashes and scores. What could be turned back into text is in files of prints beside
//! the table. Nothing erases them yet.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::ready;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::path::Path;
use object_store::{ObjectStore, PutMode};
use types::contract::ContractError;
use types::{Contract, DatasetId, Field, FieldType, UnitId};

use crate::{Catalog, Error, log};

/// The id of the table `knowledge`.
pub const KNOWLEDGE: DatasetId = DatasetId::from_bytes(*b"\0\0\0\0\0\0\x70\0\x80knowled");

/// Files of prints that are read at once.
const READS_AT_ONCE: usize = 16;

/// Returns the contract of the table.
///
/// # Errors
/// None: the fields are constant.
pub fn contract() -> Result<Arc<Contract>, ContractError> {
    let field = |(name, kind, required): &(&str, FieldType, bool)| Field {
        name: (*name).to_owned(),
        kind: *kind,
        required: *required,
    };
    let fields = [
        ("unit", FieldType::String, true),
        ("chain", FieldType::String, true),
        ("predecessor", FieldType::String, false),
        ("operator", FieldType::String, true),
        ("agent", FieldType::String, true),
        ("category", FieldType::String, true),
        ("language", FieldType::String, true),
        ("publishedAt", FieldType::Timestamp, true),
        ("textHash", FieldType::String, true),
        ("paragraphHashes", FieldType::Json, true),
        ("accuracy", FieldType::Integer, true),
        ("novelty", FieldType::Integer, true),
        ("reproducibility", FieldType::Integer, true),
        ("specificity", FieldType::Integer, true),
        ("total", FieldType::Integer, true),
        ("judgeKind", FieldType::String, true),
        ("judge", FieldType::String, true),
        ("embedder", FieldType::String, false),
    ];
    Contract::new(fields.iter().map(field).collect(), false).map(Arc::new)
}

impl Catalog {
    /// Stores the prints of a commit, by the first version that it publishes and by their content, so that a worker that
    /// lost its work to another one replaces nothing of it.
    pub async fn put_prints(&self, first: UnitId, prints: Bytes) -> Result<(), Error> {
        let hash = blake3::hash(&prints).to_hex();
        let path = Path::from(format!("{}prints-{first}-{}", folder(), &hash[..16]));
        let put = self.objects().put_opts(&path, prints.into(), PutMode::Overwrite.into());
        put.await.map(|_| ()).map_err(|error| Error::storage(&path, error))
    }

    /// Returns the prints of all commits, in no order.
    pub async fn prints(&self) -> Result<Vec<Bytes>, Error> {
        let folder = Path::from(folder());
        let listed: Vec<_> = self
            .objects()
            .list(Some(&folder))
            .try_collect()
            .await
            .map_err(|error| Error::storage(&folder, error))?;
        let is_print = |path: &Path| path.filename().is_some_and(|name| name.starts_with("prints-"));
        let paths = listed.into_iter().map(|object| object.location).filter(is_print);
        let read = |path| async move { log::bytes_of(self.objects(), &path).await };
        stream::iter(paths)
            .map(read)
            .buffer_unordered(READS_AT_ONCE)
            .try_filter_map(|bytes| ready(Ok(bytes)))
            .try_collect()
            .await
    }
}

fn folder() -> String {
    format!("{KNOWLEDGE}/_sluice/")
}
