//! Judging of an upload: it becomes files while the writer of its dataset goes on, and one step of the writer makes them
//! a version.
//!
//! ```text
//!  parts ──► cut into records ──► judged in parallel ────► in order again: duplicates out ──► Parquet ──► Prepared
//!  (async)   (decompressed,        (translated by the       (one thread)                       (another)     │
//!             decoded)              reading; a batch's chain)                                                 │
//!                                                                                                           ▼ the writer
//! ```
//!
//! Invariants:
//! - An upload is judged as a batch of its records would be; what differs is that records are named by their lines, and
//!   that no more than the first of them are named.
//! - Memory is bounded whatever the size: a few chunks are in flight, and a chunk has a megabyte of lines, and no more
//!   of them than make a bounded number of values.
//! - Nothing of an upload is in its table before the one commit, and nothing is left of one that is not merged.
//! - One upload is judged at a time; the others wait, and so does no writer.

use std::io::{self, Read};
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use catalog::Stager;
use futures_util::stream::TryStreamExt as _;
use operators::Decision;
use operators::screen::{Screener, for_contribution};
use tabular::reading::Reading;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use types::vocabulary::OnRefused;
use types::{Classify, Kind, Retry, fault};
use uploads::{ProgressCounters, UploadLayout, UploadStore};

use super::Judged;
use super::chunk::{LineContext, Translation};
use super::in_order::{InOrderError, LineJudges};
use super::merger::Merger;
use super::split::{SourceFailed, SplitError, split};
use crate::context::{Uploads, is_transient};
use crate::pieces::{AT_ONCE, pieces};

/// Reason for which an upload could not be staged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Its bytes could not be read.
    #[error("the bytes of an upload could not be read")]
    Objects(#[from] uploads::Error),
    /// Its rows could not be written.
    #[error("an upload could not be staged")]
    Catalog(#[from] catalog::Error),
    /// There is no thread to stage it on.
    #[error("no thread could be started")]
    Thread(#[source] io::Error),
    /// A gate, or the staging itself, panicked.
    #[error("staging it panicked")]
    Panicked,
}

impl From<InOrderError> for Error {
    fn from(error: InOrderError) -> Self {
        match error {
            InOrderError::Catalog(error) => Self::Catalog(error),
            InOrderError::Thread(error) => Self::Thread(error),
            InOrderError::Panicked => Self::Panicked,
        }
    }
}

impl Classify for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Objects(error) => error.kind(),
            Self::Catalog(error) => error.kind(),
            Self::Thread(_) => Kind::Unavailable,
            Self::Panicked => Kind::Internal,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Objects(error) => error.retry(),
            Self::Catalog(error) if is_transient(error) => Retry::Backoff,
            Self::Thread(_) => Retry::Backoff,
            // A panic comes from the bytes, and comes again with them.
            Self::Catalog(_) | Self::Panicked => Retry::Never,
        }
    }
}

/// Judges one upload. Dropped, it ends soon and leaves nothing.
pub(crate) async fn judge_upload(
    uploads: &Uploads,
    layout: UploadLayout,
    reading: Option<Reading>,
    screener: Option<Arc<dyn Screener>>,
    on_refused: OnRefused,
    stager: Stager,
) -> Result<Judged, Error> {
    // The result is not looked at: a semaphore that is never closed always gives its turn.
    let _turn = uploads.turn.acquire().await;
    fault::point("stage.begin");
    let contract = Arc::clone(stager.contract());
    let translation = match reading.map(|reading| Translation::new(reading, &contract)).transpose() {
        Ok(translation) => translation,
        // It did when the upload was completed, perhaps with another build.
        Err(error) => {
            return Ok(unreadable(
                "reading_unfit",
                format!("the reading does not fit: {error}"),
            ));
        }
    };
    let context = LineContext {
        contract,
        known: stager.known(),
        // All parts of an upload share one bound.
        screener: screener.as_ref().map(for_contribution),
        most_rows: uploads.most_rows,
        translation,
    };
    let merger = Merger::new(stager, on_refused);
    let listed = uploads.stagings.list(layout.upload);
    let counters = Arc::clone(listed.counters());
    let (sender, receiver) = mpsc::channel(AT_ONCE);
    let reading = read(&*uploads.objects, &layout, sender);
    let handle = Handle::current();
    let stop = CancellationToken::new();
    let _stops = stop.clone().drop_guard();
    let work = spawn_blocking(move || {
        let pieces = UploadPieces::new(receiver, &counters);
        let judges = LineJudges::new(&handle, &stop, &context);
        run(&judges, merger, &layout, pieces, &counters)
    });
    let (read, judged) = tokio::join!(reading, work);
    match (read, judged) {
        (_, Err(_panic)) => Err(Error::Panicked),
        // The error of the reader wins: the other side saw only that its bytes broke off.
        (Err(error), _) => Err(error.into()),
        (Ok(()), Ok(judged)) => judged,
    }
}

