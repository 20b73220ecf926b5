//! Offline verification of a pulled version.
//!
//! Invariant: it uses no network. A folder verifies only if its first key is trusted: by the caller, who names a keys
//! document, or by this machine, which has met the service.

use std::path::Path;

use proof::{KeyId, Keys, VerifiedManifest, folder};

use crate::{Error, KnownKeys, files};

/// A folder to verify, with the keys to trust.
#[derive(Clone, Copy, Debug)]
pub struct Verify<'a> {
    /// The folder of the pulled version.
    pub folder: &'a Path,
    /// A keys document to trust instead of the folder's own.
    pub keys: Option<&'a Path>,
    /// The services that this machine has met.
    pub known: &'a KnownKeys,
}

/// A version whose manifest is verified.
#[derive(Clone, Debug)]
pub struct VerifiedVersion {
    /// The verified manifest.
    pub manifest: VerifiedManifest,
    /// The first key of the service, from which all its other keys follow.
    pub first_key: KeyId,
    /// The sequence of the newest keys document, which the manifest was verified with.
    pub sequence: u64,
}

impl Verify<'_> {
    /// Verifies the keys and the signature of the manifest. Reads no part.
    ///
    /// # Errors
    /// [`Error::UnknownService`] if the first key is not trusted, [`Error::Proof`] if something is not proven,
    /// [`Error::File`] or [`Error::Place`] if a file cannot be read.
    pub fn signatures(&self) -> Result<VerifiedVersion, Error> {
        let own = self.folder.join(folder::KEYS_FILE);
        let mut keys = Keys::parse(&required(self.keys.unwrap_or(&own))?)?;
        let first = keys.first();
        let (first_key, known) = (first.key_id, self.known.documents_of(&first.public_key)?);
        // The folder's own keys document proves nothing by itself: the author of the folder may have written it.
        if known.is_none() && self.keys.is_none() {
            return Err(Error::UnknownService { key: first_key });
        }
        keys = newest(keys, known.into_iter().flatten())?;
        let manifest = VerifiedManifest::parse(&required(&self.folder.join(folder::MANIFEST_FILE))?, &keys)?;
        Ok(VerifiedVersion {
            manifest,
            first_key,
            sequence: keys.document().sequence,
        })
    }

    /// Verifies the parts and their records against a verified manifest. Calls `verified` with the number of rows of
    /// each verified part, from several threads.
    pub fn parts(&self, manifest: &VerifiedManifest, verified: &(dyn Fn(u64) + Sync)) -> Result<(), Error> {
        Ok(folder::verify(manifest, self.folder, verified)?)
    }
}

/// Returns the keys document to verify a document with that the key `signer` signed: `named`, if there is one, or that of
/// a service that this machine has met; of several of a service, the newest.
///
/// # Errors
/// [`Error::UnknownService`] if no service that this machine has met has the key, [`Error::Proof`] if a document takes a
/// key back, [`Error::File`] or [`Error::Place`] if a file cannot be read.
pub fn trusted_keys(named: Option<&Path>, signer: KeyId, known: &KnownKeys) -> Result<Keys, Error> {
    let Some(path) = named else {
        let met = known.document_with(signer)?;
        return met.ok_or(Error::UnknownService { key: signer });
    };
    let keys = Keys::parse(&required(path)?)?;
    let met = known.documents_of(&keys.first().public_key)?;
    newest(keys, met.into_iter().flatten())
}

/// Returns the newest of the keys documents of one service.
fn newest(mut keys: Keys, met: impl Iterator<Item = Keys>) -> Result<Keys, Error> {
    // A document may be older than the last meeting, and one of its keys revoked since then. So the newest counts.
    for met in met {
        if met.document().sequence > keys.document().sequence {
            met.follows(&keys)?;
            keys = met;
        } else {
            keys.follows(&met)?;
        }
    }
    Ok(keys)
}

fn required(path: &Path) -> Result<Vec<u8>, Error> {
    files::read(path)?.ok_or_else(|| Error::place(path, "does not exist"))
}
