//! Times the index over generated units: how fast it is built, and how fast each mode answers.
//!
//! Invariant: the units and the queries are the same in every run. Usage: `speed [UNITS]`, 100,000 where not given.

use std::io::{Write as _, stdout};
use std::time::{Duration, Instant};

use search::{Document, Facts, Filter, Index, Key, Mode, Price, Query};
use types::Timestamp;
use types::vocabulary::ItemKind;

const WORDS: u64 = 20_000;
/// Words of a body, which is about 2 KB.
const BODY: u64 = 280;
const QUERIES: u64 = 200;

/// Numbers of a fixed sequence (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A word; the lower its number, the more frequent it is.
    fn word(&mut self) -> String {
        let (one, other) = (self.next() % WORDS, self.next() % WORDS);
        let number = one * other / WORDS;
        let syllables = ["ka", "lo", "mi", "ten", "ra", "su", "ver", "pon", "di", "qua"];
        let mut left = number + 10;
        let mut word = String::new();
        while left > 0 {
            word.push_str(syllables[usize::try_from(left % 10).unwrap_or(0)]);
            left /= 10;
        }
        word
    }

    fn words(&mut self, count: u64) -> String {
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let units: u64 = std::env::args().nth(1).map_or(Ok(100_000), |text| text.parse())?;
    let mut numbers = Numbers(1);
    let mut documents = Vec::new();
    for number in 0..units {
        documents.push(Document {
            key: Key {
                kind: ItemKind::Unit,
                id: format!("{number:08}"),
            },
            title: numbers.words(8),
            terms: vec!["performance-tuning".to_owned()],
            body: numbers.words(BODY),
            source: numbers.words(10),
            facts: Facts {
                category: Some("performance-tuning".to_owned()),
                license: "CC0-1.0".to_owned(),
                language: None,
                price: Price::WithKey,
                trial_sale: false,
                published_at: Timestamp::from_micros(i64::try_from(number)?),
                score: 60,
            },
        });
    }
    let index = Index::new()?;
    let start = Instant::now();
    index.put_all(&documents)?;
    index.commit()?;
    let took = start.elapsed();
    #[expect(clippy::cast_precision_loss, reason = "a speed needs few digits")]
    let speed = units as f64 / took.as_secs_f64();
    let mut out = stdout().lock();
    writeln!(out, "build     {units} units in {took:.2?}: {speed:.0} units/s")?;
    for mode in [Mode::Keyword, Mode::Semantic, Mode::Auto] {
        let mut times: Vec<Duration> = Vec::new();
        let mut numbers = Numbers(2);
        for _ in 0..QUERIES {
            let query = Query {
                text: numbers.words(3),
                vector: None,
                mode,
                filter: Filter::default(),
                offset: 0,
                limit: 20,
            };
            let start = Instant::now();
            index.search(&query, Timestamp::from_micros(0))?;
            times.push(start.elapsed());
        }
        times.sort_unstable();
        let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        writeln!(
            out,
            "{:9} p50 {p50:.2?}, p99 {p99:.2?} of {QUERIES} queries of 3 words",
            mode.as_str()
        )?;
    }
    Ok(())
}
