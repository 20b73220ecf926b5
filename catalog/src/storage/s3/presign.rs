//! Presigned addresses: Signature Version 4 in the query (*Authenticating Requests: Using Query Parameters*, Amazon S3
//! API Reference).
//!
//! Invariants: signatures use real time, even if the service has another clock, because the store checks them with its
//! own clock. The length of a part is a signed header, so the store refuses a part of another length.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use object_store::path::Path;
use rusty_s3::actions::{GetObject, UploadPart};
use rusty_s3::signing::sign;
use rusty_s3::{Bucket, Credentials, Method, S3Action};
use types::Clock as _;
use types::clock::SystemClock;

/// Signer of addresses for objects below a prefix of a bucket. A clone shares the credentials.
#[derive(Clone)]
pub struct Presigner {
    inner: Arc<SignerState>,
}

struct SignerState {
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
            inner: Arc::new(SignerState {
                bucket,
                credentials,
                prefix,
                store,
            }),
        }
    }

    /// Returns the endpoint in the form that the client library expects.
    pub(super) fn store_endpoint(&self) -> &str {
        &self.inner.store
    }

    /// Returns the origin of every address (RFC 6454 section 6.1).
    pub fn origin(&self) -> String {
        self.inner.bucket.base_url().origin().ascii_serialization()
    }

    /// Returns an address that reads an object. It is valid for `lasting`, at most 7 days.
    pub fn read(&self, object: &Path, lasting: Duration) -> String {
        let SignerState {
            bucket, credentials, ..
        } = &*self.inner;
        let key = self.key(object);
        signed(&GetObject::new(bucket, Some(credentials), &key), lasting)
    }

    /// Returns an address that accepts one part of an upload, of exactly `bytes` bytes.
    pub(super) fn part(&self, object: &Path, upload: &str, number: u16, bytes: u64, lasting: Duration) -> String {
        let SignerState {
            bucket, credentials, ..
        } = &*self.inner;
        let (key, length) = (self.key(object), bytes.to_string());
        let mut part = UploadPart::new(bucket, Some(credentials), &key, number, upload);
        // A signed header: the store refuses a request with another length.
        part.headers_mut().insert("content-length", length.as_str());
        signed(&part, lasting)
    }

    /// Returns an address that lists the parts of an upload with numbers above `after`.
    pub(super) fn parts(&self, object: &Path, upload: &str, after: u16, lasting: Duration) -> String {
        let after = after.to_string();
        let query = [("part-number-marker", after.as_str()), ("uploadId", upload)];
        self.call(Method::Get, object, &query, &[], lasting)
    }

    /// Returns an address that completes an upload. With `create` the request must have `If-None-Match: *`.
    pub(super) fn complete(&self, object: &Path, upload: &str, create: bool, lasting: Duration) -> String {
        let headers: &[_] = if create { &[("if-none-match", "*")] } else { &[] };
        self.call(Method::Post, object, &[("uploadId", upload)], headers, lasting)
    }

    /// Signs the address of a request. `query` and `headers` must be sorted by name.
    fn call(
        &self,
        method: Method,
        object: &Path,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        lasting: Duration,
    ) -> String {
        let SignerState {
            bucket, credentials, ..
        } = &*self.inner;
        // `sign` adds the header `host` itself.
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
    // The system clock is always within the range of a timestamp, so the fallback is never used.
    jiff::Timestamp::from_microsecond(now).unwrap_or_default()
}
