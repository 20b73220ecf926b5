//! Storage of the key indexes: one fjall database for all tables of a process, and files for large sets of keys.
//!
//! Invariants: the keys of a table and the version that they reflect change atomically. A file counts once the database
//! names it; files without a name are removed at the next opening. The store is derived from the tables, so an unusable
//! store is set aside and built again.

use std::collections::{BTreeSet, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use fjall::config::{CompressionPolicy, FilterPolicy};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use parking_lot::{Mutex, MutexGuard};
use types::{DatasetId, RecordKey, Version};

use crate::disk::{Reserve, no_room};
use crate::key_file::{KWayMerge, KeyFile, Source};
use crate::prepare::ScratchFolder;
use crate::{Error, Root};

/// Name of the marker file: an earlier run found the database damaged.
const CORRUPT_MARKER: &str = "condemned";
/// Directory of the database, within the index directory.
const KEYS_KEYSPACE: &str = "keys";
/// Directory of scratch files, within the index directory.
const STAGED_FOLDER: &str = "staged";
/// Directory of key files, within the index directory.
const FILES_FOLDER: &str = "files";
/// Number of keys above which a file is not merged into another.
const MAX_REWRITTEN_FILE_KEYS: usize = 8 << 20;
/// Size in bytes of the id of a dataset, with which each of its entries begins.
const DATASET_BYTES: usize = 16;
/// Number of key removals per batch of the database.
const MAX_REMOVALS_PER_BATCH: usize = 65_536;
/// Maximum number of keys that all tables together hold only in memory.
const MAX_UNSTORED_KEYS: usize = 1 << 20;

/// Version that the stored keys of a table reflect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredVersion {
    pub(crate) version: Version,
    /// Content root of the version. Distinguishes different histories of the same table.
    pub(crate) root: Root,
    /// Number of stored keys.
    pub(crate) keys: u64,
}

/// One file with stored keys of a table.
#[derive(Debug)]
pub(crate) struct StoredFile {
    number: u64,
    pub(crate) keys: KeyFile,
}

/// Stored keys of all tables, by dataset.
pub(crate) struct KeyStore {
    directory: PathBuf,
    database: Database,
    keys: Keyspace,
    /// Number of keys of each file, by dataset and file number.
    files: Keyspace,
    /// Number of the next file.
    next_file: AtomicU64,
    /// Number of keys above which a file is not merged into another.
    pub(crate) large: AtomicUsize,
    change_lock: Mutex<()>,
    /// Number of changes that were started, including those that wait.
    lock_requests: AtomicU64,
    /// Number of keys that all indexes hold only in memory.
    pub(crate) unstored: AtomicUsize,
    /// Maximum of `unstored` before keys are stored early.
    pub(crate) room: AtomicUsize,
    /// Number of successful and failed additions.
    additions: AtomicU64,
    /// Number of bytes of the disk that stay free.
    reserve: AtomicU64,
}

