//! The folder of a pulled version.
//!
//! Invariant: one pull at a time uses a folder, and files that no pull created are never touched.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use proof::{Keys, Manifest, VerifiedManifest, folder};
use serde::Deserialize;

use super::under_way;
use crate::{Error, files};

/// The manifest of an earlier pull, of which only the fields are read that name its files.
#[derive(Debug, Deserialize)]
struct EarlierManifest {
    dataset: String,
    parts: Vec<EarlierPart>,
}

#[derive(Debug, Deserialize)]
struct EarlierPart {
    path: String,
}

/// A folder, locked for one pull.
#[derive(Debug)]
pub(super) struct PullFolder {
    folder: PathBuf,
    /// Names of an earlier version's parts that this version does not have.
    outdated: Vec<String>,
    _lock: File,
}

impl PullFolder {
    /// Creates the folder if it is missing, locks it, and checks that the version can be put there.
    ///
    /// # Errors
    /// [`Error::Place`] for a folder that another pull uses, that has another dataset, or that has files no pull
    /// created.
    pub(super) fn open(folder: &Path, manifest: &Manifest) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(|source| Error::file(folder, source))?;
        // The folder itself is locked, so that no lock file is left in it.
        let lock = File::open(folder).map_err(|source| Error::file(folder, source))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::place(folder, "is in use by another pull")),
            Err(TryLockError::Error(source)) => return Err(Error::file(folder, source)),
        }
        let earlier = earlier(&folder.join(folder::MANIFEST_FILE))?;
        let other = |earlier: &EarlierManifest| earlier.dataset != manifest.dataset.to_string();
        // The parts of two datasets may have equal names.
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
        // Verification fails for a folder with unknown parts, so the pull fails before it downloads anything.
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

    /// Removes outdated files, then writes the keys document and the manifest. Every part must be there.
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
        // The parts are durable before the manifest that names them.
        files::sync_folder(&self.folder)?;
        files::replace(&self.folder.join(folder::KEYS_FILE), &keys.to_json())?;
        files::replace(&self.folder.join(folder::MANIFEST_FILE), &manifest.to_json())
    }
}

/// Reads the manifest of an earlier pull. It is not verified, so it serves only to know the names of its files.
fn earlier(path: &Path) -> Result<Option<EarlierManifest>, Error> {
    let Some(text) = files::read(path)? else {
        return Ok(None);
    };
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|error| Error::place(path, format!("is not a manifest: {error}; pull into another folder")))
}
