//! What a worker says: outcomes and dead letters, appended until the log takes them or the worker stops.
//!
//! Invariant: nothing is tried again that cannot pass. What is too large for the log is said with fewer words.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use data_encoding::BASE64;
use eventlog::{EventLog, Record};
use operators::verdict;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};
use types::trace::Propagator;
use types::{Backoff, Classify as _, Clock, Kind, Retry, fault};

use crate::finished::Finished;
use crate::judge::{Work, described};
use crate::message::{Address, CONTRIBUTIONS, DEAD_LETTERS, DeadLetter, FORMAT, OUTCOMES, Outcome, Resolution};
use crate::trace;

/// The most bytes of verdicts in an outcome that was too large.
const FEW_WORDS: usize = 64 << 10;
/// The most bytes of the reason and of the key in a letter; a key is 16 bytes where it is a dataset's.
const MAX_REASON: usize = 1_024;
const MAX_KEY: usize = 64;

/// The worker stopped, or a lane gave its table up, before the work could be brought to its end. Its message stays open
/// with the worker, and comes again without the lane ([`Ticket`](crate::progress::Ticket)).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopped;

/// Appends outcomes and dead letters.
#[derive(Clone, Debug)]
pub(crate) struct Emitter {
    pub(crate) log: Arc<dyn EventLog>,
    pub(crate) finished: Arc<Finished>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) propagator: Arc<dyn Propagator>,
    pub(crate) backoff: Backoff,
    pub(crate) stop: CancellationToken,
    /// Error after which the log takes nothing any more.
    pub(crate) failure: Arc<OnceLock<eventlog::Error>>,
}

/// Pauses after `failures` failures before this one, unless `stop` comes first.
pub(crate) async fn pause(backoff: Backoff, failures: u32, stop: &CancellationToken) -> Result<(), Stopped> {
    let paused = stop.run_until_cancelled(tokio::time::sleep(backoff.pause(failures)));
    paused.await.ok_or(Stopped)
}

/// Result of an append that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Appended {
    Durable,
    /// The log does not take the record, now or later.
    Refused,
}

impl Emitter {
    /// Appends an outcome; returns once it is durable. An outcome that the log refuses is shortened and appended again.
    pub(crate) async fn outcome(&self, mut outcome: Outcome) -> Result<(), Stopped> {
        fault::point("outcome.append");
        let span = Span::current();
        trace::record(&span, &outcome);
        outcome.traceparent = self.propagator.inject(&span);
        let mut told = self
            .tell(&outcome)
            .instrument(tracing::debug_span!("publish outcome"))
            .await?;
        if told == Appended::Refused {
            // The log refuses records that are too large. The verdicts are the only part of an outcome
            // that grows with its batch, and the contributor needs the resolution more than it needs
            // them.
            verdict::fit(&mut outcome.verdicts, FEW_WORDS);
            told = self.tell(&outcome).await?;
        }
        if told == Appended::Refused {
            outcome.verdicts = Vec::new();
            told = self.tell(&outcome).await?;
        }
        if told == Appended::Refused {
            tracing::error!(contribution = %outcome.contribution, "the log takes nothing of an outcome; it is not told");
        }
        fault::point("outcome.appended");
        // The outcome is remembered only after the append: remembered before, a redelivery that comes
        // while the append fails would take it for published.
        self.finished.insert(outcome, self.clock.now());
        Ok(())
    }

    async fn tell(&self, outcome: &Outcome) -> Result<Appended, Stopped> {
        match outcome.record() {
            Ok(record) => {
                // The table keeps a merge, so its outcome can be published again if the log loses it. A rejection
                // cannot: judged again, the submission may pass.
                let kept = matches!(outcome.resolution, Resolution::Merged { .. });
                self.append(OUTCOMES, record, kept).await
            }
            Err(error) => {
                tracing::error!(contribution = %outcome.contribution, %error, "an outcome cannot be encoded");
                Ok(Appended::Refused)
            }
        }
    }

    /// Appends a message that cannot be processed to the dead letters, and rejects its contribution where it can be
    /// read and is not decided, so that nobody waits for it.
    pub(crate) async fn dead_letter(&self, work: &Work, address: Option<Address>, reason: &str) -> Result<(), Stopped> {
        let position = work.ticket.position();
        let reason = &reason[..reason.floor_char_boundary(MAX_REASON)];
        tracing::error!(?position, contribution = ?address.map(|address| address.contribution), reason, "dead letter");
        let Record { key, value } = &work.record;
        let mut kept = self.bury(work, address, reason, key, value).await?;
        if kept == Appended::Refused {
            let reason = format!("{reason}; its {} bytes are too many for a letter", value.len());
            let key = key.slice(..key.len().min(MAX_KEY));
            kept = self.bury(work, address, &reason, &key, &[]).await?;
        }
        if kept == Appended::Refused {
            tracing::error!(
                ?position,
                "the log takes no letter about a message; it is only at its position"
            );
        }
        // A letter about another delivery of a decided submission must not reject what was decided.
        let Some(address) = address.filter(|address| !self.finished.contains(address.contribution, address.generation))
        else {
            return Ok(());
        };
        self.outcome(Outcome {
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
            traceparent: None,
        })
        .await
    }

    async fn bury(
        &self,
        work: &Work,
        address: Option<Address>,
        reason: &str,
        key: &Bytes,
        value: &[u8],
    ) -> Result<Appended, Stopped> {
        let position = work.ticket.position();
        let letter = DeadLetter {
            format: FORMAT,
            topic: CONTRIBUTIONS.to_owned(),
            partition: position.partition,
            offset: position.offset,
            contribution: address.map(|address| address.contribution),
            unit: None,
            reason: reason.to_owned(),
            at: self.clock.now(),
            key: BASE64.encode(key),
            value: BASE64.encode(value),
        };
        match serde_json::to_vec(&letter) {
            Ok(letter) => {
                let record = Record {
                    key: key.clone(),
                    value: letter.into(),
                };
                self.append(DEAD_LETTERS, record, false).await
            }
            Err(error) => {
                tracing::error!(%error, "a dead letter cannot be encoded");
                Ok(Appended::Refused)
            }
        }
    }

    /// Appends a record, trying for as long as that can help. A log that takes nothing any more stops the worker.
    async fn append(&self, topic: &str, record: Record, kept: bool) -> Result<Appended, Stopped> {
        let mut failures = 0;
        loop {
            let records = vec![record.clone()];
            let appended = if kept {
                self.log.append_kept(topic, records).await
            } else {
                self.log.append(topic, records).await
            };
            let Err(error) = appended else {
                return Ok(Appended::Durable);
            };
            let shown = described(&error);
            match (error.retry(), error.kind()) {
                (Retry::Backoff, _) => {
                    tracing::warn!(topic, error = shown, "appending failed, trying again");
                    pause(self.backoff, failures, &self.stop).await?;
                    failures += 1;
                }
                (Retry::Never, Kind::TooLarge | Kind::Invalid) => {
                    tracing::error!(topic, error = shown, "the log does not take a record");
                    return Ok(Appended::Refused);
                }
                (Retry::Never, _) => {
                    tracing::error!(topic, error = shown, "the log takes no records; the worker stops");
                    // The first error is the one that the worker reports; later appends fail because of
                    // it.
                    self.failure.get_or_init(|| error);
                    self.stop.cancel();
                    return Err(Stopped);
                }
            }
        }
    }
}
