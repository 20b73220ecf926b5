//! The task that drops the stored keys of tables that were deleted, in every role: a worker has no database that tells it.

use std::time::Duration;

use api::periodic::PeriodicTimer;
use catalog::Catalog;
use tokio_util::sync::CancellationToken;
use types::error::with_causes;

/// Interval at which the stored keys are compared with the tables.
const COMPARE_INTERVAL: Duration = Duration::from_hours(24);

/// Compares the stored keys with the tables at the start, for what was deleted before it, and each day, until `stop`.
pub(crate) async fn watch(catalog: Catalog, stop: CancellationToken) {
    let comparing = async {
        let mut rounds = PeriodicTimer::every(COMPARE_INTERVAL, &stop);
        while rounds.next().await {
            match catalog.forget_deleted_tables().await {
                Ok(0) => {}
                Ok(tables) => tracing::info!(tables, "dropped the record keys of deleted tables"),
                Err(error) => tracing::warn!(
                    error = with_causes(&error),
                    "cannot compare the key index with the tables; the next try is in a day"
                ),
            }
        }
    };
    stop.run_until_cancelled(comparing).await;
}
