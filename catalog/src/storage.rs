//! Storage of tables: object stores whose puts survive a power cut, and an implementation for a local directory.
//!
//! Invariant: after [`DurableLocal`] has answered a put, the complete object survives a power cut. Before that, a
//! reader sees either the complete object or none. After [`DurableStore::sync_dir`] has returned, everything that a
//! reader sees survives.

#[cfg(any(test, feature = "testing"))]
pub mod conformance;
#[cfg(any(test, feature = "testing"))]
mod counting;
mod directories;
#[cfg(feature = "s3")]
pub mod s3;

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use parking_lot::Mutex;
use tokio::task::{JoinHandle, spawn_blocking};
use tracing::Span;

use crate::blocking::blocking;

#[cfg(any(test, feature = "testing"))]
pub use counting::{CountingStore, RequestCounts};
use directories::Directories;
pub use directories::create_directory;

/// Object store whose puts are durable when they return.
#[async_trait]
pub trait DurableStore: ObjectStore {
    /// Makes the objects directly below `directory` durable, whichever process put them and whether or not the put
    /// returned. The directory must exist. A store that shows an object only once it is durable has nothing to do.
    async fn sync_dir(&self, directory: &Path) -> Result<()>;

    /// Returns true if a put blocks its thread for about as long as a handover to another thread takes. A caller with
    /// several puts in a row then runs them on one thread.
    fn blocks(&self) -> bool {
        false
    }

    /// Starts to put a new object that stays invisible until it is [created](PendingObject::create), for a caller that
    /// must put another object first. A store of files writes and syncs the file meanwhile; other stores do all the work
    /// in `create`. Must be called within a tokio runtime.
    fn prepare(&self, location: &Path, payload: PutPayload) -> Box<dyn PendingObject + '_> {
        Box::new(DeferredObject {
            store: self,
            location: location.clone(),
            payload,
        })
    }

    /// Puts a local file as a new object. The file must be synced and must not change. A store on the same disk links
    /// the file. Other stores read it into memory, so it should not be larger than a part.
    async fn link_file(&self, file: &FilePath, location: &Path) -> Result<()> {
        let bytes = tokio::fs::read(file).await.map_err(|source| failed(file, source))?;
        self.put_opts(location, bytes.into(), PutMode::Create.into()).await?;
        Ok(())
    }
}

/// An object that is about to be created. Dropping this value cancels the creation.
#[async_trait]
pub trait PendingObject: Send {
    /// Creates the object, like a put with [`PutMode::Create`].
    ///
    /// # Errors
    /// [`object_store::Error::AlreadyExists`] if the path is taken.
    async fn create(self: Box<Self>) -> Result<()>;
}

/// Object of a store that does all the work in `create`.
struct DeferredObject<'a, S: ?Sized> {
    store: &'a S,
    location: Path,
    payload: PutPayload,
}

#[async_trait]
impl<S: DurableStore + ?Sized> PendingObject for DeferredObject<'_, S> {
    async fn create(self: Box<Self>) -> Result<()> {
        let Self {
            store,
            location,
            payload,
        } = *self;
        store.put_opts(&location, payload, PutMode::Create.into()).await?;
        Ok(())
    }
}

/// Directory below the root for files without their final name.
const STAGING_FOLDER: &str = ".staging";
/// Age after which no living process can still be writing a staged file.
const ABANDONED_AFTER: Duration = Duration::from_hours(1);

/// A local directory as an object store with durable puts.
///
/// A put writes a staged file, syncs it (`fdatasync`), gives it its name and syncs the directory. [`PutMode::Create`]
/// uses a hard link, which fails if the name is taken; [`PutMode::Overwrite`] uses a rename. The directory is also
/// synced before the store answers that a name is taken. Reads, lists and deletes are those of [`LocalFileSystem`].
/// Multipart uploads and copies are not implemented, because they would not be durable.
#[derive(Clone, Debug)]
pub struct DurableLocal {
    files: LocalFileSystem,
    directories: Arc<Directories>,
    work: Arc<DeferredWork>,
}

#[derive(Debug, Default)]
struct DeferredWork {
    /// Number of the next staged file's name.
    names: AtomicU64,
    staged: AtomicU64,
    of_files: AtomicU64,
}

/// Cost of durability since the store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syncs {
    /// Number of files written.
    pub files: u64,
    /// Number of `fdatasync` calls on files.
    pub of_files: u64,
    /// Number of `fsync` calls on directories.
    pub of_directories: u64,
}

