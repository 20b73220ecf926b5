//! The state file of a push.
//!
//! Invariant: the file is replaced by renaming, so it is whole if the process dies.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BegunUpload, PartAddress, PartTag, Push};
use crate::Error;

/// Identity of a push: a state file is used only for an equal one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PushSource {
    server: String,
    slug: String,
    file: PathBuf,
    pub(super) bytes: u64,
    /// Time of the last change, in nanoseconds since 1970.
    modified: u128,
    gzip: bool,
    #[serde(default)]
    declaration: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedPush {
    source: PushSource,
    upload: BegunUpload,
    tags: BTreeMap<u32, String>,
    completed: bool,
    /// Body of the completion that was last asked for, without its tags. It may have been answered although `completed` is
    /// false.
    #[serde(default)]
    completed_with: Option<CompletedWith>,
}

/// Statement of a push about its complete upload.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CompletedWith {
    reading: Option<Value>,
    drops_refused: bool,
}

impl CompletedWith {
    fn of(push: &Push) -> Self {
        Self {
            reading: push.reading.clone(),
            drops_refused: push.drops_refused,
        }
    }
}

/// Progress of a push, stored after every change.
#[derive(Debug)]
pub(super) struct PushState {
    path: PathBuf,
    kept: SavedPush,
}

impl PushSource {
    /// Returns the identity of a push with the file as it is now. An empty file is an error.
    pub(super) fn of(push: &Push, server: &str) -> Result<Self, Error> {
        let broken = |source| Error::file(&push.file, source);
        let found = push.file.metadata().map_err(broken)?;
        // The same file under another name is the same push. One without a name has only the name of its descriptor.
        let file = push.file.canonicalize().unwrap_or_else(|_| push.file.clone());
        if found.len() == 0 {
            return Err(Error::Place {
                path: push.file.clone(),
                problem: "is empty".to_owned(),
            });
        }
        Ok(Self {
            server: server.to_owned(),
            slug: push.slug.clone(),
            file,
            bytes: found.len(),
            modified: modified(&found).map_err(broken)?,
            gzip: push.gzip,
            declaration: push.source_declaration.clone(),
        })
    }

    /// Fails if the open file is not the one of this push, or has changed since.
    fn check(&self, file: &File) -> Result<(), Error> {
        let found = file.metadata().and_then(|found| Ok((found.len(), modified(&found)?)));
        let found = found.map_err(|source| Error::file(&self.file, source))?;
        if found == (self.bytes, self.modified) {
            return Ok(());
        }
        Err(Error::Place {
            path: self.file.clone(),
            problem: "changed during the push, so the upload was not completed; push it again".to_owned(),
        })
    }
}

/// Returns the time of a file's last change, in nanoseconds since 1970.
fn modified(found: &Metadata) -> io::Result<u128> {
    let since = found.modified()?.duration_since(UNIX_EPOCH);
    Ok(since.map_or(0, |since| since.as_nanos()))
}

impl PushState {
    /// Loads a state. `None` if there is none, or if it cannot be read.
    pub(super) fn load(path: &Path) -> Option<Self> {
        let kept: SavedPush = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        let path = path.to_owned();
        Some(Self { path, kept })
    }

    /// Returns true if this is the state of a push of this file, unchanged, with the same options.
    pub(super) fn is_of(&self, source: &PushSource) -> bool {
        self.kept.source == *source
    }

    /// Returns true if the upload is at this service.
    pub(super) fn is_at(&self, server: &str) -> bool {
        self.kept.source.server == server
    }

    /// Returns the slug of the project of the upload.
    pub(super) fn slug(&self) -> &str {
        &self.kept.source.slug
    }

    /// Fails if a state could not be stored in this file.
    pub(super) fn probe(path: &Path) -> Result<(), Error> {
        let broken = |source| Error::file(path, source);
        if let Some(folder) = path.parent() {
            private_folder(folder).map_err(broken)?;
        }
        // Only writing shows whether the folder is writable and its disk has space.
        let probe = path.with_extension("new");
        File::create(&probe).map_err(broken)?;
        fs::remove_file(probe).map_err(broken)
    }

