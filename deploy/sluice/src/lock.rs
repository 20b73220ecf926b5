//! Lock of the data directory: one service per directory.
//!
//! Invariant: while a [`DirectoryLock`] lives, no other process holds one on the same directory. The operating system
//! releases the lock when the process ends, even after a crash. The directory itself survives a power cut once it is
//! locked.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use catalog::storage::create_directory;

/// The exclusive right to run the service on a data directory.
#[derive(Debug)]
pub struct DirectoryLock {
    _file: File,
}

/// An error that keeps a data directory from being used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error(
        "the data directory `{}` is in use by another service{}; stop that one, or name another directory with --data",
        directory.display(),
        holder.as_ref().map(|process| format!(" (process {process})")).unwrap_or_default()
    )]
    Held {
        /// The data directory that is in use.
        directory: PathBuf,
        /// The id of that process, if the lock file names one.
        holder: Option<u32>,
    },
    /// The directory cannot be created or written.
    #[error("the data directory `{}` cannot be used", directory.display())]
    Unusable {
        /// The data directory with the problem.
        directory: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
}

impl DirectoryLock {
    /// Creates `directory` if it is missing, and locks it.
    pub fn acquire(directory: &Path) -> Result<Self, LockError> {
        let unusable = |source| LockError::Unusable {
            directory: directory.to_owned(),
            source,
        };
        create_directory(directory).map_err(unusable)?;
        let path = directory.join("lock");
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            // The file keeps the process id of the holder, which the error names.
            .truncate(false)
            .open(&path)
            .map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::Held {
                    directory: directory.to_owned(),
                    holder: fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok()),
                });
            }
            Err(TryLockError::Error(source)) => return Err(unusable(source)),
        }
        // The lock is held now, so nothing else writes the process id.
        file.set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(unusable)?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_holder_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("new/data");
        let first = DirectoryLock::acquire(&data).unwrap();
        let message = DirectoryLock::acquire(&data).unwrap_err().to_string();
        assert!(
            message.contains(&format!("(process {})", std::process::id())),
            "{message}"
        );
        drop(first);
        assert!(DirectoryLock::acquire(&data).is_ok());
    }

    #[test]
    fn a_file_is_not_a_data_directory() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(
            DirectoryLock::acquire(file.path()),
            Err(LockError::Unusable { .. })
        ));
    }
}