impl DurableLocal {
    /// Opens the directory, or creates it, and removes incomplete files of a crashed process.
    pub fn open(root: impl AsRef<FilePath>) -> Result<Self> {
        let root = root.as_ref();
        let staging = root.join(STAGING_FOLDER);
        create_directory(root).map_err(|source| failed(root, source))?;
        create_directory(&staging).map_err(|source| failed(&staging, source))?;
        let root = root.canonicalize().map_err(|source| failed(root, source))?;
        let store = Self {
            files: LocalFileSystem::new_with_prefix(&root)?,
            directories: Arc::new(Directories::new(root)),
            work: Arc::default(),
        };
        store.sweep().map_err(|source| failed(&staging, source))?;
        Ok(store)
    }

    /// Returns the cost of durability so far.
    pub fn syncs(&self) -> Syncs {
        Syncs {
            files: self.work.staged.load(Ordering::Relaxed),
            of_files: self.work.of_files.load(Ordering::Relaxed),
            of_directories: self.directories.syncs(),
        }
    }

    /// Removes staged files that no living process can be writing. Ages are measured with the file system's clock,
    /// which may differ from the clock of this machine.
    fn sweep(&self) -> io::Result<()> {
        // A new file tells the current time of the file system.
        let (probe, path) = self.create_staged()?;
        let now = probe.metadata()?.modified()?;
        fs::remove_file(path)?;
        for entry in fs::read_dir(self.directories.root().join(STAGING_FOLDER))? {
            let entry = entry?;
            let age = entry
                .metadata()
                .and_then(|found| found.modified())
                .map(|modified| now.duration_since(modified));
            if matches!(age, Ok(Ok(age)) if age > ABANDONED_AFTER) {
                ignore_missing(fs::remove_file(entry.path()))?;
            }
        }
        Ok(())
    }

    /// Creates a new staged file. Its name is unique on this machine.
    fn create_staged(&self) -> io::Result<(File, PathBuf)> {
        self.work.staged.fetch_add(1, Ordering::Relaxed);
        loop {
            let number = self.work.names.fetch_add(1, Ordering::Relaxed);
            // `LocalFileSystem` does not list names that end with `#` and digits.
            let path = self
                .directories
                .root()
                .join(STAGING_FOLDER)
                .join(format!("put#{}{number:012}", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok((file, path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Puts one object durably. Blocks.
    fn publish(&self, target: &FilePath, payload: &PutPayload, create: bool) -> io::Result<()> {
        let staged = self.stage(payload)?;
        self.name(&staged.0, target, create)
    }

    /// Writes and syncs a staged file.
    fn stage(&self, payload: &PutPayload) -> io::Result<StagedFile> {
        let (mut file, path) = self.create_staged()?;
        let staged = StagedFile(path);
        for bytes in payload {
            file.write_all(bytes)?;
        }
        tracing::debug_span!("sync file").in_scope(|| file.sync_data())?;
        self.work.of_files.fetch_add(1, Ordering::Relaxed);
        Ok(staged)
    }

    fn name(&self, staged: &FilePath, target: &FilePath, create: bool) -> io::Result<()> {
        let link = || {
            if create {
                fs::hard_link(staged, target)
            } else {
                fs::rename(staged, target)
            }
        };
        let directory = target.parent().unwrap_or_else(|| self.directories.root());
        // The directory is durable before a name in it can be.
        self.directories.ensure(directory)?;
        let named = match link() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // The directory was deleted by another process. It is created and synced again, once.
                self.directories.forget();
                self.directories.ensure(directory)?;
                link()
            }
            named => named,
        };
        if named.is_ok() || matches!(&named, Err(error) if error.kind() == ErrorKind::AlreadyExists) {
            // A caller relies on the object that already has the name, and the owner of that object may not have synced
            // it.
            self.directories.sync(directory)?;
        }
        named
    }

    fn refused(&self, operation: &str) -> object_store::Error {
        object_store::Error::NotImplemented {
            operation: operation.to_owned(),
            implementer: self.to_string(),
        }
    }
}

/// A staged file, removed on drop unless a rename moved it.
#[derive(Debug)]
struct StagedFile(PathBuf);

impl Drop for StagedFile {
    fn drop(&mut self) {
        // The error is only logged: the file is swept later, and the result of the put does not depend on it.
        if let Err(error) = ignore_missing(fs::remove_file(&self.0)) {
            tracing::debug!(path = %self.0.display(), %error, "a staged file could not be removed");
        }
    }
}

/// A prepared file that another thread writes and syncs.
struct UnnamedFile {
    store: DurableLocal,
    target: Result<PathBuf>,
    /// Bytes of the file, until a thread takes them to write.
    payload: Arc<Mutex<Option<PutPayload>>>,
    staged: JoinHandle<io::Result<StagedFile>>,
}

#[async_trait]
impl PendingObject for UnnamedFile {
    async fn create(self: Box<Self>) -> Result<()> {
        let Self {
            store,
            target,
            payload,
            staged,
        } = *self;
        let target = target?;
        // If the thread has not started, this one writes the file. Waiting could last for ever if all blocking threads
        // run this function.
        let staged = match take(&payload) {
            Some(payload) => {
                let store = store.clone();
                blocking(move || store.stage(&payload)).await?
            }
            None => staged.await?,
        };
        let name = move || {
            let named = staged.and_then(|staged| store.name(&staged.0, &target, true));
            named.map_err(|source| failed(&target, source))
        };
        blocking(name).await?
    }
}

fn take<T>(from: &Mutex<Option<T>>) -> Option<T> {
    from.lock().take()
}

fn failed(path: &FilePath, source: io::Error) -> object_store::Error {
    let path = path.display().to_string();
    match source.kind() {
        ErrorKind::AlreadyExists => object_store::Error::AlreadyExists {
            path,
            source: source.into(),
        },
        ErrorKind::PermissionDenied => object_store::Error::PermissionDenied {
            path,
            source: source.into(),
        },
        _ => object_store::Error::Generic {
            store: "DurableLocal",
            source: format!("{path}: {source}").into(),
        },
    }
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| {
        if error.kind() == ErrorKind::NotFound {
            Ok(())
        } else {
            Err(error)
        }
    })
}

impl fmt::Display for DurableLocal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DurableLocal({})", self.directories.root().display())
    }
}

#[async_trait]
impl DurableStore for DurableLocal {
    async fn sync_dir(&self, directory: &Path) -> Result<()> {
        let path = self.files.path_to_filesystem(directory)?;
        let directories = Arc::clone(&self.directories);
        let sync = move || {
            // A file gets its name only after its bytes were synced, so only names can be lost. A file system that
            // failed to write a directory accepts no further sync, so a later success is reliable.
            directories
                .ensure(&path)
                .and_then(|()| directories.sync(&path))
                .map_err(|source| failed(&path, source))
        };
        blocking(sync).await?
    }

