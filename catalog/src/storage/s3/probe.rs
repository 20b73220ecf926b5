//! Test of a store for the operations that tables need.
//!
//! Invariant: the test writes one object with a unique name and deletes it.

use bytes::Bytes;
use object_store::multipart::MultipartStore as _;
use object_store::path::Path;
use object_store::{Error, ObjectStore as _, ObjectStoreExt as _, PutMode, PutPayload};
use types::{Clock as _, ContributionId};

use super::call::UploadCompletion;
use super::{OpenError, S3};

/// Prefix of the test objects.
const PROBES_PREFIX: &str = "_sluice-probe";

impl S3 {
    /// Tests the store. Returns true if it also supports the conditional completion of multipart uploads.
    pub(super) async fn probe(&self) -> Result<bool, OpenError> {
        // An id has enough randomness for a name.
        let id = ContributionId::new(types::clock::SystemClock::default().now());
        let path = Path::from(format!("{PROBES_PREFIX}/{id}"));
        let put =
            |text: &'static str| self.put_opts(&path, PutPayload::from_static(text.as_bytes()), PutMode::Create.into());
        put("first").await.map_err(|source| self.unusable(source))?;
        // A store that ignores the condition accepts this put.
        let again = put("second").await;
        let read = async { self.get(&path).await?.bytes().await };
        let read = read.await;
        // The test object still exists here, which this test needs.
        let conditional_completion = self.completes_conditionally(&path).await;
        if let Err(error) = self.delete(&path).await {
            tracing::warn!(%path, %error, "cannot delete the object that tested the bucket");
        }
        let bucket = || self.name.clone();
        match again {
            Err(Error::AlreadyExists { .. }) => {}
            Ok(_) => return Err(OpenError::Unconditional { bucket: bucket() }),
            Err(source) => return Err(self.unusable(source)),
        }
        let bytes = read.map_err(|source| self.unusable(source))?;
        if bytes != Bytes::from_static(b"first") {
            return Err(OpenError::Unfaithful { bucket: bucket() });
        }
        Ok(conditional_completion)
    }

    /// Returns true if the store refuses to complete a conditional upload over an existing object. On other stores
    /// large objects are put in one request.
    async fn completes_conditionally(&self, taken: &Path) -> bool {
        let tried = async {
            let upload = self.reading.create_multipart(taken).await?;
            let completed = async {
                let part = self
                    .reading
                    .put_part(taken, &upload, 0, PutPayload::from_static(b"third"));
                let tag = part.await?.content_id;
                self.complete_parts(taken, &upload, &[tag], true, 5).await
            };
            let completed = completed.await;
            if !matches!(completed, Ok(UploadCompletion::Done))
                // An upload that was not completed keeps its part, so it is aborted.
                && let Err(error) = self.reading.abort_multipart(taken, &upload).await
            {
                tracing::warn!(%taken, %error, "cannot abort the multipart upload that tested the bucket");
            }
            completed
        };
        match tried.await {
            Ok(UploadCompletion::Taken) => true,
            other => {
                tracing::info!(
                    ?other,
                    "the bucket does not support conditional multipart uploads; large objects are put in one request"
                );
                false
            }
        }
    }
}