/// Sends the bytes of every part in order, then an empty piece; ends early where nobody takes them.
async fn read(
    objects: &dyn UploadStore,
    layout: &UploadLayout,
    queue: mpsc::Sender<Bytes>,
) -> Result<(), uploads::Error> {
    let mut reading = pin!(pieces(objects, layout));
    while let Some(bytes) = reading.try_next().await? {
        if queue.send(bytes).await.is_err() {
            return Ok(());
        }
    }
    // Ignored, because a reader that does not take the end had enough before.
    queue.send(Bytes::new()).await.unwrap_or_default();
    Ok(())
}

/// The pieces as one stream of bytes; one that ends without an empty piece broke off.
struct UploadPieces<'a> {
    queue: mpsc::Receiver<Bytes>,
    current: Bytes,
    ended: bool,
    counters: &'a ProgressCounters,
}

impl<'a> UploadPieces<'a> {
    const fn new(queue: mpsc::Receiver<Bytes>, counters: &'a ProgressCounters) -> Self {
        Self {
            queue,
            current: Bytes::new(),
            ended: false,
            counters,
        }
    }
}

impl Read for UploadPieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.current.is_empty() && !self.ended {
            self.current = self
                .queue
                .blocking_recv()
                .ok_or_else(|| io::Error::other(SourceFailed))?;
            self.ended = self.current.is_empty();
            self.counters.add_bytes(self.current.len() as u64);
        }
        let length = self.current.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.current.split_to(length));
        Ok(length)
    }
}

/// Splits, judges and merges the pieces.
fn run(
    judges: &LineJudges<'_>,
    merger: Merger,
    layout: &UploadLayout,
    pieces: UploadPieces<'_>,
    counters: &ProgressCounters,
) -> Result<Judged, Error> {
    let context = judges.context;
    let plan = context.plan(layout.compression);
    let (merger, ended) = judges.run(
        merger,
        |emit| split(pieces, &plan, emit),
        |_| (),
        |merger, lines, ()| {
            merger.push(lines, |_| {})?;
            counters.set_rows(merger.rows());
            Ok(())
        },
    )?;
    match ended {
        Err(SplitError::Unreadable { code, message }) => Ok(unreadable(code, message.into_owned())),
        // Also when all is split: the merger took no more, and what was split by then is not among its rows.
        Ok(()) | Err(SplitError::Unwanted) => match (merger.excess(context.most_rows), ended) {
            (Some(excess), _) => Ok(rejected(excess.decision())),
            (None, Ok(())) => Ok(merger.end()?),
            (None, Err(_)) => Err(Error::Panicked),
        },
        Err(SplitError::Source) => Err(Error::Objects(uploads::Error::Io(io::Error::other(SourceFailed)))),
    }
}

fn unreadable(code: &str, message: String) -> Judged {
    rejected(Decision::Reject {
        code: code.to_owned(),
        message,
    })
}

fn rejected(decision: Decision) -> Judged {
    Judged {
        decision,
        prepared: None,
        report: Arc::default(),
    }
}
