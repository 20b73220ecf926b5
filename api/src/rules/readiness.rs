//! Readiness of the service: the state of what it depends on.
//!
//! Invariant: an answer comes within `PROBE_TIMEOUT` and that of the cache, whatever hangs.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use store::Store;
use types::{Timestamp, metric};

use crate::state::limit::{CountersHealth, Limiter};
use crate::state::open_files::OpenFiles;

/// Time limit for the answer of the database.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// State of the dependencies of the service.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Readiness")]
pub struct ServiceReadiness {
    /// State of the database: `ok` or `down`.
    db: &'static str,
    /// State of the shared cache: `ok`, `down`, or `off` when none is configured.
    cache: &'static str,
    /// Open files of the process: `ok`, or `down` while it can open no more.
    files: &'static str,
}

impl ServiceReadiness {
    /// Checks the dependencies, at the same time.
    pub(crate) async fn of(store: &Store, limiter: &Limiter, files: &OpenFiles, now: Timestamp) -> Self {
        // Both are asked at the same time, so a probe takes as long as the slower one.
        let pinged = tokio::time::timeout(PROBE_TIMEOUT, store.ping());
        let (pinged, health) = tokio::join!(pinged, limiter.health(now));
        // Without a shared cache there is nothing to measure, so the gauge does not appear.
        if health != CountersHealth::Off {
            metrics::gauge!(metric::CACHE_UP).set(if health == CountersHealth::Ok { 1.0 } else { 0.0 });
        }
        Self {
            db: if matches!(pinged, Ok(Ok(()))) { "ok" } else { "down" },
            cache: match health {
                CountersHealth::Off => "off",
                CountersHealth::Ok => "ok",
                CountersHealth::Down => "down",
            },
            files: files.word(),
        }
    }

    /// Returns true if no dependency is down.
    pub(crate) fn is_up(&self) -> bool {
        ![self.db, self.cache, self.files].contains(&"down")
    }
}
