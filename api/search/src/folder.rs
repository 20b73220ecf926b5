//! A folder with a copy of the files of an index, from which it is opened again.
//!
//! Invariant: what is in memory decides while the index lives, so a folder that cannot be written stops no search. It is
//! written file by file without waiting for the disk, because the index is derived: a file that a power cut tore is found
//! by its checksum, and a folder that cannot be opened is built anew.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, Directory, DirectoryLock, FileHandle, Lock, RamDirectory, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};

/// The end of the name of a file that is being written.
const UNFINISHED: &str = ".new";
/// The file that names those of the last commit. Without it, a folder is no index.
const LIST_OF_FILES: &str = "meta.json";

/// Files in memory that are also in a folder.
#[derive(Clone, Debug)]
pub(crate) struct MirroredFolder {
    memory: RamDirectory,
    folder: PathBuf,
    /// False once a file could not be written, from when on the folder is left alone.
    is_whole: Arc<AtomicBool>,
}

impl MirroredFolder {
    /// Creates an empty folder.
    pub(crate) fn create(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        Ok(Self {
            memory: RamDirectory::create(),
            folder: folder.to_owned(),
            is_whole: Arc::new(AtomicBool::new(true)),
        })
    }

    /// Reads the files of a folder.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let memory = RamDirectory::create();
        for entry in fs::read_dir(folder)? {
            let name = PathBuf::from(entry?.file_name());
            if name.extension().is_none_or(|end| end != &UNFINISHED[1..]) {
                memory.atomic_write(&name, &fs::read(folder.join(&name))?)?;
            }
        }
        Ok(Self {
            memory,
            folder: folder.to_owned(),
            is_whole: Arc::new(AtomicBool::new(true)),
        })
    }

    /// Returns a flag that is true while the folder has all files.
    pub(crate) fn is_whole(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_whole)
    }

    fn write(&self, path: &Path, bytes: &[u8]) {
        if self.is_whole.load(Ordering::Relaxed) && self.try_write(path, bytes).is_err() {
            self.is_whole.store(false, Ordering::Relaxed);
            // The commit that the list names is complete all the same, so an old list does no harm.
            fs::remove_file(self.folder.join(LIST_OF_FILES)).ok();
        }
    }

    /// Writes a file under another name first, so that a process that ends leaves the whole file or none.
    fn try_write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let whole = self.folder.join(path);
        let mut unfinished = whole.clone().into_os_string();
        unfinished.push(UNFINISHED);
        fs::write(&unfinished, bytes)?;
        fs::rename(&unfinished, &whole)
    }
}

impl Directory for MirroredFolder {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.memory.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        // A file too many does no harm: the list does not name it.
        fs::remove_file(self.folder.join(path)).ok();
        self.memory.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.memory.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        Ok(BufWriter::new(Box::new(MirroredFile {
            memory: self.memory.open_write(path)?,
            bytes: Vec::new(),
            path: path.to_owned(),
            folder: self.clone(),
        })))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.memory.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.write(path, data);
        self.memory.atomic_write(path, data)
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        // In memory only: the file of a lock would outlive a process that is killed.
        self.memory.acquire_lock(lock)
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.memory.watch(callback)
    }
}

/// A file that is written to memory and, when it is complete, to the folder.
struct MirroredFile {
    memory: WritePtr,
    bytes: Vec<u8>,
    path: PathBuf,
    folder: MirroredFolder,
}

impl Write for MirroredFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.memory.write(buffer)?;
        self.bytes.extend_from_slice(&buffer[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.memory.flush()
    }
}

impl TerminatingWrite for MirroredFile {
    fn terminate_ref(&mut self, token: AntiCallToken) -> io::Result<()> {
        self.folder.write(&self.path, &self.bytes);
        self.memory.terminate_ref(token)
    }
}
