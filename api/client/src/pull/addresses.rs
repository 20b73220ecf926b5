//! Addresses of the parts of a manifest.
//!
//! Invariant: addresses are valid for minutes. If one is refused, the manifest is fetched once for all downloads, and
//! its addresses are used only if it has the same parts.

use std::collections::HashMap;

use proof::{Manifest, Part};
use reqwest::Url;
use tokio::sync::Mutex;

use super::Pull;
use crate::{Client, Error};

/// Addresses of the parts of one manifest, shared by concurrent downloads.
#[derive(Debug)]
pub(super) struct Addresses<'a> {
    client: &'a Client,
    pull: &'a Pull,
    /// The parts being pulled, without addresses.
    parts: Vec<Part>,
    version: u64,
    current: Mutex<CurrentAddresses>,
}

/// Addresses from one answer.
#[derive(Debug)]
struct CurrentAddresses {
    /// The number of renewals.
    generation: u64,
    by_part: HashMap<String, String>,
}

impl<'a> Addresses<'a> {
    pub(super) fn new(client: &'a Client, pull: &'a Pull, manifest: &Manifest) -> Self {
        Self {
            client,
            pull,
            parts: unaddressed(manifest),
            version: manifest.version.0,
            current: Mutex::new(CurrentAddresses {
                generation: 0,
                by_part: by_part(manifest),
            }),
        }
    }

    /// Returns the address of a part and its generation.
    pub(super) async fn of(&self, part: &str) -> Result<(u64, Url), Error> {
        let current = self.current.lock().await;
        let failed = |problem: String| Error::Part {
            part: part.to_owned(),
            problem,
        };
        let text = current.by_part.get(part);
        let text = text.ok_or_else(|| failed("the manifest has no address for it".to_owned()))?;
        // An address may be relative to the service, or absolute in a bucket.
        let url = self.client.base.join(text).map_err(|error| failed(error.to_string()))?;
        Ok((current.generation, url))
    }

    /// Fetches the manifest again, unless another download has done so since `generation`.
    pub(super) async fn renew(&self, generation: u64) -> Result<(), Error> {
        // The lock is held over the request, so that concurrent downloads wait for one renewal.
        let mut current = self.current.lock().await;
        if current.generation != generation {
            return Ok(());
        }
        let Pull { slug, known, .. } = self.pull;
        let (manifest, _, _) = self.client.proven_manifest(slug, Some(self.version), known).await?;
        // A compaction changes the parts of a version. Parts of two layouts do not form one folder.
        if unaddressed(manifest.manifest()) != self.parts {
            return Err(Error::OtherManifest {
                problem: "a compaction replaced parts during the pull; pull again".to_owned(),
            });
        }
        current.by_part = by_part(manifest.manifest());
        current.generation += 1;
        Ok(())
    }
}

fn by_part(manifest: &Manifest) -> HashMap<String, String> {
    let addressed = manifest.parts.iter();
    addressed
        .filter_map(|part| Some((part.path.clone(), part.url.clone()?)))
        .collect()
}

fn unaddressed(manifest: &Manifest) -> Vec<Part> {
    let mut parts = manifest.parts.clone();
    for part in &mut parts {
        part.url = None;
    }
    parts
}
