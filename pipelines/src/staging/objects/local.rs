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
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use catalog::storage::create_directory;
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use tokio::task::spawn_blocking;
use types::{ContributionId, Timestamp, fault};

use super::{Cut, Error, Objects, PartTag};

const INCOMING: &str = "incoming";
const SEALED: &str = "sealed";
/// The bytes of a hash.
const HASH: usize = 32;
/// How many parts an error names.
const NAMED: usize = 20;

/// A directory of parts. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LocalObjects {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    root: PathBuf,
    files: AtomicU64,
    /// Held while a name is given or taken.
    naming: Mutex<()>,
}

/// A part that is being written. Dropped, it leaves nothing.
#[derive(Debug)]
pub struct PartWriter {
    objects: LocalObjects,
    path: PathBuf,
    file: Option<File>,
    hash: Sha256,
}

impl LocalObjects {
    /// Opens the directory, which is made where it is missing, and removes what was being written when the process
    /// before ended. Blocks.
    pub fn open(root: impl Into<PathBuf>) -> io::Result<Self> {
        let root = root.into();
        let incoming = root.join(INCOMING);
        ignore_missing(fs::remove_dir_all(&incoming))?;
        create_directory(&incoming)?;
        Ok(Self {
            shared: Arc::new(Shared {
                root,
                files: AtomicU64::new(0),
                naming: Mutex::default(),
            }),
        })
    }

    /// Begins to write a part. Blocks.
    pub fn writer(&self) -> Result<PartWriter, Error> {
        let number = self.shared.files.fetch_add(1, Ordering::Relaxed);
        let path = self.shared.root.join(INCOMING).join(number.to_string());
        let file = OpenOptions::new()
            .write(true)
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

    fn folder(&self, upload: ContributionId) -> PathBuf {
        self.shared.root.join(upload.to_string())
    }

    fn name(&self, upload: ContributionId, n: u32, written: &Path) -> Result<(), Error> {
        let folder = self.folder(upload);
        let _naming = self.shared.naming.lock().unwrap_or_else(PoisonError::into_inner);
        if folder.join(SEALED).exists() {
            return Err(Error::Closed);
        }
        create_directory(&folder)
            .and_then(|()| fs::rename(written, folder.join(n.to_string())))
            .and_then(|()| sync(&folder))
            .map_err(Error::Io)
    }

    fn seal(&self, cut: &Cut, tags: &[PartTag]) -> Result<(), Error> {
        let folder = self.folder(cut.upload);
        let _naming = self.shared.naming.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut missing, mut differing) = (Vec::new(), Vec::new());
        for (n, tag) in (1..=cut.parts).zip(tags) {
            let size = cut.size_of(n).unwrap_or(0);
            match tag_of(&folder.join(n.to_string()), size).map_err(Error::Io)? {
                None => missing.push(n),
                Some(found) if tag.n != n || found != tag.etag => differing.push(n),
                Some(_) => {}
            }
        }
        missing.truncate(NAMED);
        differing.truncate(NAMED);
        if !missing.is_empty() {
            return Err(Error::Missing { missing });
        }
        if !differing.is_empty() {
            return Err(Error::Differing { differing });
        }
        let sealed = folder.join(SEALED);
        if !sealed.exists() {
            File::create(sealed)
                .and_then(|_file| sync(&folder))
                .map_err(Error::Io)?;
        }
        Ok(())
    }
}

