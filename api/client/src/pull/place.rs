//! The folder that a version is pulled to.
//!
//! Invariant: one pull at a time works in a folder, and files of others are never touched.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use proof::{Keys, Manifest, VerifiedManifest, folder};
use serde::Deserialize;

use super::under_way;
use crate::{Error, files};

/// What an earlier pull says that it put into the folder.
#[derive(Debug, Deserialize)]
struct Earlier {
    dataset: String,
    parts: Vec<EarlierPart>,
}

#[derive(Debug, Deserialize)]
struct EarlierPart {
    path: String,
}

/// A folder, locked.
#[derive(Debug)]
pub(super) struct Place {
    folder: PathBuf,
    /// Parts of the version before that are none of this one.
    outdated: Vec<String>,
    _lock: File,
}

impl Place {
    /// Makes the folder where it is missing, and sees whether the version can be put there.
    pub(super) fn open(folder: &Path, manifest: &Manifest) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(|source| Error::file(folder, source))?;
        let lock = File::open(folder).map_err(|source| Error::file(folder, source))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::place(folder, "is in use by another pull")),
            Err(TryLockError::Error(source)) => return Err(Error::file(folder, source)),
        }
        let earlier = earlier(&folder.join(folder::MANIFEST))?;
        let other = |earlier: &Earlier| earlier.dataset != manifest.dataset.to_string();
        if earlier.as_ref().is_some_and(other) {
            return Err(Error::place(
                folder,
                "contains another dataset; pull into another folder",
            ));
        }
        let ours: HashSet<_> = earlier
            .into_iter()
            .flat_map(|earlier| earlier.parts)
            .map(|part| part.path)
            .collect();
        let outdated = folder::strangers(&manifest.parts, folder)?;
        if let Some(stranger) = outdated.iter().find(|name| !ours.contains(*name)) {
            return Err(Error::place(
                &folder.join(stranger),
                format!(
                    "is not a part of version {}; pull into another folder, or remove the file",
                    manifest.version
                ),
            ));
        }
        Ok(Self {
            folder: folder.to_owned(),
            outdated,
            _lock: lock,
        })
    }

    /// Removes what is outdated and writes keys and manifest, when every part is there.
    pub(super) fn finish(self, keys: &Keys, manifest: &VerifiedManifest) -> Result<(), Error> {
        let parts = &manifest.manifest().parts;
        let left = parts
            .iter()
            .map(|part| under_way(&self.folder, &part.path))
            .filter(|path| path.exists());
        let outdated = self.outdated.iter().map(|name| self.folder.join(name));
        for path in left.chain(outdated) {
            fs::remove_file(&path).map_err(|source| Error::file(&path, source))?;
        }
        files::sync_folder(&self.folder)?;
        files::replace(&self.folder.join(folder::KEYS), &keys.to_json())?;
        files::replace(&self.folder.join(folder::MANIFEST), &manifest.to_json())
    }
}

/// The manifest of an earlier pull; what it says is not proven and used only to know its files.
fn earlier(path: &Path) -> Result<Option<Earlier>, Error> {
    let Some(text) = files::read(path)? else {
        return Ok(None);
    };
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|error| Error::place(path, format!("is not a manifest: {error}; pull into another folder")))
}
