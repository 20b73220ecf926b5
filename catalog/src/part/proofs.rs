//! Cache of the proofs of large parts: the hashes of their blocks, kept after the first read.
//!
//! The commit of a large part contains the hashes. If an older commit has none, the part is read whole once, verified
//! against its SHA-256, and hashed in the same pass.
//!
//! Invariants: the cache never exceeds its budget. Its key is the SHA-256 of the part, so a proof never belongs to
//! other bytes.

use std::collections::HashMap;
use std::sync::Arc;

use object_store::{ObjectStore, ObjectStoreExt as _};
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest as _, Sha256};
use types::Proof;
use types::proof::{Blocks, MAX_WHOLE_BYTES};

use super::{PartInfo, PartSource, lost};
use crate::{Error, log};

/// Maximum size of all cached proofs in bytes, which suffices for 256 GiB of parts.
const CACHE_BYTES: usize = 64 << 20;
/// Bytes per read request for a part whose commit has no hashes.
const PIECE_BYTES: u64 = 8 << 20;

/// Proofs by the SHA-256 of their part.
#[derive(Debug, Default)]
pub(crate) struct Proofs {
    kept: Mutex<CachedProofs>,
}

#[derive(Debug, Default)]
struct CachedProofs {
    proofs: HashMap<[u8; 32], Arc<Proof>>,
    bytes: usize,
}

impl Proofs {
    fn get(&self, part: &PartInfo) -> Option<Arc<Proof>> {
        self.lock().proofs.get(&part.sha256).map(Arc::clone)
    }

    /// Caches a proof. If the budget is exceeded, all other proofs are dropped.
    fn put(&self, part: &PartInfo, proof: &Arc<Proof>) {
        let mut kept = self.lock();
        let size = proof.memory();
        if kept.bytes + size > CACHE_BYTES {
            *kept = CachedProofs::default();
        }
        if kept.proofs.insert(part.sha256, Arc::clone(proof)).is_none() {
            kept.bytes += size;
        }
    }

    fn lock(&self) -> MutexGuard<'_, CachedProofs> {
        self.kept.lock()
    }
}

/// Returns the proof of a part of any size: from the cache, from its commit, or computed from its bytes.
pub(crate) async fn proof(source: PartSource<'_>, part: &PartInfo) -> Result<Arc<Proof>, Error> {
    if part.bytes <= MAX_WHOLE_BYTES {
        return Ok(Arc::new(Proof::whole(part.bytes, part.sha256)));
    }
    if let Some(proof) = source.proofs.get(part) {
        return Ok(proof);
    }
    let proof = Arc::new(Box::pin(found(source, part)).await?);
    source.proofs.put(part, &proof);
    Ok(proof)
}

/// Reads the proof of a part from its commit, or computes it if the commit has none.
async fn found(source: PartSource<'_>, part: &PartInfo) -> Result<Proof, Error> {
    if let Some(number) = source.commit_of(part)
        && let Some(proof) = log::proof_of(source.objects, source.dataset, number, part).await?
    {
        return Ok(proof);
    }
    hashed(source, part).await
}

/// Reads all of a part whose commit has no proof, verifies its SHA-256 and computes the proof.
async fn hashed(source: PartSource<'_>, part: &PartInfo) -> Result<Proof, Error> {
    let path = part.path(source.dataset);
    let objects: &Arc<dyn ObjectStore> = source.objects;
    let (mut sha256, mut blocks, mut at) = (Sha256::new(), Blocks::default(), 0);
    while at < part.bytes {
        let end = part.bytes.min(at + PIECE_BYTES);
        let piece = match objects.get_range(&path, at..end).await {
            Ok(piece) => piece,
            Err(error) => return Err(lost(objects, &path, error).await),
        };
        if piece.len() as u64 != end - at {
            return Err(Error::corrupt(&path, "it is shorter than its commit says"));
        }
        sha256.update(&piece);
        blocks.update(&piece);
        at = end;
    }
    if sha256.finalize()[..] != part.sha256 {
        return Err(Error::corrupt(&path, "its SHA-256 is not the one in its commit"));
    }
    Ok(blocks.finish())
}
