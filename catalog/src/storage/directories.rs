//! Directories that survive a power cut, with the names in them.
//!
//! Invariant: a directory is remembered only after this process synced its name and the names of all its ancestors up
//! to the root. It does not matter which process created it, because that process may have been killed before the sync.

use std::collections::HashSet;
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

/// Maximum number of remembered directories. Beyond it all are forgotten, and each costs one more sync.
const MAX_REMEMBERED_DIRECTORIES: usize = 16 << 10;

/// Directories below a root.
#[derive(Debug)]
pub(super) struct Directories {
    root: PathBuf,
    durable: Mutex<HashSet<PathBuf>>,
    syncs: AtomicU64,
    /// Number of the next syncs that fail.
    #[cfg(test)]
    pub(super) failing: AtomicU64,
}

impl Directories {
    /// Creates the set for `root`, which must exist and be durable.
    pub(super) fn new(root: PathBuf) -> Self {
        Self {
            root,
            durable: Mutex::default(),
            syncs: AtomicU64::new(0),
            #[cfg(test)]
            failing: AtomicU64::new(0),
        }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the number of directory syncs.
    pub(super) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Creates a directory below the root and its missing ancestors, and syncs their names.
    pub(super) fn ensure(&self, directory: &Path) -> io::Result<()> {
        // The root is durable already.
        let Some(parent) = directory.parent().filter(|_| directory != self.root) else {
            return Ok(());
        };
        if self.durable().contains(directory) {
            return Ok(());
        }
        // Ancestors come first: a name survives only if every name above it does.
        self.ensure(parent)?;
        make(directory)?;
        self.sync(parent)?;
        let mut durable = self.durable();
        // Dropping everything needs no order of use, and a sync is cheap.
        if durable.len() >= MAX_REMEMBERED_DIRECTORIES {
            durable.clear();
        }
        durable.insert(directory.to_owned());
        Ok(())
    }

    /// Forgets every directory, after one was found to be deleted.
    pub(super) fn forget(&self) {
        self.durable().clear();
    }

    /// Makes the names in a directory durable.
    pub(super) fn sync(&self, directory: &Path) -> io::Result<()> {
        #[cfg(test)]
        if self
            .failing
            .try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
            .is_ok()
        {
            return Err(io::Error::other("the directory could not be synced"));
        }
        tracing::debug_span!("sync directory").in_scope(|| sync(directory))?;
        self.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn durable(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.durable.lock()
    }
}

/// Creates a directory and its missing ancestors with access for this user only (mode 0700), and syncs their names.
pub fn create_directory(directory: &Path) -> io::Result<()> {
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or_else(|| Path::new("."));
    match make(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            create_directory(parent)?;
            create_directory(directory)
        }
        Err(error) => Err(error),
        Ok(made) => match sync(parent) {
            // A process that may not read the parent did not create the directory. Its creator is responsible for the
            // sync.
            Err(error) if error.kind() == ErrorKind::PermissionDenied && !made => Ok(()),
            synced => synced,
        },
    }
}

/// Creates a directory. Returns false if it existed.
fn make(directory: &Path) -> io::Result<bool> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && directory.is_dir() => Ok(false),
        made => made.map(|()| true),
    }
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
