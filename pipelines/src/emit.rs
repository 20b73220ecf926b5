//! What a worker says: outcomes and dead letters, appended until the log takes them or the worker stops.

use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE64;
use eventlog::{EventLog, Record};
use tokio_util::sync::CancellationToken;
use types::{Clock, fault};

use crate::finished::Finished;
use crate::judge::{Work, described};
use crate::message::{Address, CONTRIBUTIONS, DEAD_LETTERS, DeadLetter, FORMAT, OUTCOMES, Outcome, Resolution};

/// The worker stopped before the work could be brought to its end: its message stays open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopped;

/// Appends outcomes and dead letters.
#[derive(Clone, Debug)]
pub(crate) struct Emitter {
    pub(crate) log: Arc<dyn EventLog>,
    pub(crate) finished: Arc<Finished>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) backoff: Backoff,
    pub(crate) stop: CancellationToken,
}

/// How long to wait before trying again: doubles from the first wait to the longest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    pub(crate) first: Duration,
    pub(crate) most: Duration,
}

impl Backoff {
    /// Waits after `failures` failures before this one.
    pub(crate) async fn wait(self, failures: u32, stop: &CancellationToken) -> Result<(), Stopped> {
        let wait = self
            .first
            .saturating_mul(2_u32.saturating_pow(failures.min(20)))
            .min(self.most);
        match stop.run_until_cancelled(tokio::time::sleep(wait)).await {
            Some(()) => Ok(()),
            None => Err(Stopped),
        }
    }
}

impl Emitter {
    /// Appends an outcome; returns once it is durable.
    pub(crate) async fn outcome(&self, outcome: &Outcome) -> Result<(), Stopped> {
        let record = match outcome.record() {
            Ok(record) => record,
            Err(error) => {
                tracing::error!(contribution = %outcome.contribution, %error, "an outcome cannot be encoded");
                return Err(Stopped);
            }
        };
        fault::point("outcome.append");
        self.append(OUTCOMES, record).await?;
        fault::point("outcome.appended");
        if !matches!(outcome.resolution, Resolution::Waiting { .. }) {
            self.finished.insert(outcome.contribution, outcome.generation);
        }
        Ok(())
    }

    /// Appends a message that cannot be processed to the dead letters, and rejects its contribution where it can be
    /// read, so that nobody waits for it.
    pub(crate) async fn dead_letter(&self, work: &Work, reason: String) -> Result<(), Stopped> {
        let Work { record, ticket } = work;
        let position = ticket.position();
        let address = Address::read(&record.value);
        tracing::error!(?position, contribution = ?address.map(|address| address.contribution), reason, "dead letter");
        let letter = DeadLetter {
            format: FORMAT,
            topic: CONTRIBUTIONS.to_owned(),
            partition: position.partition,
            offset: position.offset,
            contribution: address.map(|address| address.contribution),
            reason: reason.clone(),
            at: self.clock.now(),
            key: BASE64.encode(&record.key),
            value: BASE64.encode(&record.value),
        };
        match serde_json::to_vec(&letter) {
            Ok(value) => {
                self.append(
                    DEAD_LETTERS,
                    Record {
                        key: record.key.clone(),
                        value: value.into(),
                    },
                )
                .await?;
            }
            Err(error) => {
                tracing::error!(%error, "a dead letter cannot be encoded");
                return Err(Stopped);
            }
        }
        let Some(address) = address.filter(|address| !self.finished.contains(address.contribution, address.generation))
        else {
            return Ok(());
        };
        self.outcome(&Outcome {
            format: FORMAT,
            contribution: address.contribution,
            generation: address.generation,
            dataset: address.dataset,
            at: self.clock.now(),
            resolution: Resolution::Rejected {
                code: "unprocessable".to_owned(),
                message: "the service could not process the batch; it is kept and the operators were told".to_owned(),
            },
            rows: 0,
            verdicts: Vec::new(),
            tallies: Vec::new(),
        })
        .await
    }

    async fn append(&self, topic: &str, record: Record) -> Result<(), Stopped> {
        let mut failures = 0;
        while let Err(error) = self.log.append(topic, vec![record.clone()]).await {
            tracing::warn!(topic, error = described(&error), "appending failed, trying again");
            self.backoff.wait(failures, &self.stop).await?;
            failures += 1;
        }
        Ok(())
    }
}
