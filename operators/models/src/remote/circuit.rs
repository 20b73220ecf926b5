//! The circuit of a provider: after failures in a row it is not asked for a while.
//!
//! Invariant: one answer closes the circuit, and each failure after the wait opens it for twice as long.

use std::time::Duration;

use types::{Backoff, Timestamp};

/// Failures in a row that open the circuit.
const OPENING_FAILURES: u32 = 5;

/// The failures in a row, and the end of the wait.
#[derive(Debug, Default)]
pub(super) struct Circuit {
    failures: u32,
    open_until: Option<Timestamp>,
}

impl Circuit {
    /// Returns the end of the wait if the provider is not to be asked now.
    pub(super) fn waits(&self, now: Timestamp) -> Option<Timestamp> {
        self.open_until.filter(|until| *until > now)
    }

    pub(super) const fn succeeded(&mut self) {
        self.failures = 0;
        self.open_until = None;
    }

    /// Counts a failure. `asked` is the wait that the provider asks for. Returns the time from which to ask again.
    pub(super) fn failed(&mut self, now: Timestamp, holds: Backoff, asked: Option<Duration>) -> Timestamp {
        self.failures = self.failures.saturating_add(1);
        // The first failures do not double the wait: up to the limit they may be of single requests.
        let doublings = self.failures.saturating_sub(OPENING_FAILURES);
        let until = now.plus(asked.unwrap_or_else(|| holds.longest(doublings)));
        if self.failures >= OPENING_FAILURES || asked.is_some() {
            // Calls that were under way fail later than the one that opened the circuit, and must not
            // shorten its wait.
            self.open_until = self.open_until.max(Some(until));
        }
        until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_failures_open_it_and_one_answer_closes_it() {
        let holds = Backoff {
            first: Duration::from_secs(30),
            most: Duration::from_secs(100),
        };
        let now = Timestamp::from_micros(0);
        let mut circuit = Circuit::default();
        for _ in 0..4 {
            circuit.failed(now, holds, None);
            assert_eq!(circuit.waits(now), None);
        }
        for seconds in [30, 60, 100, 100] {
            circuit.failed(now, holds, None);
            assert_eq!(circuit.waits(now), Some(now.plus(Duration::from_secs(seconds))));
        }
        assert_eq!(circuit.waits(now.plus(Duration::from_secs(100))), None);
        circuit.succeeded();
        assert_eq!(circuit.waits(now), None);
        circuit.failed(now, holds, Some(Duration::from_secs(45)));
        assert_eq!(circuit.waits(now), Some(now.plus(Duration::from_secs(45))));
    }
}
