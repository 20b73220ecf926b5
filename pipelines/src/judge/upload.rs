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

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, available_parallelism};

use bytes::Bytes;
use catalog::Stager;
use futures_util::stream::TryStreamExt as _;
use operators::Decision;
use operators::screen::{Screener, for_contribution};
use parking_lot::Mutex;
use tabular::reading::Reading;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use types::vocabulary::OnRefused;
use types::{Classify, Kind, Retry, fault};
use uploads::{ProgressCounters, UploadLayout, UploadStore};

use super::Judged;
use super::chunk::{JudgedLines, LineContext, Translation, judge_lines};
use super::merger::Merger;
use super::split::{LineChunk, SourceFailed, SplitError, SplitPlan, split};
use crate::context::{Uploads, is_transient};
use crate::pieces::{AT_ONCE, pieces};

/// The most threads that judge.
const JUDGES: usize = 8;

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
        run(&handle, &stop, &context, merger, &layout, pieces, &counters)
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

/// Splits, judges and merges, each on threads of its own.
fn run(
    handle: &Handle,
    stop: &CancellationToken,
    context: &LineContext,
    merger: Merger,
    layout: &UploadLayout,
    pieces: UploadPieces<'_>,
    counters: &ProgressCounters,
) -> Result<Judged, Error> {
    let judges = available_parallelism().map_or(1, usize::from).clamp(1, JUDGES);
    let in_flight = 2 * judges + 2;
    // Each chunk holds a permit until it is merged, so that no judge runs far ahead of another.
    let (permits, released) = sync_channel::<()>(in_flight);
    // As many as there are permits: then only the permits make anybody wait, and nobody waits for a
    // thread that is gone.
    let (chunks, to_judge) = sync_channel::<LineChunk>(in_flight);
    let (judged, to_merge) = sync_channel::<Option<JudgedLines>>(in_flight);
    let to_judge = Mutex::new(to_judge);
    let plan = context.plan(layout.compression);
    thread::scope(|scope| {
        let plan = &plan;
        let splitter = thread::Builder::new()
            .spawn_scoped(scope, move || split_into(pieces, plan, &permits, &chunks))
            .map_err(Error::Thread)?;
        let to_judge = &to_judge;
        for _ in 0..judges {
            let judged = judged.clone();
            let work = move || {
                while let Some(chunk) = next(to_judge) {
                    let judging = async { stop.run_until_cancelled(judge_lines(context, chunk)).await };
                    let judging = AssertUnwindSafe(|| handle.block_on(judging));
                    let found = catch_unwind(judging).ok().flatten();
                    if judged.send(found).is_err() {
                        return;
                    }
                }
            };
            thread::Builder::new()
                .spawn_scoped(scope, work)
                .map_err(Error::Thread)?;
        }
        drop(judged);
        let merged = merge(merger, context.most_rows, &to_merge, &released, counters);
        // Closing both ends the threads that still send: their next send fails.
        drop((to_merge, released));
        let ended = splitter.join().map_err(|_panic| Error::Panicked)?;
        let merger = merged?;
        match ended {
            Err(SplitError::Unreadable { code, message }) => Ok(unreadable(code, message.into_owned())),
            // Also when all is split: the merger took no more, and what was split by then is not among
            // its rows.
            Ok(()) | Err(SplitError::Unwanted) => match (merger.excess(context.most_rows), ended) {
                (Some(excess), _) => Ok(rejected(excess.decision())),
                (None, Ok(())) => Ok(merger.end()?),
                // The merger takes every chunk unless it failed, so a judge must have died.
                (None, Err(_)) => Err(Error::Panicked),
            },
            Err(SplitError::Source) => Err(Error::Objects(uploads::Error::Io(io::Error::other(SourceFailed)))),
        }
    })
}

fn split_into(
    pieces: UploadPieces<'_>,
    plan: &SplitPlan,
    permits: &SyncSender<()>,
    chunks: &SyncSender<LineChunk>,
) -> Result<(), SplitError> {
    split(pieces, plan, |chunk| {
        permits.send(()).is_ok() && chunks.send(chunk).is_ok()
    })
}

fn next(chunks: &Mutex<Receiver<LineChunk>>) -> Option<LineChunk> {
    chunks.lock().recv().ok()
}

/// Takes the judged chunks in order.
fn merge(
    mut merger: Merger,
    most_rows: u64,
    judged: &Receiver<Option<JudgedLines>>,
    released: &Receiver<()>,
    counters: &ProgressCounters,
) -> Result<Merger, Error> {
    let mut early = BTreeMap::new();
    let mut expected = 0;
    while let Ok(chunk) = judged.recv() {
        // A missing chunk is a panic: a judge that was only stopped has nobody to send to.
        let chunk = chunk.ok_or(Error::Panicked)?;
        early.insert(chunk.number, chunk);
        while let Some(chunk) = early.remove(&expected) {
            merger.push(chunk)?;
            counters.set_rows(merger.rows());
            expected += 1;
            if released.recv().is_err() || merger.excess(most_rows).is_some() {
                return Ok(merger);
            }
        }
    }
    if early.is_empty() {
        Ok(merger)
    } else {
        Err(Error::Panicked)
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
