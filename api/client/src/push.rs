//! Push of a file into a dataset: in parts, resumed after an interruption, followed to its outcome.
//!
//! Invariant: the service has acknowledged every part that the state file marks as sent. A file that has changed since
//! is sent from the start, after its earlier upload was cancelled. The credential is sent with the service's own operations, never with a part.

mod state;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use parking_lot::Mutex;
use reqwest::header::{CONTENT_LENGTH, ETAG};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::state::{PushSource, PushState};
use crate::model::Contribution;
use crate::retry_budget::Pauses;
use crate::{Client, Error, ServiceProblem};

/// The most parts of an upload.
const MAX_PARTS: u64 = 1_000;
/// Parts that are sent at once, each in memory.
const CONCURRENT_PARTS: usize = 4;
/// Time-out for one part.
const PART_TIMEOUT: Duration = Duration::from_mins(10);
/// The `wait` of one request for the outcome, in seconds.
const OUTCOME_WAIT_SECONDS: u32 = 5;

/// A file to push, with its target.
#[derive(Clone, Debug)]
pub struct Push {
    /// The file. One without a name is named by its descriptor, as `/proc/self/fd/5`.
    pub file: PathBuf,
    /// True if the file is compressed with gzip.
    pub gzip: bool,
    /// The slug of the project.
    pub slug: String,
    /// The declared source of the records.
    pub source_declaration: Option<String>,
    /// Reading that makes records of the text, as the service takes it; `None` if it is JSON Lines.
    pub reading: Option<Value>,
    /// True if refused records are left out instead of rejecting the upload.
    pub drops_refused: bool,
    /// The size of a part in bytes. It is larger if the file would have more than 1,000 parts.
    pub part_size: u64,
    /// The state file. It is removed once there is an outcome.
    pub state: PathBuf,
}

/// A progress event of a push.
#[derive(Clone, Debug)]
pub enum PushEvent {
    /// The upload begins or continues.
    Planned {
        /// The size of the file.
        bytes: u64,
        /// The bytes that were sent before.
        sent: u64,
    },
    /// The file or the options have changed: the earlier upload is cancelled, and all is sent again.
    Cancelled,
    /// The service has acknowledged this many more bytes.
    Sent(u64),
    /// Everything is sent, and the contribution has no outcome yet.
    Judging {
        /// The bytes read and the records judged so far, if the service reports them.
        progress: Option<(u64, u64)>,
        /// The reason of waiting, if the contribution waits.
        waiting: Option<String>,
    },
}

/// A callback for progress events, from any thread.
pub type PushProgress = Arc<dyn Fn(PushEvent) + Send + Sync>;

/// The service's answer to the beginning of an upload, with the addresses of its parts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BegunUpload {
    id: String,
    part_size: u64,
    part_urls: Vec<PartAddress>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct PartAddress {
    n: u32,
    bytes: u64,
    url: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewUpload<'a> {
    bytes: u64,
    parts: u64,
    part_size: u64,
    compression: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_declaration: Option<&'a str>,
}

/// The number and the `ETag` of a sent part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PartTag {
    n: u32,
    etag: String,
}

/// Body of the request that completes an upload.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UploadCompletion<'a> {
    etags: Vec<PartTag>,
    // Services that know neither member read uploads without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    reading: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_refused: Option<&'static str>,
}

impl<'a> UploadCompletion<'a> {
    fn of(push: &'a Push, etags: Vec<PartTag>) -> Self {
        Self {
            etags,
            reading: push.reading.as_ref(),
            on_refused: push.drops_refused.then_some("drop"),
        }
    }
}

