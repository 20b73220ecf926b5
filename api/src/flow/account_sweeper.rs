//! Account sweeper: expires claims, deletes sign-ups that were never verified, and removes rows that are over, those of
//! apps too.
//!
//! Invariant: no call waits for it. A claim, link, key or session that is over is refused from that instant on, whether
//! or not a round has come by.

use std::sync::Arc;
use std::time::Duration;

use store::{CONNECTIONS_KEPT, Error, Store, TOKENS_KEPT};
use tokio_util::sync::CancellationToken;
use types::{Clock, Timestamp};

use crate::periodic::PeriodicTimer;
use crate::rules::accounts::UNVERIFIED;
use crate::state::apps;
use types::error::with_causes;

/// Registered clients that a round removes at most, so that a flood of registrations makes no long transaction.
const CLIENTS: u32 = 500;
/// The newest registered clients, which are kept for [`apps::UNUSED`] without a consent. Older ones without a consent go
/// after a day, so that a flood of registrations fills no disk.
const NEWEST_CLIENTS: u32 = 100_000;

/// Task that sweeps accounts.
#[derive(Debug)]
pub struct AccountSweeper {
    store: Store,
    clock: Arc<dyn Clock>,
    every: Duration,
}

impl AccountSweeper {
    /// Creates a sweeper that has not started. It runs at the interval `every`.
    pub fn new(store: Store, clock: Arc<dyn Clock>, every: Duration) -> Self {
        Self { store, clock, every }
    }

    /// Sweeps until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        // An interval of zero would panic.
        let period = self.every.max(Duration::from_millis(10));
        let sweeping = async {
            let mut rounds = PeriodicTimer::every(period, &stop);
            while rounds.next().await {
                if let Err(error) = self.sweep().await {
                    tracing::warn!(error = with_causes(&error), "cannot sweep the accounts; trying again");
                }
            }
        };
        stop.run_until_cancelled(sweeping).await;
    }

    /// Sweeps once, and returns the number of claims, sign-ups and other rows that were over.
    ///
    /// # Errors
    /// A database that does not answer. What was swept before stays swept.
    pub async fn sweep(&self) -> Result<u64, Error> {
        let now = self.clock.now();
        let accounts = self.store.accounts();
        let claims = accounts.claims_expire(now).await?;
        let unverified = accounts
            .unverified_delete(Timestamp::from_micros(now.micros() - UNVERIFIED))
            .await?;
        let oauth = self.store.oauth();
        let apps = oauth
            .prune(now, now.minus(TOKENS_KEPT), now.minus(CONNECTIONS_KEPT))
            .await?;
        let clients = oauth
            .clients_prune(now.minus(apps::UNUSED), now.minus(TOKENS_KEPT), NEWEST_CLIENTS, CLIENTS)
            .await?;
        Ok(claims + unverified + apps + clients + accounts.tidy(now).await?)
    }
}

#[cfg(test)]
mod tests {
    use oauth::Storage as _;

    use super::*;
    use crate::testing::Service;

    #[tokio::test]
    async fn an_app_is_known_for_ninety_days_without_a_consent() {
        let service = Service::start().await;
        let metadata = r#"{"redirect_uris": ["https://app.example/callback"]}"#;
        let registered = service.call("POST", "/oauth/register", None, metadata).await.json();
        let id = registered["client_id"].as_str().unwrap();
        let (store, clock) = (service.app.store.clone(), Arc::clone(&service.app.clock));
        let sweeper = AccountSweeper::new(store, clock, Duration::from_mins(1));
        let is_known = async || service.app.store.client(id).await.unwrap().is_some();
        service.clock.advance(Duration::from_hours(24 * 89));
        sweeper.sweep().await.unwrap();
        assert!(is_known().await);
        service.clock.advance(Duration::from_hours(24 * 2));
        sweeper.sweep().await.unwrap();
        assert!(!is_known().await);
    }
}
