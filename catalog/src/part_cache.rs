//! Cache of parts as local files, fetched on demand, for components that hand open files to another process.
//!
//! Invariants: a file has the bytes that its commit names, verified by SHA-256. Files in use stay. Unused files are
//! evicted, the least recently used first, so that the total stays within the capacity. An interrupted fetch keeps its
//! complete files, and the next one continues from there.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use data_encoding::HEXLOWER;
use futures_util::stream::{self, StreamExt as _};
use object_store::ObjectStoreExt as _;
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::OnceCell;
use types::{Classify, DatasetId, Kind, Retry};

use crate::part::lost;
use crate::{Catalog, Error, PartInfo};

/// Bytes per read request.
const PIECE_BYTES: u64 = 8 << 20;
/// Maximum number of parts that one caller fetches at once.
const PIECES_AT_ONCE: usize = 8;

/// Failure to provide the parts of a version.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The files in use leave too little space.
    #[error("the parts need {needed} bytes, but {room} are free")]
    Full {
        /// Size of the parts in bytes.
        needed: u64,
        /// Capacity minus the files in use, in bytes.
        room: u64,
    },
    /// A part could not be read, or it differs from its commit.
    #[error(transparent)]
    Part(#[from] Error),
    /// A file could not be written.
    #[error("`{path}` could not be written")]
    Disk {
        /// Path of the file.
        path: String,
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
}

impl Classify for CacheError {
    fn kind(&self) -> Kind {
        match self {
            Self::Full { .. } | Self::Disk { .. } => Kind::Unavailable,
            Self::Part(error) => error.kind(),
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Full { .. } | Self::Disk { .. } => Retry::Backoff,
            Self::Part(error) => error.retry(),
        }
    }
}

/// Parts in a local directory. A clone shares the directory and its capacity.
#[derive(Clone, Debug)]
pub struct PartCache {
    shared: Arc<PartCacheState>,
}

#[derive(Debug)]
struct PartCacheState {
    catalog: Catalog,
    directory: PathBuf,
    capacity: u64,
    files: Mutex<CachedParts>,
    fetched: AtomicU64,
}

#[derive(Debug, Default)]
struct CachedParts {
    entries: HashMap<String, CachedPart>,
    bytes: u64,
    /// Number of uses so far: the clock of the least-recently-used order.
    uses: u64,
}

#[derive(Debug)]
struct CachedPart {
    /// Initialised once the file is complete.
    there: Arc<OnceCell<()>>,
    bytes: u64,
    holders: usize,
    used: u64,
}

/// Files that stay in the cache while this value exists.
#[derive(Debug)]
pub struct HeldParts {
    shared: Arc<PartCacheState>,
    names: Vec<String>,
}

impl PartCache {
    /// Creates a cache of at most `capacity` bytes in `directory`. The directory belongs to this process and is
    /// emptied. Blocks.
    pub fn open(catalog: &Catalog, directory: PathBuf, capacity: u64) -> Result<Self, CacheError> {
        // Files of an earlier process may be incomplete, so none is reused.
        let emptied = match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => fs::create_dir_all(&directory),
        };
        emptied.map_err(|source| disk(&directory, source))?;
        Ok(Self {
            shared: Arc::new(PartCacheState {
                catalog: catalog.clone(),
                directory,
                capacity,
                files: Mutex::default(),
                fetched: AtomicU64::new(0),
            }),
        })
    }

    /// Returns the files of these parts of a dataset, in order. Fetches the missing ones.
    pub async fn hold(&self, dataset: DatasetId, parts: &[PartInfo]) -> Result<HeldParts, CacheError> {
        let held = self.reserve(dataset, parts)?;
        let wanted: Vec<_> = parts.iter().cloned().zip(held.names.iter().cloned()).collect();
        let fetches = stream::iter(wanted)
            .map(|(part, name)| async move { self.ensure(dataset, &part, &name).await })
            .buffer_unordered(PIECES_AT_ONCE);
        // All fetches run to the end, even if one fails. Complete files are then not fetched again.
        let fetched: Vec<_> = fetches.collect().await;
        fetched.into_iter().collect::<Result<(), _>>()?;
        Ok(held)
    }

    /// Removes the files of a dataset that nobody uses. For a table that was deleted.
    pub fn forget_table(&self, dataset: DatasetId) {
        let begin = format!("{dataset}-");
        let mut files = self.shared.lock();
        let unused = files
            .entries
            .iter()
            .filter(|(name, entry)| name.starts_with(&begin) && entry.holders == 0);
        let unused: Vec<_> = unused.map(|(name, _)| name.clone()).collect();
        files.evict(&self.shared, unused.iter());
    }

    /// Returns the number of fetches that were started.
    pub fn fetched(&self) -> u64 {
        self.shared.fetched.load(Ordering::Relaxed)
    }

    /// Makes room for the parts and holds their entries, before anything is fetched.
    fn reserve(&self, dataset: DatasetId, parts: &[PartInfo]) -> Result<HeldParts, CacheError> {
        let shared = &self.shared;
        let mut files = shared.lock();
        files.uses += 1;
        let used = files.uses;
        let mut held = HeldParts {
            shared: Arc::clone(shared),
            names: Vec::with_capacity(parts.len()),
        };
        for part in parts {
            // The hash in the name separates parts of different histories of a table.
            let name = format!("{dataset}-{}-{}", HEXLOWER.encode(&part.sha256), part.name());
            if !files.entries.contains_key(&name) {
                // The space is reserved before the fetch, so concurrent fetches together stay within the capacity.
                files.bytes += part.bytes;
            }
            let entry = files.entries.entry(name.clone()).or_insert_with(|| CachedPart {
                there: Arc::default(),
                bytes: part.bytes,
                holders: 0,
                used,
            });
            entry.holders += 1;
            entry.used = used;
            held.names.push(name);
        }
        // The parts of this call are held already, so they are not evicted.
        let fits = files.make_room(shared);
        drop(files);
        if fits {
            return Ok(held);
        }
        let needed = parts.iter().map(|part| part.bytes).sum();
        // Dropping the handle releases the parts of this call, so that they do not count as in use below.
        drop(held);
        let files = shared.lock();
        // Only files in use limit the space, because all others can be evicted.
        let busy: u64 = files
            .entries
            .values()
            .filter(|entry| entry.holders > 0)
            .map(|entry| entry.bytes)
            .sum();
        Err(CacheError::Full {
            needed,
            room: shared.capacity.saturating_sub(busy),
        })
    }

    async fn ensure(&self, dataset: DatasetId, part: &PartInfo, name: &str) -> Result<(), CacheError> {
        let there = self
            .shared
            .lock()
            .entries
            .get(name)
            .map(|entry| Arc::clone(&entry.there));
        // The caller holds the entry, so it exists.
        let there = there.unwrap_or_default();
        // Concurrent callers of one part share a fetch. After a failure the next caller fetches again.
        there.get_or_try_init(|| self.fetch(dataset, part, name)).await.copied()
    }

    /// Fetches one part into a temporary file and renames it when it is complete.
    async fn fetch(&self, dataset: DatasetId, part: &PartInfo, name: &str) -> Result<(), CacheError> {
        let shared = &self.shared;
        let path = part.path(dataset);
        let target = shared.directory.join(name);
        // The number makes the temporary name unique in the process.
        let number = shared.fetched.fetch_add(1, Ordering::Relaxed);
        let staged = StagedCopy(shared.directory.join(format!("fetch-{number}")));
        let failed = |source| disk(&staged.0, source);
        // The file is created and renamed on this thread. Work on another thread would continue after the caller was
        // dropped and would leave a file that no entry names.
        let mut file = tokio::fs::File::from_std(fs::File::create(&staged.0).map_err(failed)?);
        let mut hash = Sha256::new();
        let mut at = 0;
        while at < part.bytes {
            let end = part.bytes.min(at + PIECE_BYTES);
            let objects = shared.catalog.objects();
            let piece = match objects.get_range(&path, at..end).await {
                Ok(piece) => piece,
                Err(error) => return Err(lost(objects, &path, error).await.into()),
            };
            if piece.len() as u64 != end - at {
                return Err(Error::corrupt(&path, "it is shorter than in its commit").into());
            }
            hash.update(&piece);
            file.write_all(&piece).await.map_err(failed)?;
            at = end;
        }
        if hash.finalize()[..] != part.sha256 {
            return Err(Error::corrupt(&path, "its SHA-256 differs from its commit").into());
        }
        file.flush().await.map_err(failed)?;
        drop(file);
        fs::rename(&staged.0, &target).map_err(|source| disk(&target, source))
    }
}