impl std::fmt::Debug for KeyStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyStore")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl KeyStore {
    /// Opens the store in `directory`. A damaged database is set aside and replaced by an empty one.
    ///
    /// # Errors
    /// [`Error::IndexLocked`] if another process has it open, [`Error::Index`] if an empty database cannot be opened
    /// either, [`Error::Scratch`] if old scratch files cannot be removed.
    pub(crate) fn open(directory: PathBuf) -> Result<Self, Error> {
        std::fs::create_dir_all(&directory).map_err(|error| Error::Index(error.into()))?;
        let staged = directory.join(STAGED_FOLDER);
        if staged.exists() {
            // Only a crashed process leaves scratch files, and its uploads are staged again.
            std::fs::remove_dir_all(&staged).map_err(Error::Scratch)?;
        }
        let path = directory.join(KEYS_KEYSPACE);
        if directory.join(CORRUPT_MARKER).exists() {
            set_aside(&directory, "an earlier run found it damaged")?;
        }
        // A damaged database is replaced by an empty one, and the tables fill it again from their parts.
        let opened = match open_database(&path) {
            Err(Some(fjall::Error::Locked)) => {
                return Err(Error::IndexLocked {
                    path: path.display().to_string(),
                });
            }
            Err(problem) => {
                let problem =
                    problem.map_or_else(|| "opening it ended with a panic".to_owned(), |error| error.to_string());
                set_aside(&directory, &problem)?;
                open_database(&path)
            }
            opened => opened,
        };
        let failed = |error: Option<fjall::Error>| Error::Index(error.unwrap_or(fjall::Error::Unrecoverable));
        let OpenedKeys {
            database,
            keys,
            files,
            named,
        } = opened.map_err(failed)?;
        remove_unnamed(&directory.join(FILES_FOLDER), &named).map_err(|error| Error::Index(error.into()))?;
        let next_file = named.last().map_or(0, |last| last.saturating_add(1));
        Ok(Self {
            directory,
            database,
            keys,
            files,
            next_file: AtomicU64::new(next_file),
            large: AtomicUsize::new(MAX_REWRITTEN_FILE_KEYS),
            change_lock: Mutex::default(),
            lock_requests: AtomicU64::new(0),
            unstored: AtomicUsize::new(0),
            room: AtomicUsize::new(MAX_UNSTORED_KEYS),
            additions: AtomicU64::new(0),
            reserve: AtomicU64::new(0),
        })
    }

    /// Creates a directory for files that need not outlive the process.
    pub(crate) fn scratch(&self) -> Result<ScratchFolder, Error> {
        ScratchFolder::new(&self.directory.join(STAGED_FOLDER), self.reserve())
    }

    /// Returns the reserve of the disk.
    pub(crate) fn reserve(&self) -> Reserve {
        Reserve(self.reserve.load(Ordering::Relaxed))
    }

    /// Sets the reserve of the disk.
    pub(crate) fn set_reserve(&self, reserve: Reserve) {
        self.reserve.store(reserve.0, Ordering::Relaxed);
    }

    /// Checks that `bytes` more bytes fit on the disk.
    ///
    /// # Errors
    /// [`Error::NoRoom`] if they do not.
    pub(crate) fn room_for(&self, bytes: u64) -> Result<(), Error> {
        no_room(self.reserve().room_for(&self.directory, bytes), || bytes)
    }

    /// Marks the store as damaged, so that the next opening rebuilds it.
    pub(crate) fn mark_corrupt(&self) {
        if let Err(error) = std::fs::write(self.directory.join(CORRUPT_MARKER), b"") {
            tracing::warn!(%error, "cannot mark the key index as damaged; the next start may use it again");
        }
    }

    /// Returns the version that the stored keys of a table reflect, or `None` if it has none.
    pub(crate) fn stored(&self, dataset: DatasetId) -> fjall::Result<Option<StoredVersion>> {
        Ok(self
            .keys
            .get(dataset.as_bytes())?
            .and_then(|value| StoredVersion::decode(&value)))
    }

    /// Returns the tables of which keys are stored.
    pub(crate) fn datasets(&self) -> fjall::Result<Vec<DatasetId>> {
        let mut datasets = Vec::new();
        let mut from = [0; DATASET_BYTES];
        // One look-up for each table, however many keys it has.
        while let Some(item) = self.keys.range(from..).next() {
            let key = item.key()?;
            let Some(dataset) = key.first_chunk::<DATASET_BYTES>() else {
                return Ok(datasets);
            };
            datasets.push(DatasetId::from_bytes(*dataset));
            let Some(next) = u128::from_be_bytes(*dataset).checked_add(1) else {
                return Ok(datasets);
            };
            from = next.to_be_bytes();
        }
        Ok(datasets)
    }

    /// Returns true if the database has the key. Does not look into the table's files.
    pub(crate) fn contains(&self, dataset: DatasetId, key: &RecordKey) -> fjall::Result<bool> {
        self.keys.contains_key(stored_key(dataset, key))
    }

    /// Calls `each` in order with every stored key of a table that is in the database. Skips the table's files.
    pub(crate) fn scan(&self, dataset: DatasetId, mut each: impl FnMut(RecordKey)) -> fjall::Result<()> {
        for item in self.keys.prefix(dataset.as_bytes()) {
            if let Ok(key) = item.key()?[16..].try_into() {
                each(RecordKey::from_bytes(key));
            }
        }
        Ok(())
    }

    /// Opens the key files of a table, the oldest first, and calls `each` with every key in them.
    ///
    /// # Errors
    /// [`is_damage`](crate::key_file::is_damage) is true of the error if a file is damaged.
    pub(crate) fn files(
        &self,
        dataset: DatasetId,
        mut each: impl FnMut(RecordKey),
    ) -> fjall::Result<Vec<Arc<StoredFile>>> {
        let mut files = Vec::new();
        for (number, keys) in self.named(dataset)? {
            let keys = KeyFile::open(&self.path_of(number), keys, &mut each)?;
            files.push(Arc::new(StoredFile { number, keys }));
        }
        Ok(files)
    }

    /// Adds sorted, distinct keys and updates the version that the table's stored keys reflect, atomically.
    pub(crate) fn add(&self, dataset: DatasetId, keys: &[RecordKey], stored: StoredVersion) -> fjall::Result<()> {
        let _lock = self.lock_changes();
        self.additions.fetch_add(1, Ordering::Relaxed);
        // Sorted keys become one table file directly, at a tenth of the cost of journal and memtable.
        let mut ingestion = self.keys.start_ingestion()?;
        // Keys must ascend. The entry of the dataset is a prefix of its record keys, so it comes first.
        ingestion.write(*dataset.as_bytes(), stored.encode())?;
        for key in keys {
            ingestion.write(stored_key(dataset, key), [])?;
        }
        ingestion.finish()
    }

    /// Adds `count` keys as a file, without holding them in memory. `files` are all files of the table. The new file
    /// absorbs the latest files while each is at most twice as large as everything after it and not larger than
    /// `large`. So there are few files besides large ones, and a key is rewritten a logarithmic number of times.
    /// Returns the table's files after the change. A table must have one call at a time.
    pub(crate) fn add_file(
        &self,
        dataset: DatasetId,
        files: &[Arc<StoredFile>],
        (keys, count): (impl Iterator<Item = std::io::Result<RecordKey>>, usize),
        stored: StoredVersion,
    ) -> fjall::Result<Vec<Arc<StoredFile>>> {
        self.additions.fetch_add(1, Ordering::Relaxed);
        let large = self.large.load(Ordering::Relaxed);
        let (mut kept, mut all) = (files.len(), count);
        while let Some(last) = kept.checked_sub(1).map(|last| files[last].keys.len())
            && last <= all.saturating_mul(2).min(large)
        {
            (kept, all) = (kept - 1, all + last);
        }
        let (kept, merged) = files.split_at(kept);
        // Numbers are unique for all tables, because all files are in one folder.
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        let added = self
            .write_file(number, merged, keys, all)
            .and_then(|keys| self.name_file(dataset, number, merged, &keys, stored).map(|()| keys));
        let keys = added.inspect_err(|_| {
            // The error is ignored: the file may not exist, and the next opening removes files without a name.
            std::fs::remove_file(self.path_of(number)).unwrap_or_default();
        })?;
        let mut files = kept.to_vec();
        files.push(Arc::new(StoredFile { number, keys }));
        Ok(files)
    }

    /// Writes the new keys and the keys of `merged`, `count` in total, into a durable file.
    fn write_file(
        &self,
        number: u64,
        merged: &[Arc<StoredFile>],
        keys: impl Iterator<Item = std::io::Result<RecordKey>>,
        count: usize,
    ) -> fjall::Result<KeyFile> {
        let mut sources = vec![Box::new(keys) as Source<'_>];
        sources.extend(merged.iter().map(|file| Box::new(file.keys.iter()) as Source<'_>));
        let file = KeyFile::write(&self.path_of(number), KWayMerge::of(sources)?)?;
        // The commits state the number of keys, so another number means damage.
        if file.len() != count {
            let found = format!("expected {count} record keys, found {}", file.len());
            return Err(std::io::Error::other(found).into());
        }
        file.sync()?;
        // The name of the file is durable before the database refers to it.
        std::fs::File::open(self.directory.join(FILES_FOLDER))?.sync_all()?;
        Ok(file)
    }

    /// Names a file in the database in place of `merged`, and removes the files of `merged`.
    fn name_file(
        &self,
        dataset: DatasetId,
        number: u64,
        merged: &[Arc<StoredFile>],
        keys: &KeyFile,
        stored: StoredVersion,
    ) -> fjall::Result<()> {
        let _lock = self.lock_changes();
        let mut change = self.database.batch().durability(Some(PersistMode::SyncAll));
        // One batch changes the files and the version that they reflect.
        change.insert(&self.keys, *dataset.as_bytes(), stored.encode());
        change.insert(
            &self.files,
            file_key(dataset, number),
            (keys.len() as u64).to_le_bytes(),
        );
        for file in merged {
            change.remove(&self.files, file_key(dataset, file.number));
        }
        change.commit()?;
        for file in merged {
            self.remove_file(file.number);
        }
        Ok(())
    }

    /// Removes the stored keys of a table. The version that they reflect goes first, durably. So keys that a crash
    /// leaves behind belong to no version and are removed when the table is opened again.
    pub(crate) fn clear(&self, dataset: DatasetId) -> fjall::Result<()> {
        let _lock = self.lock_changes();
        let batch = || self.database.batch().durability(Some(PersistMode::SyncAll));
        let files = self.named(dataset)?;
        if self.keys.contains_key(dataset.as_bytes())? || !files.is_empty() {
            let mut removal = batch();
            removal.remove(&self.keys, *dataset.as_bytes());
            for (number, _) in &files {
                removal.remove(&self.files, file_key(dataset, *number));
            }
            removal.commit()?;
        }
        for (number, _) in files {
            self.remove_file(number);
        }
        // Several batches bound the memory of a large removal.
        let mut removals = batch();
        for item in self.keys.prefix(dataset.as_bytes()) {
            removals.remove(&self.keys, item.key()?);
            if removals.len() >= MAX_REMOVALS_PER_BATCH {
                std::mem::replace(&mut removals, batch()).commit()?;
            }
        }
        if removals.is_empty() { Ok(()) } else { removals.commit() }
    }

    /// Returns the numbers of a table's files, each with its number of keys.
    fn named(&self, dataset: DatasetId) -> fjall::Result<Vec<(u64, u64)>> {
        let mut named = Vec::new();
        for item in self.files.prefix(dataset.as_bytes()) {
            let (key, value) = item.into_inner()?;
            if let (Some(number), Ok(keys)) = (number_of(&key), value[..].try_into()) {
                named.push((number, u64::from_le_bytes(keys)));
            }
        }
        Ok(named)
    }

    fn path_of(&self, file: u64) -> PathBuf {
        self.directory.join(FILES_FOLDER).join(file_name(file))
    }

    /// Removes a file that the database no longer names. A reader that has it open can continue.
    fn remove_file(&self, number: u64) {
        if let Err(error) = std::fs::remove_file(self.path_of(number)) {
            tracing::warn!(number, %error, "cannot remove an unused file of the key index; the next start tries again");
        }
    }

    /// Waits for the exclusive right to change stored keys.
    pub(crate) fn lock_changes(&self) -> MutexGuard<'_, ()> {
        self.lock_requests.fetch_add(1, Ordering::SeqCst);
        self.change_lock.lock()
    }

    #[cfg(test)]
    pub(crate) fn lock_requests(&self) -> u64 {
        self.lock_requests.load(Ordering::SeqCst)
    }

    /// Returns true if the indexes together hold more keys in memory than they may.
    pub(crate) fn is_crowded(&self) -> bool {
        self.unstored.load(Ordering::Relaxed) > self.room.load(Ordering::Relaxed)
    }

    /// Returns the number of successful and failed additions. Each costs a constant number of syncs.
    #[cfg(test)]
    pub(crate) fn additions(&self) -> u64 {
        self.additions.load(Ordering::Relaxed)
    }
}

struct OpenedKeys {
    database: Database,
    keys: Keyspace,
    files: Keyspace,
    /// Numbers of all files.
    named: BTreeSet<u64>,
}

/// Opens the database. The error `None` is a panic of the database.
fn open_database(path: &Path) -> Result<OpenedKeys, Option<fjall::Error>> {
    let open = || {
        let database = Database::builder(path).worker_threads(1).cache_size(16 << 20).open()?;
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(4 << 20)
                // Keys are random, so they do not compress; and the filter in memory is enough.
                .data_block_compression_policy(CompressionPolicy::disabled())
                .filter_policy(FilterPolicy::disabled())
        };
        let keys = database.keyspace("keys", options)?;
        let files = database.keyspace("files", options)?;
        let mut named = BTreeSet::new();
        for item in files.iter() {
            named.extend(number_of(&item.key()?));
        }
        Ok(OpenedKeys {
            database,
            keys,
            files,
            named,
        })
    };
    // The database asserts on some kinds of damage. Its content is derived, so damage must never stop the service.
    match catch_unwind(AssertUnwindSafe(open)) {
        Ok(opened) => opened.map_err(Some),
        Err(_) => Err(None),
    }
}

