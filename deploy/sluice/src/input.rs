//! The file that a command reads: a named one, or standard input.
//!
//! Invariants:
//! - A file that changes between two reads is noticed before anything is made of it.
//! - What has no name, such as standard input, is kept in a private file, which is gone when the command ends.

use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Read, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, anyhow, bail};
use indicatif::ProgressBar;

use crate::exit::FileRefused;
use crate::made::{UnfinishedFile, private_folder};

/// The name of a file that stands for standard input.
const STANDARD_INPUT: &str = "-";
/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

/// A file of records.
#[derive(Debug)]
pub(crate) struct InputFile {
    /// The path that can be opened.
    path: PathBuf,
    /// The name for people.
    name: String,
    stamp: FileStamp,
    /// The copy of what has no name. It is gone when it is dropped.
    spool: Option<UnfinishedFile>,
}

/// Signs by which a changed file is noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileStamp {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Device and number of the file, which a file that takes its place does not have.
    identity: (u64, u64),
}

impl FileStamp {
    fn of(found: &Metadata) -> Self {
        Self {
            bytes: found.len(),
            modified: found.modified().ok(),
            identity: (found.dev(), found.ino()),
        }
    }
}

impl InputFile {
    /// Returns true if the path stands for standard input.
    pub(crate) fn is_standard_input(path: &Path) -> bool {
        path.as_os_str() == STANDARD_INPUT
    }

    /// Opens a file. Standard input, and a pipe with a name, is read to its end into a private file in `folder`.
    ///
    /// # Errors
    /// If there is no such file, if it is a folder or empty, or if it cannot be read or kept.
    pub(crate) fn open(path: &Path, folder: &Path) -> anyhow::Result<Self> {
        if Self::is_standard_input(path) {
            return Self::spooled(io::stdin().lock(), "standard input".to_owned(), folder);
        }
        let unreadable = || format!("`{}` cannot be read", path.display());
        let file = File::open(path).with_context(unreadable)?;
        let found = file.metadata().with_context(unreadable)?;
        let name = path.file_name().unwrap_or(path.as_os_str());
        let name = name.to_string_lossy().into_owned();
        if found.is_dir() {
            bail!("`{}` is a folder, not a file", path.display());
        }
        if !found.is_file() {
            return Self::spooled(file, name, folder);
        }
        let input = Self {
            path: path.to_owned(),
            name,
            stamp: FileStamp::of(&found),
            spool: None,
        };
        input.not_empty()
    }

    fn spooled(mut input: impl Read, name: String, folder: &Path) -> anyhow::Result<Self> {
        private_folder(folder).with_context(|| format!("`{}` cannot be made", folder.display()))?;
        let target = folder.join(format!("input-{}", std::process::id()));
        let kept = || format!("{name} cannot be kept in `{}`", folder.display());
        let spool = UnfinishedFile::begin(&target).with_context(kept)?;
        let mut out = BufWriter::with_capacity(READ_BYTES, spool.file().with_context(kept)?);
        let mut piece = vec![0; READ_BYTES];
        loop {
            let read = match input.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).with_context(|| format!("{name} cannot be read")),
            };
            out.write_all(piece.get(..read).unwrap_or_default())
                .with_context(kept)?;
        }
        out.flush().with_context(kept)?;
        drop(out);
        let found = spool.file().and_then(|file| file.metadata()).with_context(kept)?;
        let input = Self {
            path: spool.path(),
            name,
            stamp: FileStamp::of(&found),
            spool: Some(spool),
        };
        input.not_empty()
    }

    fn not_empty(self) -> anyhow::Result<Self> {
        if self.stamp.bytes == 0 {
            return Err(FileRefused::mark(anyhow!("{} is empty", self.shown())));
        }
        Ok(self)
    }

    /// Returns the path by which the file can be opened while this lives.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the name of the file for people, without its folder.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name as a sentence has it.
    pub(crate) fn shown(&self) -> String {
        if self.is_spooled() {
            self.name.clone()
        } else {
            format!("`{}`", self.name)
        }
    }

    /// Returns the size in bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.stamp.bytes
    }

    /// Returns true if the file is a copy, so that no later command can go on with it.
    pub(crate) const fn is_spooled(&self) -> bool {
        self.spool.is_some()
    }

    /// Returns size and time of change, which decide what is made of the file.
    pub(crate) const fn version(&self) -> (u64, Option<SystemTime>) {
        (self.stamp.bytes, self.stamp.modified)
    }

    /// Opens the file from its begin.
    ///
    /// # Errors
    /// If it cannot be opened, or is another one than before.
    pub(crate) fn reader(&self) -> anyhow::Result<File> {
        let file = File::open(&self.path).with_context(|| format!("{} cannot be read", self.shown()))?;
        self.check(&file.metadata()?)?;
        Ok(file)
    }

    /// Fails if the file has changed since it was opened first.
    pub(crate) fn check_unchanged(&self) -> anyhow::Result<()> {
        let found = self.path.metadata();
        self.check(&found.with_context(|| format!("{} cannot be read", self.shown()))?)
    }

    fn check(&self, found: &Metadata) -> anyhow::Result<()> {
        if FileStamp::of(found) == self.stamp {
            return Ok(());
        }
        bail!(
            "{} changed while it was read, and nothing was sent; run the command again",
            self.shown()
        )
    }
}

/// A file that is read with its progress on a bar.
#[derive(Debug)]
pub(crate) struct WatchedFile {
    file: File,
    bar: ProgressBar,
}

impl WatchedFile {
    pub(crate) const fn new(file: File, bar: ProgressBar) -> Self {
        Self { file, bar }
    }
}

impl Read for WatchedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.bar.inc(read as u64);
        Ok(read)
    }
}

impl io::Seek for WatchedFile {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        let at = self.file.seek(to)?;
        self.bar.set_position(at);
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_changed_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        fs::write(&path, "x\n1\n").unwrap();
        let input = InputFile::open(&path, folder.path()).unwrap();
        input.check_unchanged().unwrap();
        fs::write(&path, "x\n1\n2\n").unwrap();
        let said = format!("{:#}", input.reader().unwrap_err());
        assert!(said.starts_with("`a.csv` changed while it was read"), "{said}");
        // Another file under the name is another file, whatever its size and time.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "x\n1\n").unwrap();
        assert!(input.check_unchanged().is_err());
    }

    #[test]
    fn what_has_no_name_is_kept_until_the_end_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let input = InputFile::spooled(&b"x\n1\n"[..], "standard input".to_owned(), folder.path()).unwrap();
        for _ in 0..2 {
            let mut text = String::new();
            input.reader().unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "x\n1\n");
        }
        drop(input);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let empty = InputFile::spooled(&b""[..], "standard input".to_owned(), folder.path()).unwrap_err();
        assert_eq!(empty.to_string(), "standard input is empty");
    }
}
