//! Parts as files of a local directory; the service takes them itself.
//!
//! ```text
//! <root>/incoming/<number>          parts that are being written; whatever is there at the start is removed
//! <root>/<upload>/<n>               a part: its bytes, then their SHA-256 (32 bytes)
//! <root>/<upload>/sealed            the upload is complete
//! ```
//!
//! Invariant: a part gets its name after its bytes were synced, and replaces the one before it at once. Names are
//! given under one lock, so that none is given in an upload that is sealed. One process has the directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use catalog::Reserve;
use catalog::storage::create_directory;
use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::task::spawn_blocking;
use types::{ContributionId, fault};

use crate::store::MAX_NAMED_PARTS;
use crate::{Error, PartTag, UploadLayout, UploadStore};

const INCOMING_FOLDER: &str = "incoming";
const SEALED_FOLDER: &str = "sealed";
/// The bytes of a hash.
const HASH_BYTES: usize = 32;

/// A directory of parts. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LocalUploads {
    shared: Arc<LocalState>,
}

#[derive(Debug)]
struct LocalState {
    root: PathBuf,
    reserve: Reserve,
    files: AtomicU64,
    /// Held while a name is given or taken.
    naming: Mutex<()>,
}

/// A part that is being written. Dropped, it leaves nothing.
#[derive(Debug)]
pub struct PartWriter {
    objects: LocalUploads,
    path: PathBuf,
    file: Option<File>,
    hash: Sha256,
}

impl LocalUploads {
    /// Opens the directory, which is made where it is missing, and removes what was being written when the process
    /// before ended. Parts leave the reserve of its disk free. Blocks.
    pub fn open(root: impl Into<PathBuf>, reserve: Reserve) -> io::Result<Self> {
        let root = root.into();
        let incoming = root.join(INCOMING_FOLDER);
        // Nothing in this folder was acknowledged: a part gets its name before its sender gets the
        // answer.
        ignore_missing(fs::remove_dir_all(&incoming))?;
        create_directory(&incoming)?;
        Ok(Self {
            shared: Arc::new(LocalState {
                root,
                reserve,
                files: AtomicU64::new(0),
                naming: Mutex::default(),
            }),
        })
    }

    /// Begins to write a part. Blocks.
    pub fn writer(&self) -> Result<PartWriter, Error> {
        let number = self.shared.files.fetch_add(1, Ordering::Relaxed);
        let path = self.shared.root.join(INCOMING_FOLDER).join(number.to_string());
        let file = OpenOptions::new()
            .write(true)
            // Numbers begin at 0 in each process, so a file that is there means that a second process
            // has the directory, which must fail instead of mixing the bytes of two parts.
            .create_new(true)
            .open(&path)
            .map_err(Error::Io)?;
        Ok(PartWriter {
            objects: self.clone(),
            path,
            file: Some(file),
            hash: Sha256::new(),
        })
    }

    /// Checks that the disk has room for `bytes` more. Blocks for a moment.
    ///
    /// # Errors
    /// [`Error::Io`] of [`ErrorKind::StorageFull`] where it has not.
    pub fn room_for(&self, bytes: u64) -> Result<(), Error> {
        let LocalState { root, reserve, .. } = &*self.shared;
        reserve.room_for(root, bytes).map_err(Error::Io)
    }

    /// Returns true if the parts of an upload are sealed, until they are deleted. Blocks.
    pub fn is_sealed(&self, upload: ContributionId) -> Result<bool, Error> {
        self.folder(upload).join(SEALED_FOLDER).try_exists().map_err(Error::Io)
    }

    fn folder(&self, upload: ContributionId) -> PathBuf {
        self.shared.root.join(upload.to_string())
    }

    fn name(&self, upload: ContributionId, n: u32, written: &Path) -> Result<(), Error> {
        let folder = self.folder(upload);
        let _naming = self.shared.naming.lock();
        // Looked up under the lock that sealing holds. A part renamed after the check of tags would be
        // read as one that `complete` has compared.
        if folder.join(SEALED_FOLDER).exists() {
            return Err(Error::Closed);
        }
        create_directory(&folder)
            .and_then(|()| fs::rename(written, folder.join(n.to_string())))
            // The rename is durable only with its folder. The sender is answered after that, so it need
            // not keep its bytes once it has the tag.
            .and_then(|()| sync(&folder))
            .map_err(Error::Io)
    }