    fn blocks(&self) -> bool {
        true
    }

    fn prepare(&self, location: &Path, payload: PutPayload) -> Box<dyn PendingObject + '_> {
        let payload = Arc::new(Mutex::new(Some(payload)));
        let stage = {
            let (store, payload) = (self.clone(), Arc::clone(&payload));
            move || match take(&payload) {
                Some(payload) => store.stage(&payload),
                None => Err(io::Error::other("who creates it writes it")),
            }
        };
        Box::new(UnnamedFile {
            store: self.clone(),
            target: self.files.path_to_filesystem(location),
            payload,
            staged: {
                let span = Span::current();
                spawn_blocking(move || span.in_scope(stage))
            },
        })
    }

    async fn link_file(&self, file: &FilePath, location: &Path) -> Result<()> {
        let (store, file, target) = (self.clone(), file.to_owned(), self.files.path_to_filesystem(location)?);
        let link = move || match store.name(&file, &target, true) {
            Err(error) if error.kind() == ErrorKind::CrossesDevices => {
                let bytes = fs::read(&file).map_err(|source| failed(&file, source))?;
                store
                    .publish(&target, &bytes.into(), true)
                    .map_err(|source| failed(&target, source))
            }
            named => named.map_err(|source| failed(&target, source)),
        };
        blocking(link).await?
    }
}

#[async_trait]
impl ObjectStore for DurableLocal {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let create = match options.mode {
            PutMode::Create => true,
            PutMode::Overwrite => false,
            PutMode::Update(_) => return Err(self.refused("put_opts with PutMode::Update")),
        };
        // Files cannot store attributes.
        if !options.attributes.is_empty() {
            return Err(self.refused("put_opts with attributes"));
        }
        let target = self.files.path_to_filesystem(location)?;
        let store = self.clone();
        let put = move || {
            store
                .publish(&target, &payload, create)
                .map_err(|source| failed(&target, source))
        };
        blocking(put).await??;
        Ok(PutResult {
            e_tag: None,
            version: None,
        })
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(self.refused("put_multipart_opts"))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.files.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[std::ops::Range<u64>]) -> Result<Vec<bytes::Bytes>> {
        self.files.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.files.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.files.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(self.refused("copy_opts"))
    }
}

#[cfg(test)]
mod tests;
