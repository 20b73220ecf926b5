//! Staging: an upload becomes parts while its dataset's lane goes on, and one step on the lane makes them a version.
//!
//! ```text
//!  parts ──► cut at line ends ──► judged in parallel ──► in order again: duplicates out ──► Parquet ──► Prepared
//!  (async)   (gzip undone)         (a batch's chain)      (one thread)                       (another)     │
//!                                                                                                         ▼ the lane
//! ```
//!
//! Invariants:
//! - An upload is judged as a batch of its records would be; what differs is that records are named by their lines, and
//!   that no more than the first of them are named.
//! - Memory is bounded whatever the size: a few units are in flight, and a unit is a megabyte of lines, and no more of
//!   them than a bounded number of values comes of.
//! - Nothing of an upload is in its table before the one commit, and nothing is left of one that is not merged.
//! - One upload is staged at a time; the others wait, and so does no lane.

mod collect;
pub(crate) mod conclude;
mod cut;
mod judge;
pub(crate) mod trial;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, available_parallelism};

use bytes::Bytes;
use catalog::Stager;
use futures_util::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use operators::Decision;
use operators::screen::{Screener, for_contribution};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use types::{Classify, Kind, Retry, fault};
use uploads::{Counters, Stagings, UploadLayout, UploadStore};

use self::collect::{Collected, Collector, MOST_ROWS};
use self::cut::{CutError, SourceFailed, Unit, cut};
use self::judge::{Bench, JudgedUnit, judge};
use crate::conclude::may_pass;

/// Bytes of a part that are read at once.
const PIECE: u64 = 1 << 20;
/// Number of pieces that are read at once, and of those that wait to be cut.
const PIECES: usize = 4;
/// The most threads that judge.
const JUDGES: usize = 8;

/// Parts of a process that staging needs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Uploads {
    objects: Arc<dyn UploadStore>,
    stagings: Stagings,
    most_rows: u64,
    turn: Arc<Semaphore>,
}

impl Uploads {
    /// Creates the staging of uploads whose parts are in `objects`; their progress is shown in `stagings`.
    pub fn new(objects: Arc<dyn UploadStore>, stagings: Stagings) -> Self {
        Self {
            objects,
            stagings,
            most_rows: MOST_ROWS,
            turn: Arc::new(Semaphore::new(1)),
        }
    }

    /// The most records that an upload may have, instead of 100,000,000.
    #[must_use]
    pub fn with_most_rows(mut self, rows: u64) -> Self {
        self.most_rows = rows;
        self
    }
}

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
    /// It was tried out, and nobody is to work on it.
    #[error("{0}")]
    Condemned(String),
}

impl Classify for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Objects(error) => error.kind(),
            Self::Catalog(error) => error.kind(),
            Self::Thread(_) => Kind::Unavailable,
            Self::Panicked | Self::Condemned(_) => Kind::Internal,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Objects(error) => error.retry(),
            Self::Catalog(error) if may_pass(error) => Retry::Backoff,
            Self::Thread(_) => Retry::Backoff,
            // A panic comes from the bytes, and comes again with them.
            Self::Catalog(_) | Self::Panicked | Self::Condemned(_) => Retry::Never,
        }
    }
}

/// Stages one upload. Dropped, it ends soon and leaves nothing.
async fn stage(
    uploads: &Uploads,
    cut: UploadLayout,
    screener: Option<Arc<dyn Screener>>,
    stager: Stager,
) -> Result<Collected, Error> {
    // The result is not looked at: a semaphore that is never closed always gives its turn.
    let _turn = uploads.turn.acquire().await;
    fault::point("stage.begin");
    let bench = Bench {
        contract: Arc::clone(stager.contract()),
        known: stager.known(),
        // All parts of an upload share one bound.
        screener: screener.as_ref().map(for_contribution),
        most_rows: uploads.most_rows,
    };
    let listed = uploads.stagings.list(cut.upload);
    let counters = Arc::clone(listed.counters());
    let (sender, receiver) = mpsc::channel(PIECES);
    let reading = read(&*uploads.objects, &cut, sender);
    let handle = Handle::current();
    let stop = CancellationToken::new();
    let _stops = stop.clone().drop_guard();
    let work = spawn_blocking(move || {
        let pieces = Pieces::new(receiver, &counters);
        run(&handle, &stop, &bench, stager, &cut, pieces, &counters)
    });
    let (read, collected) = tokio::join!(reading, work);
    match (read, collected) {
        (_, Err(_panic)) => Err(Error::Panicked),
        // The error of the reader wins: the other side saw only that its bytes broke off.
        (Err(error), _) => Err(error.into()),
        (Ok(()), Ok(collected)) => collected,
    }
}

/// Sends the bytes of every part in order, then an empty piece; ends early where nobody takes them.
async fn read(
    objects: &dyn UploadStore,
    cut: &UploadLayout,
    pieces: mpsc::Sender<Bytes>,
) -> Result<(), uploads::Error> {
    let mut reading = pin!(self::pieces(objects, cut));
    while let Some(bytes) = reading.try_next().await? {
        if pieces.send(bytes).await.is_err() {
            return Ok(());
        }
    }
    // Ignored, because a reader that does not take the end had enough before.
    pieces.send(Bytes::new()).await.unwrap_or_default();
    Ok(())
}

