//! Money keeper: makes shares payable whose dispute window is over, gives the credits of sign-ups, leaves sales out of
//! the ranking that are no sales to others, ends purchases that nobody approved in time, charges days of storage, and seals
//! days of the ledger.
//!
//! Invariant: no call waits for it. Every step happens once, whatever number of processes run it: a sale is released by
//! its state, a day is charged by its key and sealed by its row.

use std::sync::Arc;
use std::time::Duration;

use catalog::Catalog;
use pay::Tariff;
use store::{StorageCharged, Store};
use tokio_util::sync::CancellationToken;
use types::{Clock, Timestamp};

use crate::periodic::PeriodicTimer;
use crate::rules::seals;
use crate::rules::storage_quota::{self, StorageError};
use types::error::with_causes;

/// Sellers whose shares are released in one round.
const SELLERS: u32 = 1_000;
/// Time after midnight (UTC) at which the day before is charged and sealed. An event that was begun before midnight is
/// committed by then.
const AFTER_MIDNIGHT: Duration = Duration::from_mins(10);

/// Task that keeps the money.
#[derive(Debug)]
pub struct MoneyKeeper {
    store: Store,
    catalog: Catalog,
    clock: Arc<dyn Clock>,
    tariff: Arc<Tariff>,
    free_storage: u64,
    every: Duration,
}

impl MoneyKeeper {
    /// Creates a keeper that has not started. It runs at the interval `every`.
    pub fn new(
        store: Store,
        catalog: Catalog,
        clock: Arc<dyn Clock>,
        tariff: Arc<Tariff>,
        free_storage: u64,
        every: Duration,
    ) -> Self {
        Self {
            store,
            catalog,
            clock,
            tariff,
            free_storage,
            every,
        }
    }

    /// Keeps the money until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        // An interval of zero would panic.
        let period = self.every.max(Duration::from_millis(10));
        let keeping = async {
            let mut rounds = PeriodicTimer::every(period, &stop);
            let (mut charged, mut sealed) = (None, None);
            while rounds.next().await {
                let now = self.clock.now();
                if let Err(error) = self.release(now).await {
                    tracing::warn!(
                        error = with_causes(&error),
                        "cannot release the shares of sales; trying again"
                    );
                }
                // Each step fails by itself, so that an error in one does not stop the money of the
                // others.
                if let Err(error) = self.give(now).await {
                    tracing::warn!(
                        error = with_causes(&error),
                        "cannot give the credits of sign-ups; trying again"
                    );
                }
                if let Err(error) = self.store.points().exclude(now).await {
                    tracing::warn!(
                        error = with_causes(&error),
                        "cannot look for sales that come back to their buyers; trying again"
                    );
                }
                if let Err(error) = self.store.money().approvals_expire(now).await {
                    tracing::warn!(
                        error = with_causes(&error),
                        "cannot end purchases that nobody approved in time; trying again"
                    );
                }
                let day = due_day(now);
                // This only spares the queries of a day that is done. The rows in the database are what
                // charges and seals nothing twice.
                if charged != Some(day) {
                    match self.charge(day, now).await {
                        Ok(_) => charged = Some(day),
                        Err(error) => {
                            tracing::warn!(
                                error = with_causes(&error),
                                "cannot charge the storage of a day; trying again"
                            );
                        }
                    }
                }
                if sealed != Some(day) {
                    match seals::seal(&self.store, &*self.clock, day).await {
                        Ok(days) if days < seals::DAYS => sealed = Some(day),
                        // More days may wait; the next round goes on.
                        Ok(_) => {}
                        Err(error) => {
                            tracing::warn!(
                                error = with_causes(&error),
                                "cannot seal a day of the ledger; trying again"
                            );
                        }
                    }
                }
            }
        };
        stop.run_until_cancelled(keeping).await;
    }

    /// Makes the shares payable whose window is over, and returns the number of sales.
    ///
    /// # Errors
    /// A database that does not answer. What was released before stays released.
    pub async fn release(&self, now: Timestamp) -> Result<u64, store::Error> {
        self.store.money().release(&self.tariff.asset, now, SELLERS).await
    }

    /// Gives the credits of sign-ups of the last day that a crash kept back.
    async fn give(&self, now: Timestamp) -> Result<(), store::Error> {
        let (money, tariff) = (self.store.money(), &self.tariff);
        // The ledger takes no event without an amount.
        if tariff.given_at_sign_up.0 == 0 {
            return Ok(());
        }
        for operator in money.without_gift(now.minus(Duration::from_hours(24))).await? {
            money
                .gift(&tariff.asset, operator, tariff.given_at_sign_up, now)
                .await?;
        }
        Ok(())
    }

    /// Charges a day of storage to every operator that stores more than the free bytes, and returns the number of days
    /// that were charged or written off.
    async fn charge(&self, day: i64, now: Timestamp) -> Result<u64, StorageError> {
        let mut charged = 0;
        for operator in self.store.money().maintainers().await? {
            let stored = storage_quota::stored(&self.store, &self.catalog, operator).await?;
            let amount = self.tariff.storage_day(stored, self.free_storage);
            // Within the free bytes there is no event, so the journal of most operators has none of
            // storage.
            if amount.0 == 0 {
                continue;
            }
            let money = self.store.money();
            let charged_day = money
                .storage_charge(&self.tariff.asset, operator, day, stored, amount, now)
                .await?;
            if charged_day != StorageCharged::Already {
                charged += 1;
            }
        }
        Ok(charged)
    }
}

/// Returns the last day that is due at an instant: the one before, once some minutes are over.
fn due_day(now: Timestamp) -> i64 {
    now.minus(AFTER_MIDNIGHT).day() - 1
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{Service, config, limits, tariff};

    #[test]
    fn a_day_is_due_ten_minutes_after_its_end() {
        let at = |seconds: i64| Timestamp::from_micros((20_000 * 86_400 + seconds) * 1_000_000);
        assert_eq!(due_day(at(599)), 19_998);
        assert_eq!(due_day(at(600)), 19_999);
        assert_eq!(due_day(at(86_399)), 19_999);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_is_stored_beyond_the_free_bytes_is_charged_once_a_day() {
        let service = Service::with(config(), limits()).await;
        let (store, now) = (&service.app.store, service.app.clock.now());
        let owner = service.operator().await;
        let key = service.agent(&owner, "mine").await;
        service.project(&key, "tides", &json!({})).await;
        service.merged(&key, "tides", &[json!({"name": "a"})]).await;
        let operator = store.money().maintainers().await.unwrap()[0];
        service.granted(operator, 100).await;
        let keeper = |free| {
            let (clock, pay) = (Arc::clone(&service.app.clock), Arc::clone(&service.app.pay));
            MoneyKeeper::new(
                store.clone(),
                service.app.catalog.clone(),
                clock,
                pay,
                free,
                Duration::ZERO,
            )
        };
        let balance = async || {
            let balances = store.money().balances(&tariff().asset, operator).await.unwrap();
            balances.credits.0
        };
        assert_eq!(keeper(1 << 30).charge(1, now).await.unwrap(), 0);
        for (day, charged, left) in [(1, 1, 60), (1, 0, 60), (2, 1, 20), (3, 1, 20), (3, 0, 20)] {
            assert_eq!(keeper(0).charge(day, now).await.unwrap(), charged, "{day}");
            assert_eq!(balance().await, left, "{day}");
        }
    }
}
