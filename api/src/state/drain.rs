//! Signal that this replica is about to stop, for load balancers.
//!
//! Invariant: draining begins once and does not end. All requests are still served while it lasts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use types::metric;

/// Flag of a replica that is about to stop. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Drain {
    begun: Arc<AtomicBool>,
}

impl Drain {
    /// Begins draining: from now on `/drainz` answers 503, and every answer closes its connection.
    pub fn begin(&self) {
        // Never reset: a replica that drains always stops in the end.
        self.begun.store(true, Ordering::Release);
        metrics::gauge!(metric::DRAINING).set(1.0);
    }

    /// Returns true if draining has begun.
    pub fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Acquire)
    }
}
