//! Suspension check for signed addresses, which act for an operator without a credential.
//!
//! Invariant: the database is asked when a transfer begins and once a second while it continues, so a suspension takes
//! effect within a second, on every replica. A transfer that has begun continues while the database does not answer:
//! nobody can be suspended then either.

use std::time::Duration;

use store::Store;
use types::{Kind, OperatorId, Timestamp};

use crate::error::ApiError;

/// Time for which an answer of the database counts.
const CACHE_LIFETIME: Duration = Duration::from_secs(1);

/// Operator on whose behalf a transfer runs.
#[derive(Debug)]
pub(crate) struct Standing {
    store: Store,
    operator: OperatorId,
    /// Time of the next check in the database.
    next: Timestamp,
}

impl Standing {
    /// Creates a check that has not been made yet.
    pub(crate) fn of(store: &Store, operator: OperatorId) -> Self {
        Self {
            store: store.clone(),
            operator,
            next: Timestamp::default(),
        }
    }

    /// Fails with 403 if the operator is suspended or does not exist.
    pub(crate) async fn check(&mut self, now: Timestamp) -> Result<(), ApiError> {
        let operator = self.store.operator(self.operator).await?;
        // A deleted operator is treated like a suspended one.
        if operator.is_none_or(|operator| operator.suspended.is_some()) {
            let message = "the account of the operator that this address was handed out to is suspended";
            return Err(ApiError::new(Kind::Forbidden, "account_suspended", message));
        }
        self.next = now.plus(CACHE_LIFETIME);
        Ok(())
    }

    /// Repeats the check during a transfer, at most once a second. An unavailable database does not end the transfer.
    pub(crate) async fn check_again(&mut self, now: Timestamp) -> Result<(), ApiError> {
        if now < self.next {
            return Ok(());
        }
        match self.check(now).await {
            // An outage of the database would otherwise end every long transfer. A suspension takes effect a second after
            // the outage.
            Err(error) if error.kind() == Kind::Unavailable => {
                self.next = now.plus(CACHE_LIFETIME);
                Ok(())
            }
            checked => checked,
        }
    }
}
