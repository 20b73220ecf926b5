//! An upload before its commit: its rows as parts, in files of this process, written while nobody waits.
//!
//! Invariants:
//! - No two rows of [`UploadedRows`] are equal; none was in the table at the version that they were checked up to.
//! - What only the commit knows, the version and the root before it, costs nothing that grows with the rows to put in:
//!   the version is a few bytes in each file (`file`), the root is hashed as a suffix ([`proof::Suffix`]).
//! - Memory is bounded whatever the number of rows: keys beyond some millions are on disk (`runs`), rows leave memory
//!   by the row group.
//! - The files are in a folder that is removed when [`UploadedRows`] is dropped, and whatever a crash left is removed when the
//!   catalog is opened.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::AsArray as _;
use parquet::errors::ParquetError;
use proof::Suffix;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use types::key::{KeyLookup, KeySet};
use types::{AgentId, Batch, Contract, ContributionId, RecordKey, Version, fault, render};

use super::file::{CommonValues, WrittenPart};
use super::runs::KeyRuns;
use super::writing::WritingThread;
use super::{LateDuplicates, NewPart, PreparedContent, PreparedRows, PreparedVersion, VersionParts};
use crate::blocking::in_place;
use crate::disk::{Reserve, no_room};
use crate::keys::KeyIndex;
use crate::part::{self, HIDDEN_COLUMNS, PartInfo};
use crate::state::{CommitBase, MAX_INSERTED_KEYS, SnapshotLookup, TableState};
use crate::{Error, Merge, Root};

/// The bytes of a key.
const KEY_BYTES: u64 = 16;

/// A folder that is removed when it is dropped, on a disk of which some stays free.
#[derive(Debug)]
pub(crate) struct ScratchFolder {
    path: PathBuf,
    reserve: Reserve,
}

