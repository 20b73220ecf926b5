//! Units between the database and the log: their messages, their sweeper, and what outcomes say of them.
//!
//! Invariant: nothing of a unit is appended while reviews are held, but for one version in [`PROBE_INTERVAL`] that shows
//! whether a provider answers again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eventlog::{EventLog, Record};
use messages::KNOWLEDGE_TOPIC;
use store::{Store, UnitApplied, UnitDue, UnitOutcome, UnitSwept};
use tokio_util::sync::CancellationToken;
use types::unit::UnitResolution;
use types::{Clock, Timestamp, metric};

use super::sweeper::append_all;
use crate::periodic::PeriodicTimer;
use crate::state::sweeper_config::SweeperConfig;
use crate::state::validation::ReviewState;
use types::error::with_causes;

/// Versions read and appended at a time. Each is at most 200 KB.
const PER_PAGE: u32 = 64;
/// Interval at which one version is appended while a provider does not answer.
const PROBE_INTERVAL: Duration = Duration::from_secs(30);

/// Returns an outcome as the database takes it.
pub(super) fn outcome(outcome: messages::UnitOutcome) -> UnitOutcome {
    UnitOutcome {
        id: outcome.unit,
        generation: outcome.generation,
        at: outcome.at,
        resolution: outcome.resolution,
        report: outcome.report,
    }
}

/// Records the metrics of an outcome that was applied for the first time.
pub(super) fn measure(outcome: &UnitOutcome, applied: UnitApplied, now: Timestamp) {
    let state = match outcome.resolution {
        // The last hold of a text that spoils its answers is a rejection.
        _ if applied.given_up => "rejected",
        UnitResolution::Published { .. } => "published",
        UnitResolution::Rejected { .. } => "rejected",
        UnitResolution::Waiting { .. } => "waiting",
    };
    metrics::counter!(metric::UNITS, "state" => state).increment(1);
    metrics::histogram!(metric::PROJECTION_SECONDS).record(now.since(outcome.at).as_secs_f64());
}

/// Task that appends open versions again.
#[derive(Debug)]
pub struct UnitSweeper {
    store: Store,
    log: Arc<dyn EventLog>,
    clock: Arc<dyn Clock>,
    config: SweeperConfig,
    validation: ReviewState,
}

/// Error that ended a sweep early. The next sweep continues.
#[derive(Debug, thiserror::Error)]
enum UnitSweepError {
    #[error("the database did not answer")]
    Store(#[from] store::Error),
    #[error("the log did not take the units")]
    Log(#[from] eventlog::Error),
}

impl UnitSweeper {
    /// Creates a sweeper that has not started.
    pub fn new(
        store: Store,
        log: Arc<dyn EventLog>,
        clock: Arc<dyn Clock>,
        config: SweeperConfig,
        validation: ReviewState,
    ) -> Self {
        Self {
            store,
            log,
            clock,
            config,
            validation,
        }
    }

    /// Appends every queued version at the start, then, until `stop`, those that are due.
    pub async fn run(self, stop: CancellationToken) {
        // An interval of zero would panic.
        let period = self.config.every.0.max(Duration::from_secs(1));
        let sweeping = async {
            let (mut rounds, mut began) = (PeriodicTimer::every(period, &stop), false);
            while rounds.next().await {
                match self.round(&mut began).await {
                    Ok(0) => {}
                    Ok(units) => tracing::info!(units, "appended units without an outcome again"),
                    Err(error) => tracing::warn!(
                        error = with_causes(&error),
                        "cannot append every unit without an outcome; trying again"
                    ),
                }
            }
        };
        stop.run_until_cancelled(sweeping).await;
    }

    async fn round(&self, began: &mut bool) -> Result<usize, UnitSweepError> {
        let now = self.clock.now();
        if !*began {
            // A crash may have lost the message of any of them, so none waits until it is due.
            self.store.knowledge().due_at_start(now).await?;
            *began = true;
        }
        self.store.knowledge().permits_prune(now).await?;
        match self.validation.held(now) {
            None => self.due().await,
            // Only asking a silent provider tells if it answers again. A budget ends at a known time,
            // and a pause by an administrator.
            Some((reason, _)) if reason == "provider" => self.probe().await,
            Some(_) => Ok(0),
        }
    }

    async fn due(&self) -> Result<usize, UnitSweepError> {
        let mut count = 0;
        loop {
            let page = self.store.knowledge().due(self.clock.now(), PER_PAGE).await?;
            if page.is_empty() {
                return Ok(count);
            }
            count += self.append(page).await?;
            // A pause that began meanwhile holds the next page.
            if self.validation.held(self.clock.now()).is_some() {
                return Ok(count);
            }
        }
    }

    /// Appends one version, unless this or another process did so lately.
    async fn probe(&self) -> Result<usize, UnitSweepError> {
        let now = self.clock.now();
        let page = self.store.knowledge().due(now, 1).await?;
        // The database keeps the time of the last probe, so that all processes together send one.
        if page.is_empty() || !self.store.validation_probe(now, PROBE_INTERVAL).await? {
            return Ok(0);
        }
        self.append(page).await
    }

    /// Appends versions. Their next time is stored first: an outcome may arrive before this process goes on.
    async fn append(&self, page: Vec<UnitDue>) -> Result<usize, UnitSweepError> {
        let now = self.clock.now();
        let swept = page.iter().map(|due| UnitSwept {
            id: due.id,
            next_sweep: self.config.next(now, due.attempts),
        });
        self.store.knowledge().swept(swept.collect()).await?;
        let (ids, records): (Vec<_>, Vec<_>) = page
            .into_iter()
            .map(|due| {
                let record = Record {
                    key: Bytes::from_static(KNOWLEDGE_TOPIC.as_bytes()),
                    value: due.submission.into(),
                };
                (due.id, record)
            })
            .unzip();
        let refused = |place: usize, error: &eventlog::Error| {
            tracing::error!(unit = ?ids.get(place), %error, "the log refuses a unit; it stays without an outcome");
        };
        let taken = append_all(&*self.log, KNOWLEDGE_TOPIC, records, refused).await?;
        metrics::counter!(metric::SWEEPER_APPENDED).increment(taken as u64);
        Ok(taken)
    }
}

#[cfg(test)]
mod tests;
