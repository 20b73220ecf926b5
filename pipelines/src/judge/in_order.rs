//! Judging of the lines of a text on several threads, and taking of what was judged in order.
//!
//! Invariant: a few chunks are in flight, and no judge runs far ahead of another.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, available_parallelism};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::chunk::{JudgedLines, LineContext, judge_lines};
use super::merger::Merger;
use super::split::{LineChunk, SplitError};

/// The most threads that judge.
const JUDGES: usize = 8;

/// Reason for which lines could not be judged to their end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InOrderError {
    /// The rows could not be kept.
    #[error(transparent)]
    Catalog(#[from] catalog::Error),
    /// There is no thread to judge on.
    #[error("no thread could be started")]
    Thread(#[source] io::Error),
    /// A gate, or the staging itself, panicked.
    #[error("judging panicked")]
    Panicked,
}

/// Parts of judging that do not depend on the text.
#[derive(Debug)]
pub(crate) struct LineJudges<'a> {
    pub(crate) handle: &'a Handle,
    pub(crate) stop: &'a CancellationToken,
    pub(crate) context: &'a LineContext,
    /// The most threads that judge; a chunk in flight is a few megabytes of memory.
    pub(crate) most: usize,
}

impl<'a> LineJudges<'a> {
    pub(crate) const fn new(handle: &'a Handle, stop: &'a CancellationToken, context: &'a LineContext) -> Self {
        Self {
            handle,
            stop,
            context,
            most: JUDGES,
        }
    }

    /// Splits, judges and merges, each on threads of its own. `split` hands on chunks until it is told that no more are
    /// wanted. `keep` keeps something of a chunk before it is judged, and `take` gets both in order. It ends where there are
    /// more rows than there may be. Returns what the rows came to, and how the text ended.
    pub(crate) fn run<S: Send, K: Send>(
        &self,
        mut merger: Merger<S>,
        split: impl FnOnce(&mut dyn FnMut(LineChunk) -> bool) -> Result<(), SplitError> + Send,
        keep: impl Fn(&LineChunk) -> K + Sync,
        mut take: impl FnMut(&mut Merger<S>, JudgedLines, K) -> Result<(), catalog::Error>,
    ) -> Result<(Merger<S>, Result<(), SplitError>), InOrderError> {
        let judges = available_parallelism()
            .map_or(1, usize::from)
            .clamp(1, self.most.max(1));
        let in_flight = 2 * judges + 2;
        // Each chunk holds a permit until it is merged, so that no judge runs far ahead of another.
        let (permits, released) = sync_channel::<()>(in_flight);
        // As many as there are permits: then only the permits make anybody wait, and nobody waits for a
        // thread that is gone.
        let (chunks, to_judge) = sync_channel::<LineChunk>(in_flight);
        let (judged, to_merge) = sync_channel::<Option<(JudgedLines, K)>>(in_flight);
        let to_judge = Mutex::new(to_judge);
        thread::scope(|scope| {
            let splitter = thread::Builder::new()
                .spawn_scoped(scope, move || {
                    split(&mut |chunk| permits.send(()).is_ok() && chunks.send(chunk).is_ok())
                })
                .map_err(InOrderError::Thread)?;
            let (to_judge, keep) = (&to_judge, &keep);
            for _ in 0..judges {
                let judged = judged.clone();
                let work = move || {
                    while let Some(chunk) = next(to_judge) {
                        let work = AssertUnwindSafe(|| {
                            let kept = keep(&chunk);
                            let judging = judge_lines(self.context, chunk);
                            let judging = async { self.stop.run_until_cancelled(judging).await };
                            self.handle.block_on(judging).map(|judged| (judged, kept))
                        });
                        let found = catch_unwind(work).ok().flatten();
                        if judged.send(found).is_err() {
                            return;
                        }
                    }
                };
                thread::Builder::new()
                    .spawn_scoped(scope, work)
                    .map_err(InOrderError::Thread)?;
            }
            drop(judged);
            let merged = self.merge(&mut merger, &to_merge, &released, &mut take);
            // Closing both ends the threads that still send: their next send fails.
            drop((to_merge, released));
            let ended = splitter.join().map_err(|_panic| InOrderError::Panicked)?;
            merged?;
            match ended {
                // The merger takes every chunk unless it has enough or failed, so a judge must have died.
                Err(SplitError::Unwanted) if merger.excess(self.context.most_rows).is_none() => {
                    Err(InOrderError::Panicked)
                }
                ended => Ok((merger, ended)),
            }
        })
    }

    /// Takes the judged chunks in order.
    fn merge<S, K>(
        &self,
        merger: &mut Merger<S>,
        judged: &Receiver<Option<(JudgedLines, K)>>,
        released: &Receiver<()>,
        take: &mut impl FnMut(&mut Merger<S>, JudgedLines, K) -> Result<(), catalog::Error>,
    ) -> Result<(), InOrderError> {
        let mut early = BTreeMap::new();
        let mut expected = 0;
        while let Ok(chunk) = judged.recv() {
            // A missing chunk is a panic: a judge that was only stopped has nobody to send to.
            let (chunk, kept) = chunk.ok_or(InOrderError::Panicked)?;
            early.insert(chunk.number, (chunk, kept));
            while let Some((chunk, kept)) = early.remove(&expected) {
                take(merger, chunk, kept)?;
                expected += 1;
                if released.recv().is_err() || merger.excess(self.context.most_rows).is_some() {
                    return Ok(());
                }
            }
        }
        if early.is_empty() {
            Ok(())
        } else {
            Err(InOrderError::Panicked)
        }
    }
}

fn next(chunks: &Mutex<Receiver<LineChunk>>) -> Option<LineChunk> {
    chunks.lock().recv().ok()
}
