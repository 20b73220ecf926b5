//! Puts that are tried until they are decided or their time is over.
//!
//! Invariant: "it exists" is said of an object only if no try of this put can have made it, or if what is there is not
//! what was put. A put that is answered by an error may still arrive: the caller looks before it puts again.

use std::time::Duration;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error, ObjectStore as _, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, PutResult, Result};
use tokio::time::{Instant, sleep, timeout};

use super::{BACKOFF, S3, failed};

/// What an error says about the put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// The name is taken (412).
    Taken,
    /// It will not be done, however often it is tried.
    Refused,
    /// It was not done: somebody else is putting the same name (409).
    Contended,
    /// It may be done, now or later.
    Unknown,
}

impl Meaning {
    fn of(error: &Error) -> Self {
        match error {
            // Why: the client says the same of 409, which S3 answers while another put of the name goes on; only a
            // failed precondition means that an object is there.
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
    pub(super) async fn put_patiently(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let create = matches!(options.mode, PutMode::Create);
        let bytes = payload.content_length() as u64;
        let attempt = self.attempt + Duration::from_secs(bytes >> 20);
        let until = Instant::now() + self.patience;
        let mut failures = 0;
        let mut unanswered = false;
        loop {
            let put = self.putting.put_opts(location, payload.clone(), options.clone());
            let error = match timeout(attempt, put).await {
                Ok(Ok(put)) => return Ok(put),
                Ok(Err(error)) => error,
                Err(_) => failed(format!("putting `{location}` was not answered within {attempt:?}")),
            };
            let meaning = Meaning::of(&error);
            if create && meaning == Meaning::Taken {
                return if unanswered {
                    self.ours_or(location, &payload, error).await
                } else {
                    Err(error)
                };
            }
            if meaning == Meaning::Refused {
                return Err(error);
            }
            unanswered |= meaning == Meaning::Unknown;
            if Instant::now() + BACKOFF.longest(failures) >= until {
                // Why not for 409: the caller would take it for an object that is there.
                let error = match meaning {
                    Meaning::Contended => failed(error),
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

    /// Success where the object has what was put, `error` where there is none, and "it exists" otherwise.
    async fn ours_or(&self, location: &Path, payload: &PutPayload, error: Error) -> Result<PutResult> {
        let read = async {
            let found = self.get(location).await?;
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
            Err(Error::NotFound { .. }) => Err(match Meaning::of(&error) {
                // It was there and is not now: nothing can be said of it.
                Meaning::Taken => failed(error),
                _ => error,
            }),
            Err(unreadable) => Err(unreadable),
        }
    }
}
