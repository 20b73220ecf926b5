//! Where the parts of uploads are until their contribution is decided.
//!
//! Invariant: a part that was put is durable and whole, or it is not there. Once an upload is sealed its parts never
//! change.

use std::fmt::Debug;
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use types::{Classify, ContributionId, Kind, Retry, UploadLayout};

/// Most parts that an error names.
pub(crate) const MAX_NAMED_PARTS: usize = 20;

/// Number and tag of a part that was put.
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
        /// Number of the part, from 1.
        n: u32,
    },
    /// Other bytes are where those that were sealed were.
    #[error("part {n} was exchanged for another after it was sealed")]
    Changed {
        /// Number of the part, from 1.
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
pub trait UploadStore: Debug + Send + Sync {
    /// Makes room for an upload that has none: where each part can be put, in order, for as long as `lasting`, by who
    /// has nothing but the address, and with nothing but the length of the part; `None` where the service takes parts
    /// itself, under addresses that it signs.
    async fn begin(&self, layout: &UploadLayout, lasting: Duration) -> Result<Option<Vec<String>>, Error>;

    /// Returns the origin of the addresses that `begin` gives, for the pages that send parts there; `None` where the
    /// service takes parts itself.
    fn origin(&self) -> Option<String> {
        None
    }

    /// Seals an upload whose parts are there with these tags, one for each part in order; sealed before, it only
    /// compares. From then on its parts never change.
    async fn complete(&self, layout: &UploadLayout, tags: &[PartTag]) -> Result<(), Error>;

    /// Bytes of part `n` of a sealed upload: those that were sealed, or an error.
    async fn read(&self, layout: &UploadLayout, n: u32, range: Range<u64>) -> Result<Bytes, Error>;

    /// Deletes what there is of an upload, sealed or not; it takes no parts any more. Nothing is nothing to do.
    async fn delete(&self, upload: ContributionId) -> Result<(), Error>;
}