fn set_aside(directory: &Path, problem: &str) -> Result<(), Error> {
    let (from, to) = (directory.join(KEYS_KEYSPACE), directory.join("keys.damaged"));
    tracing::warn!(
        directory = %directory.display(), problem,
        "the key index is damaged; setting it aside and building a new one from the tables"
    );
    // A crash in the middle of this function is repaired by the next call.
    let missing_is_fine = |result: std::io::Result<()>| match result {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::Index(error.into())),
        _ => Ok(()),
    };
    // Only the last damaged database is kept for an analysis.
    missing_is_fine(std::fs::remove_dir_all(&to))?;
    missing_is_fine(std::fs::rename(&from, &to))?;
    missing_is_fine(std::fs::remove_file(directory.join(CORRUPT_MARKER)))
}

/// Removes the files in `folder` whose numbers are not in `named`. Creates the folder if it is missing.
fn remove_unnamed(folder: &Path, named: &BTreeSet<u64>) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    // Files without a name in the database come from a crash between write and naming, or before a removal.
    let named: HashSet<String> = named.iter().map(|number| file_name(*number)).collect();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|name| named.contains(name)) {
            continue;
        }
        if let Err(error) = std::fs::remove_file(entry.path()) {
            tracing::warn!(
                path = %entry.path().display(), %error,
                "cannot remove an unknown file from the folder of the key index"
            );
        }
    }
    Ok(())
}

fn file_name(number: u64) -> String {
    format!("{number:020}")
}

fn file_key(dataset: DatasetId, number: u64) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[..16].copy_from_slice(dataset.as_bytes());
    // Big endian sorts the entries by number.
    bytes[16..].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Returns the file number in a [`file_key`].
fn number_of(key: &[u8]) -> Option<u64> {
    let number = key.get(16..)?.try_into().ok()?;
    Some(u64::from_be_bytes(number))
}

fn stored_key(dataset: DatasetId, key: &RecordKey) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(dataset.as_bytes());
    bytes[16..].copy_from_slice(key.as_bytes());
    bytes
}

impl StoredVersion {
    fn encode(self) -> [u8; 48] {
        let mut bytes = [0; 48];
        bytes[..8].copy_from_slice(&self.version.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.keys.to_le_bytes());
        bytes[16..].copy_from_slice(self.root.as_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (version, rest) = bytes.split_first_chunk()?;
        let (keys, root) = rest.split_first_chunk()?;
        Some(Self {
            version: Version(u64::from_le_bytes(*version)),
            root: Root::from_bytes(root.try_into().ok()?),
            keys: u64::from_le_bytes(*keys),
        })
    }
}
