//! The stored half of the key indexes: one fjall database for the tables of a process, and beside it files of the keys
//! that came many at once.
//!
//! Invariants: the keys of a table and the version they reflect change together: a file counts from when the database
//! names it, and what the database does not name is removed when it is opened. The store holds nothing that the tables do
//! not, so one that cannot be used is put aside and built again.

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
use crate::key_file::{Ascending, KeyFile, Source};
use crate::staged::Scratch;
use crate::{Error, Root};

/// A file with this name says that the database was found damaged while it was in use.
const CONDEMNED: &str = "condemned";
/// The directory of the database within the index directory.
const DATABASE: &str = "keys";
/// The directory of staged files within the index directory.
const STAGED: &str = "staged";
/// The directory of files of keys within the index directory.
const FILES: &str = "files";
/// Files of more keys are not written again to make one of several.
const LARGE: usize = 8 << 20;
/// How many key removals go into one batch.
const REMOVALS: usize = 65_536;
/// How many keys all tables together may hold in memory only.
const ROOM: usize = 1 << 20;

/// The version that the stored keys of a table reflect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) version: Version,
    /// The content root of the version: tells another history of the same table apart.
    pub(crate) root: Root,
    /// How many keys there are.
    pub(crate) keys: u64,
}

/// Keys of a table that came many at once.
#[derive(Debug)]
pub(crate) struct StoredFile {
    number: u64,
    pub(crate) keys: KeyFile,
}

/// The keys of every table, by dataset.
pub(crate) struct KeyStore {
    directory: PathBuf,
    database: Database,
    keys: Keyspace,
    /// How many keys each file has, by dataset and number.
    files: Keyspace,
    /// The number of the next file.
    next_file: AtomicU64,
    /// Files of more keys than so are left as they are.
    pub(crate) large: AtomicUsize,
    changing: Mutex<()>,
    /// How many turns were asked for.
    turns: AtomicU64,
    /// How many keys all indexes hold in memory only.
    pub(crate) unstored: AtomicUsize,
    /// How many they may hold.
    pub(crate) room: AtomicUsize,
    /// How often keys were added, or tried to be.
    additions: AtomicU64,
    /// How many bytes of the disk stay free.
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
    /// Opens the database in `directory`; one that is damaged is put aside and an empty one takes its place.
    pub(crate) fn open(directory: PathBuf) -> Result<Self, Error> {
        std::fs::create_dir_all(&directory).map_err(|error| Error::Index(error.into()))?;
        let staged = directory.join(STAGED);
        if staged.exists() {
            // Why: only a process that died leaves them, and what it staged is staged again.
            std::fs::remove_dir_all(&staged).map_err(Error::Scratch)?;
        }
        let path = directory.join(DATABASE);
        if directory.join(CONDEMNED).exists() {
            put_aside(&directory, "an earlier run found it damaged")?;
        }
        let opened = match open_database(&path) {
            Err(Some(fjall::Error::Locked)) => {
                return Err(Error::IndexLocked {
                    path: path.display().to_string(),
                });
            }
            Err(problem) => {
                let problem =
                    problem.map_or_else(|| "opening it ended with a panic".to_owned(), |error| error.to_string());
                put_aside(&directory, &problem)?;
                open_database(&path)
            }
            opened => opened,
        };
        let failed = |error: Option<fjall::Error>| Error::Index(error.unwrap_or(fjall::Error::Unrecoverable));
        let Opened {
            database,
            keys,
            files,
            named,
        } = opened.map_err(failed)?;
        remove_unnamed(&directory.join(FILES), &named).map_err(|error| Error::Index(error.into()))?;
        let next_file = named.last().map_or(0, |last| last.saturating_add(1));
        Ok(Self {
            directory,
            database,
            keys,
            files,
            next_file: AtomicU64::new(next_file),
            large: AtomicUsize::new(LARGE),
            changing: Mutex::default(),
            turns: AtomicU64::new(0),
            unstored: AtomicUsize::new(0),
            room: AtomicUsize::new(ROOM),
            additions: AtomicU64::new(0),
            reserve: AtomicU64::new(0),
        })
    }

    /// A new directory for files that need not outlive the process.
    pub(crate) fn scratch(&self) -> Result<Scratch, Error> {
        Scratch::new(&self.directory.join(STAGED), self.reserve())
    }

    /// How much of the disk stays free.
    pub(crate) fn reserve(&self) -> Reserve {
        Reserve(self.reserve.load(Ordering::Relaxed))
    }

