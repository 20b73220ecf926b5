//! The platform's own table: one row for each published version of a knowledge unit.
//!
//! Invariants:
//! - The table holds ids, hashes and scores. What could be turned back into text is in files of prints beside the table,
//!   where it can be erased. Each line of such a file is a JSON object with the id of its version as `unit`.
//! - A file of prints is never changed. One that holds prints of an erased version is replaced: a file without them is
//!   put first and the old one is deleted then, so that a crash loses no other print.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode};
use serde::Deserialize;
use types::contract::ContractError;
use types::{Contract, DatasetId, Field, FieldType, UnitId};

use crate::{Catalog, Error, log};

/// The id of the table `knowledge`.
pub const KNOWLEDGE: DatasetId = DatasetId::from_bytes(*b"\0\0\0\0\0\0\x70\0\x80knowled");

/// Beginning of the name of a file of prints.
const PRINTS_PREFIX: &str = "prints-";
/// Files of prints that are read at once.
const READS_AT_ONCE: usize = 16;
/// Files of prints that one call of [`Catalog::forget_prints`] looks at.
const FILES_PER_LOOK: usize = 4_000;

/// Result of a look at some files of prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// Files that were replaced.
    pub replaced: usize,
    /// The last file that was looked at, if there are more behind it.
    pub last: Option<String>,
}

/// The version of a line of prints.
#[derive(Deserialize)]
struct PrintLine {
    unit: UnitId,
}

/// Returns the contract of the table.
///
/// # Errors
/// None: the fields are constant.
pub fn contract() -> Result<Arc<Contract>, ContractError> {
    let field = |(name, kind, required): &(&str, FieldType, bool)| Field {
        required: *required,
        ..Field::new(*name, *kind)
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
    /// Stores the prints of a commit, or of versions of older ones, by the first version and by their content, so that a
    /// worker that lost its work to another one replaces nothing of it.
    pub async fn put_prints(&self, first: UnitId, prints: Bytes) -> Result<(), Error> {
        self.put_print_file(&first.to_string(), prints).await
    }

    async fn put_print_file(&self, first: &str, prints: Bytes) -> Result<(), Error> {
        let hash = blake3::hash(&prints).to_hex();
        let path = Path::from(format!("{}{PRINTS_PREFIX}{first}-{}", folder(), &hash[..16]));
        let put = self.objects().put_opts(&path, prints.into(), PutMode::Overwrite.into());
        put.await.map(|_| ()).map_err(|error| Error::storage(&path, error))
    }

    /// Returns the files of prints, in no order, by name and without those that are `known`.
    pub async fn prints(&self, known: &HashSet<String>) -> Result<Vec<(String, Bytes)>, Error> {
        let mut read: HashMap<Path, Bytes> = HashMap::new();
        loop {
            let mut new = self.print_files().await?;
            new.retain(|path| !read.contains_key(path) && !path.filename().is_some_and(|name| known.contains(name)));
            let found: Vec<_> = self.print_bytes(new).try_collect().await?;
            let is_whole = found.iter().all(|(_, bytes)| bytes.is_some());
            read.extend(found.into_iter().filter_map(|(path, bytes)| Some((path, bytes?))));
            // A file that is gone since it was listed has another in its place, which only a new list shows.
            if is_whole {
                let named = |(path, bytes): (Path, Bytes)| Some((path.filename()?.to_owned(), bytes));
                return Ok(read.into_iter().filter_map(named).collect());
            }
        }
    }

    /// Removes the prints of versions from the files behind `after`, some thousand files at a time. It may end at any point
    /// and begin again.
    ///
    /// Calls at the same time with other versions can bring prints back, since each replaces a file as it read it. So a
    /// caller goes on with all versions that are erased by then until nothing is replaced.
    pub async fn forget_prints(&self, units: &HashSet<UnitId>, after: Option<&str>) -> Result<Forgotten, Error> {
        let mut paths = self.print_files().await?;
        // Stores list in orders of their own.
        paths.sort_unstable();
        paths.retain(|path| path.filename() > after);
        let is_all = paths.len() <= FILES_PER_LOOK;
        paths.truncate(FILES_PER_LOOK);
        let last = paths.last().filter(|_| !is_all).and_then(Path::filename);
        let last = last.map(ToOwned::to_owned);
        let (mut replaced, is_any) = (0, !paths.is_empty());
        let mut files = self.print_bytes(paths);
        while let Some((path, bytes)) = files.try_next().await? {
            let Some(bytes) = bytes else { continue };
            let is_erased =
                |line: &[u8]| serde_json::from_slice::<PrintLine>(line).is_ok_and(|line| units.contains(&line.unit));
            let lines = || bytes.split_inclusive(|byte| *byte == b'\n');
            if !lines().any(is_erased) {
                continue;
            }
            let kept = lines().filter(|line| !is_erased(line)).collect::<Vec<_>>().concat();
            if !kept.is_empty() {
                let name = path.filename().and_then(|name| name.strip_prefix(PRINTS_PREFIX));
                let first = name.and_then(|name| name.rsplit_once('-'));
                self.put_print_file(first.unwrap_or_default().0, kept.into()).await?;
            }
            match self.objects().delete(&path).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(Error::storage(&path, error)),
            }
            replaced += 1;
        }
        if is_any {
            // A crash of the machine could otherwise bring back a file that this call deleted, or one before it.
            let folder = Path::from(folder());
            let synced = self.durable().sync_dir(&folder).await;
            synced.map_err(|error| Error::storage(&folder, error))?;
        }
        Ok(Forgotten { replaced, last })
    }

    async fn print_files(&self) -> Result<Vec<Path>, Error> {
        let folder = Path::from(folder());
        let listed: Vec<_> = self
            .objects()
            .list(Some(&folder))
            .try_collect()
            .await
            .map_err(|error| Error::storage(&folder, error))?;
        let is_print = |path: &Path| path.filename().is_some_and(|name| name.starts_with(PRINTS_PREFIX));
        let paths = listed.into_iter().map(|object| object.location);
        Ok(paths.filter(is_print).collect())
    }

    /// Reads files, in no order. One that is gone has no bytes.
    fn print_bytes(
        &self,
        paths: Vec<Path>,
    ) -> impl futures_util::Stream<Item = Result<(Path, Option<Bytes>), Error>> + Unpin + '_ {
        let read = move |path: Path| {
            Box::pin(async move {
                let bytes = log::bytes_of(self.objects(), &path).await?;
                Ok((path, bytes))
            })
        };
        stream::iter(paths).map(read).buffer_unordered(READS_AT_ONCE)
    }
}

fn folder() -> String {
    format!("{KNOWLEDGE}/_sluice/")
}
