//! Multipart uploads that clients send directly to the store.
//!
//! Invariants: an address accepts a part of exactly the length that it was made for. An object is completed only from
//! parts whose entity tags are listed, all of them, in order. Every upload has its own path, so an existing object at
//! that path is the completed upload, even if the answer was lost.

use std::time::Duration;

use object_store::multipart::MultipartStore as _;
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt as _};
use types::{Classify, Kind, Retry};

use super::call::UploadCompletion;
use super::{S3, failed};

/// Maximum number of parts of an upload (*Amazon S3 multipart upload limits*).
const MAX_PARTS: u16 = 10_000;

/// Address that accepts one part by `PUT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartAddress {
    /// Number of the part, from 1.
    pub number: u16,
    /// Required `Content-Length` of the request.
    pub bytes: u64,
    /// Signed address of the request.
    pub url: String,
}

/// A part that the store has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedPart {
    /// Number of the part, from 1.
    pub number: u16,
    /// Size of the part in bytes.
    pub bytes: u64,
    /// Entity tag, without quotes.
    pub e_tag: String,
}

/// An upload that has become an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedUpload {
    /// Size of the object in bytes.
    pub bytes: u64,
    /// Entity tag of the object, which changes with its content. `None` if the store sends none.
    pub e_tag: Option<String>,
}

/// Failure of a step of an upload.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The store has other parts than the request lists.
    #[error("the parts differ from those that were put")]
    Mismatch {
        /// Error of the store.
        #[source]
        source: Error,
    },
    /// Neither the upload nor its object exists.
    #[error("the upload does not exist any more")]
    Gone {
        /// Error of the store.
        #[source]
        source: Error,
    },
    /// The object has another size than was announced.
    #[error("the object has {found} bytes, not {announced}")]
    Size {
        /// Announced size in bytes.
        announced: u64,
        /// Actual size in bytes.
        found: u64,
    },
    /// The part number is out of range.
    #[error("the part number {number} is not between 1 and {MAX_PARTS}")]
    Number {
        /// Number in the request.
        number: u16,
    },
    /// The store did not answer, or it refused the request.
    #[error("the request to the store failed")]
    Storage(#[source] Error),
}

impl Classify for UploadError {
    fn kind(&self) -> Kind {
        match self {
            Self::Mismatch { .. } | Self::Gone { .. } | Self::Size { .. } => Kind::Conflict,
            Self::Number { .. } => Kind::Invalid,
            Self::Storage(_) => Kind::Unavailable,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Storage(_) => Retry::Backoff,
            _ => Retry::Never,
        }
    }
}

impl S3 {
    /// Starts an upload to `object`, a path that nothing else uses. Returns the id of the upload.
    pub async fn upload_begin(&self, object: &Path) -> Result<String, UploadError> {
        self.reading
            .create_multipart(object)
            .await
            .map_err(UploadError::Storage)
    }

    /// Returns the address that accepts part `number` with exactly `bytes` bytes, for the time `lasting`. Every part
    /// but the last must have at least 5 MiB (*Amazon S3 multipart upload limits*).
    pub fn upload_address(
        &self,
        object: &Path,
        upload: &str,
        number: u16,
        bytes: u64,
        lasting: Duration,
    ) -> Result<PartAddress, UploadError> {
        if number == 0 || number > MAX_PARTS {
            return Err(UploadError::Number { number });
        }
        let url = self.presigner.part(object, upload, number, bytes, lasting);
        Ok(PartAddress { number, bytes, url })
    }

    /// Completes the object from its parts. `tags` are the entity tags in the order of the parts; `announced` is the
    /// expected size. May be repeated after an error; after success it returns the same again.
    ///
    /// # Errors
    /// [`UploadError::Mismatch`] if the store has other parts, [`UploadError::Gone`] if the upload does not exist.
    /// After [`UploadError::Size`] the object exists, and the caller must delete it.
    pub async fn upload_complete(
        &self,
        object: &Path,
        upload: &str,
        tags: &[String],
        announced: u64,
    ) -> Result<CompletedUpload, UploadError> {
        let completed = self.complete_parts(object, upload, tags, false, announced).await;
        match completed {
            Ok(UploadCompletion::Done) => self.completed(object, announced).await,
            Ok(UploadCompletion::Mismatch(source)) => Err(UploadError::Mismatch { source }),
            // A caller without an answer asks again, and the upload ends when it becomes an object.
            Ok(UploadCompletion::Gone(source)) => match self.head(object).await {
                Ok(_) => self.completed(object, announced).await,
                Err(Error::NotFound { .. }) => Err(UploadError::Gone { source }),
                Err(error) => Err(UploadError::Storage(error)),
            },
            Ok(UploadCompletion::Taken) => Err(UploadError::Storage(failed(
                "the store rejected a condition that the request does not have",
            ))),
            Err(error) => Err(UploadError::Storage(error)),
        }
    }

    /// Lists the parts of an upload in order. Returns `None` if the upload does not exist.
    pub async fn upload_parts(&self, object: &Path, upload: &str) -> Result<Option<Vec<ListedPart>>, UploadError> {
        self.list_parts(object, upload).await.map_err(UploadError::Storage)
    }

    async fn completed(&self, object: &Path, announced: u64) -> Result<CompletedUpload, UploadError> {
        let found = self.head(object).await.map_err(UploadError::Storage)?;
        // Addresses bound the length of every part, so this finds a store that does not check them.
        if found.size != announced {
            let found = found.size;
            return Err(UploadError::Size { announced, found });
        }
        Ok(CompletedUpload {
            bytes: found.size,
            e_tag: found.e_tag,
        })
    }

    /// Aborts an upload and deletes its parts. Succeeds if the upload does not exist.
    ///
    /// # Errors
    /// [`UploadError::Storage`] also if parts remain: a part that was in transit has arrived. The caller must abort
    /// again.
    pub async fn upload_abort(&self, object: &Path, upload: &str) -> Result<(), UploadError> {
        match self.reading.abort_multipart(object, &upload.to_owned()).await {
            Err(error) if !is_gone(&error) => return Err(UploadError::Storage(error)),
            _ => {}
        }
        // A part that was in transit may have arrived after the abort.
        match self.upload_parts(object, upload).await? {
            Some(parts) if !parts.is_empty() => {
                let problem = format!(
                    "`{object}` still has {} parts after its upload was aborted",
                    parts.len()
                );
                Err(UploadError::Storage(failed(problem)))
            }
            _ => Ok(()),
        }
    }
}

fn is_gone(error: &Error) -> bool {
    // Not every store answers with status 404, so the text is searched too.
    matches!(error, Error::NotFound { .. }) || format!("{error:?}").contains("NoSuchUpload")
}
