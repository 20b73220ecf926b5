//! The tokens of a UTC day, in leases that processes share.
//!
//! Invariant: what is reserved was leased before, and no two processes have one lease. So all of them together spend at
//! most the budget, and what a process that dies has leased is lost for the day.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use operators::screen::{Cause, Unavailable};
use tokio::sync::Mutex;
use types::Timestamp;

/// Leases of a day. Each is of a hundredth of its tokens.
const LEASES_PER_DAY: u64 = 100;

/// The leases could not be reached.
#[derive(Debug, thiserror::Error)]
#[error("the leases of tokens cannot be reached: {0}")]
pub struct LeaseError(pub String);

/// The leases of all processes. Object safe.
#[async_trait]
pub trait TokenLeases: Debug + Send + Sync {
    /// Takes a lease of a UTC day, counted since 1970-01-01. Returns false if somebody has it already.
    async fn take(&self, day: i64, number: u64) -> Result<bool, LeaseError>;
}

/// The budget of this process.
#[derive(Debug)]
pub struct TokenBudget {
    leases: Arc<dyn TokenLeases>,
    per_day: u64,
    state: Mutex<BudgetState>,
}

#[derive(Debug, Default)]
struct BudgetState {
    day: i64,
    /// Number of the next lease to try.
    next: u64,
    /// Tokens that are leased and not spent.
    left: u64,
}

/// Tokens that are set aside for a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReservedTokens {
    day: i64,
    tokens: u64,
}

impl TokenBudget {
    /// Creates a budget of tokens a day.
    pub fn new(leases: Arc<dyn TokenLeases>, per_day: u64) -> Self {
        Self {
            leases,
            per_day,
            state: Mutex::default(),
        }
    }

    /// Sets tokens of the day aside, with new leases where needed.
    pub(super) async fn reserve(&self, now: Timestamp, tokens: u64) -> Result<ReservedTokens, Unavailable> {
        // Held across the database: calls of one process would otherwise lease in parallel, each more
        // than it needs.
        let mut state = self.state.lock().await;
        let day = now.day();
        // Rests of the day before are dropped: other processes count only leases, and those of a day
        // end with it.
        if state.day != day {
            *state = BudgetState { day, next: 0, left: 0 };
        }
        while state.left < tokens {
            // Numbers are tried in order and each is asked for once, so a spent day costs at most as
            // many calls as it has leases, for all requests of the process together.
            let number = state.next;
            if number == LEASES_PER_DAY {
                return Err(Unavailable {
                    reason: Cause::Budget,
                    resumes_after: Some(now.next_day()),
                });
            }
            match self.leases.take(day, number).await {
                // Added and not set: what an earlier lease left is still leased.
                Ok(true) => state.left += self.size(number),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, "tokens of models cannot be leased; what needs them waits");
                    return Err(Unavailable {
                        reason: Cause::Provider,
                        resumes_after: None,
                    });
                }
            }
            state.next = number + 1;
        }
        state.left -= tokens;
        Ok(ReservedTokens { day, tokens })
    }

    /// Replaces what was set aside by what was spent.
    pub(super) async fn settle(&self, reserved: ReservedTokens, spent: u64) {
        let mut state = self.state.lock().await;
        // Another day has leases of its own.
        if state.day == reserved.day {
            state.left = (state.left + reserved.tokens).saturating_sub(spent);
        }
    }

    /// Returns the tokens of a lease. All leases together are the tokens of the day.
    const fn size(&self, number: u64) -> u64 {
        // Each size is the difference of two rounded sums, so the sizes add up to the budget for every
        // remainder. Quotient and remainder apart keep the products from overflowing.
        (number + 1) * (self.per_day / LEASES_PER_DAY) + (number + 1) * (self.per_day % LEASES_PER_DAY) / LEASES_PER_DAY
            - number * (self.per_day / LEASES_PER_DAY)
            - number * (self.per_day % LEASES_PER_DAY) / LEASES_PER_DAY
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[derive(Debug, Default)]
    struct Shared(Mutex<HashSet<(i64, u64)>>);

    #[async_trait]
    impl TokenLeases for Shared {
        async fn take(&self, day: i64, number: u64) -> Result<bool, LeaseError> {
            Ok(self.0.lock().await.insert((day, number)))
        }
    }

    #[tokio::test]
    async fn two_processes_spend_no_more_than_the_budget_of_the_day() {
        let shared: Arc<dyn TokenLeases> = Arc::new(Shared::default());
        let processes = [1, 2].map(|_| TokenBudget::new(Arc::clone(&shared), 1_050));
        let now = Timestamp::from_micros(1);
        let mut spent = 0;
        let mut held = None;
        while held.is_none() {
            for process in &processes {
                match process.reserve(now, 7).await {
                    Ok(_) => spent += 7,
                    Err(unavailable) => held = Some(unavailable),
                }
            }
        }
        assert!((1_030..=1_050).contains(&spent), "{spent}");
        let expected = Unavailable {
            reason: Cause::Budget,
            resumes_after: Some(now.next_day()),
        };
        assert_eq!(held, Some(expected));
        // Tokens that a call did not need serve the next one, and the next day has its own.
        let tomorrow = now.next_day();
        let budget = TokenBudget::new(shared, 100);
        let reserved = budget.reserve(tomorrow, 100).await.unwrap();
        assert!(budget.reserve(tomorrow, 1).await.is_err());
        budget.settle(reserved, 40).await;
        assert!(budget.reserve(tomorrow, 60).await.is_ok());
        assert!(budget.reserve(tomorrow, 1).await.is_err());
    }
}