    fn seal(&self, layout: &UploadLayout, tags: &[PartTag]) -> Result<(), Error> {
        let folder = self.folder(layout.upload);
        let _naming = self.shared.naming.lock();
        let (mut missing, mut differing) = (Vec::new(), Vec::new());
        // All parts are compared before the first error is returned, so that a client with several bad
        // parts learns of them in one call.
        for (n, tag) in (1..=layout.parts).zip(tags) {
            let size = layout.size_of(n).unwrap_or(0);
            match tag_of(&folder.join(n.to_string()), size).map_err(Error::Io)? {
                None => missing.push(n),
                Some(found) if tag.n != n || found != tag.etag => differing.push(n),
                Some(_) => {}
            }
        }
        missing.truncate(MAX_NAMED_PARTS);
        differing.truncate(MAX_NAMED_PARTS);
        if !missing.is_empty() {
            return Err(Error::Missing { missing });
        }
        if !differing.is_empty() {
            return Err(Error::Differing { differing });
        }
        let sealed = folder.join(SEALED_FOLDER);
        if !sealed.exists() {
            File::create(sealed)
                .and_then(|_file| sync(&folder))
                .map_err(Error::Io)?;
        }
        Ok(())
    }
}

impl PartWriter {
    /// Appends bytes, for which there must be [room](LocalUploads::room_for). Blocks.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        // Asked before each write and not once for the part: other uploads fill the disk meanwhile, and
        // a write that fails halfway would take the reserve that the database and the log need.
        self.objects.room_for(bytes.len() as u64)?;
        let file = self.file.as_mut().ok_or(Error::Closed)?;
        self.hash.update(bytes);
        file.write_all(bytes).map_err(Error::Io)
    }

    /// Makes the bytes durable and part `n` of an upload, in place of the one before; the part's `ETag`. Blocks.
    pub fn finish(mut self, upload: ContributionId, n: u32) -> Result<String, Error> {
        let hash = std::mem::take(&mut self.hash).finalize();
        if let Some(mut file) = self.file.take() {
            // The hash is stored behind the bytes so that `complete` compares tags without reading the
            // upload again.
            file.write_all(&hash)
                .and_then(|()| file.sync_data())
                .map_err(Error::Io)?;
        }
        fault::point("upload.part");
        self.objects.name(upload, n, &self.path)?;
        fault::point("upload.named");
        Ok(HEXLOWER.encode(&hash))
    }
}

impl Drop for PartWriter {
    fn drop(&mut self) {
        if let Err(error) = ignore_missing(fs::remove_file(&self.path)) {
            tracing::warn!(path = %self.path.display(), %error, "a part that was not finished could not be removed");
        }
    }
}

/// The tag of a part of this size; `None` where there is none.
fn tag_of(path: &Path, size: u64) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // A part of another length counts as missing and not as an error: its sender puts it again.
    if file.metadata()?.len() != size + HASH_BYTES as u64 {
        return Ok(None);
    }
    let mut hash = [0; HASH_BYTES];
    file.read_exact_at(&mut hash, size)?;
    Ok(Some(HEXLOWER.encode(&hash)))
}

#[async_trait]
impl UploadStore for LocalUploads {
    async fn begin(&self, _: &UploadLayout, _: Duration) -> Result<Option<Vec<String>>, Error> {
        Ok(None)
    }

    async fn complete(&self, layout: &UploadLayout, tags: &[PartTag]) -> Result<(), Error> {
        let (objects, layout, tags) = (self.clone(), *layout, tags.to_vec());
        here(move || objects.seal(&layout, &tags)).await?;
        fault::point("upload.sealed");
        Ok(())
    }

    async fn read(&self, layout: &UploadLayout, n: u32, range: Range<u64>) -> Result<Bytes, Error> {
        let path = self.folder(layout.upload).join(n.to_string());
        here(move || {
            let file = File::open(path).map_err(|error| gone(n, error))?;
            let mut bytes = vec![0; usize::try_from(range.end - range.start).unwrap_or(0)];
            file.read_exact_at(&mut bytes, range.start)
                .map_err(|error| gone(n, error))?;
            Ok(bytes.into())
        })
        .await
    }

