//! Growth of the work of a reader with its text, for tests of everything that reads texts of strangers.
//!
//! Invariant: what is compared is processor time of the own thread, the least of several runs of each length, so that
//! other work on the machine does not count.

mod shapes;

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

pub use shapes::{SHAPES, Shape};

/// The most that the time may grow when the text is twice as long.
const LIMIT: f64 = 2.6;
/// The growth below which the longer text was not read as the shorter one was.
const LEAST: f64 = 1.2;
/// The growth that needs no further run.
const CLEAR: f64 = 2.2;
/// The time for a byte below which a growth says nothing: the text was read once at most, or refused at its begin.
const LEAST_FOR_BYTE: Duration = Duration::from_nanos(2);
/// The runs after which a growth within the limit needs no further one.
const RUNS: usize = 10;
/// The time after which no further run is made. A machine that others use may be slow for a while, and short runs would all
/// fall into it.
const ENOUGH: Duration = Duration::from_secs(2);

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let part = |number: i64| u64::try_from(number).unwrap_or_default();
    Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
}

/// Fails for each shape with which `reader` takes more than 2.6 times the time for twice the text, two times in a row.
///
/// `bytes` is the length of the shorter text. It is chosen so that the reader takes some 0.1 ms or more: with less, what it
/// does once hides how it grows.
#[track_caller]
pub fn is_linear(reader: &str, bytes: usize, mut read: impl FnMut(&str)) {
    is_linear_in(reader, bytes, SHAPES, |text| text, |text| read(text));
}

/// Does the same with other shapes, and with what is made of each text before the time counts.
#[track_caller]
pub fn is_linear_in<T>(
    reader: &str,
    bytes: usize,
    shapes: &[Shape],
    mut prepare: impl FnMut(String) -> T,
    mut read: impl FnMut(&T),
) {
    let mut problems = Vec::new();
    // What is made once for all texts, such as a table of words, is made here.
    read(&prepare(String::from("a")));
    let measurable = LEAST_FOR_BYTE * u32::try_from(bytes * 2).unwrap_or(u32::MAX);
    for shape in shapes {
        let texts = [bytes, bytes * 2, bytes * 4].map(|bytes| prepare(shape.text(bytes)));
        let [one, two] = least([&texts[0], &texts[1]], &mut read);
        if two <= one * LIMIT || two <= measurable.as_secs_f64() {
            continue;
        }
        // A longer text may need a step that a shorter one is spared. What grows faster than the text does so again, and a text
        // that is refused for its length is read faster.
        let [before, after] = least([&texts[1], &texts[2]], &mut read);
        if after > before * LIMIT || after < before * LEAST {
            problems.push(format!(
                "{}: {:.2} ms, and {:.1} times that for twice the text",
                shape.name,
                one * 1e3,
                two / one
            ));
        }
    }
    assert!(
        problems.is_empty(),
        "{reader} is not linear in\n{}",
        problems.join("\n")
    );
}

/// Takes what a reader returns, so that the work for it is done.
pub fn consume<T>(value: T) {
    std::hint::black_box(value);
}

/// Returns the least seconds of processor time for each of two texts.
fn least<T>(texts: [&T; 2], read: &mut impl FnMut(&T)) -> [f64; 2] {
    let mut least = [f64::INFINITY; 2];
    let begin = processor_time();
    for run in 1.. {
        // Turn by turn, so that a slower clock of the processor meets both.
        for (least, text) in least.iter_mut().zip(texts) {
            let before = processor_time();
            read(text);
            *least = least.min(processor_time().saturating_sub(before).as_secs_f64());
        }
        let most = if run < RUNS { CLEAR } else { LIMIT };
        let is_clear = least[1] <= least[0] * most;
        if is_clear || processor_time().saturating_sub(begin) > ENOUGH {
            break;
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work that takes `steps`.
    fn work(steps: usize) -> usize {
        (0..steps).fold(0, |sum, step| std::hint::black_box(sum ^ step))
    }

    #[test]
    fn linear_work_passes() {
        let shapes = &SHAPES[..3];
        is_linear_in(
            "linear work",
            20_000,
            shapes,
            |text| text,
            |text| {
                work(text.len());
            },
        );
    }

    #[test]
    #[should_panic(expected = "quadratic work is not linear in\n")]
    fn quadratic_work_fails() {
        let shapes = &SHAPES[..1];
        is_linear_in(
            "quadratic work",
            500,
            shapes,
            |text| text,
            |text| {
                work(text.len() * text.len());
            },
        );
    }

    #[test]
    fn a_text_has_its_length() {
        for shape in SHAPES {
            let text = shape.text(1_000);
            assert!((900..=1_000).contains(&text.len()), "{}: {}", shape.name, text.len());
        }
    }
}
