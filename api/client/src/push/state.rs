//! How far a push is, in a file beside nothing else.
//!
//! Invariant: the file is replaced at once, so it is whole whenever the process dies.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::{PartUrl, Push, Tag, Upload};
use crate::Error;

/// What is pushed where; another is another push.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Source {
    server: String,
    slug: String,
    file: PathBuf,
    pub(super) bytes: u64,
    /// Nanoseconds since 1970.
    modified: u128,
    gzip: bool,
    #[serde(default)]
    declaration: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    source: Source,
    upload: Upload,
    tags: BTreeMap<u32, String>,
    completed: bool,
}

/// How far a push is.
#[derive(Debug)]
pub(super) struct State {
    path: PathBuf,
    kept: Kept,
}

impl Source {
    /// What is pushed, as it is now.
    pub(super) fn of(push: &Push, server: &str) -> Result<Self, Error> {
        let broken = |source| Error::file(&push.file, source);
        let file = push.file.canonicalize().map_err(broken)?;
        let found = file.metadata().map_err(broken)?;
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

    /// Fails where the file that is open is not what was to be pushed, or not any more.
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

/// When a file was changed, in nanoseconds since 1970.
fn modified(found: &Metadata) -> io::Result<u128> {
    let since = found.modified()?.duration_since(UNIX_EPOCH);
    Ok(since.map_or(0, |since| since.as_nanos()))
}

impl State {
    /// What the file says of this source; `None` where it says nothing.
    pub(super) fn load(path: &Path, source: &Source) -> Option<Self> {
        let kept: Kept = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        (kept.source == *source).then(|| Self {
            path: path.to_owned(),
            kept,
        })
    }

    /// Fails where a state could not be kept in this file.
    pub(super) fn probe(path: &Path) -> Result<(), Error> {
        let broken = |source| Error::file(path, source);
        if let Some(folder) = path.parent() {
            private_folder(folder).map_err(broken)?;
        }
        let probe = path.with_extension("new");
        File::create(&probe).map_err(broken)?;
        fs::remove_file(probe).map_err(broken)
    }

    /// Fails where the file that is open is not what is pushed, or not any more.
    pub(super) fn check(&self, file: &File) -> Result<(), Error> {
        self.kept.source.check(file)
    }

    /// Forgets what was sent: the service does not have it.
    pub(super) fn send_again(&mut self) -> Result<(), Error> {
        self.kept.tags.clear();
        self.write()
    }

    /// Remembers an upload of which nothing was sent.
    pub(super) fn begin(path: PathBuf, source: Source, upload: Upload) -> Result<Self, Error> {
        let kept = Kept {
            source,
            upload,
            tags: BTreeMap::new(),
            completed: false,
        };
        let state = Self { path, kept };
        state.write()?;
        Ok(state)
    }

    /// Removes the file.
    pub(super) fn forget(path: &Path) -> Result<(), Error> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::file(path, error)),
            _ => Ok(()),
        }
    }

    pub(super) const fn upload(&self) -> &Upload {
        &self.kept.upload
    }

    /// The parts that were not sent.
    pub(super) fn left(&self) -> Vec<PartUrl> {
        let parts = self.kept.upload.part_urls.iter();
        parts
            .filter(|part| !self.kept.tags.contains_key(&part.n))
            .cloned()
            .collect()
    }

    /// How many bytes were sent.
    pub(super) fn sent(&self) -> u64 {
        let parts = self.kept.upload.part_urls.iter();
        parts
            .filter(|part| self.kept.tags.contains_key(&part.n))
            .map(|part| part.bytes)
            .sum()
    }

    /// Remembers that a part was sent.
    pub(super) fn add(&mut self, tag: Tag) -> Result<(), Error> {
        self.kept.tags.insert(tag.n, tag.etag);
        self.write()
    }

    /// The tags of the parts that were sent.
    pub(super) fn tags(&self) -> Vec<Tag> {
        let tag = |(n, etag): (&u32, &String)| Tag {
            n: *n,
            etag: etag.clone(),
        };
        self.kept.tags.iter().map(tag).collect()
    }

    pub(super) const fn is_completed(&self) -> bool {
        self.kept.completed
    }

    /// Remembers that the upload is complete.
    pub(super) fn complete(&mut self) -> Result<(), Error> {
        self.kept.completed = true;
        self.write()
    }

    fn write(&self) -> Result<(), Error> {
        let broken = |source| Error::file(&self.path, source);
        let text = serde_json::to_vec(&self.kept).map_err(|error| broken(error.into()))?;
        let written = self.path.with_extension("new");
        let replaced = fs::write(&written, text).and_then(|()| fs::rename(&written, &self.path));
        if replaced.is_err() {
            fs::remove_file(&written).ok();
        }
        replaced.map_err(broken)
    }
}

/// Makes a folder for what is nobody else's: addresses of parts, and copies of what is sent.
fn private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
