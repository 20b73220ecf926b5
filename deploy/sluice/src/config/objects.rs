//! The section `objects`: where tables are kept.
//!
//! Invariant: a secret is not shown, whatever is printed.

use std::fmt;

use serde::Deserialize;

use super::{Size, Span};

/// What keeps the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The folder of the service's data.
    Local,
    /// A bucket of an S3 API.
    S3,
}

/// Where tables are kept.
#[derive(Clone, Deserialize)]
pub struct Objects {
    /// What keeps them.
    pub backend: Backend,
    /// The address of the S3 service; empty for Amazon's in the region.
    pub endpoint: String,
    /// The region that signatures name.
    pub region: String,
    /// The bucket.
    pub bucket: String,
    /// What the names of all objects begin with.
    pub prefix: String,
    /// Whose key is used.
    pub access_key: String,
    /// The secret of the key.
    pub secret_key: String,
    /// Whether the bucket is named in the path rather than in the host.
    pub path_style: bool,
    /// How long one try of a request may take.
    pub attempt: Span,
    /// For how long a request is tried again.
    pub patience: Span,
    /// How much of the disk copies of parts for queries may take.
    pub cache: Size,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects")
            .field("backend", &self.backend)
            .field("endpoint", &self.endpoint)
            .field("bucket", &self.bucket)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

#[cfg(feature = "s3")]
impl Objects {
    /// The bucket.
    pub fn bucket(&self) -> catalog::storage::s3::S3Config {
        catalog::storage::s3::S3Config {
            endpoint: self.endpoint.clone(),
            region: self.region.clone(),
            bucket: self.bucket.clone(),
            prefix: self.prefix.clone(),
            access_key: self.access_key.clone(),
            secret_key: catalog::storage::s3::Secret::new(self.secret_key.clone()),
            path_style: self.path_style,
            attempt: self.attempt.0,
            patience: self.patience.0,
        }
    }
}
