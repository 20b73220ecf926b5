//! Writer of summaries of public datasets, behind the merges.
//!
//! Invariants:
//! - A private dataset is never shown to the model, nor are the records of a dataset that sells them.
//! - A summary is a text of a stranger's making: it passes the checks of a comment before it is kept.
//! - While the model does not answer, nothing is asked; a version that spoils the answers about it is given up.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use catalog::{Catalog, Columns};
use operators::screen::{Cause, Unavailable};
use operators::summary::{DatasetText, Summariser};
use serde_json::Value;
use store::{Access, Project, Store, SummaryLease, SummaryLimits};
use tokio_util::sync::CancellationToken;
use types::{Clock, Timestamp, Version};

use crate::periodic::PeriodicTimer;
use crate::rules::reading;
use crate::rules::text_screen;
use crate::state::page_size::PageSize;
use types::error::with_causes;

/// Interval at which versions without a summary are looked for.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The shortest wait after a failure.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);
/// The wait after a failure that says no time.
const WAIT: Duration = Duration::from_mins(1);
/// Records that the model is shown, from the end of the version.
const RECORDS: usize = 20;
/// The limits of the work. The lease is longer than a provider takes for all tries of a question.
const LIMITS: SummaryLimits = SummaryLimits {
    lease: Duration::from_mins(15),
    every: Duration::from_hours(1),
    failures: 3,
};

/// Task that writes summaries.
#[derive(Debug)]
pub struct Summaries {
    store: Store,
    catalog: Catalog,
    clock: Arc<dyn Clock>,
    summariser: Arc<dyn Summariser>,
}

/// The end of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoundEnd {
    /// No version is to be summarised now.
    Idle,
    /// A version was summarised, or is tried again later.
    Done,
    /// The model does not answer before this time.
    Waits(Timestamp),
}

/// Failure to read the version, or to record the result.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// Failure of the database.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Failure of the table.
    #[error("a version cannot be read")]
    Table(#[from] catalog::Error),
    /// Failure to render the records.
    #[error("records cannot be rendered: {0}")]
    Render(String),
}

impl Summaries {
    /// Creates a writer that has not started.
    pub fn new(store: Store, catalog: Catalog, clock: Arc<dyn Clock>, summariser: Arc<dyn Summariser>) -> Self {
        Self {
            store,
            catalog,
            clock,
            summariser,
        }
    }

    /// Writes summaries until `stop`, one at a time.
    pub async fn run(self, stop: CancellationToken) {
        let writing = async {
            let mut rounds = PeriodicTimer::every(POLL_INTERVAL, &stop);
            let mut resumes = Timestamp::default();
            while rounds.next().await {
                while self.clock.now() >= resumes {
                    match self.round().await {
                        Ok(RoundEnd::Done) => {}
                        Ok(RoundEnd::Idle) => break,
                        Ok(RoundEnd::Waits(until)) => resumes = until,
                        Err(error) => {
                            tracing::warn!(
                                error = with_causes(&error),
                                "cannot summarise a version; trying again later"
                            );
                            resumes = self.clock.now().plus(WAIT);
                        }
                    }
                }
            }
        };
        stop.run_until_cancelled(writing).await;
    }

    /// Summarises one version, if there is one to summarise.
    ///
    /// # Errors
    /// A database or a table that does not answer. The version is due again when its lease ends.
    async fn round(&self) -> Result<RoundEnd, Error> {
        let summaries = self.store.summaries();
        let Some(lease) = summaries.take(self.clock.now(), LIMITS).await? else {
            return Ok(RoundEnd::Idle);
        };
        let Some(text) = self.text(lease).await? else {
            return Ok(RoundEnd::Done);
        };
        let written = self.summariser.summarise(&text).await;
        let is_accepted = match &written {
            Ok(summary) => text_screen::check("summary", summary).await.is_ok(),
            Err(_) => false,
        };
        let now = self.clock.now();
        let soon = now.plus(SHORTEST_WAIT);
        match written {
            Ok(summary) if is_accepted => {
                let model = self.summariser.judge().name;
                // A version that is not shown any more keeps none.
                let _is_kept = summaries.write(lease, &summary, &model, now).await?;
            }
            Ok(_) => summaries.fail(lease, now.plus(WAIT)).await?,
            Err(Unavailable {
                reason: Cause::Text,
                resumes_after,
            }) => {
                let next = resumes_after.unwrap_or_else(|| now.plus(WAIT));
                summaries.fail(lease, next.max(soon)).await?;
            }
            Err(Unavailable { resumes_after, .. }) => {
                let until = resumes_after.unwrap_or_else(|| now.plus(WAIT)).max(soon);
                summaries.give_back(lease, until).await?;
                return Ok(RoundEnd::Waits(until));
            }
        }
        Ok(RoundEnd::Done)
    }

    /// Returns what the model is shown of a version. Returns `None` if the dataset is not shown any more.
    async fn text(&self, lease: SummaryLease) -> Result<Option<DatasetText>, Error> {
        let shown = self.store.searching().datasets(&[lease.project.to_string()]).await?;
        let Some(project) = shown.into_iter().next() else {
            return Ok(None);
        };
        let records = match project.access {
            Access::Public => self.records(&project, lease.version).await?,
            Access::Paid => Vec::new(),
        };
        Ok(Some(DatasetText {
            contract: serde_json::from_str(&project.contract_json).unwrap_or_default(),
            title: project.title,
            readme: project.readme,
            records,
        }))
    }

    /// Returns the last records of a version; none if this process does not see it yet.
    async fn records(&self, project: &Project, version: Version) -> Result<Vec<Value>, Error> {
        let Some(snapshot) = self.catalog.snapshot(project.id, Some(version)).await? else {
            return Ok(Vec::new());
        };
        let first = snapshot.record_count().saturating_sub(RECORDS as u64);
        let nothing = |_: &RecordBatch| Ok(());
        let pages = reading::page(&snapshot, Columns::Records, first..u64::MAX, PageSize::LARGE, nothing).await;
        let records = pages.map_err(|error| Error::Render(error.reason().to_owned()))?;
        let records = records.iter().flat_map(|((), records)| records);
        Ok(records
            .filter_map(|record| serde_json::from_str(record.get()).ok())
            .collect())
    }
}

#[cfg(test)]
mod tests;
