//! Directories that are still there after a power cut, with the names in them.
//!
//! Invariant: a directory is remembered only after the name of it, and of every directory above it up to the root, was
//! synced by this process. Who made it does not matter: its maker may have been killed before the sync.

use std::collections::HashSet;
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

/// How many directories are remembered; beyond it all are forgotten, which costs a sync each.
const REMEMBERED: usize = 16 << 10;

/// The directories below a root.
#[derive(Debug)]
pub(super) struct Directories {
    root: PathBuf,
    durable: Mutex<HashSet<PathBuf>>,
    syncs: AtomicU64,
    /// How many of the next syncs fail.
    #[cfg(test)]
    pub(super) failing: AtomicU64,
}

impl Directories {
    /// `root` exists and is durable.
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

    /// How many times a directory was synced.
    pub(super) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Makes a directory below the root, and those above it, where they are missing, and makes sure that they last.
    pub(super) fn ensure(&self, directory: &Path) -> io::Result<()> {
        let Some(parent) = directory.parent().filter(|_| directory != self.root) else {
            return Ok(());
        };
        if self.durable().contains(directory) {
            return Ok(());
        }
        self.ensure(parent)?;
        make(directory)?;
        self.sync(parent)?;
        let mut durable = self.durable();
        if durable.len() >= REMEMBERED {
            durable.clear();
        }
        durable.insert(directory.to_owned());
        Ok(())
    }

    /// Forgets every directory, after one was found to be gone.
    pub(super) fn forget(&self) {
        self.durable().clear();
    }

    /// Makes the names in a directory last.
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

/// Makes a directory, and those above it, where they are missing, for the user of this process alone, and makes sure that
/// it lasts.
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
            // Why: who may not read a directory did not make what is in it; whoever did has answered for it.
            Err(error) if error.kind() == ErrorKind::PermissionDenied && !made => Ok(()),
            synced => synced,
        },
    }
}

/// Whether the directory was missing.
fn make(directory: &Path) -> io::Result<bool> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && directory.is_dir() => Ok(false),
        made => made.map(|()| true),
    }
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
