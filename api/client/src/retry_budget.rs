//! Retries: their number and their pauses.

use std::time::Duration;

use types::Backoff;

/// Bounds on repeating a call after 408, 429, 502 to 504 or a broken connection.
#[derive(Clone, Copy, Debug)]
pub struct RetryBudget {
    /// The most times that a call is sent. 1 means no retry.
    pub tries: u32,
    /// The pause before the second try. It doubles with each try. A `Retry-After` of the service replaces it.
    pub first_pause: Duration,
    /// The longest sum of the pauses. A `Retry-After` beyond the rest ends the call with the service's answer.
    pub total: Duration,
}

impl RetryBudget {
    /// One try without a retry.
    pub const NONE: Self = Self {
        tries: 1,
        first_pause: Duration::ZERO,
        total: Duration::ZERO,
    };
}

impl Default for RetryBudget {
    /// Returns eight tries from 100 ms on within 90 s of pauses, which outlasts one window of a per-minute limit.
    fn default() -> Self {
        Self {
            tries: 8,
            first_pause: Duration::from_millis(100),
            total: Duration::from_secs(90),
        }
    }
}

/// The rest of a [`RetryBudget`] within one call.
#[derive(Debug)]
pub(crate) struct Pauses {
    budget: RetryBudget,
    taken: u32,
    spent: Duration,
}

impl Pauses {
    pub(crate) const fn new(budget: RetryBudget) -> Self {
        Self {
            budget,
            taken: 0,
            spent: Duration::ZERO,
        }
    }

    /// Returns the pause before the next try, or `None` if a bound is reached. `asked` is the `Retry-After` of the
    /// answer.
    pub(crate) fn next(&mut self, asked: Option<Duration>) -> Option<Duration> {
        self.taken += 1;
        if self.taken >= self.budget.tries {
            return None;
        }
        let backoff = Backoff {
            first: self.budget.first_pause,
            most: self.budget.total,
        };
        let pause = asked.unwrap_or_else(|| backoff.pause(self.taken - 1));
        self.spent += pause;
        (self.spent <= self.budget.total).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(tries: u32, total: u64) -> RetryBudget {
        RetryBudget {
            tries,
            first_pause: Duration::from_secs(1),
            total: Duration::from_secs(total),
        }
    }

    #[test]
    fn pauses_double_and_end_with_the_tries() {
        let mut pauses = Pauses::new(budget(4, 100));
        for longest in [1, 2, 4] {
            let pause = pauses.next(None).unwrap();
            assert!(pause <= Duration::from_secs(longest) && pause >= Duration::from_secs(longest) / 2);
        }
        assert_eq!(pauses.next(None), None);
    }

    #[test]
    fn a_pause_beyond_the_total_ends_the_call() {
        let mut pauses = Pauses::new(budget(9, 60));
        assert_eq!(
            pauses.next(Some(Duration::from_secs(45))),
            Some(Duration::from_secs(45))
        );
        assert_eq!(pauses.next(Some(Duration::from_secs(45))), None);
    }

    #[test]
    fn no_retry_budget_means_one_try() {
        assert_eq!(Pauses::new(RetryBudget::NONE).next(Some(Duration::ZERO)), None);
    }
}
