//! Work that comes again and again.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// Rounds of periodic work: the first at once, the others a period apart.
#[derive(Debug)]
pub struct Rounds {
    tick: Interval,
    stop: CancellationToken,
}

impl Rounds {
    /// Begins rounds that come every `period` until `stop`. Where the work of a round takes longer than a period, the next
    /// round comes a whole period after it could have come.
    pub fn every(period: Duration, stop: &CancellationToken) -> Self {
        let mut tick = tokio::time::interval(period);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            tick,
            stop: stop.clone(),
        }
    }

    /// Waits for the next round; false once the work is to stop.
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
        let mut rounds = Rounds::every(Duration::from_millis(1), &stop);
        assert!(rounds.next().await);
        assert!(rounds.next().await);
        stop.cancel();
        assert!(!rounds.next().await);
    }
}