/// Reads the bytes of every part in order.
pub(crate) fn pieces<'a>(
    objects: &'a dyn UploadStore,
    cut: &'a UploadLayout,
) -> impl Stream<Item = Result<Bytes, uploads::Error>> + Send + 'a {
    let ranges = (1..=cut.parts).flat_map(|n| {
        let size = cut.size_of(n).unwrap_or(0);
        (0..size.div_ceil(PIECE)).map(move |piece| (n, piece * PIECE..size.min((piece + 1) * PIECE)))
    });
    // Several at once, because each answer of a distant store takes long.
    let reading = ranges.map(|(n, range): (u32, Range<u64>)| objects.read(cut, n, range));
    stream::iter(reading).buffered(PIECES)
}

/// The pieces as one stream of bytes; one that ends without an empty piece broke off.
struct Pieces<'a> {
    queue: mpsc::Receiver<Bytes>,
    current: Bytes,
    ended: bool,
    counters: &'a Counters,
}

impl<'a> Pieces<'a> {
    const fn new(queue: mpsc::Receiver<Bytes>, counters: &'a Counters) -> Self {
        Self {
            queue,
            current: Bytes::new(),
            ended: false,
            counters,
        }
    }
}

impl Read for Pieces<'_> {
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

/// Cuts, judges and collects, each on threads of its own.
fn run(
    handle: &Handle,
    stop: &CancellationToken,
    bench: &Bench,
    stager: Stager,
    cut: &UploadLayout,
    pieces: Pieces<'_>,
    counters: &Counters,
) -> Result<Collected, Error> {
    let judges = available_parallelism().map_or(1, usize::from).clamp(1, JUDGES);
    let in_flight = 2 * judges + 2;
    // Each unit holds a permit until it is collected, so that no judge runs far ahead of another.
    let (permits, released) = sync_channel::<()>(in_flight);
    // As many as there are permits: then only the permits make anybody wait, and nobody waits for a
    // thread that is gone.
    let (units, to_judge) = sync_channel::<Unit>(in_flight);
    let (judged, to_collect) = sync_channel::<Option<JudgedUnit>>(in_flight);
    let to_judge = Mutex::new(to_judge);
    thread::scope(|scope| {
        let fields = bench.contract.fields().len();
        let cutter = thread::Builder::new()
            .spawn_scoped(scope, move || cut_into(pieces, cut, fields, &permits, &units))
            .map_err(Error::Thread)?;
        let to_judge = &to_judge;
        for _ in 0..judges {
            let judged = judged.clone();
            let work = move || {
                while let Some(unit) = next(to_judge) {
                    let judging = async { stop.run_until_cancelled(judge(bench, unit)).await };
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
        let collected = collect(stager, bench.most_rows, &to_collect, &released, counters);
        // Closing both ends the threads that still send: their next send fails.
        drop((to_collect, released));
        let ended = cutter.join().map_err(|_panic| Error::Panicked)?;
        let collector = collected?;
        match ended {
            Err(CutError::Unreadable { code, message }) => Ok(unreadable(code, message.to_owned())),
            // Also when all is cut: the collector took no more, and what was cut by then is not among
            // its rows.
            Ok(()) | Err(CutError::Unwanted) if collector.rows() > bench.most_rows => {
                let message = format!("an upload has at most {} records", bench.most_rows);
                Ok(unreadable("too_many_records", message))
            }
            Ok(()) => Ok(collector.end()?),
            // The collector takes every unit unless it failed, so a judge must have died.
            Err(CutError::Unwanted) => Err(Error::Panicked),
            Err(CutError::Source) => Err(Error::Objects(uploads::Error::Io(io::Error::other(SourceFailed)))),
        }
    })
}

fn cut_into(
    pieces: Pieces<'_>,
    whole: &UploadLayout,
    fields: usize,
    permits: &SyncSender<()>,
    units: &SyncSender<Unit>,
) -> Result<(), CutError> {
    cut(pieces, whole.compression, fields, |unit| {
        permits.send(()).is_ok() && units.send(unit).is_ok()
    })
}

fn next(units: &Mutex<Receiver<Unit>>) -> Option<Unit> {
    units.lock().recv().ok()
}

/// Takes the judged units in order.
fn collect(
    stager: Stager,
    most_rows: u64,
    judged: &Receiver<Option<JudgedUnit>>,
    released: &Receiver<()>,
    counters: &Counters,
) -> Result<Collector, Error> {
    let mut collector = Collector::new(stager);
    let mut early = BTreeMap::new();
    let mut expected = 0;
    while let Ok(unit) = judged.recv() {
        // A missing unit is a panic: a judge that was only stopped has nobody to send to.
        let unit = unit.ok_or(Error::Panicked)?;
        early.insert(unit.number, unit);
        while let Some(unit) = early.remove(&expected) {
            collector.add(unit)?;
            counters.set_rows(collector.rows());
            expected += 1;
            if released.recv().is_err() || collector.rows() > most_rows {
                return Ok(collector);
            }
        }
    }
    if early.is_empty() {
        Ok(collector)
    } else {
        Err(Error::Panicked)
    }
}

fn unreadable(code: &str, message: String) -> Collected {
    Collected {
        decision: Decision::Reject {
            code: code.to_owned(),
            message,
        },
        staged: None,
        rows: 0,
        verdicts: Vec::new(),
        tallies: Vec::new(),
    }
}
