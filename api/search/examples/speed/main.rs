//! Times the index over generated units: how fast it is built, how fast each mode answers, without and with vectors of
//! five pieces a unit, and how well it answers the judged queries, each beside tantivy and FTS5 of `SQLite` used plainly.
//!
//! Invariant: the units and the queries are the same in every run.
//!
//! ```text
//! cargo run --release -p search --example speed -- [UNITS] [PEERS]      100,000 units and as many of the peers' own
//! ```

#![expect(clippy::unwrap_used, reason = "the judged queries are read as the test reads them")]

#[path = "../../judged/judged.rs"]
mod judged;
mod peers;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::{Write as _, stdout};
use std::time::{Duration, Instant};

use operators::knowledge::QuantisedVector;
use search::{
    Document, DocumentFacts, DocumentKey, Index, Price, SearchFilter, SearchMode, SearchOrder, SearchQuery, Standing,
};
use types::Timestamp;
use types::vocabulary::ItemKind;

use self::judged::{document_vectors, interval, mean, ndcg, query_vectors};
use self::peers::{Fts5, Peer, Tantivy};

const WORDS: u64 = 20_000;
/// Words of a body, which is about 2 KB.
const BODY: u64 = 280;
const QUERIES: u64 = 200;
/// Queries of FTS5, which takes long for one.
const FEW_QUERIES: u64 = 20;
const DIMENSIONS: usize = 512;
/// Vectors of a unit: of its title and of four pieces.
const PIECES: usize = 5;
const MODES: [SearchMode; 3] = [SearchMode::Keyword, SearchMode::Semantic, SearchMode::Auto];
const NOW: Timestamp = Timestamp::from_micros(0);

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

    /// A vector of length 1 in a direction by chance.
    #[expect(clippy::cast_precision_loss, reason = "a direction by chance needs few digits")]
    fn vector(&mut self) -> Vec<f32> {
        let values: Vec<f32> = (0..DIMENSIONS)
            .map(|_| (self.next() >> 40) as f32 / 8_388_608.0 - 1.0)
            .collect();
        let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
        values.into_iter().map(|value| value / length).collect()
    }

    fn words(&mut self, count: u64) -> String {
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}

fn document(id: String, title: String, body: String, category: String, source: String) -> Document {
    Document {
        key: DocumentKey {
            kind: ItemKind::Unit,
            id,
        },
        title,
        terms: vec![category.clone()],
        body,
        source,
        facts: DocumentFacts {
            category: Some(category),
            license: "CC0-1.0".to_owned(),
            language: None,
            tags: Vec::new(),
            price: Price::WithKey,
            price_micro: 0,
            trial_sale: false,
            published_at: NOW,
            score: 60,
            standing: Standing::Trusted,
        },
    }
}

fn generated(units: u64) -> Vec<Document> {
    let mut numbers = Numbers(1);
    let mut unit = |number: u64| {
        let (title, body, source) = (numbers.words(8), numbers.words(BODY), numbers.words(10));
        document(
            format!("{number:08}"),
            title,
            body,
            "performance-tuning".to_owned(),
            source,
        )
    };
    (0..units).map(&mut unit).collect()
}

fn ids(index: &Index, text: &str, mode: SearchMode, vector: Option<Vec<f32>>) -> Result<Vec<String>, Box<dyn Error>> {
    let query = SearchQuery {
        order: SearchOrder::Best,
        text: text.to_owned(),
        vector,
        mode,
        filter: SearchFilter::default(),
        offset: 0,
        limit: 20,
    };
    let found = index.search(&query, NOW)?;
    Ok(found.hits.into_iter().map(|key| key.id).collect())
}

/// Prints how long a search of three words takes.
fn time(
    name: &str,
    queries: u64,
    mut search: impl FnMut(&str) -> Result<Vec<String>, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let (mut times, mut numbers) = (Vec::<Duration>::new(), Numbers(2));
    for _ in 0..queries {
        let text = numbers.words(3);
        let start = Instant::now();
        search(&text)?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    writeln!(
        stdout(),
        "{name:9} p50 {p50:.2?}, p99 {p99:.2?} of {queries} queries of 3 words"
    )?;
    Ok(())
}

/// Prints how well the judged queries of each set are answered, with intervals of 95 %.
fn judge(
    name: &str,
    mode: SearchMode,
    mut search: impl FnMut(&str) -> Result<Vec<String>, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut by_set: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for judged in judged::queries() {
        if judged.is_for(mode.as_str()) {
            let value = ndcg(&search(&judged.q)?, &judged.grades);
            by_set.entry(judged.set()).or_default().push(value);
        }
    }
    for (set, values) in by_set {
        let (mean, (low, high), number) = (mean(&values), interval(&values), values.len());
        writeln!(
            stdout(),
            "{name:13} {set:18} nDCG@10 {mean:.3} ({low:.3} to {high:.3}) of {number} queries"
        )?;
    }
    Ok(())
}

/// Returns the memory of this process in MB.
fn memory() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.unwrap_or_default().trim().trim_end_matches(" kB");
    Ok(kilobytes.parse::<u64>()? / 1_000)
}

