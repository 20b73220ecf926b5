//! Parts that all writers of a worker share, and the questions that they ask of tables until there is an answer.
//!
//! Invariant: what cannot pass is not tried again, and a table that stays damaged or away is given up.

use std::error::Error;
use std::sync::{Arc, OnceLock};

use catalog::Catalog;
use eventlog::EventLog;
use operators::screen::Screener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use types::error::with_causes;
use types::trace::Propagator;
use types::{Backoff, Classify, Clock, DatasetId, Kind, Retry};
use uploads::{Stagings, UploadStore};

use crate::cpu_slots::CpuSlots;
use crate::isolation::Isolation;
use crate::outcome_cache::OutcomeCache;
use crate::step::{Stopped, pause};

/// Maximum number of records of an upload, which bounds the memory of their keys.
pub(crate) const MOST_ROWS: u64 = 100_000_000;
/// Tries of a damaged table before its writer gives it up: about a minute with the usual waits.
const MAX_TRIES_DAMAGED: u32 = 9;
/// Tries of a table that cannot be reached before its writer gives it up: about twelve minutes.
const MAX_TRIES_UNREACHABLE: u32 = 30;

/// Parts that every writer of a worker shares.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) log: Arc<dyn EventLog>,
    pub(crate) catalog: Catalog,
    pub(crate) screener: Arc<dyn Screener>,
    pub(crate) outcomes: Arc<OutcomeCache>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) propagator: Arc<dyn Propagator>,
    /// Store of the bytes of uploads; a worker without one takes no uploads.
    pub(crate) uploads: Option<Uploads>,
    /// The place where suspects are tried out. Nothing is tried out without one.
    pub(crate) isolation: Option<Arc<dyn Isolation>>,
    pub(crate) backoff: Backoff,
    /// The CPU slots of one writer.
    pub(crate) slots: CpuSlots,
    /// Number of submissions that are judged ahead of the one being committed.
    pub(crate) ahead: usize,
    /// Of the writer, which the worker's stop stops too.
    pub(crate) stop: CancellationToken,
    /// Of the worker, which a log that takes nothing any more stops.
    pub(crate) worker_stop: CancellationToken,
    /// Error after which the log takes nothing any more.
    pub(crate) failure: Arc<OnceLock<eventlog::Error>>,
}

/// Store and turns of the uploads of a process. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Uploads {
    pub(crate) objects: Arc<dyn UploadStore>,
    pub(crate) stagings: Stagings,
    pub(crate) most_rows: u64,
    pub(crate) turn: Arc<Semaphore>,
}

impl Uploads {
    /// Creates the use of uploads whose parts are in `objects`; their progress is shown in `stagings`.
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

impl Context {
    /// Asks a table, for as long as that can help. Returns `None` if the table was deleted.
    pub(crate) async fn ask<T, A: Future<Output = Result<T, catalog::Error>>>(
        &self,
        dataset: DatasetId,
        question: impl Fn() -> A,
    ) -> Result<Option<T>, Stopped> {
        let mut failures = 0;
        loop {
            match question().await {
                Ok(answer) => return Ok(Some(answer)),
                Err(catalog::Error::Deleted { .. }) => return Ok(None),
                Err(error @ catalog::Error::HistoryLost { .. }) => {
                    // The table is to be opened again, and what the writer has comes again.
                    tracing::error!(%dataset, %error, "a table is given up for now; its submissions come again");
                    return Err(Stopped);
                }
                Err(error) => {
                    tracing::error!(%dataset, error = with_causes(&error), "the table cannot be asked, trying again");
                    self.wait(&mut failures, &error).await?;
                }
            }
        }
    }

    /// Waits before a table that failed is asked again. One that stays as it is is given up: somebody has to mend it,
    /// and until then what its writer has would keep the log from being trimmed.
    pub(crate) async fn wait<E: Classify + Error>(&self, failures: &mut u32, error: &E) -> Result<(), Stopped> {
        let lasts = matches!(error.kind(), Kind::Internal | Kind::Damaged);
        let most = if lasts {
            MAX_TRIES_DAMAGED
        } else {
            MAX_TRIES_UNREACHABLE
        };
        if *failures >= most {
            tracing::error!(
                error = with_causes(error),
                "a table is given up for now; its submissions come again"
            );
            return Err(Stopped);
        }
        pause(self.backoff, *failures, &self.stop).await?;
        *failures += 1;
        Ok(())
    }
}

/// Returns true if trying the same thing again can help. A panic comes again.
pub(crate) fn is_transient(error: &catalog::Error) -> bool {
    let panicked = matches!(error, catalog::Error::Stopped(end) if end.is_panic());
    error.retry() == Retry::Backoff && !panicked
}
