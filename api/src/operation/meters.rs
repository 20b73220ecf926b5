//! Metrics of the calls of one operation.
//!
//! Invariant: a meter is looked up once. The look-up by name and labels would cost more than a small answer.

use std::fmt;
use std::sync::OnceLock;

use metrics::{Counter, Histogram};
use types::metric;

use crate::answer::Output;
use crate::error::ApiError;

/// Statuses in use. A label must be `'static`, so any other status is counted as [`OTHER`].
const STATUSES: [(u16, &str); 26] = [
    (200, "200"),
    (201, "201"),
    (202, "202"),
    (204, "204"),
    (206, "206"),
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
/// Place of a status that is not among [`STATUSES`].
const OTHER: usize = STATUSES.len();

/// Meters of one operation.
#[derive(Default)]
pub(super) struct Meters {
    /// Counter of each status, and of the others.
    requests: [OnceLock<Counter>; OTHER + 1],
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
        let known = STATUSES.iter().position(|(code, _)| *code == status.as_u16());
        let place = known.unwrap_or(OTHER);
        let word = STATUSES.get(place).map_or("other", |(_, word)| word);
        self.requests[place]
            .get_or_init(|| metrics::counter!(metric::REQUESTS, "operation" => operation, "status" => word))
            .increment(1);
        #[expect(clippy::cast_precision_loss, reason = "a call takes less than 285 years")]
        let seconds = micros as f64 / 1e6;
        self.seconds
            .get_or_init(|| metrics::histogram!(metric::REQUEST_SECONDS, "operation" => operation))
            .record(seconds);
    }
}

impl fmt::Debug for Meters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meters")
    }
}
