//! A bucket of an S3 API as an object store with durable puts.
//!
//! Invariants:
//! - A put-if-absent has one winner, also where answers are lost: who does not know whether a try of theirs arrived
//!   compares what is there with what they put, and never takes their own object for another's.
//! - Every request ends: each try in its time, all tries of a request in theirs.
//! - A store that ignores `If-None-Match` is never used: [`S3::open`] tries it.
//! - A body that is not as long as it was said to be is an error, never a shorter object.
//! - What is larger than some megabytes goes in parts, of which a few are in memory.
//!
//! S3 shows an object only once it is durable, and reads what was written at once (*Amazon S3 data consistency model*),
//! so there is nothing to settle.

mod adopt;
mod body;
mod call;
mod config;
mod multipart;
mod presign;
mod probe;
mod put;
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
pub use multipart::{Completed, ListedPart, PartAddress, UploadError};
pub use presign::Presigner;
pub use uploads::{Cut, Refused, Uploads};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);
/// The first wait before a request is tried again, and the longest.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(50),
    most: Duration::from_secs(3),
};

/// Objects below a prefix of a bucket. Cheap to clone.
#[derive(Clone)]
pub struct S3 {
    /// Tries again by itself what can be tried again without harm.
    reading: PrefixStore<AmazonS3>,
    /// Tries once.
    putting: PrefixStore<AmazonS3>,
    /// For what the others have no call for; tries once.
    calling: HttpClient,
    /// Whether the store holds the completion of an upload to a condition.
    conditional_completion: bool,
    presigner: Presigner,
    /// The bucket and the prefix, for people.
    name: String,
    attempt: Duration,
    patience: Duration,
}

/// Why a bucket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A value of the configuration does not fit.
    #[error("`objects.{field}` {problem}")]
    Config {
        /// The key within its section.
        field: &'static str,
        /// What is wrong with its value.
        problem: String,
    },
    /// The store did not answer, or refused.
    #[error("the bucket `{bucket}` cannot be used")]
    Unusable {
        /// The bucket and the prefix.
        bucket: String,
        /// What the store said.
        #[source]
        source: object_store::Error,
    },
    /// The store overwrote an object although it was told not to. Two owners of a table would lose each other's merges.
    #[error(
        "the store of the bucket `{bucket}` ignores `If-None-Match: *` on a put: it replaced an object that existed. \
         Tables need a store with conditional writes"
    )]
    Unconditional {
        /// The bucket and the prefix.
        bucket: String,
    },
    /// The store answered a read with other bytes than were put.
    #[error("the store of the bucket `{bucket}` returns other bytes than were put")]
    Unfaithful {
        /// The bucket and the prefix.
        bucket: String,
    },
}

impl S3 {
    /// Opens the bucket, and makes sure that it has what tables need: objects can be put, read and deleted, and a put
    /// with `If-None-Match: *` never replaces one.
    pub async fn open(config: &S3Config) -> Result<Self, OpenError> {
        let mut store = Self::connect(config)?;
        store.conditional_completion = store.probe().await?;
        Ok(store)
    }

    /// The bucket, untried: for those who only read.
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
            .with_allow_http(true)
            .with_connect_timeout(CONNECT)
            .with_user_agent(object_store::HeaderValue::from_static("sluice"));
        // Why no timeout for puts: theirs depends on the size.
        let patient = options.clone().with_timeout_disabled();
        let calling = ReqwestConnector::default().connect(&patient).map_err(unusable)?;
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

    /// Makes addresses that are good without a credential, for a while.
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
    async fn settle(&self, _: &Path) -> Result<()> {
        Ok(())
    }

    async fn adopt(&self, file: &std::path::Path, location: &Path) -> Result<()> {
        self.adopt_file(file, location).await
    }
}

#[async_trait]
impl ObjectStore for S3 {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.put_patiently(location, payload, options).await
    }

    async fn put_multipart_opts(&self, location: &Path, o: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.reading.put_multipart_opts(location, o).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let head = options.head;
        let found = self.reading.get_opts(location, options).await?;
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
