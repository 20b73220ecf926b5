//! Prints the processor time of the encoder on one thread: first use, tokens, pieces, and vectors of some lengths.

use std::time::Duration;

use encoder::{Encoder, PIECE_TOKENS, QUERY_TOKENS};
use rustix::time::{ClockId, clock_gettime};

const PARAGRAPH: &str = "We moved the nightly export of 1.2 million orders from row inserts to COPY with 4 workers. The median \
    of 12 runs fell from 48 minutes to 9 minutes on PostgreSQL 16.3 with 8 vCPU, and p95 of the API did not change. ";
const QUERY: &str = "how to make a nightly postgres export faster";

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let part = |number: i64| u64::try_from(number).unwrap_or_default();
    Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
}

/// Prints the least of ten runs.
#[expect(clippy::print_stdout, reason = "an example prints")]
fn measure(name: &str, mut work: impl FnMut()) {
    let time = |work: &mut dyn FnMut()| {
        let begin = processor_time();
        work();
        processor_time().saturating_sub(begin)
    };
    let least = (0..10).map(|_| time(&mut work)).min().unwrap_or_default();
    println!("{name}: {:.3} ms", least.as_secs_f64() * 1e3);
}

#[expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an example prints and may end with a panic"
)]
fn main() {
    measure("check of the weights", || encoder::check().unwrap());
    let begin = processor_time();
    let encoder = Encoder::shared().unwrap();
    let took = processor_time().saturating_sub(begin);
    println!("first use: {:.0} ms", took.as_secs_f64() * 1e3);
    let text = PARAGRAPH.repeat(30);
    let (bytes, tokens) = (text.len(), encoder.tokens(&text).len());
    measure(&format!("tokens of {bytes} bytes ({tokens} tokens)"), || {
        encoder.tokens(&text);
    });
    measure(&format!("pieces of {bytes} bytes"), || {
        encoder.pieces(&text);
    });
    for most in [PIECE_TOKENS, 400] {
        measure(&format!("vector of {most} tokens"), || {
            encoder.encode(&text[..2_400], most);
        });
    }
    let tokens = encoder.tokens(QUERY).len();
    measure(&format!("vector of a query of {tokens} tokens"), || {
        encoder.encode(QUERY, QUERY_TOKENS);
    });
}