impl Client {
    /// Pushes a file and waits for its outcome. After an interruption, a call with the same state file continues the
    /// upload.
    ///
    /// # Errors
    /// If the service refuses, cannot be reached within the client's bounds on retries, or if the file cannot be read
    /// or changes.
    pub async fn push(&self, push: &Push, on_event: &PushProgress) -> Result<Contribution, Error> {
        let source = PushSource::of(push, self.base.as_str())?;
        let (mut fresh, mut again) = (false, false);
        loop {
            let found = PushState::load(&push.state);
            let state = match found {
                // What a completed upload becomes is settled by what it was completed with.
                Some(mut state) if state.is_of(&source) && !state.is_completed_otherwise(push) => {
                    if again {
                        state.send_again()?;
                    }
                    state
                }
                found => {
                    if let Some(other) = found {
                        self.cancel_other(&other, on_event).await?;
                        PushState::forget(&push.state)?;
                    }
                    fresh = true;
                    // The state file is probed first: an upload that is not remembered takes one of the operator's open
                    // uploads until it expires.
                    PushState::probe(&push.state)?;
                    let upload = new_upload(push, source.bytes);
                    let upload = self.upload_begin(&push.slug, &upload).await?;
                    PushState::begin(push.state.clone(), source.clone(), upload)?
                }
            };
            match self.go_on(push, state, on_event).await {
                // This happens once: an upload of an earlier call may have expired, or belong to a service that was set
                // up anew.
                Err(error) if !fresh && is_stale(&error) => PushState::forget(&push.state)?,
                // This happens once too: a service that loses acknowledged parts twice is broken.
                Err(error) if !again && lacks_parts(&error) => again = true,
                Err(error) => return Err(error),
                Ok(contribution) => {
                    PushState::forget(&push.state)?;
                    return Ok(contribution);
                }
            }
        }
    }

    /// Ends a push that nobody will continue: cancels its upload and removes its state file.
    ///
    /// # Errors
    /// If the service cannot be reached, or the state file cannot be removed.
    pub async fn push_cancel(&self, state: &Path) -> Result<(), Error> {
        if let Some(found) = PushState::load(state) {
            let silent: PushProgress = Arc::new(|_| {});
            self.cancel_other(&found, &silent).await?;
        }
        PushState::forget(state)
    }

