//! Layout of an upload in a bucket: the grouping of parts into objects, and the documents beside them.
//!
//! Invariant: the layout depends only on the sizes of the upload, so all processes compute the same.

use std::iter;
use std::ops::Range;

use object_store::path::Path;
use serde::{Deserialize, Serialize};
use types::{ContributionId, UploadLayout};

use super::{UploadFailure, failed};

/// Prefix of all uploads.
const UPLOADS_PREFIX: &str = "_uploads";
/// Minimum size in bytes of a part that is not the last of its object (*Amazon S3 multipart upload limits*).
const MIN_PART_BYTES: u64 = 5 << 20;

/// An upload and its division into parts, which are numbered as in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ObjectUploadLayout {
    pub(super) upload: ContributionId,
    bytes: u64,
    /// Number of parts, at most 10,000.
    pub(super) parts: u16,
    part_size: u64,
}

/// Returns the number of a part as a bucket counts parts.
pub(super) fn numbered(n: u32) -> Result<u16, UploadFailure> {
    u16::try_from(n).map_err(|error| UploadFailure::Storage(failed(error)))
}

impl ObjectUploadLayout {
    pub(super) fn of(layout: &UploadLayout) -> Result<Self, UploadFailure> {
        Ok(Self {
            upload: layout.upload,
            bytes: layout.bytes,
            parts: numbered(layout.parts)?,
            part_size: layout.part_size,
        })
    }

    /// Returns the range of part numbers of each object. Numbers begin with 1.
    pub(super) fn objects(&self) -> Vec<Range<u16>> {
        let end = self.parts.saturating_add(1);
        // Only the last part of an object may be smaller than the minimum.
        if self.parts == 1 || self.part_size >= MIN_PART_BYTES {
            iter::once(1..end).collect()
        } else {
            (1..end).map(|n| n..n + 1).collect()
        }
    }

    /// Returns the number of bytes before part `n`.
    pub(super) fn before(&self, n: u16) -> u64 {
        self.part_size
            .saturating_mul(u64::from(n.saturating_sub(1)))
            .min(self.bytes)
    }

    /// Returns the number of bytes in these parts.
    pub(super) fn bytes_of(&self, parts: &Range<u16>) -> u64 {
        self.before(parts.end) - self.before(parts.start)
    }
}

/// Content of the object `begun`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BegunMarker {
    /// First part of each object, and the id of its multipart upload.
    pub(super) objects: Vec<(u16, String)>,
}

/// Content of the object `sealed`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SealedMarker {
    /// Entity tags of the parts, in order.
    pub(super) tags: Vec<String>,
    /// First part of each object, and the entity tag of the object.
    pub(super) objects: Vec<(u16, String)>,
}

pub(super) fn object(upload: ContributionId, first: u16) -> Path {
    Path::from(format!("{UPLOADS_PREFIX}/{upload}/parts-{first}"))
}

pub(super) fn begun_path(upload: ContributionId) -> Path {
    Path::from(format!("{UPLOADS_PREFIX}/{upload}/begun"))
}

pub(super) fn sealed_path(upload: ContributionId) -> Path {
    Path::from(format!("{UPLOADS_PREFIX}/{upload}/sealed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(bytes: u64, parts: u16, part_size: u64) -> ObjectUploadLayout {
        ObjectUploadLayout {
            upload: ContributionId::from_bytes([1; 16]),
            bytes,
            parts,
            part_size,
        }
    }

    #[test]
    fn parts_that_a_store_does_not_join_are_an_object_each() {
        let small = layout(10, 3, 4);
        assert_eq!(small.objects(), [1..2, 2..3, 3..4]);
        let sizes: Vec<_> = small.objects().iter().map(|parts| small.bytes_of(parts)).collect();
        assert_eq!(sizes, [4, 4, 2]);
        let one = layout(3, 1, 4);
        assert_eq!((one.objects().len(), one.bytes_of(&one.objects()[0])), (1, 3));
        let large = layout(2 * MIN_PART_BYTES + 1, 3, MIN_PART_BYTES);
        assert_eq!((large.objects().len(), &large.objects()[0]), (1, &(1..4)));
        assert_eq!(
            (large.bytes_of(&(1..4)), large.bytes_of(&(3..4))),
            (2 * MIN_PART_BYTES + 1, 1)
        );
        assert_eq!(layout(2 * MIN_PART_BYTES, 3, MIN_PART_BYTES - 1).objects().len(), 3);
    }
}
