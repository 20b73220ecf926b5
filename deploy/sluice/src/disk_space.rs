//! Watcher of the free disk space.
//!
//! Invariant: contributions are refused before the disk is full, because a full disk stops the event log for good, and
//! with it the service.

use std::time::Duration;

use api::periodic::PeriodicTimer;
use api::state::backlog::Backlog;
use tokio_util::sync::CancellationToken;

use crate::config::Data;

/// Interval between two looks at the disk.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Sets whether the backlog accepts contributions, until `stop`: only while more than the reserve is free.
pub(crate) async fn watch(data: Data, backlog: Backlog, stop: CancellationToken) {
    // The task must not end, because the end of a task stops the service.
    if data.reserve.0 == 0 {
        return stop.cancelled().await;
    }
    let mut rounds = PeriodicTimer::every(CHECK_INTERVAL, &stop);
    while rounds.next().await {
        match catalog::disk::free(&data.dir) {
            Ok(free) => backlog.set_disk_has_space(free > data.reserve.0),
            // The last known state stays in force.
            Err(error) => tracing::warn!(%error, "cannot measure the free space of the data folder's disk"),
        }
    }
}
