//! Sketches: figures of the rows of a part that somebody computed from it, kept beside the table.
//!
//! Invariants:
//! - A sketch is returned only if it is whole, and of this part and this tag. What is damaged or of something else counts
//!   as missing, with a warning: it is derived, so whoever made it makes it again.
//! - The content of a sketch is opaque here.

use bytes::Bytes;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use types::DatasetId;

use crate::{Error, PartInfo, Snapshot, commit};

/// First bytes of every sketch object of this format.
const SKETCH_MAGIC: &[u8; 16] = b"sluice sketch 1\n";
/// Number of bytes of a hash.
const HASH_BYTES: usize = 32;

impl Snapshot {
    /// Returns the sketch of a part that was put with the same tag. Returns `None` if there is none that can be used.
    ///
    /// # Errors
    /// [`Error::Storage`] if the store does not answer.
    pub async fn sketch(&self, part: &PartInfo, tag: &[u8; HASH_BYTES]) -> Result<Option<Bytes>, Error> {
        let (state, path) = (self.state(), path(self.dataset(), part));
        let found = async { state.objects.get(&path).await?.bytes().await };
        let bytes = match found.await {
            Ok(bytes) => bytes,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(Error::storage(&path, error)),
        };
        let sketch = decode(&head(self.dataset(), part, tag), &bytes);
        if sketch.is_none() {
            tracing::warn!(%path, "a sketch is damaged or of something else; it is made again");
        }
        Ok(sketch)
    }

    /// Puts the sketch of a part, in the place of the one before. The tag names whatever the sketch depends on beside the
    /// rows. Returns the size of the object in bytes.
    ///
    /// # Errors
    /// [`Error::Storage`] if the store does not take it.
    pub async fn put_sketch(&self, part: &PartInfo, tag: &[u8; HASH_BYTES], sketch: &[u8]) -> Result<u64, Error> {
        let bytes = encode(&head(self.dataset(), part, tag), sketch);
        let size = bytes.len() as u64;
        commit::overwrite(self.state(), &path(self.dataset(), part), bytes.into()).await?;
        Ok(size)
    }
}

fn path(dataset: DatasetId, part: &PartInfo) -> Path {
    Path::from(format!("{dataset}/_sluice/profile-1-{}", part.name()))
}

/// Returns the beginning of the object: format, dataset, hash and rows of the part, and the tag.
fn head(dataset: DatasetId, part: &PartInfo, tag: &[u8; HASH_BYTES]) -> Vec<u8> {
    let mut head = Vec::with_capacity(104);
    head.extend_from_slice(SKETCH_MAGIC);
    head.extend_from_slice(dataset.as_bytes());
    head.extend_from_slice(&part.sha256);
    head.extend_from_slice(&part.rows.to_le_bytes());
    head.extend_from_slice(tag);
    head
}

fn encode(head: &[u8], sketch: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(head.len() + sketch.len() + HASH_BYTES);
    bytes.extend_from_slice(head);
    bytes.extend_from_slice(sketch);
    let checksum = *blake3::hash(&bytes).as_bytes();
    bytes.extend_from_slice(&checksum);
    bytes
}

fn decode(head: &[u8], bytes: &Bytes) -> Option<Bytes> {
    let (body, checksum) = bytes.split_last_chunk::<HASH_BYTES>()?;
    if blake3::hash(body) != *checksum {
        return None;
    }
    Some(bytes.slice_ref(body.strip_prefix(head)?))
}

#[cfg(test)]
mod tests {
    use types::{ContributionId, Timestamp, Version};

    use super::*;

    fn part(sha256: [u8; 32], rows: u64) -> PartInfo {
        PartInfo {
            version: Version(3),
            compacted: None,
            contribution: ContributionId::new(Timestamp::from_micros(1)),
            index: 0,
            attempt: 0,
            rows,
            bytes: 10,
            sha256,
        }
    }

    #[test]
    fn a_sketch_of_something_else_or_with_a_bit_changed_is_nothing() {
        let dataset = DatasetId::new(Timestamp::from_micros(1));
        let own = head(dataset, &part([1; 32], 7), &[2; 32]);
        let bytes = Bytes::from(encode(&own, b"figures"));
        assert_eq!(decode(&own, &bytes).as_deref(), Some(&b"figures"[..]));
        for other in [
            head(dataset, &part([3; 32], 7), &[2; 32]),
            head(dataset, &part([1; 32], 8), &[2; 32]),
            head(dataset, &part([1; 32], 7), &[4; 32]),
            head(DatasetId::new(Timestamp::from_micros(2)), &part([1; 32], 7), &[2; 32]),
        ] {
            assert!(decode(&other, &bytes).is_none());
        }
        for place in 0..bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[place] ^= 1;
            assert!(decode(&own, &damaged.into()).is_none(), "{place}");
            assert!(decode(&own, &bytes.slice(..place)).is_none(), "{place}");
        }
    }
}
