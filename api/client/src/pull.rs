//! A version pulled into a folder: its parts, then the keys document and the manifest.
//!
//! Invariants:
//! - A file has the name of a part only if it is that part, durably; what is under way has another name.
//! - `manifest.json` is written last, so a folder with a manifest of this version has all of it.
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
use place::Place;

/// How many parts are fetched or read at once.
const AT_ONCE: usize = 8;

/// What to pull, and where to.
#[derive(Clone, Debug)]
pub struct Pull {
    /// The project.
    pub slug: String,
    /// The version; the latest where none is named.
    pub version: Option<u64>,
    /// The folder; made where it is missing.
    pub folder: PathBuf,
    /// The services this machine has met.
    pub known: KnownKeys,
}

/// How a pull goes on, in bytes of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The manifest is known: so much is to be had.
    Planned {
        /// Bytes of all parts.
        bytes: u64,
    },
    /// So much of it is here: a part that was there already, or bytes that arrived.
    Here(u64),
    /// So much of what was here is not what was signed and is fetched again.
    Discarded(u64),
}

/// Whoever wants to know how a pull goes on.
pub(crate) type Watch = dyn Fn(Progress) + Send + Sync;

/// A version that was pulled.
#[derive(Clone, Debug)]
pub struct Pulled {
    /// Its manifest.
    pub manifest: VerifiedManifest,
    /// How many of its parts were fetched, wholly or in part.
    pub fetched: usize,
    /// Whether the service was met for the first time, so that its first key is taken on trust.
    pub first_meeting: bool,
}

impl Client {
    /// Pulls a version. What the folder has of it already is kept; what an earlier pull left half done is gone on with.
    ///
    /// The manifest is proven to be what was asked for and signed by the service, and each part to be what was signed.
    /// That the records give the content roots is left to [`crate::Verify`].
    pub async fn pull(&self, pull: &Pull, progress: Arc<Watch>) -> Result<Pulled, Error> {
        let (manifest, keys, first_meeting) = self.proven_manifest(&pull.slug, pull.version, &pull.known).await?;
        let parts = manifest.manifest().parts.clone();
        progress(Progress::Planned {
            bytes: parts.iter().map(|part| part.size).sum(),
        });
        let place = {
            let (folder, manifest) = (pull.folder.clone(), manifest.clone());
            files::apart(move || Place::open(&folder, manifest.manifest())).await?
        };
        let addresses = Addresses::new(self, pull, manifest.manifest());
        let fetched: Vec<bool> = stream::iter(&parts)
            .map(|part| download::part(self, &addresses, &pull.folder, part, &progress))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let kept = manifest.clone();
        files::apart(move || place.finish(&keys, &kept)).await?;
        Ok(Pulled {
            manifest,
            fetched: fetched.into_iter().filter(|fetched| *fetched).count(),
            first_meeting,
        })
    }

    /// The manifest of a version, proven to be what was asked for, with the keys it was judged by.
    async fn proven_manifest(
        &self,
        slug: &str,
        version: Option<u64>,
        known: &KnownKeys,
    ) -> Result<(VerifiedManifest, Keys, bool), Error> {
        // Why: in this order, so that the keys have the one that signed, even if it was rotated in between.
        let text = self.manifest(slug, version).await?;
        let keys = Keys::parse(&self.service_keys().await?)?;
        let (known, server, met) = (known.clone(), self.base.to_string(), keys.clone());
        let first_meeting = files::apart(move || known.meet(&server, &met)).await?;
        let manifest = VerifiedManifest::parse(&text, &keys)?;
        asked_for(manifest.manifest(), slug, version)?;
        Ok((manifest, keys, first_meeting))
    }
}

/// Proves that a manifest is of the project and version asked for: any other is well signed too.
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

/// Where a part is while it is under way.
fn under_way(folder: &Path, part: &str) -> PathBuf {
    folder.join(format!("{part}.partial"))
}

#[cfg(test)]
mod tests;
