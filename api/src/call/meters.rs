//! Metrics of the calls of one operation.
//!
//! Invariant: a meter is looked up once. The look-up by name and labels would cost more than a small answer.

use std::fmt;
use std::sync::OnceLock;

use http::StatusCode;
use metrics::{Counter, Histogram};
use parking_lot::RwLock;
use types::metric;

use crate::call::answer::OperationOutput;
use crate::error::ApiError;

/// Meters of one operation.
#[derive(Default)]
pub(crate) struct OperationMeters {
    /// Counters by status. An operation has few, so a search from the front is the fastest.
    requests: RwLock<Vec<(StatusCode, Counter)>>,
    seconds: OnceLock<Histogram>,
}

impl OperationMeters {
    /// Records a call that was answered.
    pub(crate) fn measure(&self, operation: &'static str, micros: u128, result: &Result<OperationOutput, ApiError>) {
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

impl fmt::Debug for OperationMeters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meters")
    }
}

/// Returns a status as the value of a metric label.
fn word(status: StatusCode) -> &'static str {
    // A label must be `'static`, so the statuses in use are listed, and any other is `other`.
    const WORDS: [(u16, &str); 27] = [
        (200, "200"),
        (201, "201"),
        (202, "202"),
        (204, "204"),
        (206, "206"),
        (303, "303"),
        (304, "304"),
        (400, "400"),
        (401, "401"),
        (402, "402"),
        (403, "403"),
        (404, "404"),
        (405, "405"),
        (406, "406"),
        (408, "408"),
        (409, "409"),
        (410, "410"),
        (411, "411"),
        (412, "412"),
        (413, "413"),
        (415, "415"),
        (416, "416"),
        (422, "422"),
        (423, "423"),
        (429, "429"),
        (500, "500"),
        (503, "503"),
    ];
    let known = WORDS.iter().find(|(code, _)| *code == status.as_u16());
    known.map_or("other", |(_, word)| word)
}
