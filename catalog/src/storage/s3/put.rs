//! Puts that are retried until their result is known or the patience is over.
//!
//! Invariant: `AlreadyExists` is returned only if no attempt of this put can have created the object, or if the object
//! differs from the payload. After any other error the put may still arrive, so the caller reads before it puts again.

use std::time::Duration;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error, ObjectStore as _, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, PutResult, Result};
use tokio::time::{Instant, sleep, timeout};

use super::{BACKOFF, S3, failed};

/// Class of a put error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PutErrorClass {
    /// The name is taken (412).
    Taken,
    /// The put fails on every attempt.
    Refused,
    /// The put was not done, because another put of the same name is in progress (409).
    Contended,
    /// The put may have been done, or may be done later.
    Unknown,
}

impl PutErrorClass {
    fn of(error: &Error) -> Self {
        match error {
            // The client returns the same error for 409, which S3 answers during another put of the name. Only a failed
            // precondition means that the object exists.
            Error::AlreadyExists { source, .. } => match source.downcast_ref::<Error>() {
                Some(Error::Precondition { .. } | Error::NotModified { .. }) => Self::Taken,
                _ => Self::Contended,
            },
            Error::NotFound { .. }
            | Error::PermissionDenied { .. }
            | Error::Unauthenticated { .. }
            | Error::InvalidPath { .. }
            | Error::NotSupported { .. }
            | Error::NotImplemented { .. }
            | Error::UnknownConfigurationKey { .. } => Self::Refused,
            _ => Self::Unknown,
        }
    }
}

impl S3 {
    pub(super) async fn put_with_retries(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let create = matches!(options.mode, PutMode::Create);
        let bytes = payload.content_length() as u64;
        // One more second per MiB, for slow connections.
        let attempt = self.attempt + Duration::from_secs(bytes >> 20);
        let until = Instant::now() + self.patience;
        let mut failures = 0;
        let mut unanswered = false;
        loop {
            let put = self.putting.put_opts(location, payload.clone(), options.clone());
            // After a timeout the result is unknown, as after a lost answer.
            let error = match timeout(attempt, put).await {
                Ok(Ok(put)) => return Ok(put),
                Ok(Err(error)) => error,
                Err(_) => failed(format!("putting `{location}` was not answered within {attempt:?}")),
            };
            let class = PutErrorClass::of(&error);
            if create && class == PutErrorClass::Taken {
                return if unanswered {
                    self.ours_or(location, &payload, error).await
                } else {
                    Err(error)
                };
            }
            if class == PutErrorClass::Refused {
                return Err(error);
            }
            // From here on, an existing object may be this put's own.
            unanswered |= class == PutErrorClass::Unknown;
            if Instant::now() + BACKOFF.longest(failures) >= until {
                // A 409 must not become `AlreadyExists`, because the object may not exist.
                let error = match class {
                    PutErrorClass::Contended => failed(error),
                    _ => error,
                };
                return if create && unanswered {
                    self.ours_or(location, &payload, error).await
                } else {
                    Err(error)
                };
            }
            tracing::debug!(%location, %error, "a put is tried again");
            sleep(BACKOFF.pause(failures)).await;
            failures += 1;
        }
    }

    /// Decides a put whose answer was lost. Returns success if the object equals the payload, `error` if there is no
    /// object, and `AlreadyExists` otherwise.
    async fn ours_or(&self, location: &Path, payload: &PutPayload, error: Error) -> Result<PutResult> {
        let read = async {
            let found = self.get(location).await?;
            // An object of another size differs, so its body is not read.
            if found.meta.size != payload.content_length() as u64 {
                return Ok(None);
            }
            let meta = found.meta.clone();
            let same = found.bytes().await? == Bytes::from(payload.clone());
            Ok(same.then_some(meta))
        };
        match read.await {
            Ok(Some(ours)) => {
                tracing::info!(%location, "the answer to a put was lost; the object is there and complete");
                Ok(PutResult {
                    e_tag: ours.e_tag,
                    version: ours.version,
                })
            }
            Ok(None) => Err(Error::AlreadyExists {
                path: location.to_string(),
                source: Box::new(error),
            }),
            Err(Error::NotFound { .. }) => Err(match PutErrorClass::of(&error) {
                // The object existed and is gone, so the result is unknown.
                PutErrorClass::Taken => failed(error),
                _ => error,
            }),
            Err(unreadable) => Err(unreadable),
        }
    }
}
