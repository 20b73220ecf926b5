//! Where a bucket is and who may use it.
//!
//! Invariant: a secret is never shown, whatever is printed.

use std::fmt;
use std::time::Duration;

use object_store::path::Path;
use rusty_s3::{Bucket, Credentials, UrlStyle};

use super::{OpenError, Presigner};

/// A text that must not be seen.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text.
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A bucket and how to talk to it.
#[derive(Clone, Debug)]
pub struct S3Config {
    /// The address of the service, such as `https://s3.example.org`, without the bucket; empty for Amazon's in the region.
    pub endpoint: String,
    /// The region that signatures name.
    pub region: String,
    /// The bucket.
    pub bucket: String,
    /// What the names of all objects begin with, without slashes at its ends; may be empty.
    pub prefix: String,
    /// Whose key is used.
    pub access_key: String,
    /// The secret of the key.
    pub secret_key: Secret,
    /// Whether the bucket is named in the path rather than in the host.
    pub path_style: bool,
    /// How long one try of a request may take; a put has a second more for each MiB.
    pub attempt: Duration,
    /// For how long a request is tried again.
    pub patience: Duration,
}

impl S3Config {
    /// Checks the values and makes the signer of addresses.
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
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if !self.bucket.bytes().all(plain) {
            return Err(wrong("bucket", "has a character that no bucket has"));
        }
        if !Path::parse(&self.prefix).is_ok_and(|parsed| parsed.as_ref() == self.prefix) {
            let problem = "must be names divided by single slashes, with none at its ends";
            return Err(wrong("prefix", problem));
        }
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
