//! Configuration of a bucket: its address and credentials.
//!
//! Invariant: the debug output never shows a secret.

use std::fmt;
use std::time::Duration;

use object_store::path::Path;
use rusty_s3::{Bucket, Credentials, UrlStyle};

use super::{OpenError, Presigner};

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text; only [`Self::reveal`] returns it.
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// Returns the secret text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Address, credentials and timeouts of a bucket.
#[derive(Clone, Debug)]
pub struct S3Config {
    /// Address of the service without the bucket, such as `https://s3.example.org`. Empty for Amazon S3 in `region`.
    pub endpoint: String,
    /// Region that signatures contain.
    pub region: String,
    /// Name of the bucket.
    pub bucket: String,
    /// Prefix of all object names, without slashes at its ends. May be empty.
    pub prefix: String,
    /// Id of the access key.
    pub access_key: String,
    /// Secret of the access key.
    pub secret_key: Secret,
    /// True if the bucket is in the path of an address and not in the host name.
    pub path_style: bool,
    /// Timeout of one attempt of a request. A put has one more second per MiB.
    pub attempt: Duration,
    /// Time during which a request is retried.
    pub patience: Duration,
}

impl S3Config {
    /// Checks the values and creates the signer.
    ///
    /// # Errors
    /// [`OpenError::Config`] with the name of the wrong key.
    pub(super) fn presigner(&self) -> Result<Presigner, OpenError> {
        let wrong = |field, problem: &str| OpenError::Config {
            field,
            problem: problem.to_owned(),
        };
        for (field, value) in [
            ("bucket", &self.bucket),
            ("region", &self.region),
            ("access_key", &self.access_key),
            ("secret_key", &self.secret_key.0),
        ] {
            if value.is_empty() {
                return Err(wrong(field, "must not be empty"));
            }
        }
        // The name becomes part of a host name or a path.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if !self.bucket.bytes().all(plain) {
            return Err(wrong("bucket", "has a character that no bucket has"));
        }
        if !Path::parse(&self.prefix).is_ok_and(|parsed| parsed.as_ref() == self.prefix) {
            let problem = "must be names divided by single slashes, with none at its ends";
            return Err(wrong("prefix", problem));
        }
        // An address without a final slash, because the bucket or the object name follows.
        let endpoint = match self.endpoint.as_str() {
            "" => format!("https://s3.{}.amazonaws.com", self.region),
            endpoint => endpoint.trim_end_matches('/').to_owned(),
        };
        let url = endpoint
            .parse()
            .map_err(|error| wrong("endpoint", &format!("is not an address: {error}")))?;
        let style = if self.path_style {
            UrlStyle::Path
        } else {
            UrlStyle::VirtualHost
        };
        let bucket = Bucket::new(url, style, self.bucket.clone(), self.region.clone())
            .map_err(|error| wrong("endpoint", &format!("cannot be used: {error}")))?;
        // The client adds the bucket to the path by itself, and does not add it to the host.
        let store = if self.path_style {
            endpoint
        } else {
            bucket.base_url().as_str().trim_end_matches('/').to_owned()
        };
        let credentials = Credentials::new(self.access_key.clone(), self.secret_key.0.clone());
        Ok(Presigner::new(
            bucket,
            credentials,
            Path::from(self.prefix.as_str()),
            store,
        ))
    }
}
