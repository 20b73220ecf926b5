//! Metrics of the calls of one operation.
//!
//! Invariant: a meter is looked up once. The look-up by name and labels would cost more than a small answer.

use std::fmt;
use std::sync::OnceLock;

use http::StatusCode;
use metrics::{Counter, Histogram};
use parking_lot::RwLock;
use types::metric;

use super::word;
use crate::answer::Output;
use crate::error::ApiError;

/// Meters of one operation.
#[derive(Default)]
pub(super) struct Meters {
    /// Counters by status. An operation has few, so a search from the front is the fastest.
    requests: RwLock<Vec<(StatusCode, Counter)>>,
    seconds: OnceLock<Histogram>,
}

impl Meters {
    /// Records a call that was answered.
    pub(super) fn measure(&self, operation: &'static str, micros: u128, result: &Result<Output, ApiError>) {
        let status = match result {
            Ok(output) => output.status(),
            Err(error) => {
                metrics::counter!(metric::REFUSALS, "error" => error.machine_code()).increment(1);
                error.status()
            }
        };
        self.requests(operation, status).increment(1);
        #[expect(clippy::cast_precision_loss, reason = "a call takes less than 285 years")]
        let seconds = micros as f64 / 1e6;
        self.seconds
            .get_or_init(|| metrics::histogram!(metric::REQUEST_SECONDS, "operation" => operation))
            .record(seconds);
    }

    fn requests(&self, operation: &'static str, status: StatusCode) -> Counter {
        let known = self.requests.read().iter().find(|(of, _)| *of == status).cloned();
        if let Some((_, counter)) = known {
            return counter;
        }
        let counter = metrics::counter!(metric::REQUESTS, "operation" => operation, "status" => word(status));
        // Another call may have added it meanwhile. A second handle counts in the same counter, so it does no harm.
        self.requests.write().push((status, counter.clone()));
        counter
    }
}

impl fmt::Debug for Meters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meters")
    }
}
