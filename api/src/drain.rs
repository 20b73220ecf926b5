//! Whether load balancers are to leave this replica alone.
//!
//! Invariant: draining begins once and does not end; everything is still served while it lasts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use types::metric;

/// A replica's notice that it is about to stop. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Drain {
    begun: Arc<AtomicBool>,
}

impl Drain {
    /// From now on the probe answers 503, and every answer closes its connection.
    pub fn begin(&self) {
        self.begun.store(true, Ordering::Release);
        metrics::gauge!(metric::DRAINING).set(1.0);
    }

    /// Whether it has begun.
    pub fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Acquire)
    }
}