impl ScratchFolder {
    /// Creates a folder in `parent`, and `parent` if it is missing.
    pub(crate) fn new(parent: &Path, reserve: Reserve) -> Result<Self, Error> {
        fs::create_dir_all(parent).map_err(failed)?;
        let mut number = 0_u64;
        loop {
            let path = parent.join(format!("{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path, reserve }),
                // Another upload of this process has that folder.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(failed(error)),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Fails with [`Error::NoRoom`] if the disk has no room for so much more.
    fn room_for(&self, bytes: u64) -> Result<(), Error> {
        no_room(self.reserve.room_for(&self.path, bytes), || bytes + self.size())
    }

    /// The bytes of its files, as far as they can be told.
    fn size(&self) -> u64 {
        let files = fs::read_dir(&self.path).into_iter().flatten().flatten();
        files
            .filter_map(|file| file.metadata().ok())
            .map(|file| file.len())
            .sum()
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "a folder of staged files could not be removed");
        }
    }
}

/// Stages the rows of one upload. Every call blocks.
#[derive(Debug)]
pub struct Stager {
    filling: FillingRows,
    keys: KeyRuns,
    /// Keys without a row. The table never learns them.
    noted: KeyRuns,
    known: Arc<SnapshotLookup>,
}

impl Stager {
    pub(crate) fn new(
        scratch: ScratchFolder,
        contract: &Arc<Contract>,
        contribution: ContributionId,
        agent: AgentId,
        known: SnapshotLookup,
    ) -> Self {
        let common = CommonValues {
            schema: part::schema(contract),
            contribution,
            agent,
            version: known.since.next(),
        };
        Self {
            keys: KeyRuns::new(scratch.path()),
            noted: KeyRuns::unnamed(scratch.path()),
            filling: FillingRows::new(scratch, contract, common),
            known: Arc::new(known),
        }
    }

    /// The contract of the rows.
    pub const fn contract(&self) -> &Arc<Contract> {
        &self.filling.rows.contract
    }

    /// Returns a lookup of the table's records: rows that it knows must not be pushed. Blocks.
    pub fn known(&self) -> Arc<dyn KeyLookup> {
        Arc::clone(&self.known) as Arc<dyn KeyLookup>
    }

    /// Adds rows that passed the gates. Returns true for each row that is the first of its key.
    pub fn push(&mut self, batch: &Batch) -> Result<Vec<bool>, Error> {
        let keep = self.keys.insert_all(batch.keys()).map_err(failed)?;
        if keep.iter().all(|keep| *keep) {
            self.filling.push(batch)?;
        } else {
            let kept = batch.filter(&keep).map_err(|error| Error::Encode(error.into()))?;
            self.filling.push(&kept)?;
        }
        Ok(keep)
    }

    /// Remembers a key without a row, of a record that will not be merged; `false` where it is there already.
    pub fn note(&mut self, key: RecordKey) -> Result<bool, Error> {
        Ok(!self.keys.contains(&key).map_err(failed)? && self.noted.insert(key).map_err(failed)?)
    }

    /// Parts of fewer rows.
    #[cfg(test)]
    pub(crate) fn with_part_rows(mut self, rows: u64) -> Self {
        self.filling.writing.part_rows = rows;
        self
    }

    /// Ends the files.
    ///
    /// # Errors
    /// Also where [`Self::known`] could not tell of a row; then it is to be staged again.
    pub fn finish(mut self) -> Result<PreparedVersion, Error> {
        self.known.finish()?;
        let rows = self.filling.finish()?;
        self.keys.shrink_to_fit();
        fault::point("stage.end");
        Ok(PreparedVersion {
            contribution: rows.common.contribution,
            agent: rows.common.agent,
            body: PreparedRows::Files(Box::new(UploadedRows {
                rows,
                keys: self.keys,
                left_out: KeySet::default(),
                checked: self.known.since,
            })),
        })
    }
}

/// The rows of an upload, in files.
#[derive(Debug)]
pub(crate) struct UploadedRows {
    rows: RowFiles,
    keys: KeyRuns,
    /// Keys whose rows the table got from others meanwhile.
    left_out: KeySet,
    /// None of the rows is in the table at this version.
    checked: Version,
}

impl UploadedRows {
    pub(super) const fn contract(&self) -> &Arc<Contract> {
        &self.rows.contract
    }

    /// Leaves out the rows that the table got since they were checked last, and makes the files those of the version
    /// after `base`.
    pub(super) async fn against(&mut self, state: &TableState, base: CommitBase) -> Result<VersionParts, Error> {
        // First, because a row is left out for good, and what the log lost has no row.
        state.confirm().await?;
        let mut hits = Vec::new();
        for part in state.parts_between(self.checked, base.version) {
            let keys = part::keys(state.source(), &part).await?;
            hits.extend(in_place(|| self.hits(&keys))?);
        }
        if !hits.is_empty() {
            in_place(|| self.leave_out(hits))?;
        }
        self.checked = base.version;
        in_place(|| self.set_version(base.version.next()))?;
        Ok(self.version_of(base))
    }

    /// Returns the version after `base` that the files are.
    pub(super) fn version_of(&self, base: CommitBase) -> VersionParts {
        VersionParts {
            parts: self.parts().collect(),
            rows: self.rows.count,
            root: self.rows.suffix.after(&base.root),
            late: LateDuplicates::Count(self.left_out.len() as u64),
        }
    }

    /// Brings the keys of a durable commit into the index, whose catching up the caller holds.
    pub(crate) async fn store_keys(
        &self,
        state: &Arc<TableState>,
        index: &KeyIndex,
        merge: &Merge,
    ) -> Result<(), Error> {
        let keys = || {
            let keys = self.keys.ascending().map_err(Error::Scratch)?;
            Ok(keys.filter(|key| key.as_ref().map_or(true, |key| !self.left_out.contains(key))))
        };
        let stored = merge.accepted > MAX_INSERTED_KEYS && {
            let base = state.base();
            if let Some(batch) = state.flush(base.version, base.root).await? {
                state.put_key_object(batch, base.version, base.root).await;
            }
            let root = merge.root.parse().unwrap_or(Root::EMPTY);
            let keys = keys()?;
            in_place(|| index.ingest(merge.version, root, merge.record_count, keys))
        };
        if !stored && index.indexed_version() < merge.version {
            in_place(|| {
                let keys = keys()?.collect::<Result<Vec<_>, _>>().map_err(Error::Scratch)?;
                index.insert(merge.version, &keys);
                Ok::<_, Error>(())
            })?;
        }
        Ok(())
    }

    /// Returns the keys, of these, that it has rows of. Blocks.
    fn hits(&self, keys: &[RecordKey]) -> Result<Vec<RecordKey>, Error> {
        let mut hits = Vec::new();
        for key in keys {
            if self.keys.contains(key).map_err(failed)? && !self.left_out.contains(key) {
                hits.push(*key);
            }
        }
        Ok(hits)
    }

    /// Leaves out the rows with these keys: the files are written anew. Blocks.
    pub(crate) fn leave_out(&mut self, hits: Vec<RecordKey>) -> Result<(), Error> {
        let hits: KeySet = hits.into_iter().collect();
        let scratch = ScratchFolder::new(self.rows.scratch.path(), self.rows.scratch.reserve)?;
        let mut filling = FillingRows::new(scratch, &self.rows.contract, self.rows.common.clone());
        for part in &self.rows.parts {
            // Read whole, because the two failures differ: what cannot be read may be readable later,
            // what cannot be decoded never is.
            let bytes = fs::read(&part.path).map_err(failed)?;
            if Sha256::digest(&bytes)[..] != part.sha256 {
                return Err(failed(io::Error::other("a staged file is not what was written")));
            }
            for batch in part::decode(bytes.into()).map_err(Error::Encode)? {
                let batch = batch.map_err(|error| Error::Encode(error.into()))?;
                let records = render::records_of(&self.rows.contract, &batch);
                let records = records.map_err(|error| Error::Encode(error.into()))?;
                let records: Vec<Value> = records.into_iter().map(Value::Object).collect();
                let written = batch
                    .column_by_name(HIDDEN_COLUMNS[0])
                    .and_then(|keys| keys.as_binary_opt::<i32>());
                let batch = Batch::decode(&self.rows.contract, &records);
                let same =
                    written.is_some_and(|keys| keys.iter().flatten().eq(batch.keys().iter().map(RecordKey::as_bytes)));
                if !same {
                    let problem = "its rows cannot be read back as they were written".to_owned();
                    return Err(Error::Encode(ParquetError::General(problem)));
                }
                let keep: Vec<bool> = batch.keys().iter().map(|key| !hits.contains(key)).collect();
                let kept = batch.filter(&keep).map_err(|error| Error::Encode(error.into()))?;
                filling.push(&kept)?;
            }
        }
        let before = std::mem::replace(&mut self.rows, filling.finish()?);
        // The new folder is in the old one, which therefore stays until the whole is dropped.
        self.rows.beneath.push(before.scratch);
        self.rows.beneath.extend(before.beneath);
        self.left_out.extend(hits);
        Ok(())
    }

    /// Makes the files those of this version. Blocks.
    fn set_version(&mut self, version: Version) -> Result<(), Error> {
        if self.rows.common.version != version {
            for part in &mut self.rows.parts {
                part.set_version(version).map_err(failed)?;
            }
            self.rows.common.version = version;
        }
        Ok(())
    }

    /// Returns the parts as the commit of their version names them, with the files that hold them.
    pub(crate) fn parts(&self) -> impl Iterator<Item = NewPart> {
        let CommonValues {
            contribution, version, ..
        } = self.rows.common;
        (0..).zip(&self.rows.parts).map(move |(index, written)| NewPart {
            info: PartInfo {
                version,
                compacted: None,
                contribution,
                index,
                attempt: 0,
                rows: written.rows,
                bytes: written.bytes,
                sha256: written.sha256,
            },
            proof: written.proof.clone(),
            content: PreparedContent::File(written.path.clone()),
        })
    }
}

/// The rows, as files and as the suffix of a root.
#[derive(Debug)]
struct RowFiles {
    contract: Arc<Contract>,
    common: CommonValues,
    count: u64,
    suffix: Suffix,
    parts: Vec<WrittenPart>,
    scratch: ScratchFolder,
    /// The folders of this upload that `scratch` is in, each in the next.
    beneath: Vec<ScratchFolder>,
}

/// The rows while they come.
#[derive(Debug)]
struct FillingRows {
    /// Before the rows, whose folder it writes in.
    writing: WritingThread,
    rows: RowFiles,
}

impl FillingRows {
    fn new(scratch: ScratchFolder, contract: &Arc<Contract>, common: CommonValues) -> Self {
        Self {
            writing: WritingThread::new(scratch.path().to_owned(), common.clone()),
            rows: RowFiles {
                contract: Arc::clone(contract),
                common,
                count: 0,
                suffix: Suffix::new(),
                parts: Vec::new(),
                scratch,
                beneath: Vec::new(),
            },
        }
    }

    fn push(&mut self, batch: &Batch) -> Result<(), Error> {
        if batch.is_empty() {
            return Ok(());
        }
        self.has_room()?;
        fault::crash_encoder_on(batch);
        let rows = &mut self.rows;
        for row in 0..batch.len() {
            rows.suffix.push(batch.canonical(row));
        }
        let columns = part::varying(batch, rows.count);
        rows.count += batch.len() as u64;
        self.writing.push(columns)
    }

    /// Fails if the disk has no room for the rows so far that are still to be written, but for the few batches that
    /// wait.
    fn has_room(&self) -> Result<(), Error> {
        let Self { writing, rows } = self;
        // The keys count too: they are stored once more when the rows are merged.
        rows.scratch.room_for(writing.unwritten() + rows.count * KEY_BYTES)
    }

    fn finish(self) -> Result<RowFiles, Error> {
        self.has_room()?;
        let Self { writing, mut rows } = self;
        rows.parts = writing.finish()?;
        let written: u64 = rows.parts.iter().map(|part| part.rows).sum();
        if written != rows.count {
            let lost = format!("the parts have {written} of {} rows", rows.count);
            return Err(Error::Encode(ParquetError::General(lost)));
        }
        Ok(rows)
    }
}

/// A failure of the disk, which may pass.
pub(crate) fn failed(error: io::Error) -> Error {
    Error::Scratch(error)
}
