//! A bucket with an S3 API as an object store with durable puts.
//!
//! Invariants:
//! - A put-if-absent has one winner, even if answers are lost. A caller that does not know if its put arrived compares
//!   the existing object with its own bytes. So it never takes its own object for another's.
//! - Every request ends: each attempt within its timeout, all attempts together within the patience.
//! - A store that ignores `If-None-Match` is never used. [`S3::open`] tests it.
//! - A body of another length than announced is an error, and never a shorter object.
//! - A file of more than some megabytes is sent in parts, of which a few are in memory.
//!
//! S3 shows an object only once it is durable, and a read sees every earlier write (*Amazon S3 data consistency
//! model*), so [`DurableStore::sync_dir`] has nothing to do.

mod body;
mod call;
mod config;
mod multipart;
mod presign;
mod probe;
mod put;
mod put_file;
mod uploads;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{HttpClient, HttpConnector as _, ReqwestConnector};
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{
    BackoffConfig, ClientOptions, CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, RetryConfig,
};
use types::Backoff;

use super::DurableStore;
pub use config::{S3Config, Secret};
pub use multipart::{CompletedUpload, ListedPart, PartAddress, UploadError};
pub use presign::Presigner;
pub use uploads::{S3Uploads, UploadFailure};

/// Timeout of establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The first wait before a request is tried again, and the longest.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(50),
    most: Duration::from_secs(3),
};

/// Objects below a prefix of a bucket. A clone shares the connections.
#[derive(Clone)]
pub struct S3 {
    /// Client for reads, which retries by itself.
    reading: PrefixStore<AmazonS3>,
    /// Client for puts, which tries once; `put_with_retries` retries.
    putting: PrefixStore<AmazonS3>,
    /// Client for requests that the other clients do not offer; tries once.
    calling: HttpClient,
    /// True if the store supports `If-None-Match` on the completion of a multipart upload.
    conditional_completion: bool,
    presigner: Presigner,
    /// Bucket and prefix, for log lines and errors.
    name: String,
    attempt: Duration,
    patience: Duration,
}

/// Failure to open a bucket.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A value of the configuration is not valid.
    #[error("`objects.{field}` {problem}")]
    Config {
        /// Key within its section of the configuration.
        field: &'static str,
        /// Rule that the value breaks.
        problem: String,
    },
    /// The store did not answer, or it refused a request.
    #[error("the bucket `{bucket}` cannot be used")]
    Unusable {
        /// Name of the bucket, with the prefix.
        bucket: String,
        /// Error of the store.
        #[source]
        source: object_store::Error,
    },
    /// The store overwrote an object despite `If-None-Match: *`. Two owners of a table would lose each other's merges.
    #[error(
        "the store of the bucket `{bucket}` ignores `If-None-Match: *` on a put: it replaced an object that existed. \
         Tables need a store with conditional writes"
    )]
    Unconditional {
        /// Name of the bucket, with the prefix.
        bucket: String,
    },
    /// A read returned other bytes than were put.
    #[error("the store of the bucket `{bucket}` returns other bytes than were put")]
    Unfaithful {
        /// Name of the bucket, with the prefix.
        bucket: String,
    },
}

impl S3 {
    /// Opens the bucket and tests it: objects can be put, read and deleted, and a put with `If-None-Match: *` never
    /// replaces an object.
    ///
    /// # Errors
    /// [`OpenError::Unconditional`] and [`OpenError::Unfaithful`] if the store fails the test.
    pub async fn open(config: &S3Config) -> Result<Self, OpenError> {
        let mut store = Self::connect(config)?;
        store.conditional_completion = store.probe().await?;
        Ok(store)
    }

    /// Opens the bucket without a test, for processes that only read.
    pub fn connect(config: &S3Config) -> Result<Self, OpenError> {
        let presigner = config.presigner()?;
        let name = match config.prefix.as_str() {
            "" => config.bucket.clone(),
            prefix => format!("{}/{prefix}", config.bucket),
        };
        let unusable = |source| OpenError::Unusable {
            bucket: name.clone(),
            source,
        };
        let options = ClientOptions::new()
            // A store on the local network may have no TLS.
            .with_allow_http(true)
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_user_agent(object_store::HeaderValue::from_static("sluice"));
        // Puts have no fixed timeout, because their timeout depends on the size.
        let patient = options.clone().with_timeout_disabled();
        let calling = ReqwestConnector::default().connect(&patient).map_err(unusable)?;
        // The client retries reads by itself. A put must not be retried unseen, because an earlier attempt may have
        // arrived.
        let client = |retries: usize| {
            let options = match retries {
                0 => patient.clone(),
                _ => options.clone().with_timeout(config.attempt),
            };
            let retry = RetryConfig {
                backoff: BackoffConfig {
                    init_backoff: BACKOFF.first,
                    max_backoff: BACKOFF.most,
                    base: 2.0,
                },
                max_retries: retries,
                retry_timeout: config.patience,
            };
            let built = AmazonS3Builder::new()
                .with_endpoint(presigner.store_endpoint())
                .with_virtual_hosted_style_request(!config.path_style)
                .with_region(&config.region)
                .with_bucket_name(&config.bucket)
                .with_access_key_id(&config.access_key)
                .with_secret_access_key(config.secret_key.reveal())
                .with_client_options(options)
                .with_retry(retry)
                .build();
            Ok(PrefixStore::new(built.map_err(unusable)?, config.prefix.as_str()))
        };
        Ok(Self {
            reading: client(usize::MAX)?,
            putting: client(0)?,
            calling,
            conditional_completion: false,
            presigner,
            name,
            attempt: config.attempt,
            patience: config.patience,
        })
    }

    /// Returns the signer of addresses that work without a credential for a limited time.
    pub const fn presigner(&self) -> &Presigner {
        &self.presigner
    }

    fn unusable(&self, source: object_store::Error) -> OpenError {
        OpenError::Unusable {
            bucket: self.name.clone(),
            source,
        }
    }
}

fn failed(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> object_store::Error {
    object_store::Error::Generic {
        store: "S3",
        source: source.into(),
    }
}

impl fmt::Debug for S3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Display for S3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S3({})", self.name)
    }
}

#[async_trait]
impl DurableStore for S3 {
    async fn sync_dir(&self, _: &Path) -> Result<()> {
        Ok(())
    }

    async fn link_file(&self, file: &std::path::Path, location: &Path) -> Result<()> {
        self.put_file(file, location).await
    }
}

#[async_trait]
impl ObjectStore for S3 {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.put_with_retries(location, payload, options).await
    }

    async fn put_multipart_opts(&self, location: &Path, o: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.reading.put_multipart_opts(location, o).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let head = options.head;
        let found = self.reading.get_opts(location, options).await?;
        // A response without a body has no length to check.
        Ok(if head { found } else { body::whole_or_error(found) })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.reading.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.reading.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.reading.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.reading.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.reading.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests;
