//! Large objects that others put in parts, straight to the store.
//!
//! Invariants: an address takes a part of exactly the length it was made for. An object is completed only of parts whose
//! entity tags are named, all of them, in order. The path of an upload is its own, so an object that is there is the
//! upload completed, whoever had the answer.

use std::time::Duration;

use object_store::multipart::MultipartStore as _;
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt as _};
use types::{Classify, Kind, Retry};

use super::call::Completion;
use super::{S3, failed};

/// How many parts an upload may have (*Amazon S3 multipart upload limits*).
const PARTS: u16 = 10_000;

/// An address that takes one part, by `PUT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartAddress {
    /// The number of the part, from 1.
    pub number: u16,
    /// The `Content-Length` that the request must have.
    pub bytes: u64,
    /// The address.
    pub url: String,
}

/// A part that the store has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedPart {
    /// Its number, from 1.
    pub number: u16,
    /// Its size.
    pub bytes: u64,
    /// Its entity tag, without quotes.
    pub e_tag: String,
}

/// An upload that is an object now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The size of the object.
    pub bytes: u64,
    /// Its entity tag, which changes when its content does.
    pub e_tag: Option<String>,
}

/// Why an upload did not go on.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The store has other parts than were named.
    #[error("the parts differ from those that were put")]
    Mismatch {
        /// What the store said.
        #[source]
        source: Error,
    },
    /// There is no such upload, and no object that it became.
    #[error("the upload does not exist any more")]
    Gone {
        /// What the store said.
        #[source]
        source: Error,
    },
    /// The object has another size than was announced.
    #[error("the object has {found} bytes, not {announced}")]
    Size {
        /// How many it was to have.
        announced: u64,
        /// How many it has.
        found: u64,
    },
    /// A part has a number that no part has.
    #[error("the part number {number} is not between 1 and {PARTS}")]
    Number {
        /// The number.
        number: u16,
    },
    /// The store did not answer, or refused.
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
    /// Begins an upload to `object`, a path that nothing else has; answers its id.
    pub async fn upload_begin(&self, object: &Path) -> Result<String, UploadError> {
        self.reading
            .create_multipart(object)
            .await
            .map_err(UploadError::Storage)
    }

    /// The address that takes part `number` of exactly `bytes` bytes, for this long.
    ///
    /// Every part but the last has 5 MiB at least (*Amazon S3 multipart upload limits*).
    pub fn upload_address(
        &self,
        object: &Path,
        upload: &str,
        number: u16,
        bytes: u64,
        lasting: Duration,
    ) -> Result<PartAddress, UploadError> {
        if number == 0 || number > PARTS {
            return Err(UploadError::Number { number });
        }
        let url = self.presigner.part(object, upload, number, bytes, lasting);
        Ok(PartAddress { number, bytes, url })
    }

    /// Makes the object of its parts, whose entity tags are in the order of the parts; it must have `announced` bytes.
    /// May be asked again after an error, and after success says the same.
    ///
    /// # Errors
    /// After [`UploadError::Size`] the object is there and is the caller's to delete.
    pub async fn upload_complete(
        &self,
        object: &Path,
        upload: &str,
        tags: &[String],
        announced: u64,
    ) -> Result<Completed, UploadError> {
        let completed = self.complete_parts(object, upload, tags, false, announced).await;
        match completed {
            Ok(Completion::Done) => self.completed(object, announced).await,
            Ok(Completion::Mismatch(source)) => Err(UploadError::Mismatch { source }),
            // Why: who had no answer asks again, and the upload is over once it is an object.
            Ok(Completion::Gone(source)) => match self.head(object).await {
                Ok(_) => self.completed(object, announced).await,
                Err(Error::NotFound { .. }) => Err(UploadError::Gone { source }),
                Err(error) => Err(UploadError::Storage(error)),
            },
            Ok(Completion::Taken) => Err(UploadError::Storage(failed(
                "the store rejected a condition that the request does not have",
            ))),
            Err(error) => Err(UploadError::Storage(error)),
        }
    }

    /// The parts that an upload has, in order; `None` where there is no such upload.
    pub async fn upload_parts(&self, object: &Path, upload: &str) -> Result<Option<Vec<ListedPart>>, UploadError> {
        self.list_parts(object, upload).await.map_err(UploadError::Storage)
    }

    async fn completed(&self, object: &Path, announced: u64) -> Result<Completed, UploadError> {
        let found = self.head(object).await.map_err(UploadError::Storage)?;
        if found.size != announced {
            let found = found.size;
            return Err(UploadError::Size { announced, found });
        }
        Ok(Completed {
            bytes: found.size,
            e_tag: found.e_tag,
        })
    }

    /// Gives up an upload and its parts. One that is gone already is fine.
    ///
    /// # Errors
    /// Also where it still has parts afterwards: those that were on their way arrive; it is to be given up again.
    pub async fn upload_abort(&self, object: &Path, upload: &str) -> Result<(), UploadError> {
        match self.reading.abort_multipart(object, &upload.to_owned()).await {
            Err(error) if !is_gone(&error) => return Err(UploadError::Storage(error)),
            _ => {}
        }
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
    // Why also the text: not every store answers it as something that is not found.
    matches!(error, Error::NotFound { .. }) || format!("{error:?}").contains("NoSuchUpload")
}