fn argument(place: usize) -> Result<u64, Box<dyn Error>> {
    Ok(std::env::args().nth(place).map_or(Ok(100_000), |text| text.parse())?)
}

#[expect(clippy::cast_precision_loss, reason = "a speed needs few digits")]
fn main() -> Result<(), Box<dyn Error>> {
    let (units, of_peers) = (argument(1)?, argument(2)?);
    let documents = generated(units);
    let index = Index::new()?;
    let (before, start) = (memory()?, Instant::now());
    index.put_all(&documents)?;
    index.commit()?;
    let took = start.elapsed();
    let speed = units as f64 / took.as_secs_f64();
    let grown = memory()?.saturating_sub(before);
    writeln!(
        stdout(),
        "rebuild   {units} units in {took:.2?}: {speed:.0} units/s, {grown} MB"
    )?;
    for mode in MODES {
        time(mode.as_str(), QUERIES, |text| ids(&index, text, mode, None))?;
    }
    drop(index);
    time_vectors(&documents)?;
    let some = &documents[..documents.len().min(usize::try_from(of_peers)?)];
    writeln!(stdout(), "peers over {} units", some.len())?;
    let start = Instant::now();
    let mut tantivy = Tantivy::of(some)?;
    writeln!(stdout(), "tantivy   built in {:.2?}", start.elapsed())?;
    time("tantivy", QUERIES, |text| tantivy.search(text))?;
    drop(tantivy);
    let start = Instant::now();
    let mut fts5 = Fts5::of(some, "trigram")?;
    writeln!(stdout(), "fts5      built in {:.2?}", start.elapsed())?;
    time("fts5", FEW_QUERIES, |text| fts5.search(text))?;
    drop(fts5);

    let texts = judged::texts().into_iter();
    let judged: Vec<_> = texts
        .map(|text| document(text.slug, text.title, text.body, text.category, text.source))
        .collect();
    let index = Index::new()?;
    index.put_all(&judged)?;
    index.commit()?;
    // Without vectors the modes differ in what they count only. Those across languages need vectors.
    judge("sluice, words", SearchMode::Auto, |text| {
        ids(&index, text, SearchMode::Auto, None)
    })?;
    judge_with_vectors(&judged)?;
    let mut tantivy = Tantivy::of(&judged)?;
    judge("tantivy", SearchMode::Auto, |text| tantivy.search(text))?;
    for (name, tokenizer) in [("fts5, stems", "porter"), ("fts5, trigram", "trigram")] {
        let mut fts5 = Fts5::of(&judged, tokenizer)?;
        judge(name, SearchMode::Auto, |text| fts5.search(text))?;
    }
    Ok(())
}

/// Prints how long a search by vectors takes, and the memory of the vectors.
fn time_vectors(documents: &[Document]) -> Result<(), Box<dyn Error>> {
    let index = Index::with_model(Some(DIMENSIONS))?;
    index.put_all(documents)?;
    index.commit()?;
    let (before, mut numbers) = (memory()?, Numbers(3));
    for missing in index.without_vector(documents.len()) {
        let pieces: Vec<_> = (0..PIECES).map(|_| QuantisedVector::of(&numbers.vector())).collect();
        index.set_vectors(&missing, &pieces);
    }
    let grown = memory()?.saturating_sub(before);
    writeln!(
        stdout(),
        "vectors   {} of {DIMENSIONS} bytes, {grown} MB",
        documents.len() * PIECES
    )?;
    for mode in [SearchMode::Semantic, SearchMode::Auto] {
        time(mode.as_str(), QUERIES, |text| {
            let vector = numbers.vector();
            ids(&index, text, mode, Some(vector))
        })?;
    }
    Ok(())
}

/// Prints how well the judged queries are answered with vectors of the encoder of the program.
fn judge_with_vectors(judged: &[Document]) -> Result<(), Box<dyn Error>> {
    let index = Index::with_model(Some(DIMENSIONS))?;
    index.put_all(judged)?;
    index.commit()?;
    let (documents, queries) = (document_vectors(), query_vectors());
    for missing in index.without_vector(documents.len()) {
        let pieces = documents.get(&missing.key.id).map(Vec::as_slice).unwrap_or_default();
        index.set_vectors(&missing, pieces);
    }
    for mode in [SearchMode::Semantic, SearchMode::Auto] {
        let name = format!("sluice, {}", mode.as_str());
        judge(&name, mode, |text| ids(&index, text, mode, queries.get(text).cloned()))?;
    }
    Ok(())
}
