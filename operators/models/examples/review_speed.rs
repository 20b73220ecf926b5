//! Times a review by the local judges, step by step, and the check for copies against many published units.
//!
//! Invariant: the published units are the same in every run, and the reviewed ones are those of the training half.
//!
//! ```text
//! cargo run --release -p models --example review_speed -- [UNITS]      100,000 published units
//! ```

use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::io::{Write as _, stdout};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use models::rubric::{ArithmeticFinder, score};
use models::screen::UnitScreener;
use models::sentences::SentenceEmbedder;
use operators::chain::GateChain;
use operators::gates::PersonalData;
use operators::knowledge::{
    ContradictionFinder as _, EmbeddedText, Embedder as _, Fingerprint, NearestUnit, PublishedUnit, PublishedUnits,
    QuantisedVector, TextRole, normalised,
};
use operators::screen::{LocalScreener, Screen};
use serde::Deserialize;
use serde_json::json;
use types::knowledge::UnitText;
use types::{Batch, Contract, Field, FieldType, Timestamp, UnitId};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Different words of the published units.
const WORDS: u64 = 20_000;
/// Words of a published unit, which is about 2 KB.
const BODY: u64 = 300;
/// Edited copies that are looked for.
const COPIES: u64 = 1_000;
/// Vectors of a published text.
const PARTS: u64 = 4;
/// Reviews that are timed.
const REVIEWS: usize = 600;
/// The Jaccard similarity from which a copy must be found.
const COPY: f64 = 0.85;
const STEPS: [&str; 7] = [
    "personal data",
    "duplicate",
    "embedding",
    "nearest",
    "screen",
    "contradictions",
    "score",
];

#[derive(Deserialize)]
struct Labelled {
    title: String,
    category: String,
    source: String,
    body: String,
}

/// Returns the word at a place of a text. Low numbers are frequent.
fn word(text: u64, place: u64) -> String {
    let random = |seed: u64| xxh3_64_with_seed(&[text.to_le_bytes(), place.to_le_bytes()].concat(), seed) % WORDS;
    let number = random(1) * random(2) / WORDS;
    format!("{:x}", xxh3_64_with_seed(&number.to_le_bytes(), 3) >> 40)
}

fn body(text: u64) -> String {
    (0..BODY).map(|place| word(text, place)).collect::<Vec<_>>().join(" ")
}

/// Returns a text in which the words of another one stand at each place that `is_edited` names.
fn edited(text: u64, is_edited: impl Fn(u64) -> bool) -> String {
    let place = |place| word(if is_edited(place) { text + (1 << 40) } else { text }, place);
    (0..BODY).map(place).collect::<Vec<_>>().join(" ")
}

#[expect(clippy::cast_precision_loss, reason = "a share needs few digits")]
fn jaccard(one: &str, other: &str) -> f64 {
    let shingles = |text: &str| {
        let all: Vec<char> = normalised(text).chars().collect();
        all.windows(5).map(<[char]>::to_vec).collect::<HashSet<_>>()
    };
    let (one, other) = (shingles(one), shingles(other));
    one.intersection(&other).count() as f64 / one.union(&other).count() as f64
}

/// Returns a vector of length 1 that stands for a part of a text; 100,000 texts would take half an hour to embed.
fn vector(seed: u64) -> QuantisedVector {
    let bytes = (0..64).flat_map(|at| xxh3_64_with_seed(&u64::to_le_bytes(at), seed).to_le_bytes());
    let bytes: Vec<i8> = bytes.map(|byte| i8::from_le_bytes([byte])).collect();
    let length = bytes
        .iter()
        .map(|byte| f32::from(*byte) * f32::from(*byte))
        .sum::<f32>()
        .sqrt();
    QuantisedVector {
        scale: 1.0 / length,
        bytes,
    }
}

fn publish(units: &mut PublishedUnits, text: u64, body: &str) {
    let (print, unit) = (Fingerprint::of(body), UnitId::new(Timestamp::from_micros(0)));
    units.add(PublishedUnit {
        unit,
        chain: unit,
        operator: None,
        text_hash: print.text_hash,
        paragraphs: print.paragraphs.iter().map(|(hash, _)| *hash).collect(),
        signature: Some(print.signature),
        details: print.details,
        facts: print.facts,
        vectors: (0..PARTS).map(|part| vector(text * PARTS + part)).collect(),
    });
}

/// Returns the memory of this process in MB.
fn memory() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.unwrap_or_default().trim().trim_end_matches(" kB");
    Ok(kilobytes.parse::<u64>()? / 1_000)
}

fn main() -> Result<(), Box<dyn Error>> {
    let count: u64 = std::env::args().nth(1).map_or(Ok(100_000), |text| text.parse())?;
    let mut units = PublishedUnits::default();
    let before = memory()?;
    for text in 0..count {
        publish(&mut units, text, &body(text));
    }
    let grown = memory()?.saturating_sub(before);
    writeln!(stdout(), "published {count} units in {grown} MB")?;
    copies(&units, count)?;
    // A review compares with few units on a new service, and with all of them on a grown one.
    reviews("of none published", &PublishedUnits::default())?;
    reviews("of all published", &units)
}

