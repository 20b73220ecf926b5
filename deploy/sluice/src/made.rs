//! Files that a push makes: what a file is converted to, and what came from standard input.
//!
//! Invariant: the file has a name only once it is whole. On file systems with unnamed files (`O_TMPFILE`) an ended
//! process leaves nothing behind, even after a crash. On others the file is removed when it is dropped.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use rustix::io::Errno;

/// A file that is still being written.
#[derive(Debug)]
pub(crate) struct UnfinishedFile {
    file: File,
    /// The temporary name, on file systems without unnamed files.
    named: Option<PathBuf>,
}

impl UnfinishedFile {
    /// Creates an empty file in the folder of `target`.
    pub(crate) fn begin(target: &Path) -> io::Result<Self> {
        let folder = target.parent().unwrap_or_else(|| Path::new("."));
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match open(folder, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => Ok(Self {
                file: file.into(),
                named: None,
            }),
            // These errors mean that the file system or the kernel has no unnamed files (open(2), `O_TMPFILE`).
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {
                let named = target.with_extension("unfinished");
                Ok(Self {
                    // Only the user may read it.
                    file: OpenOptions::new()
                        .read(true)
                        .write(true)
                        .create(true)
                        .truncate(true)
                        .mode(0o600)
                        .open(&named)?,
                    named: Some(named),
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns a handle to write to.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Returns a path by which this process can open the file while this lives.
    pub(crate) fn path(&self) -> PathBuf {
        match &self.named {
            Some(named) => named.clone(),
            None => self.descriptor().into(),
        }
    }

    fn descriptor(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }

    /// Returns true if the file is empty.
    pub(crate) fn is_empty(&self) -> io::Result<bool> {
        Ok(self.file.metadata()?.len() == 0)
    }

    /// Gives the file its name. An existing file of that name stays, because it was converted from the same input.
    pub(crate) fn finish(mut self, target: &Path) -> io::Result<()> {
        if let Some(named) = &self.named {
            fs::rename(named, target)?;
            self.named = None;
            return Ok(());
        }
        // Linking through /proc needs no privilege, unlike `AT_EMPTY_PATH` (open(2)).
        match linkat(CWD, self.descriptor(), CWD, target, AtFlags::SYMLINK_FOLLOW) {
            // Another push of the same input may have finished first.
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Creates a folder that only the user can read. It has copies of the user's records.
pub(crate) fn private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if let Some(named) = &self.named {
            // A failure leaves a file that the next push of the same file overwrites.
            fs::remove_file(named).ok();
        }
    }
}
