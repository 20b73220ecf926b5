//! The limiter: shared counters while they answer, this replica's own while they do not.
//!
//! Invariant: a call never fails and never waits longer than the patience because of the counters. Once they have failed,
//! one call in a [`PAUSE`] asks them again, and the others do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tracing::Instrument as _;
use types::Timestamp;

use super::{Counters, Memory, Rule, Source, Taken, Unavailable};

/// How long shared counters are left alone after they failed.
const PAUSE: Duration = Duration::from_secs(1);
/// The rule that a look at the counters' health is counted by; no call is held to it.
const LOOK: Rule = Rule {
    name: "look",
    limit: u32::MAX,
    window: Duration::from_secs(1),
};
/// While the counters answer.
const CLOSED: i64 = i64::MIN;

/// How the shared counters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// There are none: this replica counts for itself.
    Off,
    /// They answer.
    Ok,
    /// They do not, and this replica counts for itself.
    Down,
}

/// Holds calls to rules.
#[derive(Debug, Default)]
pub struct Limiter {
    own: Memory,
    shared: Option<Shared>,
}

#[derive(Debug)]
struct Shared {
    counters: Arc<dyn Counters>,
    patience: Duration,
    /// The instant in microseconds at which they are asked again, or [`CLOSED`].
    again: AtomicI64,
}

impl Limiter {
    /// Counts in `counters`, shared with other replicas, for as long as they answer within `patience`.
    pub fn shared(counters: Arc<dyn Counters>, patience: Duration) -> Self {
        Self {
            own: Memory::default(),
            shared: Some(Shared {
                counters,
                patience,
                again: AtomicI64::new(CLOSED),
            }),
        }
    }

    /// Counts one, unless the limit is reached.
    pub async fn take(&self, rule: Rule, source: Source, now: Timestamp) -> Taken {
        if let Some(shared) = &self.shared
            && shared.may_be_asked(now)
            && let Some(taken) = shared.ask(now, shared.counters.take(rule, source, now)).await
        {
            return taken;
        }
        self.own.count(rule, source, now)
    }

    /// Asks the shared counters how they are, by counting.
    pub async fn health(&self, now: Timestamp) -> Health {
        let Some(shared) = &self.shared else {
            return Health::Off;
        };
        match shared.ask(now, shared.counters.take(LOOK, Source(0, 0), now)).await {
            Some(_) => Health::Ok,
            None => Health::Down,
        }
    }
}

impl Shared {
    /// Whether they answer, or it is this call's turn to find out.
    fn may_be_asked(&self, now: Timestamp) -> bool {
        let again = self.again.load(Ordering::Relaxed);
        if again == CLOSED {
            return true;
        }
        let next = now.plus(PAUSE).micros();
        // Why the second: a clock that was set back must not keep them from being asked for long.
        if now.micros() < again && again <= next {
            return false;
        }
        self.again
            .compare_exchange(again, next, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// The answer, if there is one in time.
    async fn ask<T>(&self, now: Timestamp, question: impl Future<Output = Result<T, Unavailable>>) -> Option<T> {
        let question = tokio::time::timeout(self.patience, question);
        let reason = match question.instrument(tracing::debug_span!("cache")).await {
            Ok(Ok(answer)) => {
                if self.again.swap(CLOSED, Ordering::Relaxed) != CLOSED {
                    tracing::info!("the cache answers again; replicas count calls together");
                }
                return Some(answer);
            }
            Ok(Err(error)) => crate::error::chain(&error),
            Err(_late) => format!("no answer within {:?}", self.patience),
        };
        metrics::counter!(types::metric::CACHE_FAILURES).increment(1);
        if self.again.swap(now.plus(PAUSE).micros(), Ordering::Relaxed) == CLOSED {
            tracing::warn!(
                reason,
                "the cache does not answer; each replica counts calls for itself"
            );
        }
        None
    }
}

#[cfg(test)]
mod tests;