    /// Leaves so much of the disk free from now on.
    pub(crate) fn set_reserve(&self, reserve: Reserve) {
        self.reserve.store(reserve.0, Ordering::Relaxed);
    }

    /// Whether so many bytes more can be written to the disk.
    pub(crate) fn room_for(&self, bytes: u64) -> Result<(), Error> {
        no_room(self.reserve().room_for(&self.directory, bytes), || bytes)
    }

    /// Makes the next opening build the database again.
    pub(crate) fn condemn(&self) {
        if let Err(error) = std::fs::write(self.directory.join(CONDEMNED), b"") {
            tracing::warn!(%error, "cannot mark the key index as damaged; the next start may use it again");
        }
    }

    /// What the stored keys of a table reflect; `None` where it has none.
    pub(crate) fn stored(&self, dataset: DatasetId) -> fjall::Result<Option<Stored>> {
        Ok(self
            .keys
            .get(dataset.as_bytes())?
            .and_then(|value| Stored::decode(&value)))
    }

    /// Whether a table's stored keys have this one, but for those in files.
    pub(crate) fn contains(&self, dataset: DatasetId, key: &RecordKey) -> fjall::Result<bool> {
        self.keys.contains_key(stored_key(dataset, key))
    }

    /// Calls `each` with every stored key of a table, in order, but for those in files.
    pub(crate) fn scan(&self, dataset: DatasetId, mut each: impl FnMut(RecordKey)) -> fjall::Result<()> {
        for item in self.keys.prefix(dataset.as_bytes()) {
            if let Ok(key) = item.key()?[16..].try_into() {
                each(RecordKey::from_bytes(key));
            }
        }
        Ok(())
    }

    /// The files of a table's stored keys, oldest first; calls `each` with every key in them.
    ///
    /// # Errors
    /// Also where a file is not as it was written ([`is_damage`](crate::key_file::is_damage)).
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

    /// Adds keys, ascending and distinct, and what the table's stored keys reflect with them, atomically.
    pub(crate) fn add(&self, dataset: DatasetId, keys: &[RecordKey], stored: Stored) -> fjall::Result<()> {
        let _turn = self.take_turn();
        self.additions.fetch_add(1, Ordering::Relaxed);
        // Why: sorted keys become one table file as they are, at a tenth of the cost of the journal and memtable.
        let mut ingestion = self.keys.start_ingestion()?;
        ingestion.write(*dataset.as_bytes(), stored.encode())?;
        for key in keys {
            ingestion.write(stored_key(dataset, key), [])?;
        }
        ingestion.finish()
    }

    /// Adds `count` keys, which need not be in memory, as a file. It takes over those of the latest of `files`, all that the
    /// table has, that are at most twice as large as what comes after them: so there are few but for large ones, and a key
    /// is written again a logarithmic number of times. Answers the table's files from then on. One at a time of a table.
    pub(crate) fn add_file(
        &self,
        dataset: DatasetId,
        files: &[Arc<StoredFile>],
        (keys, count): (impl Iterator<Item = std::io::Result<RecordKey>>, usize),
        stored: Stored,
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
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        let added = self
            .write_file(number, merged, keys, all)
            .and_then(|keys| self.name_file(dataset, number, merged, &keys, stored).map(|()| keys));
        let keys = added.inspect_err(|_| {
            // Why ignored: it may not even be there, and an opening removes what nothing names.
            std::fs::remove_file(self.path_of(number)).unwrap_or_default();
        })?;
        let mut files = kept.to_vec();
        files.push(Arc::new(StoredFile { number, keys }));
        Ok(files)
    }

