//! Sweeper: appends contributions without an outcome to the log again.
//!
//! Invariant: every open contribution is appended again sooner or later, however the relay, the log or a worker lost
//! it. Appending one that is not lost is harmless, so the sweeper never checks if it is.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eventlog::{EventLog, Record};
use messages::CONTRIBUTIONS_TOPIC;
use store::{Due, Store, Swept};
use tokio_util::sync::CancellationToken;
use types::{Classify as _, Clock, ContributionId, Kind, metric};

use crate::periodic::PeriodicTimer;
use crate::state::sweeper_config::SweeperConfig;
use crate::state::validation::ReviewState;

/// Submissions read and appended at a time. Each is at most a few MiB.
const SUBMISSIONS_PER_PAGE: u32 = 16;
/// Idempotency keys deleted at a time.
const KEYS_PER_PRUNE: u32 = 1_000;

/// Task that appends open submissions again.
#[derive(Debug)]
pub struct Sweeper {
    store: Store,
    log: Arc<dyn EventLog>,
    clock: Arc<dyn Clock>,
    config: SweeperConfig,
    keys: Duration,
    validation: ReviewState,
}

/// Error that ended a sweep early. The next sweep continues.
#[derive(Debug, thiserror::Error)]
enum SweepError {
    #[error("the database did not answer")]
    Store(#[from] store::Error),
    #[error("the log did not take the submissions")]
    Log(#[from] eventlog::Error),
}

impl Sweeper {
    /// Creates a sweeper that has not started. `keys` is the time for which idempotency keys are remembered.
    pub fn new(
        store: Store,
        log: Arc<dyn EventLog>,
        clock: Arc<dyn Clock>,
        config: SweeperConfig,
        keys: Duration,
    ) -> Self {
        Self {
            store,
            log,
            clock,
            config,
            keys,
            validation: ReviewState::default(),
        }
    }

    /// Sets the state of the reviews: while they are paused, only submissions to private projects are appended.
    #[must_use]
    pub fn with_validation(self, validation: ReviewState) -> Self {
        Self { validation, ..self }
    }

    /// Appends every open submission once at the start, then, until `stop`, those that are due.
    pub async fn run(self, stop: CancellationToken) {
        // An interval of zero would panic.
        let period = self.config.every.0.max(Duration::from_secs(1));
        // Position of the first sweep, over everything: the last submission that was appended, or `None` when that
        // sweep is complete.
        let mut beginning = Some(None);
        let sweeping = async {
            let mut rounds = PeriodicTimer::every(period, &stop);
            while rounds.next().await {
                let is_paused = self.validation.is_paused();
                let swept = match &mut beginning {
                    // Contributions that an earlier process left open are appended when a pause ends, or when they are
                    // due.
                    _ if is_paused => self.due(true).await,
                    Some(after) => self.everything(after).await,
                    None => self.due(false).await,
                };
                match swept {
                    Ok(count) => {
                        if !is_paused {
                            // During a pause only private submissions were appended, so the sweep over
                            // everything is still to come.
                            beginning = None;
                        }
                        if count > 0 {
                            tracing::info!(submissions = count, "appended submissions without an outcome again");
                        }
                    }
                    Err(error) => tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "cannot append every submission without an outcome; trying again"
                    ),
                }
                if let Err(error) = self.forget_keys().await {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "cannot delete expired idempotency keys; trying again"
                    );
                }
            }
        };
        stop.run_until_cancelled(sweeping).await;
    }

    /// Appends every submission that an earlier process left open, in order of their ids, from `after` on. It advances
    /// `after`, so that a retry continues there. A crash may have lost any of them, so none waits until it is due.
    async fn everything(&self, after: &mut Option<ContributionId>) -> Result<usize, SweepError> {
        let mut count = 0;
        loop {
            let page = self
                .store
                .contributions_open_at_start(SUBMISSIONS_PER_PAGE, *after)
                .await?;
            let Some(last) = page.last() else { return Ok(count) };
            let last = last.id;
            count += self.append(page).await?;
            *after = Some(last);
        }
    }

    async fn due(&self, private: bool) -> Result<usize, SweepError> {
        let mut count = 0;
        loop {
            let now = self.clock.now();
            let page = if private {
                self.store.private_contributions_due(now, SUBMISSIONS_PER_PAGE).await?
            } else {
                self.store.contributions_due(now, SUBMISSIONS_PER_PAGE).await?
            };
            if page.is_empty() {
                return Ok(count);
            }
            count += self.append(page).await?;
        }
    }

    /// Deletes idempotency keys that have expired, a bounded number at a time, and the counts of limits that are over.
    async fn forget_keys(&self) -> Result<u64, store::Error> {
        let now = self.clock.now();
        self.store.counters_prune(now).await?;
        let before = now.minus(self.keys);
        self.store.idempotency_prune(before, KEYS_PER_PRUNE).await
    }

    /// Appends submissions and stores when each is due next. Returns the number that the log accepted.
    async fn append(&self, page: Vec<Due>) -> Result<usize, SweepError> {
        let now = self.clock.now();
        let mut swept = Vec::with_capacity(page.len());
        let mut records = Vec::with_capacity(page.len());
        for Due {
            id,
            project,
            submission,
            attempts,
        } in page
        {
            swept.push(Swept {
                id,
                next_sweep: self.config.next(now, attempts),
            });
            records.push(Record {
                key: Bytes::copy_from_slice(project.as_bytes()),
                value: submission.into(),
            });
        }
        let refused = |place: usize, error: &eventlog::Error| {
            // It is not rejected either: it was acknowledged, and the limit of the log may be raised.
            tracing::error!(
                contribution = ?swept.get(place).map(|swept| swept.id), %error,
                "the log refuses a submission; its contribution stays without an outcome"
            );
        };
        let taken = append_all(&*self.log, CONTRIBUTIONS_TOPIC, records, refused).await?;
        metrics::counter!(metric::SWEEPER_APPENDED).increment(taken as u64);
        // Refused submissions are due again later too, so that they do not block the sweep.
        self.store.contributions_swept(swept).await?;
        Ok(taken)
    }
}

/// Appends records at once, or one by one if the log refuses a record, so that the record does not block the others. Tells
/// `refused` the place and the error of each record that is refused. Returns the number that the log accepted.
pub(super) async fn append_all(
    log: &dyn EventLog,
    topic: &str,
    records: Vec<Record>,
    refused: impl Fn(usize, &eventlog::Error),
) -> Result<usize, eventlog::Error> {
    // One append is the usual case. It fails as a whole if the log refuses a single record.
    match log.append_recoverable(topic, records.clone()).await {
        Ok(_) => return Ok(records.len()),
        Err(error) if is_of_one(&error) => {}
        Err(error) => return Err(error),
    }
    let mut taken = 0;
    for (place, record) in records.into_iter().enumerate() {
        match log.append_recoverable(topic, vec![record]).await {
            Ok(_) => taken += 1,
            Err(error) if is_of_one(&error) => refused(place, &error),
            Err(error) => return Err(error),
        }
    }
    Ok(taken)
}

/// Returns true if the log refused a record for its size or content, so that others may still be accepted.
fn is_of_one(error: &eventlog::Error) -> bool {
    matches!(error.kind(), Kind::TooLarge | Kind::Invalid)
}

#[cfg(test)]
mod tests;
