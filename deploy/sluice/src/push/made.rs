//! The converted file of a push.
//!
//! Invariant: the file has a name only once it is whole. On file systems with unnamed files (`O_TMPFILE`) an ended
//! process leaves nothing behind, even after a crash. On others the file is removed when it is dropped.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use rustix::io::Errno;

/// A file that is still being written.
#[derive(Debug)]
pub(super) struct UnfinishedFile {
    file: File,
    /// The temporary name, on file systems without unnamed files.
    named: Option<PathBuf>,
}

impl UnfinishedFile {
    /// Creates an empty file in the folder of `target`.
    pub(super) fn begin(target: &Path) -> io::Result<Self> {
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
                    file: File::create(&named)?,
                    named: Some(named),
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns a handle to write to.
    pub(super) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Returns true if the file is empty.
    pub(super) fn is_empty(&self) -> io::Result<bool> {
        Ok(self.file.metadata()?.len() == 0)
    }

    /// Gives the file its name. An existing file of that name stays, because it was converted from the same input.
    pub(super) fn finish(mut self, target: &Path) -> io::Result<()> {
        if let Some(named) = &self.named {
            fs::rename(named, target)?;
            self.named = None;
            return Ok(());
        }
        // Linking through /proc needs no privilege, unlike `AT_EMPTY_PATH` (open(2)).
        let descriptor = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        match linkat(CWD, descriptor, CWD, target, AtFlags::SYMLINK_FOLLOW) {
            // Another push of the same input may have finished first.
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if let Some(named) = &self.named {
            // A failure leaves a file that the next push of the same file overwrites.
            fs::remove_file(named).ok();
        }
    }
}
