//! The cost of the spans and the log lines of one contribution, at the default filter of the log and with none.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tracing::field::Empty;
use tracing::subscriber::with_default;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

/// Contributions of one measurement.
const CONTRIBUTIONS: u32 = 100_000;
/// Measurements of each kind, taken in turn.
const ROUNDS: usize = 5;
/// Spans of stages between a request and its outcome, all of them of the level `debug`.
const STAGES: usize = 16;

/// Prints the median time of one contribution's spans and lines: as the service logs by default, and where it logs
/// nothing.
pub(crate) fn run() {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (filter, times) in ["info", "off"].into_iter().zip(&mut times) {
            let lines = tracing_subscriber::fmt::layer()
                .with_ansi(false)
                .with_writer(std::io::sink)
                .with_filter(EnvFilter::new(filter));
            times.push(with_default(tracing_subscriber::registry().with(lines), measure));
        }
    }
    let [info, off] = times.map(|mut times| {
        times.sort_unstable();
        times[ROUNDS / 2]
    });
    println!("spans and lines of a contribution, `telemetry.filter = \"info\"`: {info:?}; \"off\": {off:?}");
}

/// Makes the spans and lines that a contribution has in the API and in the worker; returns the time of one.
fn measure() -> Duration {
    let started = Instant::now();
    for number in 0..CONTRIBUTIONS {
        for side in ["contribution acknowledged", "contribution merged"] {
            let span = tracing::info_span!(
                "request",
                request_id = side,
                contribution = Empty,
                dataset = Empty,
                version = Empty
            );
            span.record("contribution", number);
            span.record("dataset", number);
            let _entered = span.enter();
            for stage in 0..STAGES / 2 {
                tracing::debug_span!("stage", stage).in_scope(|| black_box(stage));
            }
            tracing::info!(accepted = number, "{side}");
        }
    }
    started.elapsed() / CONTRIBUTIONS
}
