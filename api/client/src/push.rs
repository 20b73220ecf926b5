//! A file to a dataset: in parts, at once and again where it broke off, to its outcome.
//!
//! Invariant: what the state file says was sent, the service answered for. A file that changed since is sent anew. The
//! credential goes to the service's own operations, never with a part.

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

use self::state::{Source, State};
use crate::model::Contribution;
use crate::patience::Pauses;
use crate::{Client, Error, Problem};

/// How many parts there may be.
const MOST_PARTS: u64 = 1_000;
/// How many parts are sent at once, each in memory.
const AT_ONCE: usize = 4;
/// How long one part may take.
const PART_WITHIN: Duration = Duration::from_mins(10);
/// How long one look at the outcome waits, in seconds.
const WAIT: u32 = 5;

/// What to push.
#[derive(Clone, Debug)]
pub struct Push {
    /// The file: one JSON record a line.
    pub file: PathBuf,
    /// Whether the file is compressed with gzip.
    pub gzip: bool,
    /// The project's slug.
    pub slug: String,
    /// Where the records come from.
    pub source_declaration: Option<String>,
    /// The size of a part, unless more parts are needed than there may be.
    pub part_size: u64,
    /// The file that remembers how far it is; it is removed at the end.
    pub state: PathBuf,
}

/// How a push goes.
#[derive(Clone, Debug)]
pub enum Pushing {
    /// The upload is begun, or goes on: this many bytes in all, this many sent before.
    Planned {
        /// The size of the file.
        bytes: u64,
        /// What needs not be sent again.
        sent: u64,
    },
    /// Bytes that the service has.
    Sent(u64),
    /// Everything is sent; the service judges: how many bytes it read and records it judged, where it says.
    Judging {
        /// Bytes read, and records judged.
        progress: Option<(u64, u64)>,
        /// Why it waits, if it does.
        waiting: Option<String>,
    },
}

/// Who is told.
pub type Watcher = Arc<dyn Fn(Pushing) + Send + Sync>;

/// An upload as the service begins it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Upload {
    id: String,
    part_size: u64,
    part_urls: Vec<PartUrl>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct PartUrl {
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

/// What a part that was sent is known by.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Tag {
    n: u32,
    etag: String,
}

impl Client {
    /// Pushes a file and follows it to its outcome. Interrupted, it goes on when it is called again with the same state
    /// file.
    ///
    /// # Errors
    /// Where the service refuses, cannot be reached within the patience of the client, or the file cannot be read.
    pub async fn push(&self, push: &Push, watcher: &Watcher) -> Result<Contribution, Error> {
        let source = Source::of(push, self.base.as_str())?;
        let (mut fresh, mut again) = (false, false);
        loop {
            let state = if let Some(mut state) = State::load(&push.state, &source) {
                if again {
                    state.send_again()?;
                }
                state
            } else {
                fresh = true;
                // Why before it is begun: what nobody remembers takes a place until it expires.
                State::probe(&push.state)?;
                let upload = new_upload(push, source.bytes);
                let upload = self.upload_begin(&push.slug, &upload).await?;
                State::begin(push.state.clone(), source.clone(), upload)?
            };
            match self.go_on(push, state, watcher).await {
                // Why once: an upload of before may have expired, or be of a service that was set up anew.
                Err(error) if !fresh && is_stale(&error) => State::forget(&push.state)?,
                // Nor is it twice that the service lost what it answered for.
                Err(error) if !again && lacks_parts(&error) => again = true,
                Err(error) => return Err(error),
                Ok(contribution) => {
                    State::forget(&push.state)?;
                    return Ok(contribution);
                }
            }
        }
    }

    async fn go_on(&self, push: &Push, state: State, watcher: &Watcher) -> Result<Contribution, Error> {
        let id = state.upload().id.clone();
        if !state.is_completed() {
            let file = File::open(&push.file).map_err(|source| Error::file(&push.file, source))?;
            let sent = state.sent();
            watcher(Pushing::Planned {
                bytes: state.upload().part_urls.iter().map(|part| part.bytes).sum(),
                sent,
            });
            state.check(&file)?;
            let (file, left) = (Arc::new(file), state.left());
            let (state, sent_from) = (Mutex::new(state), Arc::clone(&file));
            let sending = left.into_iter().map(|part| {
                let (file, state) = (Arc::clone(&file), &state);
                async move {
                    let offset = u64::from(part.n - 1) * state.lock().upload().part_size;
                    let bytes = read(file, &push.file, offset, part.bytes).await?;
                    let etag = self.put(&part, bytes).await?;
                    state.lock().add(Tag { n: part.n, etag })?;
                    watcher(Pushing::Sent(part.bytes));
                    Ok::<_, Error>(())
                }
            });
            stream::iter(sending)
                .buffer_unordered(AT_ONCE)
                .try_collect::<()>()
                .await?;
            let mut state = state.into_inner();
            state.check(&sent_from)?;
            self.upload_complete(&push.slug, &id, state.tags()).await?;
            state.complete()?;
        }
        loop {
            let contribution = self.contribution(&push.slug, &id, WAIT).await?;
            if contribution.is_decided() {
                return Ok(contribution);
            }
            let progress = contribution.more.get("progress");
            let number = |name: &str| progress.and_then(|progress| progress[name].as_u64());
            watcher(Pushing::Judging {
                progress: number("bytesRead").zip(number("rowsJudged")),
                waiting: contribution.reason.map(|reason| reason.message),
            });
        }
    }

    /// Sends one part, again where that can help; its tag.
    async fn put(&self, part: &PartUrl, bytes: Bytes) -> Result<String, Error> {
        let mut pauses = Pauses::new(self.patience);
        loop {
            let error = match self.put_once(part, bytes.clone()).await {
                Ok(etag) => return Ok(etag),
                Err(error) => error,
            };
            let asked = match &error {
                Error::Transport { .. } => None,
                // An object store says 500 of what may succeed.
                Error::Refused { problem, .. } if problem.passes() || problem.status == 500 => problem.retry_after,
                Error::Refused { problem, .. }
                    if matches!(
                        problem.code.as_str(),
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

    async fn put_once(&self, part: &PartUrl, bytes: Bytes) -> Result<String, Error> {
        let name = || format!("part {}", part.n);
        let broken = |source| Error::unanswered("PUT", name(), source);
        let url = self.base.join(&part.url).map_err(|error| Error::Part {
            part: name(),
            problem: error.to_string(),
        })?;
        let request = self
            .http
            .put(url)
            .timeout(PART_WITHIN)
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
                problem: Box::new(Problem::new(status.as_u16(), retry_after, &body)),
            }),
        }
    }
}

/// Whether the service does not know the upload any more, or takes nothing for it.
fn is_stale(error: &Error) -> bool {
    match error {
        Error::Refused { method, problem, .. } => {
            let code = problem.code.as_str();
            // Why 403: an object store says so of an address whose time is over.
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

/// Whether the service lacks parts that it answered for, or has others.
fn lacks_parts(error: &Error) -> bool {
    let Error::Refused { problem, .. } = error else {
        return false;
    };
    matches!(problem.code.as_str(), "parts_missing" | "etag_mismatch")
}

fn new_upload(push: &Push, bytes: u64) -> NewUpload<'_> {
    let part_size = push.part_size.max(1).max(bytes.div_ceil(MOST_PARTS)).min(bytes.max(1));
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
        file.read_exact_at(&mut part, offset)?;
        Ok(part.into())
    };
    let read = tokio::task::spawn_blocking(read).await.map_err(Error::Stopped)?;
    read.map_err(|source| Error::file(path, source))
}

#[cfg(test)]
mod tests;
