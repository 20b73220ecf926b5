//! Parts in a bucket: clients put them there themselves, and any process of the service reads them.
//!
//! Invariant: those of [`S3Uploads`], under the numbers that parts have here.

use std::io;
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use catalog::storage::s3::{S3, S3Uploads, UploadFailure};
use types::{ContributionId, fault};

use crate::store::MAX_NAMED_PARTS;
use crate::{Error, PartTag, UploadLayout, UploadStore};

/// The uploads of a bucket. Cheap to clone.
#[derive(Clone, Debug)]
pub struct BucketUploads {
    uploads: S3Uploads,
}

impl BucketUploads {
    /// Creates the uploads of a bucket.
    pub fn new(store: S3) -> Self {
        Self {
            uploads: S3Uploads::new(store),
        }
    }
}

/// Returns the error for a refusal of the bucket, about part `n`.
fn refused(n: u32, refused: UploadFailure) -> Error {
    let first = |parts: Vec<u16>| parts.into_iter().take(MAX_NAMED_PARTS).map(u32::from).collect();
    match refused {
        UploadFailure::Missing(parts) => Error::Missing { missing: first(parts) },
        UploadFailure::Differing(parts) => Error::Differing {
            differing: first(parts),
        },
        UploadFailure::Closed => Error::Closed,
        UploadFailure::Gone => Error::Gone { n },
        UploadFailure::Changed => Error::Changed { n },
        UploadFailure::Storage(source) => Error::Io(io::Error::other(source)),
    }
}

#[async_trait]
impl UploadStore for BucketUploads {
    async fn begin(&self, layout: &UploadLayout, lasting: Duration) -> Result<Option<Vec<String>>, Error> {
        let begun = self.uploads.begin(layout, lasting).await;
        // Beginning is about no part. Part 1 stands for all where the error has to name one.
        begun.map(Some).map_err(|error| refused(1, error))
    }

    fn origin(&self) -> Option<String> {
        Some(self.uploads.origin())
    }

    async fn complete(&self, layout: &UploadLayout, tags: &[PartTag]) -> Result<(), Error> {
        let tags: Vec<String> = tags.iter().map(|tag| tag.etag.clone()).collect();
        let completed = self.uploads.complete(layout, &tags).await;
        completed.map_err(|error| refused(1, error))?;
        // After the parts are joined and before the caller's transaction: a crash here must leave an
        // upload that a second `complete` finds sealed and accepts.
        fault::point("upload.sealed");
        Ok(())
    }

    async fn read(&self, layout: &UploadLayout, n: u32, range: Range<u64>) -> Result<Bytes, Error> {
        let read = self.uploads.read(layout, n, range).await;
        read.map_err(|error| refused(n, error))
    }

    async fn delete(&self, upload: ContributionId) -> Result<(), Error> {
        self.uploads.delete(upload).await.map_err(|error| refused(1, error))
    }
}

#[cfg(test)]
mod tests;
