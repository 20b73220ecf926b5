//! Whether a store does what tables need, found out by trying.
//!
//! Invariant: it writes one object under a name that nobody else has, and takes it away again.

use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error, ObjectStore as _, ObjectStoreExt as _, PutMode, PutPayload};
use types::{Clock as _, ContributionId};

use super::{OpenError, S3};

/// Where the objects of probes are.
const PROBES: &str = "_sluice-probe";

impl S3 {
    pub(super) async fn probe(&self) -> Result<(), OpenError> {
        // An id has enough randomness for a name.
        let id = ContributionId::new(types::clock::SystemClock::default().now());
        let path = Path::from(format!("{PROBES}/{id}"));
        let put =
            |text: &'static str| self.put_opts(&path, PutPayload::from_static(text.as_bytes()), PutMode::Create.into());
        put("first").await.map_err(|source| self.unusable(source))?;
        let again = put("second").await;
        let read = async { self.get(&path).await?.bytes().await };
        let read = read.await;
        if let Err(error) = self.delete(&path).await {
            tracing::warn!(%path, %error, "the object of a probe could not be deleted");
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
        Ok(())
    }
}