/// A temporary file, removed on drop unless it was renamed.
struct StagedCopy(PathBuf);

impl Drop for StagedCopy {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

impl HeldParts {
    /// Drops the files, because one of them is damaged. The next caller fetches them again.
    pub fn forget(&self) {
        let mut files = self.shared.lock();
        for name in &self.names {
            if let Some(entry) = files.entries.get_mut(name) {
                entry.there = Arc::default();
            }
        }
    }

    /// Returns the paths of the files, in the order of the parts.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.names.iter().map(|name| self.shared.directory.join(name)).collect()
    }
}

impl Drop for HeldParts {
    fn drop(&mut self) {
        let mut files = self.shared.lock();
        for name in &self.names {
            let Some(entry) = files.entries.get_mut(name) else {
                continue;
            };
            entry.holders -= 1;
            // The fetch of this entry failed or was dropped, and nobody else waits for it.
            if entry.holders == 0 && !entry.there.initialized() {
                let bytes = entry.bytes;
                files.entries.remove(name);
                files.bytes -= bytes;
            }
        }
    }
}

impl PartCacheState {
    fn lock(&self) -> MutexGuard<'_, CachedParts> {
        self.files.lock()
    }
}

impl CachedParts {
    /// Evicts unused files until the total fits into the capacity. Returns false if it cannot.
    fn make_room(&mut self, shared: &PartCacheState) -> bool {
        if self.bytes <= shared.capacity {
            return true;
        }
        let held = self.entries.values().filter(|entry| entry.holders > 0);
        if held.map(|entry| entry.bytes).sum::<u64>() > shared.capacity {
            // Nothing is evicted, because that would not be enough.
            return false;
        }
        let unused = self.entries.iter().filter(|(_, entry)| entry.holders == 0);
        let mut unused: Vec<_> = unused.map(|(name, entry)| (entry.used, name.clone())).collect();
        unused.sort_unstable();
        for (_, name) in unused {
            if self.bytes <= shared.capacity {
                break;
            }
            self.evict(shared, [&name]);
        }
        self.bytes <= shared.capacity
    }

    /// Removes unused files.
    fn evict<'n>(&mut self, shared: &PartCacheState, names: impl IntoIterator<Item = &'n String>) {
        for name in names {
            if let Some(entry) = self.entries.remove(name) {
                self.bytes -= entry.bytes;
                // The file is removed under the lock. Otherwise the next caller could fetch it again just before.
                remove(&shared.directory.join(name));
            }
        }
    }
}

fn remove(path: &FilePath) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "cannot remove a file from the part cache");
        }
        _ => {}
    }
}

fn disk(path: &FilePath, source: io::Error) -> CacheError {
    CacheError::Disk {
        path: path.display().to_string(),
        source,
    }
}