    async fn delete(&self, upload: ContributionId) -> Result<(), Error> {
        let objects = self.clone();
        here(move || {
            // Under the lock of names: a part that got its name during the removal would make the
            // folder again and stay for ever.
            let _naming = objects.shared.naming.lock();
            ignore_missing(fs::remove_dir_all(objects.folder(upload))).map_err(Error::Io)
        })
        .await
    }
}

fn gone(n: u32, error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::UnexpectedEof => Error::Gone { n },
        _ => Error::Io(error),
    }
}

/// Runs what blocks where it may.
async fn here<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(end) => Err(Error::Io(io::Error::other(end))),
    }
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Compression;
    use crate::conformance::{self, Fixture};

    /// A folder of its own.
    struct Folder(tempfile::TempDir);

    #[async_trait]
    impl Fixture for Folder {
        fn open(&self) -> Arc<dyn UploadStore> {
            Arc::new(LocalUploads::open(self.0.path(), Reserve::default()).unwrap())
        }

        async fn put(&self, layout: &UploadLayout, n: u32, url: Option<&str>, bytes: Bytes) -> Option<String> {
            assert_eq!(url, None, "the service takes parts itself");
            // What the service does, which takes parts itself.
            if layout.size_of(n) != Some(bytes.len() as u64) {
                return None;
            }
            let objects = LocalUploads {
                shared: Arc::new(LocalState {
                    root: self.0.path().to_owned(),
                    reserve: Reserve::default(),
                    files: AtomicU64::new(u64::from(n)),
                    naming: Mutex::default(),
                }),
            };
            let mut writer = objects.writer().unwrap();
            writer.write(&bytes).unwrap();
            writer.finish(layout.upload, n).ok()
        }

        fn left(&self) -> usize {
            let entries = self.0.path().read_dir().unwrap().map(Result::unwrap);
            entries.filter(|entry| entry.file_name() != INCOMING_FOLDER).count()
        }
    }

    conformance::suite!(Folder(tempfile::tempdir().unwrap()));

    fn layout() -> UploadLayout {
        UploadLayout {
            upload: ContributionId::from_bytes([9; 16]),
            bytes: 4,
            parts: 1,
            part_size: 4,
            compression: Compression::None,
        }
    }

    fn put(objects: &LocalUploads, bytes: &[u8]) -> PartTag {
        let mut writer = objects.writer().unwrap();
        writer.write(bytes).unwrap();
        let etag = writer.finish(layout().upload, 1).unwrap();
        PartTag { n: 1, etag }
    }

    #[tokio::test]
    async fn a_part_is_known_by_its_hash_and_what_was_not_finished_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let objects = LocalUploads::open(folder.path(), Reserve::default()).unwrap();
        let tag = put(&objects, b"abcd");
        assert_eq!(tag.etag, HEXLOWER.encode(&Sha256::digest(b"abcd")));
        objects.complete(&layout(), &[tag]).await.unwrap();
        let incoming = || folder.path().join(INCOMING_FOLDER).read_dir().unwrap().count();
        drop(objects.writer().unwrap());
        assert_eq!(incoming(), 0);
        let mut unfinished = objects.writer().unwrap();
        unfinished.write(b"xyz").unwrap();
        assert_eq!(incoming(), 1);
        // What the process before left unfinished is gone; what was sealed is not.
        std::mem::forget(unfinished);
        let objects = LocalUploads::open(folder.path(), Reserve::default()).unwrap();
        assert_eq!(incoming(), 0);
        assert_eq!(objects.read(&layout(), 1, 0..4).await.unwrap(), "abcd");
    }

    #[tokio::test]
    async fn a_part_of_another_length_is_as_good_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let objects = LocalUploads::open(folder.path(), Reserve::default()).unwrap();
        let tag = put(&objects, b"abcde");
        let missing = objects.complete(&layout(), &[tag]).await;
        assert!(matches!(missing, Err(Error::Missing { missing }) if missing == [1]));
    }
}