    /// Cancels the upload of a push whose file or options were others, unless it was completed.
    async fn cancel_other(&self, other: &PushState, on_event: &PushProgress) -> Result<(), Error> {
        if other.is_completed() || !other.is_at(self.base.as_str()) {
            return Ok(());
        }
        match self.upload_cancel(other.slug(), &other.upload().id).await {
            Ok(()) => on_event(PushEvent::Cancelled),
            // The service does not know it any more, or has completed it: nothing is left to cancel.
            Err(Error::Refused { problem, .. }) if matches!(problem.status, 404 | 409) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn go_on(&self, push: &Push, state: PushState, on_event: &PushProgress) -> Result<Contribution, Error> {
        let id = state.upload().id.clone();
        if !state.is_completed() {
            let file = File::open(&push.file).map_err(|source| Error::file(&push.file, source))?;
            let sent = state.sent();
            on_event(PushEvent::Planned {
                bytes: state.upload().part_urls.iter().map(|part| part.bytes).sum(),
                sent,
            });
            // The open file is checked, because the path may name another file since the state was loaded.
            state.check(&file)?;
            let (file, left) = (Arc::new(file), state.left());
            let (state, sent_from) = (Mutex::new(state), Arc::clone(&file));
            let sending = left.into_iter().map(|part| {
                let (file, state) = (Arc::clone(&file), &state);
                async move {
                    let offset = u64::from(part.n - 1) * state.lock().upload().part_size;
                    let bytes = read(file, &push.file, offset, part.bytes).await?;
                    let etag = self.put(&part, bytes).await?;
                    state.lock().add(PartTag { n: part.n, etag })?;
                    on_event(PushEvent::Sent(part.bytes));
                    Ok::<_, Error>(())
                }
            });
            stream::iter(sending)
                // Each part is stored as sent at once, so an interruption loses at most the parts under way.
                .buffer_unordered(CONCURRENT_PARTS)
                .try_collect::<()>()
                .await?;
            let mut state = state.into_inner();
            // A file that changed while it was sent must not be completed, because its parts would not fit together.
            state.check(&sent_from)?;
            let completion = UploadCompletion::of(push, state.tags());
            // Stored before the request: if the process dies before the answer, a later push with another reading must not
            // complete this upload.
            state.begin_completion(push)?;
            match self.upload_complete(&push.slug, &id, &completion).await {
                Err(error) => {
                    if is_invalid(&error) {
                        state.abandon_completion()?;
                    }
                    return Err(error);
                }
                Ok(_) => state.complete()?,
            }
        }
        loop {
            let contribution = self.contribution(&push.slug, &id, OUTCOME_WAIT_SECONDS).await?;
            if contribution.is_decided() {
                return Ok(contribution);
            }
            let progress = contribution.more.get("progress");
            // Only uploads have a progress, and not from every service.
            let number = |name: &str| progress.and_then(|progress| progress[name].as_u64());
            on_event(PushEvent::Judging {
                progress: number("bytesRead").zip(number("rowsJudged")),
                waiting: contribution.reason.map(|reason| reason.message),
            });
        }
    }

    /// Sends one part, with retries, and returns its tag.
    async fn put(&self, part: &PartAddress, bytes: Bytes) -> Result<String, Error> {
        let mut pauses = Pauses::new(self.retry_budget);
        loop {
            let error = match self.put_once(part, bytes.clone()).await {
                Ok(etag) => return Ok(etag),
                Err(error) => error,
            };
            let asked = match &error {
                Error::Transport { .. } => None,
                // Object stores answer 500 for errors that may pass.
                Error::Refused { problem, .. } if problem.passes() || problem.status == 500 => problem.retry_after,
                Error::Refused { problem, .. }
                    if matches!(
                        problem.code.as_str(),
                        // The connection broke under the body, as the service or the store saw it.
                        "part_broken" | "RequestTimeout" | "IncompleteBody"
                    ) =>
                {
                    None
                }
                _ => return Err(error),
            };
            match pauses.next(asked) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(error),
            }
        }
    }

    async fn put_once(&self, part: &PartAddress, bytes: Bytes) -> Result<String, Error> {
        let name = || format!("part {}", part.n);
        let broken = |source| Error::unanswered("PUT", name(), source);
        let url = self.base.join(&part.url).map_err(|error| Error::Part {
            part: name(),
            problem: error.to_string(),
        })?;
        let request = self
            .http
            .put(url)
            .timeout(PART_TIMEOUT)
            .header(CONTENT_LENGTH, bytes.len());
        let answer = request.body(bytes).send().await.map_err(broken)?;
        let status = answer.status();
        let etag = answer
            .headers()
            .get(ETAG)
            .and_then(|etag| etag.to_str().ok())
            .map(str::to_owned);
        let retry_after = crate::client::retry_after(answer.headers());
        let body = answer.bytes().await.map_err(broken)?;
        match etag {
            Some(etag) if status.is_success() => Ok(etag),
            None if status.is_success() => Err(Error::Part {
                part: name(),
                problem: "the answer has no ETag".to_owned(),
            }),
            _ => Err(Error::Refused {
                method: "PUT".to_owned(),
                path: name(),
                problem: Box::new(ServiceProblem::new(status.as_u16(), retry_after, &body)),
            }),
        }
    }
}

/// Returns true if the upload is unknown to the service or closed, or if its addresses have expired.
fn is_stale(error: &Error) -> bool {
    match error {
        Error::Refused { method, problem, .. } => {
            let code = problem.code.as_str();
            // Object stores answer 403 for an expired address.
            problem.status == 404
                || (method == "PUT" && problem.status == 403)
                || matches!(
                    code,
                    "link_expired" | "link_invalid" | "upload_closed" | "upload_expired"
                )
        }
        _ => false,
    }
}

/// Returns true if the service refused the body of a request (400), so that the request had no effect.
fn is_invalid(error: &Error) -> bool {
    matches!(error, Error::Refused { problem, .. } if problem.status == 400)
}

/// Returns true if the service lacks acknowledged parts or has different ones.
fn lacks_parts(error: &Error) -> bool {
    let Error::Refused { problem, .. } = error else {
        return false;
    };
    matches!(problem.code.as_str(), "parts_missing" | "etag_mismatch")
}

fn new_upload(push: &Push, bytes: u64) -> NewUpload<'_> {
    // At least one byte, large enough for the most parts, and not larger than the file.
    let part_size = push.part_size.max(1).max(bytes.div_ceil(MAX_PARTS)).min(bytes.max(1));
    NewUpload {
        bytes,
        parts: bytes.div_ceil(part_size),
        part_size,
        compression: if push.gzip { "gzip" } else { "none" },
        source_declaration: push.source_declaration.as_deref(),
    }
}

async fn read(file: Arc<File>, path: &Path, offset: u64, bytes: u64) -> Result<Bytes, Error> {
    let read = move || -> io::Result<Bytes> {
        let mut part = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
        // Reads at an offset need no shared position, so parts are read concurrently.
        file.read_exact_at(&mut part, offset)?;
        Ok(part.into())
    };
    let read = tokio::task::spawn_blocking(read).await.map_err(Error::Stopped)?;
    read.map_err(|source| Error::file(path, source))
}

#[cfg(test)]
mod tests;
