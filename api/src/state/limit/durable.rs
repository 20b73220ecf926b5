//! Counters in the database, for limits that hold for an hour or longer.
//!
//! Invariant: a restart forgets no count, and all replicas count together.

use std::fmt;

use async_trait::async_trait;
use store::{Event, Store};
use types::Timestamp;

use super::window::LimitWindow;
use super::{CountersUnavailable, LimitCounters, LimitDecision, LimitSource, RateRule};

/// Counters in the database of the marketplace.
#[derive(Clone)]
pub struct DurableCounters(Store);

impl DurableCounters {
    /// Creates the counters of a database.
    pub const fn new(store: Store) -> Self {
        Self(store)
    }
}

impl fmt::Debug for DurableCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Durable")
    }
}

#[async_trait]
impl LimitCounters for DurableCounters {
    async fn take(
        &self,
        rule: RateRule,
        source: LimitSource,
        now: Timestamp,
    ) -> Result<LimitDecision, CountersUnavailable> {
        let window = LimitWindow::at(rule, now);
        let event = Event {
            rule: rule.name,
            subject: source.to_string(),
            window: window.number,
            // The window counts until the one after it is over.
            ends_at: now.plus(rule.window * 2),
            count: 1,
        };
        let admit = move |counted: store::Counted| window.admit(rule.limit, counted.used, counted.before);
        // The check runs in the transaction of the count, so that two replicas cannot both take the
        // last place.
        let counted = self
            .0
            .counter_take(event, move |counted| admit(counted) == LimitDecision::Allow)
            .await;
        counted.map(admit).map_err(|error| CountersUnavailable(error.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tempfile::TempDir;

    use super::*;
    use crate::state::limit::conformance;

    /// Counters whose folder lives as long as they do.
    #[derive(Debug)]
    struct Fresh(
        DurableCounters,
        #[expect(dead_code, reason = "deletes the folder when it is dropped")] Arc<TempDir>,
    );

    #[async_trait]
    impl LimitCounters for Fresh {
        async fn take(
            &self,
            rule: RateRule,
            source: LimitSource,
            now: Timestamp,
        ) -> Result<LimitDecision, CountersUnavailable> {
            self.0.take(rule, source, now).await
        }
    }

    #[tokio::test]
    async fn counters_in_the_database_keep_the_rules() {
        conformance::all(|| async {
            let folder = tempfile::tempdir().unwrap();
            let url = format!("sqlite://{}", folder.path().join("sluice.db").display());
            let store = Store::connect(&url, store::Options::default()).await.unwrap();
            Fresh(DurableCounters::new(store), Arc::new(folder))
        })
        .await;
    }
}
