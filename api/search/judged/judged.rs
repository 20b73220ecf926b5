//! The judged queries, what they search, and the measure of an answer.
//!
//! Invariant: the test and the example measure by the same rule.

use std::collections::HashMap;

use models::sentences::SentenceEmbedder;
use operators::knowledge::{EmbeddedText, Embedder as _, QuantisedVector, TextRole};
use serde::Deserialize;

/// A query, and how well each document answers it.
#[derive(Debug, Deserialize)]
pub(crate) struct Judged {
    /// `q` and a number.
    pub(crate) id: String,
    pub(crate) q: String,
    pub(crate) mode: Vec<String>,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Grades from 1 to 3 by document. A document without one is no answer.
    #[serde(rename = "judged")]
    pub(crate) grades: HashMap<String, u32>,
}

/// The last query of the half on which weights and thresholds are chosen.
const LAST_CHOSEN_ON: &str = "q114";

impl Judged {
    /// Returns the set that the query is measured in.
    pub(crate) fn set(&self) -> &'static str {
        let is_first_half = self.id.as_str() <= LAST_CHOSEN_ON;
        match (is_first_half, self.kind.as_str()) {
            (true, "cross") => "cross, first half",
            (true, _) => "first half",
            (false, "typo") => "typos, second half",
            (false, _) => "cross, second half",
        }
    }

    /// Returns true if the query is for a mode.
    pub(crate) fn is_for(&self, mode: &str) -> bool {
        self.mode.iter().any(|name| name == mode)
    }
}

/// A document that the queries are asked of.
#[derive(Debug, Deserialize)]
pub(crate) struct Text {
    pub(crate) slug: String,
    pub(crate) title: String,
    pub(crate) body: String,
    pub(crate) category: String,
    pub(crate) source: String,
}

pub(crate) fn texts() -> Vec<Text> {
    lines(include_str!("documents.jsonl"))
}

pub(crate) fn queries() -> Vec<Judged> {
    lines(include_str!("queries.jsonl"))
}

fn lines<T: for<'a> Deserialize<'a>>(text: &str) -> Vec<T> {
    // The files are part of the program, so a line that cannot be read is a defect of the tree.
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the normalised discounted cumulative gain of the first ten hits.
pub(crate) fn ndcg(hits: &[String], grades: &HashMap<String, u32>) -> f64 {
    // One full answer is worth more than two in part, and a hit is worth less the later it comes.
    let gain = |grade: u32| f64::from((1_u32 << grade) - 1);
    let discount = |rank: usize| (f64::from(u32::try_from(rank).unwrap()) + 2.0).log2();
    let sum = |grades: Vec<u32>| -> f64 {
        let gains = grades.into_iter().take(10).enumerate();
        gains.map(|(rank, grade)| gain(grade) / discount(rank)).sum()
    };
    let mut best: Vec<u32> = grades.values().copied().collect();
    best.sort_unstable_by(|one, other| other.cmp(one));
    sum(hits.iter().map(|hit| grades.get(hit).copied().unwrap_or(0)).collect()) / sum(best)
}

/// Returns the mean of some values.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / f64::from(u32::try_from(values.len()).unwrap())
}

/// Returns the bounds between which the mean of 95 % of 2,000 resampled sets lies.
pub(crate) fn interval(values: &[f64]) -> (f64, f64) {
    const SAMPLES: usize = 2_000;
    // The sequence is fixed (splitmix64), so the same values have the same interval.
    let mut state = 1_u64;
    let mut place = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % values.len() as u64).unwrap()
    };
    let mut means: Vec<f64> = (0..SAMPLES)
        .map(|_| mean(&values.iter().map(|_| values[place()]).collect::<Vec<_>>()))
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    (means[SAMPLES / 40], means[SAMPLES - 1 - SAMPLES / 40])
}

/// Returns the vectors of texts by the encoder of the program.
pub(crate) fn embedded(texts: &[EmbeddedText<'_>], role: TextRole) -> Vec<Vec<Vec<f32>>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let embedder = SentenceEmbedder::open().unwrap();
    runtime.block_on(embedder.embed(texts, role)).unwrap()
}

/// Returns the vectors of each judged document by its slug.
pub(crate) fn document_vectors() -> HashMap<String, Vec<QuantisedVector>> {
    let texts = texts();
    let inputs: Vec<EmbeddedText<'_>> = texts
        .iter()
        .map(|text| EmbeddedText {
            title: &text.title,
            body: &text.body,
        })
        .collect();
    let pieces = embedded(&inputs, TextRole::Document).into_iter();
    let quantised = pieces.map(|pieces| QuantisedVector::of_each(&pieces));
    texts.iter().map(|text| text.slug.clone()).zip(quantised).collect()
}

/// Returns the vector of each judged query by its text.
pub(crate) fn query_vectors() -> HashMap<String, Vec<f32>> {
    let queries = queries();
    let inputs: Vec<EmbeddedText<'_>> = queries
        .iter()
        .map(|judged| EmbeddedText {
            title: &judged.q,
            body: "",
        })
        .collect();
    let vectors = embedded(&inputs, TextRole::Query)
        .into_iter()
        .map(|mut pieces| pieces.remove(0));
    queries.iter().map(|judged| judged.q.clone()).zip(vectors).collect()
}
