//! Addresses act for an operator without a credential; a suspension ends them like its keys.
//!
//! Invariant: the database is asked when a transfer begins and once a second while it goes on, so a suspension holds from the
//! next second on, on every replica. A transfer that has begun goes on while the database does not answer: nobody can be
//! suspended then either.

use std::time::Duration;

use store::Store;
use types::{Kind, OperatorId, Timestamp};

use crate::error::ApiError;

/// Time for which an answer of the database counts.
const FRESH: Duration = Duration::from_secs(1);

/// An operator for whom a transfer goes on.
#[derive(Debug)]
pub(crate) struct Standing {
    store: Store,
    operator: OperatorId,
    /// When the database is asked again.
    next: Timestamp,
}

impl Standing {
    /// The standing of an operator that is not checked yet.
    pub(crate) fn of(store: &Store, operator: OperatorId) -> Self {
        Self {
            store: store.clone(),
            operator,
            next: Timestamp::default(),
        }
    }

    /// Refuses a transfer that is to begin if the operator is suspended.
    pub(crate) async fn check(&mut self, now: Timestamp) -> Result<(), ApiError> {
        let operator = self.store.operator(self.operator).await?;
        if operator.is_none_or(|operator| operator.suspended.is_some()) {
            let message = "the account of the operator that this address was handed out to is suspended";
            return Err(ApiError::new(Kind::Forbidden, "account_suspended", message));
        }
        self.next = now.plus(FRESH);
        Ok(())
    }

    /// Refuses to go on with a transfer if the operator was suspended since it began.
    pub(crate) async fn check_again(&mut self, now: Timestamp) -> Result<(), ApiError> {
        if now < self.next {
            return Ok(());
        }
        match self.check(now).await {
            Err(error) if error.kind() == Kind::Unavailable => {
                self.next = now.plus(FRESH);
                Ok(())
            }
            checked => checked,
        }
    }
}