/// Prints how long the check for copies takes, and how many edited copies it finds.
fn copies(units: &PublishedUnits, count: u64) -> Result<(), Box<dyn Error>> {
    let chain = UnitId::new(Timestamp::from_micros(0));
    let mut times = Vec::<Duration>::new();
    let (mut near, mut found) = (0_u32, 0_u32);
    let mut look = |text: &str| {
        let start = Instant::now();
        let look = units.find_copy(chain, &Fingerprint::of(text));
        times.push(start.elapsed());
        look.copy.is_some()
    };
    let mut wrong = 0_u32;
    for copy in 0..COPIES {
        let of = copy * count / COPIES;
        // One to twelve words of a hundred are others, in one run or each by itself.
        let percent = 1 + copy % 12;
        let text = if copy % 2 == 0 {
            edited(of, |place| place < BODY * percent / 100)
        } else {
            edited(of, |place| place * 7 % 100 < percent)
        };
        let is_found = look(&text);
        if jaccard(&body(of), &text) >= COPY {
            near += 1;
            found += u32::from(is_found);
        }
        wrong += u32::from(look(&body(count + copy)));
    }
    times.sort_unstable();
    let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    let recall = f64::from(found) / f64::from(near.max(1));
    writeln!(
        stdout(),
        "duplicate check against {count} units: p50 {p50:.2?}, p99 {p99:.2?} of {}; recall {recall:.3} of {near} copies \
         with a Jaccard similarity of {COPY} or more; {wrong} of {COPIES} other texts were refused",
        times.len()
    )?;
    Ok(())
}

/// Prints how many reviews a core does in a second, and how long each step takes.
fn reviews(name: &str, units: &PublishedUnits) -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/train");
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let unit: Labelled = toml::from_str(&fs::read_to_string(entry?.path())?)?;
        texts.push(UnitText {
            title: unit.title,
            body: unit.body,
            category: unit.category,
            source_declaration: unit.source,
        });
    }
    let embedder = SentenceEmbedder::open()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let chain = UnitId::new(Timestamp::from_micros(0));
    let mut times = [Duration::ZERO; STEPS.len()];
    for text in texts.iter().cycle().take(REVIEWS) {
        let mut last = Instant::now();
        let mut ends = |step: usize| {
            let now = Instant::now();
            times[step] += now - last;
            last = now;
        };
        runtime.block_on(GateChain::new().gate(PersonalData::new()).run(row(text)?));
        ends(0);
        let print = Fingerprint::of(&text.body);
        units.find_copy(chain, &print);
        ends(1);
        let embedded = EmbeddedText {
            title: &text.title,
            body: &text.body,
        };
        let vectors = runtime.block_on(embedder.embed(&[embedded], TextRole::Document));
        let vectors = vectors.map_err(|error| format!("{error:?}"))?;
        let vectors = QuantisedVector::of_each(&vectors.concat());
        ends(2);
        let near = units.nearest(chain, &print, &vectors);
        ends(3);
        runtime.block_on(
            GateChain::new()
                .stage(Arc::new(Screen::new(Arc::new(LocalScreener))))
                .run(row(text)?),
        );
        runtime.block_on(
            GateChain::new()
                .stage(Arc::new(Screen::new(Arc::new(UnitScreener))))
                .run(row(text)?),
        );
        ends(4);
        ArithmeticFinder.contradictions(text, Timestamp::from_micros(0));
        ends(5);
        score(
            text,
            &near.map_or_else(NearestUnit::default, operators::knowledge::Neighbour::near),
        );
        ends(6);
    }
    let of_one = |time: Duration| time / u32::try_from(REVIEWS).unwrap_or(1);
    let all = times.iter().sum::<Duration>();
    let speed = 1.0 / of_one(all).as_secs_f64();
    let bytes = texts.iter().map(|text| text.body.len()).sum::<usize>() / texts.len().max(1);
    writeln!(
        stdout(),
        "review {name}: {speed:.0} units/s of {bytes} bytes on a core, {:.2?} each",
        of_one(all)
    )?;
    for (step, time) in STEPS.into_iter().zip(times) {
        writeln!(stdout(), "  {step:13} {:.2?}", of_one(time))?;
    }
    Ok(())
}

/// Returns a text as the batch of one row that the gates judge.
fn row(text: &UnitText) -> Result<Batch, Box<dyn Error>> {
    let field = |name: &str| Field {
        required: true,
        ..Field::new(name, FieldType::String)
    };
    let fields = ["title", "body", "category", "sourceDeclaration"].map(field);
    let contract = Arc::new(Contract::new(fields.to_vec(), false)?);
    let row = json!({
        "title": text.title,
        "body": text.body,
        "category": text.category,
        "sourceDeclaration": text.source_declaration,
    });
    Ok(Batch::decode(&contract, &[row]))
}