    /// Fails if the open file is not the one of this push, or has changed since.
    pub(super) fn check(&self, file: &File) -> Result<(), Error> {
        self.kept.source.check(file)
    }

    /// Marks every part as unsent, because the service lacks some.
    pub(super) fn send_again(&mut self) -> Result<(), Error> {
        self.kept.tags.clear();
        self.write()
    }

    /// Stores an upload without sent parts.
    pub(super) fn begin(path: PathBuf, source: PushSource, upload: BegunUpload) -> Result<Self, Error> {
        let kept = SavedPush {
            source,
            upload,
            tags: BTreeMap::new(),
            completed: false,
            completed_with: None,
        };
        let state = Self { path, kept };
        state.write()?;
        Ok(state)
    }

    /// Removes the state file, if it exists.
    pub(super) fn forget(path: &Path) -> Result<(), Error> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::file(path, error)),
            _ => Ok(()),
        }
    }

    pub(super) const fn upload(&self) -> &BegunUpload {
        &self.kept.upload
    }

    /// Returns the unsent parts.
    pub(super) fn left(&self) -> Vec<PartAddress> {
        let parts = self.kept.upload.part_urls.iter();
        parts
            .filter(|part| !self.kept.tags.contains_key(&part.n))
            .cloned()
            .collect()
    }

    /// Returns the number of bytes in sent parts.
    pub(super) fn sent(&self) -> u64 {
        let parts = self.kept.upload.part_urls.iter();
        parts
            .filter(|part| self.kept.tags.contains_key(&part.n))
            .map(|part| part.bytes)
            .sum()
    }

    /// Marks a part as sent.
    pub(super) fn add(&mut self, tag: PartTag) -> Result<(), Error> {
        self.kept.tags.insert(tag.n, tag.etag);
        self.write()
    }

    /// Returns the tags of the sent parts, in order.
    pub(super) fn tags(&self) -> Vec<PartTag> {
        let tag = |(n, etag): (&u32, &String)| PartTag {
            n: *n,
            etag: etag.clone(),
        };
        self.kept.tags.iter().map(tag).collect()
    }

    pub(super) const fn is_completed(&self) -> bool {
        self.kept.completed
    }

    /// Returns true if the upload was completed, or may have been, with something else than this push would.
    pub(super) fn is_completed_otherwise(&self, push: &Push) -> bool {
        let with = self.kept.completed_with.as_ref();
        with.is_some_and(|with| *with != CompletedWith::of(push))
    }

    /// Remembers what the upload is about to be completed with.
    pub(super) fn begin_completion(&mut self, push: &Push) -> Result<(), Error> {
        self.kept.completed_with = Some(CompletedWith::of(push));
        self.write()
    }

    /// Forgets what the upload was to be completed with, because the service refused it: its parts are good for another try.
    pub(super) fn abandon_completion(&mut self) -> Result<(), Error> {
        self.kept.completed_with = None;
        self.write()
    }

    /// Marks the upload as completed.
    pub(super) fn complete(&mut self) -> Result<(), Error> {
        self.kept.completed = true;
        self.write()
    }

    fn write(&self) -> Result<(), Error> {
        let broken = |source| Error::file(&self.path, source);
        let text = serde_json::to_vec(&self.kept).map_err(|error| broken(error.into()))?;
        let written = self.path.with_extension("new");
        let replaced = fs::write(&written, text).and_then(|()| fs::rename(&written, &self.path));
        // A full disk must not keep half a file.
        if replaced.is_err() {
            fs::remove_file(&written).ok();
        }
        replaced.map_err(broken)
    }
}

/// Creates a folder that only the user can read. It contains addresses of parts, which grant access.
fn private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
