//! The section `objects`: the store of the tables.
//!
//! Invariant: no output shows a secret.

use std::fmt;

use serde::Deserialize;

use types::{HumanDuration, Size};

/// Backend of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// A folder in the data folder.
    Local,
    /// A bucket of an S3 API.
    S3,
}

/// Section `objects`: the store of the tables.
#[derive(Clone, Deserialize)]
pub struct Objects {
    /// The backend of the store.
    pub backend: Backend,
    /// The address of the S3 service. Empty means Amazon's in the region.
    pub endpoint: String,
    /// The region that requests are signed for.
    pub region: String,
    /// The name of the bucket.
    pub bucket: String,
    /// First part of the names of all objects.
    pub prefix: String,
    /// The id of the access key.
    pub access_key: String,
    /// The secret of the access key.
    pub secret_key: String,
    /// True if the bucket is named in the path of an address, false if in the host.
    pub path_style: bool,
    /// The time-out of one attempt of a request. A put has a second more per MiB.
    pub attempt: HumanDuration,
    /// The time for which a request is retried.
    pub patience: HumanDuration,
    /// The most disk space for the copies of parts that queries read.
    pub cache: Size,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects")
            .field("backend", &self.backend)
            .field("endpoint", &self.endpoint)
            .field("bucket", &self.bucket)
            .field("prefix", &self.prefix)
            // Keys are left out, also the access key's id.
            .finish_non_exhaustive()
    }
}

#[cfg(feature = "s3")]
impl Objects {
    /// Returns the settings of the bucket.
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
