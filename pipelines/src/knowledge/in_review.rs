//! Messages of a worker of units that are not done: those that wait, are reviewed, or are to be published.
//!
//! Invariants:
//! - Of two messages with one version, one is in work at a time.
//! - A version that passed is not ready while an earlier one is reviewed that it may be a copy of.

use std::collections::HashSet;
use std::mem::take;
use std::sync::{Arc, OnceLock};

use eventlog::{Delivered, Record};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use messages::{UnitAddress, UnitSubmission};
use operators::knowledge::{Fingerprint, PublishedUnit, PublishedUnits};
use types::UnitId;

use super::KnowledgeWorker;
use super::published::Published;
use super::review::{self, Reviewed, Verdict};
use crate::cpu_slots::NoOutput;
use crate::isolation::{Probe, poison_reason};
use crate::offsets::{AckHandle, OffsetTracker};

/// Message with what is known of it before it is decoded.
#[derive(Debug)]
pub(super) struct UnitMessage {
    pub(super) delivered: Delivered,
    pub(super) address: Option<UnitAddress>,
    pub(super) ack: AckHandle,
    /// True if it can have been in work when an earlier process ended.
    is_suspect: bool,
    /// Its place among all messages that were received.
    number: u64,
}

/// End of the work on a message.
#[derive(Debug)]
pub(super) enum WorkEnd {
    /// It was reviewed beside these published versions.
    Reviewed(Box<Reviewed>, Arc<Published>),
    /// It ends the process that works on it: the reason, or none for a copy of one that did.
    Poisoned(Option<String>),
    /// It cannot be decoded.
    Unreadable(String),
}

/// Message whose work ended.
#[derive(Debug)]
pub(super) struct FinishedUnit {
    pub(super) message: UnitMessage,
    pub(super) end: WorkEnd,
}

/// Version in work, as later ones see it.
#[derive(Debug)]
struct UnitInWork {
    number: u64,
    address: Option<UnitAddress>,
    /// Its print, once its review began.
    print: Arc<OnceLock<Fingerprint>>,
}

/// Messages that are not done.
#[derive(Debug, Default)]
pub(super) struct UnitsInReview {
    received: u64,
    waiting: Vec<UnitMessage>,
    running: FuturesUnordered<BoxFuture<'static, FinishedUnit>>,
    in_work: Vec<UnitInWork>,
    finished: Vec<FinishedUnit>,
}

impl UnitsInReview {
    /// Returns the number of messages that may come now: with those that are not done at most `most`, and none that is
    /// further than `window` from the oldest of them.
    pub(super) fn room(&self, most: usize, window: usize) -> usize {
        let waiting = self.waiting.iter().map(|message| message.number);
        let in_work = self.in_work.iter().map(|earlier| earlier.number);
        let finished = self.finished.iter().map(|finished| finished.message.number);
        let open = self.waiting.len() + self.running.len() + self.finished.len();
        let oldest = waiting.chain(in_work).chain(finished).min();
        let ahead = oldest.map_or(0, |oldest| self.received + 1 - oldest);
        let ahead = usize::try_from(ahead).unwrap_or(usize::MAX);
        most.saturating_sub(open).min(window.saturating_sub(ahead))
    }

    /// Returns true if a message waits for another one of its version.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns true if nothing is being reviewed.
    pub(super) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// Takes a message from the log.
    pub(super) fn take(&mut self, delivered: Delivered, is_suspect: bool, offsets: &OffsetTracker) {
        self.received += 1;
        self.waiting.push(UnitMessage {
            address: UnitAddress::read(&delivered.record.value),
            ack: offsets.track(delivered.position),
            delivered,
            is_suspect,
            number: self.received,
        });
    }

    /// Waits until a review ends. Cancel-safe.
    pub(super) async fn next(&mut self) {
        if let Some(finished) = self.running.next().await {
            self.in_work.retain(|earlier| earlier.number != finished.message.number);
            self.finished.push(finished);
        }
    }

    /// Begins to work on every message that waits, but for those whose version is in work.
    pub(super) fn begin(
        &mut self,
        worker: &KnowledgeWorker,
        published: &Arc<Published>,
        known: &HashSet<(UnitId, u32)>,
    ) {
        let mut chosen: Vec<UnitMessage> = Vec::new();
        for message in take(&mut self.waiting) {
            if message.ack.is_lost() {
                continue;
            }
            let unit = message.address.map(|address| address.unit);
            let is_same = |other: &Option<UnitAddress>| unit.is_some() && other.map(|other| other.unit) == unit;
            let in_work = self.in_work.iter().any(|earlier| is_same(&earlier.address));
            if in_work || self.finished.iter().any(|other| is_same(&other.message.address)) {
                self.waiting.push(message);
                continue;
            }
            // Of two messages with one version the later generation counts.
            match chosen.iter_mut().find(|other| is_same(&other.address)) {
                Some(other) => {
                    let is_suspect = other.is_suspect || message.is_suspect;
                    if other.generation() < message.generation() {
                        std::mem::replace(other, message).ack.ack();
                    } else {
                        message.ack.ack();
                    }
                    other.is_suspect = is_suspect;
                }
                None => chosen.push(message),
            }
        }
        for message in chosen {
            let key = message.address.map(|address| (address.unit, address.generation));
            if key.is_some_and(|key| known.contains(&key)) {
                let end = WorkEnd::Poisoned(None);
                self.finished.push(FinishedUnit { message, end });
                continue;
            }
            let print = Arc::default();
            self.in_work.push(UnitInWork {
                number: message.number,
                address: message.address,
                print: Arc::clone(&print),
            });
            let reviewer = UnitReviewer {
                worker: worker.clone(),
                published: Arc::clone(published),
            };
            self.running.push(Box::pin(work(reviewer, message, print)));
        }
    }

