//! Checks that are repeated while something is transferred, and those of signed addresses, which act for an account without a
//! credential: its operator is not suspended, and the dataset is not taken down.
//!
//! Invariant: the database is asked when a transfer begins and once a second while it continues, so a suspension or a
//! takedown takes effect within a second, on every replica. A transfer that has begun continues while the database does
//! not answer: nobody decides on either then.

use std::time::Duration;

use store::Store;
use types::{DatasetId, Kind, OperatorId, Timestamp};

use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::state::links::GrantAccount;

/// Time for which an answer of the database counts.
const CACHE_LIFETIME: Duration = Duration::from_secs(1);

/// Repetition of a check during a transfer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RepeatedCheck {
    /// Time from which the check is made again.
    next: Timestamp,
}

impl RepeatedCheck {
    /// Creates the repetition of a check that was made at `now`.
    pub(crate) fn made(now: Timestamp) -> Self {
        Self {
            next: now.plus(CACHE_LIFETIME),
        }
    }

    /// Repeats a check if the last one is a second old. An unavailable database does not end the transfer.
    pub(crate) async fn repeat(
        &mut self,
        now: Timestamp,
        check: impl Future<Output = Result<(), ApiError>>,
    ) -> Result<(), ApiError> {
        if now < self.next {
            return Ok(());
        }
        match check.await {
            // An outage of the database would otherwise end every long transfer. What it would say takes effect a second after
            // the outage.
            Err(error) if error.kind() == Kind::Unavailable => {}
            checked => checked?,
        }
        *self = Self::made(now);
        Ok(())
    }
}

/// Account on whose behalf a transfer runs.
#[derive(Debug)]
pub(crate) struct TransferAccount {
    store: Store,
    /// Operator of the account; a wallet has none.
    operator: Option<OperatorId>,
    /// Dataset that is read, with the account as the database names it.
    read: Option<(DatasetId, String)>,
    repeated: RepeatedCheck,
}

impl TransferAccount {
    /// Creates a check that has not been made yet.
    pub(crate) fn of(store: &Store, operator: OperatorId) -> Self {
        Self {
            store: store.clone(),
            operator: Some(operator),
            read: None,
            repeated: RepeatedCheck::default(),
        }
    }

    /// Creates the check of an address of a part of a dataset.
    pub(crate) fn reading(store: &Store, account: &GrantAccount, dataset: DatasetId) -> Self {
        let owner = match account {
            GrantAccount::Operator(operator) => format!("op:{operator}"),
            GrantAccount::Wallet(_) => account.to_string(),
        };
        Self {
            store: store.clone(),
            operator: account.operator(),
            read: Some((dataset, owner)),
            repeated: RepeatedCheck::default(),
        }
    }

    /// Fails with 403 if the operator is suspended or does not exist, and with the 404 of a missing part if the dataset
    /// is taken down for the account.
    pub(crate) async fn check(&mut self, now: Timestamp) -> Result<(), ApiError> {
        self.asked().await?;
        self.repeated = RepeatedCheck::made(now);
        Ok(())
    }

    /// Repeats the check during a transfer.
    pub(crate) async fn check_again(&mut self, now: Timestamp) -> Result<(), ApiError> {
        let mut repeated = self.repeated;
        repeated.repeat(now, self.asked()).await?;
        self.repeated = repeated;
        Ok(())
    }

    /// Asks the database.
    async fn asked(&self) -> Result<(), ApiError> {
        if let Some(operator) = self.operator {
            let operator = self.store.operator(operator).await?;
            // A deleted operator is treated like a suspended one.
            if operator.is_none_or(|operator| operator.suspended.is_some()) {
                let message = "the account of the operator that this address was handed out to is suspended";
                return Err(ApiError::new(ErrorCode::AccountSuspended, message).with_kind(Kind::Forbidden));
            }
        }
        if let Some((dataset, owner)) = &self.read
            && self.store.moderation().parts_are_hidden(*dataset, owner).await?
        {
            return Err(no_part());
        }
        Ok(())
    }
}

/// Returns the 404 for a part that does not exist, or that the account may not know of.
pub(crate) fn no_part() -> ApiError {
    ApiError::not_found("the part does not exist any more")
}
