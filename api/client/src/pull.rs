//! Pull of a version into a folder: its parts, then the keys document and the manifest.
//!
//! Invariants:
//! - A file has the name of a part only if it is that part, durably. A download under way has another name.
//! - `manifest.json` is written last, so a folder with the manifest of a version has the whole version.
//! - Only files that an earlier manifest of the same dataset names are removed.

mod addresses;
mod download;
mod place;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use proof::{Keys, Manifest, VerifiedManifest};

use crate::{Client, Error, KnownKeys, files};

use addresses::Addresses;
use place::PullFolder;

/// Parts that are downloaded or read at once.
const CONCURRENT_PARTS: usize = 8;

/// A version to pull, with its target.
#[derive(Clone, Debug)]
pub struct Pull {
    /// The slug of the project.
    pub slug: String,
    /// The version. `None` means the latest.
    pub version: Option<u64>,
    /// The folder. It is created if it is missing.
    pub folder: PathBuf,
    /// The services that this machine has met.
    pub known: KnownKeys,
}

/// A progress event of a pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullEvent {
    /// The manifest is verified.
    Planned {
        /// The bytes of all parts.
        bytes: u64,
    },
    /// This many more bytes are in the folder: a part of an earlier pull, or bytes that arrived.
    Here(u64),
    /// This many bytes of the folder were wrong and are downloaded again.
    Discarded(u64),
}

/// A callback for progress events, from any thread.
pub(crate) type PullProgress = dyn Fn(PullEvent) + Send + Sync;

/// The result of a pull.
#[derive(Clone, Debug)]
pub struct PullResult {
    /// The verified manifest of the version.
    pub manifest: VerifiedManifest,
    /// The number of parts that were downloaded, wholly or in part.
    pub fetched: usize,
    /// True if this machine met the service for the first time, so that its first key is trusted without proof.
    pub first_meeting: bool,
}

impl Client {
    /// Pulls a version. Parts that the folder has are kept, and downloads of an interrupted pull are resumed.
    ///
    /// The manifest is verified to be the requested one and signed by the service, and each part to have the signed
    /// hash. [`crate::Verify`] also verifies that the records give the content roots.
    pub async fn pull(&self, pull: &Pull, progress: Arc<PullProgress>) -> Result<PullResult, Error> {
        let (manifest, keys, first_meeting) = self.proven_manifest(&pull.slug, pull.version, &pull.known).await?;
        let parts = manifest.manifest().parts.clone();
        progress(PullEvent::Planned {
            bytes: parts.iter().map(|part| part.size).sum(),
        });
        let place = {
            let (folder, manifest) = (pull.folder.clone(), manifest.clone());
            files::apart(move || PullFolder::open(&folder, manifest.manifest())).await?
        };
        let addresses = Addresses::new(self, pull, manifest.manifest());
        let fetched: Vec<bool> = stream::iter(&parts)
            .map(|part| download::part(self, &addresses, &pull.folder, part, &progress))
            // The first error ends every download. The next pull resumes them.
            .buffer_unordered(CONCURRENT_PARTS)
            .try_collect()
            .await?;
        let kept = manifest.clone();
        // The keys and the manifest come last, and are durable when this returns.
        files::apart(move || place.finish(&keys, &kept)).await?;
        Ok(PullResult {
            manifest,
            fetched: fetched.into_iter().filter(|fetched| *fetched).count(),
            first_meeting,
        })
    }

    /// Returns the verified manifest of a version, the keys it was verified with, and true at the first meeting.
    async fn proven_manifest(
        &self,
        slug: &str,
        version: Option<u64>,
        known: &KnownKeys,
    ) -> Result<(VerifiedManifest, Keys, bool), Error> {
        // The keys are fetched after the manifest, so that they include the key that signed it, even after a rotation
        // in between.
        let text = self.manifest(slug, version).await?;
        let keys = Keys::parse(&self.service_keys().await?)?;
        let (known, server, met) = (known.clone(), self.base.to_string(), keys.clone());
        let first_meeting = files::apart(move || known.meet(&server, &met)).await?;
        let manifest = VerifiedManifest::parse(&text, &keys)?;
        asked_for(manifest.manifest(), slug, version)?;
        Ok((manifest, keys, first_meeting))
    }
}

/// Fails if a manifest is of another project or version. Its signature does not show that it is the requested one.
fn asked_for(manifest: &Manifest, slug: &str, version: Option<u64>) -> Result<(), Error> {
    let other = |problem: String| Err(Error::OtherManifest { problem });
    if manifest.slug != slug {
        return other(format!("it is the manifest of `{}`", manifest.slug));
    }
    match version {
        Some(version) if manifest.version.0 != version => {
            other(format!("it is the manifest of version {}", manifest.version))
        }
        _ => Ok(()),
    }
}

/// Returns the path of a part while it is downloaded.
fn under_way(folder: &Path, part: &str) -> PathBuf {
    folder.join(format!("{part}.partial"))
}

#[cfg(test)]
mod tests;