    /// Takes what ended and waits for nothing earlier, in the order of the log.
    pub(super) fn ready(&mut self) -> Vec<FinishedUnit> {
        self.finished.retain(|finished| !finished.message.ack.is_lost());
        self.finished.sort_by_key(|finished| finished.message.number);
        self.in_work.sort_by_key(|earlier| earlier.number);
        let mut earlier = self.in_work.iter().peekable();
        let mut before = PublishedUnits::default();
        let mut is_unknown = false;
        let (mut ready, mut held) = (Vec::new(), Vec::new());
        for finished in take(&mut self.finished) {
            while let Some(one) = earlier.next_if(|one| one.number < finished.message.number) {
                match (one.address, one.print.get()) {
                    (Some(address), Some(print)) => before.add(comparable(address, print)),
                    _ => is_unknown = true,
                }
            }
            let waits = match &finished.end {
                WorkEnd::Reviewed(reviewed, _) => match &reviewed.verdict {
                    Verdict::Pass(candidate) => {
                        let chain = reviewed.submission.chain;
                        is_unknown || before.find_copy(chain, &candidate.print).copy.is_some()
                    }
                    _ => false,
                },
                WorkEnd::Poisoned(_) | WorkEnd::Unreadable(_) => false,
            };
            if waits {
                // A later copy of this one waits as well.
                if let (Some(address), WorkEnd::Reviewed(reviewed, _)) = (finished.message.address, &finished.end)
                    && let Verdict::Pass(candidate) = &reviewed.verdict
                {
                    before.add(comparable(address, &candidate.print));
                }
                held.push(finished);
            } else {
                ready.push(finished);
            }
        }
        self.finished = held;
        ready
    }
}

impl UnitMessage {
    fn generation(&self) -> u32 {
        self.address.map_or(0, |address| address.generation)
    }
}

/// Returns a version as later ones are compared with it.
fn comparable(address: UnitAddress, print: &Fingerprint) -> PublishedUnit {
    PublishedUnit {
        unit: address.unit,
        chain: address.chain,
        operator: None,
        text_hash: print.text_hash,
        paragraphs: print.paragraphs.iter().map(|(hash, _)| *hash).collect(),
        signature: Some(print.signature.clone()),
        details: print.details.clone(),
        facts: Vec::new(),
        vectors: Vec::new(),
    }
}

/// Tries a message out if it is suspect, decodes it and reviews it.
async fn work(reviewer: UnitReviewer, message: UnitMessage, print: Arc<OnceLock<Fingerprint>>) -> FinishedUnit {
    let record = &message.delivered.record;
    let end = match reviewer.probe(record, &message).await {
        Some(reason) => WorkEnd::Poisoned(Some(reason)),
        None => match UnitSubmission::decode(&record.value) {
            Ok(submission) => reviewer.review(submission, print).await,
            Err(error) => WorkEnd::Unreadable(error.to_string()),
        },
    };
    FinishedUnit { message, end }
}

/// Worker, and the published versions that a message is reviewed beside.
struct UnitReviewer {
    worker: KnowledgeWorker,
    published: Arc<Published>,
}

impl UnitReviewer {
    /// Tries a message out that can have been in work, unless its version is published. Returns the reason for which
    /// nobody is to work on it.
    async fn probe(&self, record: &Record, message: &UnitMessage) -> Option<String> {
        let is_told = |address: UnitAddress| self.published.outcomes.read().contains_key(&address.unit);
        if !message.is_suspect || message.address.is_some_and(is_told) {
            return None;
        }
        poison_reason(self.worker.isolation.as_deref(), Probe::Unit(record)).await
    }

    async fn review(self, submission: UnitSubmission, print: Arc<OnceLock<Fingerprint>>) -> WorkEnd {
        let Self { worker, published } = self;
        let (judges, clock) = (worker.judges.clone(), Arc::clone(&worker.clock));
        let review = review::review(submission.clone(), print, Arc::clone(&published), judges, clock);
        let reviewed = match worker.slots.run_within(worker.review_time, review).await {
            Ok(reviewed) => reviewed,
            // A judge that panics loses the version its review, not the worker its life.
            Err(NoOutput::Panicked(error)) => {
                tracing::error!(unit = %submission.unit, %error, "the review of a unit panicked");
                Reviewed {
                    submission,
                    entries: Vec::new(),
                    verdict: Verdict::Panicked,
                }
            }
            Err(NoOutput::TooLong) => {
                tracing::error!(unit = %submission.unit, limit = ?worker.review_time,
                    "the review of a unit took too long and was given up; the unit is judged again a few times");
                review::overdue(submission, worker.clock.now())
            }
        };
        WorkEnd::Reviewed(Box::new(reviewed), published)
    }
}
