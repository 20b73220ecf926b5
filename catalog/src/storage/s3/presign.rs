//! Addresses that are good without a credential: Signature Version 4 in the query (*Authenticating Requests: Using
//! Query Parameters*, Amazon S3 API Reference).
//!
//! Invariant: they are signed by real time, whatever the service's clock says, because the store judges them by its own.
//! The length of a part is a signed header, so a part of another length is refused by the store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use object_store::path::Path;
use rusty_s3::actions::{GetObject, UploadPart};
use rusty_s3::signing::sign;
use rusty_s3::{Bucket, Credentials, Method, S3Action};
use types::Clock as _;
use types::clock::SystemClock;

/// Signs addresses of objects below a prefix of a bucket. Cheap to clone.
#[derive(Clone)]
pub struct Presigner {
    inner: Arc<Inner>,
}

struct Inner {
    bucket: Bucket,
    credentials: Credentials,
    prefix: Path,
    store: String,
}

impl fmt::Debug for Presigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Presigner")
            .field("bucket", &self.inner.bucket.name())
            .finish_non_exhaustive()
    }
}

impl Presigner {
    pub(super) fn new(bucket: Bucket, credentials: Credentials, prefix: Path, store: String) -> Self {
        Self {
            inner: Arc::new(Inner {
                bucket,
                credentials,
                prefix,
                store,
            }),
        }
    }

    /// The endpoint as the client of the store wants it.
    pub(super) fn store_endpoint(&self) -> &str {
        &self.inner.store
    }

    /// The address from which an object can be read from now on for this long; 7 days at most.
    pub fn read(&self, object: &Path, lasting: Duration) -> String {
        let Inner {
            bucket, credentials, ..
        } = &*self.inner;
        let key = self.key(object);
        signed(&GetObject::new(bucket, Some(credentials), &key), lasting)
    }

    /// The address to which a part of an upload of exactly this many bytes can be put.
    pub(super) fn part(&self, object: &Path, upload: &str, number: u16, bytes: u64, lasting: Duration) -> String {
        let Inner {
            bucket, credentials, ..
        } = &*self.inner;
        let (key, length) = (self.key(object), bytes.to_string());
        let mut part = UploadPart::new(bucket, Some(credentials), &key, number, upload);
        part.headers_mut().insert("content-length", length.as_str());
        signed(&part, lasting)
    }

    /// The address that tells the parts of an upload with numbers above `after`.
    pub(super) fn parts(&self, object: &Path, upload: &str, after: u16, lasting: Duration) -> String {
        let after = after.to_string();
        let query = [("part-number-marker", after.as_str()), ("uploadId", upload)];
        self.call(Method::Get, object, &query, &[], lasting)
    }

    /// The address that completes an upload; with `create` for a request that has `If-None-Match: *`.
    pub(super) fn complete(&self, object: &Path, upload: &str, create: bool, lasting: Duration) -> String {
        let headers: &[_] = if create { &[("if-none-match", "*")] } else { &[] };
        self.call(Method::Post, object, &[("uploadId", upload)], headers, lasting)
    }

    /// The address of a call; query and headers are sorted by name.
    fn call(
        &self,
        method: Method,
        object: &Path,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        lasting: Duration,
    ) -> String {
        let Inner {
            bucket, credentials, ..
        } = &*self.inner;
        // The host is a header as any other, and signed by itself.
        let signed = sign(
            &now(),
            method,
            bucket.object_url(&self.key(object)),
            credentials.key(),
            credentials.secret(),
            credentials.token(),
            bucket.region(),
            lasting.as_secs(),
            query.iter().copied(),
            headers.iter().copied(),
        );
        signed.into()
    }

    fn key(&self, object: &Path) -> String {
        let prefix = &self.inner.prefix;
        prefix.parts().chain(object.parts()).collect::<Path>().into()
    }
}

fn signed<'a>(action: &impl S3Action<'a>, lasting: Duration) -> String {
    action.sign_with_time(lasting, &now()).into()
}

fn now() -> jiff::Timestamp {
    let now = SystemClock::default().now().micros();
    // Why the fallback: an instant of the system's clock is always within what a signature can name.
    jiff::Timestamp::from_microsecond(now).unwrap_or_default()
}
