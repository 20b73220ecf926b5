//! Where the parts of a manifest are to be had for now.
//!
//! Invariant: addresses are good for minutes; when one is refused the manifest is asked for once for everybody, and
//! every address that comes of it is of the very parts that are being pulled.

use std::collections::HashMap;

use proof::{Manifest, Part};
use reqwest::Url;
use tokio::sync::Mutex;

use super::Pull;
use crate::{Client, Error};

/// The addresses of the parts of one manifest.
#[derive(Debug)]
pub(super) struct Addresses<'a> {
    client: &'a Client,
    pull: &'a Pull,
    /// What is being pulled, without addresses.
    parts: Vec<Part>,
    version: u64,
    current: Mutex<Current>,
}

/// The addresses of one answer.
#[derive(Debug)]
struct Current {
    /// How often the manifest was asked for again.
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
            current: Mutex::new(Current {
                generation: 0,
                by_part: by_part(manifest),
            }),
        }
    }

    /// The address of a part, and how often addresses were renewed before it.
    pub(super) async fn of(&self, part: &str) -> Result<(u64, Url), Error> {
        let current = self.current.lock().await;
        let failed = |problem: String| Error::Part {
            part: part.to_owned(),
            problem,
        };
        let text = current.by_part.get(part);
        let text = text.ok_or_else(|| failed("the manifest has no address for it".to_owned()))?;
        let url = self.client.base.join(text).map_err(|error| failed(error.to_string()))?;
        Ok((current.generation, url))
    }

    /// Asks for the manifest again, unless somebody did since `generation`.
    pub(super) async fn renew(&self, generation: u64) -> Result<(), Error> {
        let mut current = self.current.lock().await;
        if current.generation != generation {
            return Ok(());
        }
        let Pull { slug, known, .. } = self.pull;
        let (manifest, _, _) = self.client.proven_manifest(slug, Some(self.version), known).await?;
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
