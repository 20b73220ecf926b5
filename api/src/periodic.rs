//! Timer of the background tasks that repeat at a fixed interval.
//!
//! Invariant: rounds that were missed during a slow round are skipped and never made up for.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// Timer of a periodic task. The first round starts at once, the others one period apart.
#[derive(Debug)]
pub struct PeriodicTimer {
    tick: Interval,
    stop: CancellationToken,
}

impl PeriodicTimer {
    /// Creates a timer for a round every `period` until `stop`. If a round takes longer than `period`, the next one
    /// starts at once, and the one after it is due a whole period later. Panics if `period` is zero.
    pub fn every(period: Duration, stop: &CancellationToken) -> Self {
        let mut tick = tokio::time::interval(period);
        // The default behaviour would run all missed rounds in succession.
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            tick,
            stop: stop.clone(),
        }
    }

    /// Waits until the next round is due and returns true, or false once the task has to stop.
    pub async fn next(&mut self) -> bool {
        self.stop.run_until_cancelled(self.tick.tick()).await.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rounds_end_with_the_stop() {
        let stop = CancellationToken::new();
        let mut rounds = PeriodicTimer::every(Duration::from_millis(1), &stop);
        assert!(rounds.next().await);
        assert!(rounds.next().await);
        stop.cancel();
        assert!(!rounds.next().await);
    }
}
