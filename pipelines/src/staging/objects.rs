//! Where the parts of uploads are until their contribution is decided.
//!
//! Invariant: a part that was put is durable and whole, or it is not there. Once an upload is sealed its parts never
//! change.

#[cfg(feature = "s3")]
mod bucket;
#[cfg(test)]
mod conformance;
mod local;

use std::fmt::Debug;
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
pub use types::vocabulary::Compression;
use types::{Classify, ContributionId, Kind, Retry};

#[cfg(feature = "s3")]
pub use bucket::BucketObjects;
pub use local::{LocalObjects, PartWriter};

/// An upload and how it is cut into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cut {
    /// The upload's id; that of its contribution too.
    pub upload: ContributionId,
    /// How many bytes all parts have together.
    pub bytes: u64,
    /// How many parts there are.
    pub parts: u32,
    /// The size of every part but the last.
    pub part_size: u64,
    /// How the bytes are compressed.
    #[serde(default)]
    pub compression: Compression,
}

impl Cut {
    /// The size of part `n`, from 1; `None` where there is no such part.
    pub fn size_of(&self, n: u32) -> Option<u64> {
        if n == 0 || n > self.parts {
            return None;
        }
        let before = self.part_size.checked_mul(u64::from(n - 1))?;
        let left = self.bytes.checked_sub(before)?;
        Some(if n == self.parts { left } else { self.part_size })
    }
}

/// How many parts an error names.
const NAMED: usize = 20;

/// What a part that was put is known by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartTag {
    /// Its number, from 1.
    pub n: u32,
    /// Its `ETag`, without quotes.
    pub etag: String,
}

/// Why parts could not be read, written or sealed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Parts that are named are not there.
    #[error("parts {missing:?} were not sent")]
    Missing {
        /// The first of them, a few.
        missing: Vec<u32>,
    },
    /// Parts are there with other tags.
    #[error("parts {differing:?} have other tags")]
    Differing {
        /// The first of them, a few.
        differing: Vec<u32>,
    },
    /// The upload is sealed, or its parts are deleted.
    #[error("the upload takes no parts any more")]
    Closed,
    /// The bytes are gone.
    #[error("part {n} is gone")]
    Gone {
        /// The part.
        n: u32,
    },
    /// Other bytes are where those that were sealed were.
    #[error("part {n} was exchanged for another after it was sealed")]
    Changed {
        /// The part.
        n: u32,
    },
    /// The store could not be reached, or refused.
    #[error("the parts of an upload could not be read or written")]
    Io(#[source] std::io::Error),
}

impl Classify for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Missing { .. } | Self::Differing { .. } | Self::Closed | Self::Changed { .. } => Kind::Conflict,
            Self::Gone { .. } => Kind::NotFound,
            Self::Io(_) => Kind::Unavailable,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Io(_) => Retry::Backoff,
            _ => Retry::Never,
        }
    }
}

/// A place for the parts of uploads. Object safe.
#[async_trait]
pub trait Objects: Debug + Send + Sync {
    /// Makes room for an upload that has none: where each part can be put, in order, for as long as `lasting`, by who
    /// has nothing but the address, and with nothing but the length of the part; `None` where the service takes parts
    /// itself, under addresses that it signs.
    async fn begin(&self, cut: &Cut, lasting: Duration) -> Result<Option<Vec<String>>, Error>;

    /// Seals an upload whose parts are there with these tags, one for each part in order; sealed before, it only
    /// compares. From then on its parts never change.
    async fn complete(&self, cut: &Cut, tags: &[PartTag]) -> Result<(), Error>;

    /// Bytes of part `n` of a sealed upload: those that were sealed, or an error.
    async fn read(&self, cut: &Cut, n: u32, range: Range<u64>) -> Result<Bytes, Error>;

    /// Deletes what there is of an upload, sealed or not; it takes no parts any more. Nothing is nothing to do.
    async fn delete(&self, upload: ContributionId) -> Result<(), Error>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_has_what_is_left() {
        let cut = Cut {
            upload: ContributionId::from_bytes([1; 16]),
            bytes: 10,
            parts: 3,
            part_size: 4,
            compression: Compression::None,
        };
        let sizes: Vec<_> = (0..5).map(|n| cut.size_of(n)).collect();
        assert_eq!(sizes, [None, Some(4), Some(4), Some(2), None]);
        let one = Cut {
            parts: 1,
            part_size: 10,
            ..cut
        };
        assert_eq!(one.size_of(1), Some(10));
    }
}