impl PartWriter {
    /// Appends bytes. Blocks.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let file = self.file.as_mut().ok_or(Error::Closed)?;
        self.hash.update(bytes);
        file.write_all(bytes).map_err(Error::Io)
    }

    /// Makes the bytes durable and part `n` of an upload, in place of the one before; the part's `ETag`. Blocks.
    pub fn finish(mut self, upload: ContributionId, n: u32) -> Result<String, Error> {
        let hash = std::mem::take(&mut self.hash).finalize();
        if let Some(mut file) = self.file.take() {
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
    if file.metadata()?.len() != size + HASH as u64 {
        return Ok(None);
    }
    let mut hash = [0; HASH];
    file.read_exact_at(&mut hash, size)?;
    Ok(Some(HEXLOWER.encode(&hash)))
}

#[async_trait]
impl Objects for LocalObjects {
    async fn presign(&self, _: &Cut, _: u32, _: Timestamp) -> Result<Option<String>, Error> {
        Ok(None)
    }

    async fn complete(&self, cut: &Cut, tags: &[PartTag]) -> Result<(), Error> {
        let (objects, cut, tags) = (self.clone(), *cut, tags.to_vec());
        here(move || objects.seal(&cut, &tags)).await?;
        fault::point("upload.sealed");
        Ok(())
    }

    async fn read(&self, cut: &Cut, n: u32, range: Range<u64>) -> Result<Bytes, Error> {
        let path = self.folder(cut.upload).join(n.to_string());
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
            let _naming = objects.shared.naming.lock().unwrap_or_else(PoisonError::into_inner);
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
    use super::super::Compression;
    use super::*;

    fn cut(bytes: u64, parts: u32, part_size: u64) -> Cut {
        Cut {
            upload: ContributionId::from_bytes([9; 16]),
            bytes,
            parts,
            part_size,
            compression: Compression::None,
        }
    }

    fn put(objects: &LocalObjects, n: u32, bytes: &[u8]) -> Result<PartTag, Error> {
        let mut writer = objects.writer()?;
        writer.write(bytes)?;
        let etag = writer.finish(cut(1, 1, 1).upload, n)?;
        Ok(PartTag { n, etag })
    }

    #[tokio::test]
    async fn parts_that_were_sealed_are_read_as_they_were_put() {
        let folder = tempfile::tempdir().unwrap();
        let objects = LocalObjects::open(folder.path()).unwrap();
        let cut = cut(7, 2, 4);
        put(&objects, 1, b"once").unwrap();
        let tags = [put(&objects, 1, b"abcd").unwrap(), put(&objects, 2, b"efg").unwrap()];
        assert_eq!(tags[0].etag, HEXLOWER.encode(&Sha256::digest(b"abcd")));
        objects.complete(&cut, &tags).await.unwrap();
        objects.complete(&cut, &tags).await.unwrap();
        assert_eq!(objects.read(&cut, 1, 1..4).await.unwrap(), "bcd");
        assert_eq!(objects.read(&cut, 2, 0..3).await.unwrap(), "efg");
        assert!(matches!(put(&objects, 1, b"late"), Err(Error::Closed)));
        assert_eq!(objects.read(&cut, 1, 0..4).await.unwrap(), "abcd");
        // What the process before left unfinished is gone; what was sealed is not.
        drop(objects);
        let objects = LocalObjects::open(folder.path()).unwrap();
        assert_eq!(folder.path().join(INCOMING).read_dir().unwrap().count(), 0);
        assert_eq!(objects.read(&cut, 1, 0..4).await.unwrap(), "abcd");
    }

    #[tokio::test]
    async fn what_is_missing_or_other_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let objects = LocalObjects::open(folder.path()).unwrap();
        let cut = cut(7, 2, 4);
        let other = |n| PartTag {
            n,
            etag: "0".repeat(64),
        };
        let missing = objects.complete(&cut, &[other(1), other(2)]).await;
        assert!(matches!(missing, Err(Error::Missing { missing }) if missing == [1, 2]));
        let first = put(&objects, 1, b"abcd").unwrap();
        // The wrong length is as good as nothing.
        let wrong = put(&objects, 2, b"efgh").unwrap();
        let missing = objects.complete(&cut, &[first.clone(), wrong]).await;
        assert!(matches!(missing, Err(Error::Missing { missing }) if missing == [2]));
        put(&objects, 2, b"efg").unwrap();
        let differing = objects.complete(&cut, &[first, other(2)]).await;
        assert!(matches!(differing, Err(Error::Differing { differing }) if differing == [2]));
        assert!(put(&objects, 2, b"xyz").is_ok(), "it was not sealed");
    }

    #[tokio::test]
    async fn what_is_deleted_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let objects = LocalObjects::open(folder.path()).unwrap();
        let cut = cut(4, 1, 4);
        let tag = put(&objects, 1, b"abcd").unwrap();
        objects.complete(&cut, &[tag]).await.unwrap();
        objects.delete(cut.upload).await.unwrap();
        objects.delete(cut.upload).await.unwrap();
        assert!(matches!(objects.read(&cut, 1, 0..4).await, Err(Error::Gone { n: 1 })));
        drop(objects.writer().unwrap());
        assert_eq!(folder.path().join(INCOMING).read_dir().unwrap().count(), 0);
    }
}
