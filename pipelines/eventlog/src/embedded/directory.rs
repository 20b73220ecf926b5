//! The directory of a log.
//!
//! ```text
//! lock       held while the log is open
//! data/      the database; absent or complete
//! creating/  left by a process that died while creating the database; removed
//! ```
//!
//! Invariant: `data` appears by one rename of a finished database. Creating a database takes several steps, and fjall
//! can neither open nor create one that was interrupted between two of them.

use std::fs::{File, TryLockError};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fjall::compaction::Leveled;
use fjall::{CompressionType, Database, KeyspaceCreateOptions, LsmError, PersistMode};

use super::layout::{FORMAT_KEY, LAYOUT_FORMAT, LogDatabase};
use crate::Error;

/// Bytes of the block cache. Most reads are of records just written, which are in memory anyway.
const CACHE_BYTES: u64 = 16 << 20;
/// Bytes of records in memory before they are written as a table file. Up to five memtables may exist at a time.
const MEMTABLE_BYTES: u64 = 16 << 20;
/// The same limit for positions and first offsets. It is small so that they do not hold old journals back.
const SMALL_MEMTABLE_BYTES: u64 = 1 << 20;
/// Bytes of full journals before their memtables are flushed. Opening replays at most this plus one journal.
const JOURNAL_BYTES: u64 = 64 << 20;

/// An exclusive lock of the directory, released on drop.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    fn take(path: &Path) -> Result<Self, Error> {
        let failed = |cause: io::Error| error(path, cause.into());
        let mut options = File::options();
        let file = options
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join("lock"))
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(Error::Locked {
                path: path.to_path_buf(),
            }),
            Err(TryLockError::Error(cause)) => Err(failed(cause)),
        }
    }
}

impl Drop for Lock {
    /// Unlocks explicitly. Closing the file is not enough: a child process between fork and exec still has it open.
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "cannot unlock the directory of the log");
        }
    }
}

/// Opens or creates the database of the log in `path`.
pub(super) fn open(path: &Path) -> Result<LogDatabase, Error> {
    let failed = |cause: io::Error| error(path, cause.into());
    create_directory(path).map_err(failed)?;
    let lock = Lock::take(path)?;
    let data = path.join("data");
    if !data.try_exists().map_err(failed)? {
        let creating = path.join("creating");
        // An earlier process died while it created the database. Nothing was appended to it.
        if creating.try_exists().map_err(failed)? {
            std::fs::remove_dir_all(&creating).map_err(failed)?;
        }
        create(path, &creating)?;
        std::fs::rename(&creating, &data).map_err(failed)?;
        // Without this sync a power cut could undo the rename and lose acknowledged records.
        sync_directory(path).map_err(failed)?;
    // fjall would create a new database over one that lacks this file.
    } else if !data.join("version").try_exists().map_err(failed)? {
        return Err(Error::Damaged {
            path: path.to_path_buf(),
            what: "the file `data/version` is missing".to_owned(),
        });
    }
    let database = open_database(path, &data)?;
    open_keyspaces(path, database, lock)
}

/// Creates an empty database in `creating`, durable on return.
fn create(path: &Path, creating: &Path) -> Result<(), Error> {
    let failed = |cause| error(path, cause);
    let database = open_database(path, creating)?;
    keyspace(path, &database, "log", MEMTABLE_BYTES)?;
    keyspace(path, &database, "cursors", SMALL_MEMTABLE_BYTES)?;
    let meta = keyspace(path, &database, "meta", SMALL_MEMTABLE_BYTES)?;
    meta.insert(FORMAT_KEY, LAYOUT_FORMAT.to_be_bytes()).map_err(failed)?;
    database.persist(PersistMode::SyncAll).map_err(failed)
}

fn open_keyspaces(path: &Path, database: Database, lock: Lock) -> Result<LogDatabase, Error> {
    for name in ["log", "cursors", "meta"] {
        if !database.keyspace_exists(name) {
            return Err(Error::Damaged {
                path: path.to_path_buf(),
                what: format!("the keyspace `{name}` is missing"),
            });
        }
    }
    Ok(LogDatabase {
        path: path.to_path_buf(),
        log: keyspace(path, &database, "log", MEMTABLE_BYTES)?,
        cursors: keyspace(path, &database, "cursors", SMALL_MEMTABLE_BYTES)?,
        meta: keyspace(path, &database, "meta", SMALL_MEMTABLE_BYTES)?,
        database,
        _lock: lock,
    })
}

fn keyspace(path: &Path, database: &Database, name: &str, memtable: u64) -> Result<fjall::Keyspace, Error> {
    let options = || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(memtable)
            // Tables of the size of a memtable: records are written once and removed in order,
            // so large merges gain nothing.
            .compaction_strategy(Arc::new(Leveled::default().with_table_target_size(memtable)))
    };
    database.keyspace(name, options).map_err(|cause| error(path, cause))
}

/// Opens the database in `data`. Some damage makes fjall panic; the panic is turned into an error.
fn open_database(path: &Path, data: &Path) -> Result<Database, Error> {
    let builder = Database::builder(data)
        .cache_size(CACHE_BYTES)
        // Records go to the journal uncompressed, which keeps compression off the path from
        // append to fsync.
        .journal_compression(CompressionType::None)
        .max_journaling_size(JOURNAL_BYTES)
        .worker_threads(2);
    // The builder is consumed and no state outlives the panic, so unwinding leaves nothing
    // inconsistent.
    match catch_unwind(AssertUnwindSafe(|| builder.open())) {
        Ok(opened) => opened.map_err(|cause| error(path, cause)),
        Err(payload) => Err(Error::Damaged {
            path: path.to_path_buf(),
            what: match payload.downcast_ref::<String>() {
                Some(message) => message.clone(),
                None => payload
                    .downcast_ref::<&str>()
                    .copied()
                    .unwrap_or("its recovery panicked")
                    .to_owned(),
            },
        }),
    }
}

/// Converts an error of the storage.
pub(super) fn error(path: &Path, cause: fjall::Error) -> Error {
    let path = path.to_path_buf();
    match &cause {
        fjall::Error::Locked => Error::Locked { path },
        fjall::Error::Io(error) | fjall::Error::Storage(LsmError::Io(error)) if !is_damage(error) => Error::Storage {
            path,
            cause: Arc::new(cause),
        },
        // These concern this process, not the data: opening the log again may succeed.
        fjall::Error::Poisoned | fjall::Error::KeyspaceDeleted => Error::Storage {
            path,
            cause: Arc::new(cause),
        },
        _ => Error::Damaged {
            path,
            what: format!("{cause:?}"),
        },
    }
}

/// Returns true if an I/O error means that the content is wrong, as opposed to a failed read.
fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::NotFound
    )
}

/// Creates `path` and its missing ancestors, durably: if the entry of a directory is lost, so are its files.
fn create_directory(path: &Path) -> io::Result<()> {
    let missing: Vec<PathBuf> = path
        .ancestors()
        .take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.exists())
        .map(Path::to_path_buf)
        .collect();
    std::fs::create_dir_all(path)?;
    for created in missing.iter().rev() {
        let parent = created.parent().filter(|parent| !parent.as_os_str().is_empty());
        sync_directory(parent.unwrap_or_else(|| Path::new(".")))?;
    }
    Ok(())
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
