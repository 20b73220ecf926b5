//! A pulled version verified offline.
//!
//! Invariant: it asks nobody. A folder verifies only if somebody vouches for its first key: the caller, who names a keys
//! document, or this machine, which has met the service.

use std::path::Path;

use proof::{KeyId, Keys, VerifiedManifest, folder};

use crate::{Error, KnownKeys, files};

/// What to verify, and by whose word.
#[derive(Clone, Copy, Debug)]
pub struct Verify<'a> {
    /// The folder that was pulled to.
    pub folder: &'a Path,
    /// A keys document to trust instead of the folder's own.
    pub keys: Option<&'a Path>,
    /// The services this machine has met.
    pub known: &'a KnownKeys,
}

/// A version that is what its service signed.
#[derive(Clone, Debug)]
pub struct Verified {
    /// Its manifest.
    pub manifest: VerifiedManifest,
    /// The first key of the service, which all trust goes back to.
    pub first_key: KeyId,
    /// The sequence of the keys document that was judged by: the newest there is.
    pub sequence: u64,
}

impl Verify<'_> {
    /// The keys and the manifest: who signed what. Reads no part.
    pub fn signatures(&self) -> Result<Verified, Error> {
        let own = self.folder.join(folder::KEYS);
        let mut keys = Keys::parse(&required(self.keys.unwrap_or(&own))?)?;
        let first = keys.first();
        let (first_key, known) = (first.key_id, self.known.documents_of(&first.public_key)?);
        if known.is_none() && self.keys.is_none() {
            return Err(Error::UnknownService { first: first_key });
        }
        // Why: a folder may be older than the last meeting, and a key of it revoked since.
        for met in known.into_iter().flatten() {
            if met.document().sequence > keys.document().sequence {
                met.follows(&keys)?;
                keys = met;
            } else {
                keys.follows(&met)?;
            }
        }
        let manifest = VerifiedManifest::parse(&required(&self.folder.join(folder::MANIFEST))?, &keys)?;
        Ok(Verified {
            manifest,
            first_key,
            sequence: keys.document().sequence,
        })
    }

    /// The parts and their records against a manifest whose signature holds; calls `verified` with the rows of each
    /// part that is right.
    pub fn parts(&self, manifest: &VerifiedManifest, verified: &(dyn Fn(u64) + Sync)) -> Result<(), Error> {
        Ok(folder::verify(manifest, self.folder, verified)?)
    }
}

fn required(path: &Path) -> Result<Vec<u8>, Error> {
    files::read(path)?.ok_or_else(|| Error::place(path, "does not exist"))
}
