//! Counters of other packages, copied into metrics.
//!
//! Invariant: a copy is absolute, so that a copy that was missed loses nothing.

use std::time::Duration;

use api::periodic::PeriodicTimer;
use store::Store;
use tokio_util::sync::CancellationToken;
use types::metric;

/// Interval at which counters of other packages are copied into metrics.
const COUNT_INTERVAL: Duration = Duration::from_secs(5);

/// Copies the count of the database's transactions into a metric until `stop`.
pub(super) async fn count_commits(store: Store, stop: CancellationToken) {
    let mut rounds = PeriodicTimer::every(COUNT_INTERVAL, &stop);
    while rounds.next().await {
        metrics::counter!(metric::DATABASE_COMMITS).absolute(store.commits());
    }
}

/// Copies the counts of reader resets into metrics until `stop`.
#[cfg(feature = "kafka")]
pub(super) async fn count_resets(log: std::sync::Arc<eventlog::Kafka>, stop: CancellationToken) {
    let mut rounds = PeriodicTimer::every(COUNT_INTERVAL, &stop);
    while rounds.next().await {
        let stats = log.stats();
        metrics::counter!(metric::LOG_READER_RESETS, "cause" => "out_of_range").absolute(stats.out_of_range);
        metrics::counter!(metric::LOG_READER_RESETS, "cause" => "consumer_restarted")
            .absolute(stats.consumers_restarted);
    }
}
