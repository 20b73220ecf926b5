//! Limiter: uses shared counters while they answer, and this replica's own while they do not.
//!
//! Invariant: because of the counters, a call never fails and never waits longer than `patience`. After a failure, one
//! call per [`RETRY_INTERVAL`] tries them again; the other calls do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tracing::Instrument as _;
use types::Timestamp;

use super::{CountersUnavailable, LimitCounters, LimitDecision, LimitSource, MemoryCounters, RateRule};

/// Length of a window from which its counts must outlive the process.
const DURABLE_WINDOW: Duration = Duration::from_hours(1);
/// Time for which shared counters are not used after they failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Rule under which health checks of the counters are counted. It limits no call.
const HEALTH_CHECK: RateRule = RateRule {
    name: "look",
    limit: u32::MAX,
    window: Duration::from_secs(1),
};
/// Value of `again` while the counters answer.
const HEALTHY: i64 = i64::MIN;

/// State of the shared counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountersHealth {
    /// None are configured: this replica counts for itself.
    Off,
    /// The shared counters answer, and all replicas count together.
    Ok,
    /// The counters do not answer, and this replica counts for itself.
    Down,
}

/// Enforces rate limits.
#[derive(Debug, Default)]
pub struct Limiter {
    own: MemoryCounters,
    shared: Option<LimiterState>,
    durable: Option<Arc<dyn LimitCounters>>,
}

#[derive(Debug)]
struct LimiterState {
    counters: Arc<dyn LimitCounters>,
    patience: Duration,
    /// Time in microseconds at which the counters are tried again, or [`HEALTHY`].
    again: AtomicI64,
}

impl Limiter {
    /// Creates a limiter that uses `counters`, shared with other replicas, while they answer within `patience`.
    pub fn shared(counters: Arc<dyn LimitCounters>, patience: Duration) -> Self {
        Self {
            own: MemoryCounters::default(),
            durable: None,
            shared: Some(LimiterState {
                counters,
                patience,
                again: AtomicI64::new(HEALTHY),
            }),
        }
    }

    /// Uses `counters` for the rules whose window is an hour or longer, so that a restart forgets none of them.
    #[must_use]
    pub fn with_durable(mut self, counters: Arc<dyn LimitCounters>) -> Self {
        self.durable = Some(counters);
        self
    }

    /// Counts one event unless the limit is reached.
    pub async fn take(&self, rule: RateRule, source: LimitSource, now: Timestamp) -> LimitDecision {
        if let Some(durable) = self.durable.as_ref().filter(|_| rule.window >= DURABLE_WINDOW) {
            // Without the database the call fails anyway, so the count of this process is enough.
            match durable.take(rule, source, now).await {
                Ok(decision) => return decision,
                Err(error) => tracing::warn!(
                    rule = rule.name,
                    error = types::error::with_causes(&error),
                    "cannot count in the database; this process counts for itself"
                ),
            }
            return self.own.count(rule, source, now);
        }
        if let Some(shared) = &self.shared
            && shared.should_ask(now)
            && let Some(decision) = shared.ask(now, shared.counters.take(rule, source, now)).await
        {
            return decision;
        }
        // The replica's own counts lack those of the shared counters, so up to a limit more may pass.
        self.own.count(rule, source, now)
    }

    /// Checks the shared counters by counting in them.
    pub async fn health(&self, now: Timestamp) -> CountersHealth {
        let Some(shared) = &self.shared else {
            return CountersHealth::Off;
        };
        match shared
            // A server that is read-only or out of memory still answers a ping, but takes no count.
            .ask(now, shared.counters.take(HEALTH_CHECK, LimitSource(0, 0), now))
            .await
        {
            Some(_) => CountersHealth::Ok,
            None => CountersHealth::Down,
        }
    }
}

impl LimiterState {
    /// Returns true if the counters answer, or if this call is the one that tries them again.
    fn should_ask(&self, now: Timestamp) -> bool {
        let again = self.again.load(Ordering::Relaxed);
        if again == HEALTHY {
            return true;
        }
        let next = now.plus(RETRY_INTERVAL).micros();
        // The second condition covers a clock that was set back: `again` would otherwise lie far in the future.
        if now.micros() < again && again <= next {
            return false;
        }
        // Of the calls that arrive at the same time, the exchange lets one through.
        self.again
            .compare_exchange(again, next, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Returns the counters' answer if it arrives in time. Records the change between answering and failing.
    async fn ask<T>(
        &self,
        now: Timestamp,
        question: impl Future<Output = Result<T, CountersUnavailable>>,
    ) -> Option<T> {
        let question = tokio::time::timeout(self.patience, question);
        let reason = match question.instrument(tracing::debug_span!("cache")).await {
            Ok(Ok(answer)) => {
                // Only a change of the state is logged, not each call.
                if self.again.swap(HEALTHY, Ordering::Relaxed) != HEALTHY {
                    tracing::info!("the cache answers again; replicas count calls together");
                }
                return Some(answer);
            }
            Ok(Err(error)) => types::error::with_causes(&error),
            Err(_late) => format!("no answer within {:?}", self.patience),
        };
        metrics::counter!(types::metric::CACHE_FAILURES).increment(1);
        if self.again.swap(now.plus(RETRY_INTERVAL).micros(), Ordering::Relaxed) == HEALTHY {
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
