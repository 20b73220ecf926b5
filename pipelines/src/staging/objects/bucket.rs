//! Parts in a bucket: clients put them there themselves, and any process of the service reads them.
//!
//! Invariant: those of [`Uploads`], under the numbers that parts have here.

use std::io;
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use catalog::storage::s3::{self, Refused, S3, Uploads};
use types::{ContributionId, fault};

use super::{Cut, Error, NAMED, Objects, PartTag};

/// The uploads of a bucket. Cheap to clone.
#[derive(Clone, Debug)]
pub struct BucketObjects {
    uploads: Uploads,
}

impl BucketObjects {
    /// Those of this bucket.
    pub fn new(store: S3) -> Self {
        Self {
            uploads: Uploads::new(store),
        }
    }
}

/// The upload as the bucket knows it.
fn known(cut: &Cut) -> Result<s3::UploadLayout, Error> {
    Ok(s3::UploadLayout {
        upload: cut.upload,
        bytes: cut.bytes,
        parts: numbered(cut.parts)?,
        part_size: cut.part_size,
    })
}

fn numbered(n: u32) -> Result<u16, Error> {
    u16::try_from(n).map_err(|error| Error::Io(io::Error::other(error)))
}

/// What the bucket refuses, said of part `n`.
fn refused(n: u32, refused: Refused) -> Error {
    let first = |parts: Vec<u16>| parts.into_iter().take(NAMED).map(u32::from).collect();
    match refused {
        Refused::Missing(parts) => Error::Missing { missing: first(parts) },
        Refused::Differing(parts) => Error::Differing {
            differing: first(parts),
        },
        Refused::Closed => Error::Closed,
        Refused::Gone => Error::Gone { n },
        Refused::Changed => Error::Changed { n },
        Refused::Storage(source) => Error::Io(io::Error::other(source)),
    }
}

#[async_trait]
impl Objects for BucketObjects {
    async fn begin(&self, cut: &Cut, lasting: Duration) -> Result<Option<Vec<String>>, Error> {
        let begun = self.uploads.begin(&known(cut)?, lasting).await;
        begun.map(Some).map_err(|error| refused(1, error))
    }

    async fn complete(&self, cut: &Cut, tags: &[PartTag]) -> Result<(), Error> {
        let tags: Vec<String> = tags.iter().map(|tag| tag.etag.clone()).collect();
        let completed = self.uploads.complete(&known(cut)?, &tags).await;
        completed.map_err(|error| refused(1, error))?;
        fault::point("upload.sealed");
        Ok(())
    }

    async fn read(&self, cut: &Cut, n: u32, range: Range<u64>) -> Result<Bytes, Error> {
        let read = self.uploads.read(&known(cut)?, numbered(n)?, range).await;
        read.map_err(|error| refused(n, error))
    }

    async fn delete(&self, upload: ContributionId) -> Result<(), Error> {
        self.uploads.delete(upload).await.map_err(|error| refused(1, error))
    }
}

#[cfg(test)]
mod tests;