    /// Writes keys and those of other files, `count` in all, into a file, durably.
    fn write_file(
        &self,
        number: u64,
        merged: &[Arc<StoredFile>],
        keys: impl Iterator<Item = std::io::Result<RecordKey>>,
        count: usize,
    ) -> fjall::Result<KeyFile> {
        let mut sources = vec![Box::new(keys) as Source<'_>];
        sources.extend(merged.iter().map(|file| Box::new(file.keys.iter()) as Source<'_>));
        let file = KeyFile::write(&self.path_of(number), Ascending::of(sources)?)?;
        if file.len() != count {
            let found = format!("expected {count} record keys, found {}", file.len());
            return Err(std::io::Error::other(found).into());
        }
        file.sync()?;
        std::fs::File::open(self.directory.join(FILES))?.sync_all()?;
        Ok(file)
    }

    /// Makes a file one of a table's in the place of others, which are removed.
    fn name_file(
        &self,
        dataset: DatasetId,
        number: u64,
        merged: &[Arc<StoredFile>],
        keys: &KeyFile,
        stored: Stored,
    ) -> fjall::Result<()> {
        let _turn = self.take_turn();
        let mut change = self.database.batch().durability(Some(PersistMode::SyncAll));
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

    /// Removes the stored keys of a table. What they reflect goes first and durably, so that keys which a crash left
    /// behind are of nothing and are removed when the table is opened again.
    pub(crate) fn clear(&self, dataset: DatasetId) -> fjall::Result<()> {
        let _turn = self.take_turn();
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
        let mut removals = batch();
        for item in self.keys.prefix(dataset.as_bytes()) {
            removals.remove(&self.keys, item.key()?);
            if removals.len() >= REMOVALS {
                std::mem::replace(&mut removals, batch()).commit()?;
            }
        }
        if removals.is_empty() { Ok(()) } else { removals.commit() }
    }

    /// The files of a table, by number, with how many keys they have.
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
        self.directory.join(FILES).join(file_name(file))
    }

    /// Removes a file that is not named any more; whoever has it open can go on reading.
    fn remove_file(&self, number: u64) {
        if let Err(error) = std::fs::remove_file(self.path_of(number)) {
            tracing::warn!(number, %error, "cannot remove an unused file of the key index; the next start tries again");
        }
    }

    /// Waits for the right to change stored keys, which one has at a time.
    pub(crate) fn take_turn(&self) -> MutexGuard<'_, ()> {
        self.turns.fetch_add(1, Ordering::SeqCst);
        self.changing.lock()
    }

    #[cfg(test)]
    pub(crate) fn turns(&self) -> u64 {
        self.turns.load(Ordering::SeqCst)
    }

    /// Whether the indexes together hold more keys in memory only than they may.
    pub(crate) fn is_crowded(&self) -> bool {
        self.unstored.load(Ordering::Relaxed) > self.room.load(Ordering::Relaxed)
    }

    /// How often keys were added, or tried to be; each time costs a constant number of syncs.
    #[cfg(test)]
    pub(crate) fn additions(&self) -> u64 {
        self.additions.load(Ordering::Relaxed)
    }
}

/// An open database.
struct Opened {
    database: Database,
    keys: Keyspace,
    files: Keyspace,
    /// The numbers of all files.
    named: BTreeSet<u64>,
}

/// `None` is a panic of the database.
fn open_database(path: &Path) -> Result<Opened, Option<fjall::Error>> {
    let open = || {
        let database = Database::builder(path).worker_threads(1).cache_size(16 << 20).open()?;
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(4 << 20)
                // Why: keys are random and filtered in memory already.
                .data_block_compression_policy(CompressionPolicy::disabled())
                .filter_policy(FilterPolicy::disabled())
        };
        let keys = database.keyspace("keys", options)?;
        let files = database.keyspace("files", options)?;
        let mut named = BTreeSet::new();
        for item in files.iter() {
            named.extend(number_of(&item.key()?));
        }
        Ok(Opened {
            database,
            keys,
            files,
            named,
        })
    };
    // Why: the database asserts on some damage; what it holds is derived, so damage must never stop the service.
    match catch_unwind(AssertUnwindSafe(open)) {
        Ok(opened) => opened.map_err(Some),
        Err(_) => Err(None),
    }
}

fn put_aside(directory: &Path, problem: &str) -> Result<(), Error> {
    let (from, to) = (directory.join(DATABASE), directory.join("keys.damaged"));
    tracing::warn!(
        directory = %directory.display(), problem,
        "the key index is damaged; setting it aside and building a new one from the tables"
    );
    let missing_is_fine = |result: std::io::Result<()>| match result {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::Index(error.into())),
        _ => Ok(()),
    };
    missing_is_fine(std::fs::remove_dir_all(&to))?;
    missing_is_fine(std::fs::rename(&from, &to))?;
    missing_is_fine(std::fs::remove_file(directory.join(CONDEMNED)))
}

/// Removes what is in `folder`, which is made where it is missing, and not named.
fn remove_unnamed(folder: &Path, named: &BTreeSet<u64>) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
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
    bytes[16..].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// The number in a [`file_key`].
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

impl Stored {
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
