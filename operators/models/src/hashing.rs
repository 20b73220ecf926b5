//! An embedder without a model: features of a text, hashed to 512 dimensions.
//!
//! Invariant: the vector of a document depends on its text only, so it never changes. Statistics of the corpus weigh
//! queries, not documents.

mod stop;

pub use stop::is_common;

use std::collections::HashMap;

use async_trait::async_trait;
use operators::knowledge::{EmbeddedText, Embedder, TextRole, Vector};
use operators::screen::Unavailable;
use types::unit::Judge;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::tokens::{StemLanguages, Token, TokenKind, identifiers, tokens};

/// The number of dimensions.
pub const HASHED_DIMENSIONS: usize = 512;
/// The id of the vectors.
pub const HASHED_MODEL_ID: &str = "hash-512-1";

/// Times that a title counts.
const TITLE_TIMES: u32 = 3;
const WORD_WEIGHT: f32 = 1.0;
const PAIR_WEIGHT: f32 = 0.5;
const GRAMS_WEIGHT: f32 = 0.3;
const SYLLABLES_WEIGHT: f32 = 0.7;
const SINGLE_WEIGHT: f32 = 0.3;
const IDENTIFIER_WEIGHT: f32 = 1.5;
const QUANTITY_WEIGHT: f32 = 0.5;
/// Factor of words that say little.
const STOP_FACTOR: f32 = 0.1;

/// The hashing embedder `hash-512-1`. Vectors are near if the texts share words, parts of words or syllables.
#[derive(Clone, Copy, Debug, Default)]
pub struct HashingEmbedder;

impl HashingEmbedder {
    /// Returns the vector of a document.
    pub fn document(title: &str, body: &str) -> Vector {
        let mut features = HashedFeatures::default();
        features.read(title, TITLE_TIMES);
        features.read(body, 1);
        features.vector(title, &|_| 1.0)
    }

    /// Returns the vector of a query. `idf` weighs each word and pair of syllables by how rare it is.
    pub fn query(text: &str, idf: &dyn Fn(&str) -> f32) -> Vector {
        let mut features = HashedFeatures::default();
        features.read(text, 1);
        features.vector(text, idf)
    }
}

#[async_trait]
impl Embedder for HashingEmbedder {
    fn id(&self) -> &str {
        HASHED_MODEL_ID
    }

    fn judge(&self) -> Judge {
        Judge::heuristic(HASHED_MODEL_ID)
    }

    fn dimensions(&self) -> usize {
        HASHED_DIMENSIONS
    }

    async fn embed(&self, texts: &[EmbeddedText<'_>], role: TextRole) -> Result<Vec<Vec<Vector>>, Unavailable> {
        let vector = |text: &EmbeddedText<'_>| match role {
            TextRole::Document => vec![Self::document(text.title, text.body)],
            TextRole::Query => vec![Self::query(text.title, &|_| 1.0)],
        };
        Ok(texts.iter().map(vector).collect())
    }
}

/// A feature of a text: how often it occurs, its weight, and the words that it consists of.
#[derive(Debug)]
struct HashedFeature {
    count: u32,
    weight: f32,
    words: [Option<Box<str>>; 2],
}

/// The features of a text by name. The first letter of a name is the class.
#[derive(Debug, Default)]
struct HashedFeatures(HashMap<String, HashedFeature>);

impl HashedFeatures {
    fn add(&mut self, name: String, weight: f32, times: u32, words: [Option<&str>; 2]) {
        let feature = self.0.entry(name).or_insert_with(|| HashedFeature {
            count: 0,
            weight,
            words: words.map(|word| word.map(Box::from)),
        });
        feature.count += times;
    }

    fn read(&mut self, text: &str, times: u32) {
        let mut reader = FeatureReader {
            features: self,
            times,
            word: None,
            last_stem: None,
            last_number: None,
            last_pair: None,
            run_is_common: false,
        };
        tokens(text, StemLanguages::ENGLISH, &mut |token| {
            reader.token(token);
        });
        reader.end_word();
        identifiers(text, &mut |name, is_whole| {
            if is_whole {
                self.add(format!("i{name}"), IDENTIFIER_WEIGHT, times, [Some(name), None]);
            }
        });
    }

    /// Sums the features to a vector of length 1.
    fn vector(&self, text: &str, idf: &dyn Fn(&str) -> f32) -> Vector {
        let mut vector = vec![0.0; HASHED_DIMENSIONS];
        // The order of a map would make the last bits of the sums differ from run to run.
        let mut features: Vec<_> = self.0.iter().collect();
        features.sort_unstable_by_key(|(name, _)| *name);
        let mut known: HashMap<&str, f32> = HashMap::new();
        for (name, feature) in features {
            let words = feature.words.iter().flatten();
            let rarity = words.map(|word| *known.entry(word).or_insert_with(|| idf(word)));
            let (sum, count) = rarity.fold((0.0, 0.0_f32), |(sum, count), idf| (sum + idf, count + 1.0));
            #[expect(clippy::cast_precision_loss, reason = "a logarithm needs few digits")]
            // The logarithm keeps a text from gaining by repetition of one word.
            let often = 1.0 + (feature.count as f32).ln();
            let weight = feature.weight * often * if count > 0.0 { sum / count } else { 1.0 };
            match name.strip_prefix('w').filter(|_| feature.weight >= WORD_WEIGHT) {
                Some(word) => {
                    spread(&mut vector, name, weight);
                    grams(&mut vector, word, weight * GRAMS_WEIGHT);
                }
                None => spread(&mut vector, name, weight),
            }
        }
        let mut length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        if length <= f32::EPSILON {
            // A text without words has a vector of its own.
            spread(&mut vector, &format!("t{text}"), 1.0);
            length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        }
        for value in &mut vector {
            *value /= length;
        }
        vector
    }
}

/// Adds a feature to its two dimensions.
fn spread(vector: &mut [f32], name: &str, weight: f32) {
    for seed in [1, 2] {
        let hash = xxh3_64_with_seed(name.as_bytes(), seed);
        // Features that share a dimension cancel each other about as often as they add, so collisions
        // are noise and not a pull toward each other. With two dimensions each, one collision spoils
        // half of a feature.
        let sign = if hash >> 63 == 0 { 1.0 } else { -1.0 };
        let dimension = usize::try_from(hash % HASHED_DIMENSIONS as u64).unwrap_or(0);
        vector[dimension] += sign * weight * std::f32::consts::FRAC_1_SQRT_2;
    }
}

/// Adds the parts of 3 to 5 characters of `<word>`.
fn grams(vector: &mut [f32], word: &str, weight: f32) {
    // The frame tells the beginning and end of a word from its middle.
    let framed = format!("<{word}>");
    let starts: Vec<usize> = framed.char_indices().map(|(at, _)| at).chain([framed.len()]).collect();
    let characters = starts.len() - 1;
    let count: usize = (3..=5).map(|length| (characters + 1).saturating_sub(length)).sum();
    #[expect(clippy::cast_precision_loss, reason = "a word has few parts")]
    // By the root of their number, so that the parts of a long word together weigh as much as those of
    // a short one.
    let each = weight / (count.max(1) as f32).sqrt();
    for length in 3..=5_usize {
        for first in 0..(characters + 1).saturating_sub(length) {
            let gram = &framed[starts[first]..starts[first + length]];
            spread(vector, gram, each);
        }
    }
}

/// Turns the tokens of a text into features.
struct FeatureReader<'a> {
    features: &'a mut HashedFeatures,
    times: u32,
    /// The word at the present position, replaced by its stem.
    word: Option<String>,
    last_stem: Option<String>,
    last_number: Option<(String, u32)>,
    /// The pair of syllables before, with its position.
    last_pair: Option<(String, u32)>,
    run_is_common: bool,
}

impl FeatureReader<'_> {
    fn token(&mut self, token: Token<'_>) {
        match token.kind {
            TokenKind::Stem => self.word = Some(token.text.to_owned()),
            TokenKind::Word => {
                self.end_word();
                if let Some((number, _)) = self.last_number.take().filter(|(_, at)| at + 1 == token.position) {
                    let name = format!("q{number} {}", token.text);
                    self.features.add(name, QUANTITY_WEIGHT, self.times, [None, None]);
                }
                self.word = Some(token.text.to_owned());
            }
            TokenKind::Number => {
                self.end_word();
                let is_first = self.last_number.as_ref().is_none_or(|(_, at)| *at != token.position);
                if is_first {
                    self.last_number = Some((token.text.to_owned(), token.position));
                    self.features.add(
                        format!("n{}", token.text),
                        PAIR_WEIGHT,
                        self.times,
                        [Some(token.text), None],
                    );
                }
            }
            TokenKind::Run => self.run_is_common = is_common(token.text),
            TokenKind::Syllables => self.pair(token),
            TokenKind::Characters => {
                let is_single = token.text.chars().nth(1).is_none();
                let weight = if is_single { SINGLE_WEIGHT } else { SYLLABLES_WEIGHT };
                self.features
                    .add(format!("c{}", token.text), weight, self.times, [Some(token.text), None]);
                for character in token.text.chars().take(usize::from(!is_single)) {
                    self.features
                        .add(format!("c{character}"), SINGLE_WEIGHT, self.times, [None, None]);
                }
            }
        }
    }

    /// Adds a pair of syllables and, with the pair before it, three syllables.
    fn pair(&mut self, token: Token<'_>) {
        let before = self.last_pair.take();
        let continues = before.as_ref().is_some_and(|(pair, at)| {
            at + 1 == token.position && pair.chars().next_back() == token.text.chars().next()
        });
        if !continues && is_common(token.text) {
            self.run_is_common = true;
        }
        let factor = if self.run_is_common || token.is_particle {
            STOP_FACTOR
        } else {
            1.0
        };
        let name = format!("h{}", token.text);
        self.features
            .add(name, SYLLABLES_WEIGHT * factor, self.times, [Some(token.text), None]);
        if let (true, Some((pair, _)), Some(last)) = (continues, &before, token.text.chars().next_back()) {
            let words = [Some(pair.as_str()), Some(token.text)];
            self.features
                .add(format!("h{pair}{last}"), SYLLABLES_WEIGHT * factor, self.times, words);
        }
        if !continues {
            self.run_is_common = false;
        }
        self.last_pair = Some((token.text.to_owned(), token.position));
    }

    /// Adds the word that ended, and its pair with the one before.
    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        let weight = if is_common(&word) {
            WORD_WEIGHT * STOP_FACTOR
        } else {
            WORD_WEIGHT
        };
        self.features
            .add(format!("w{word}"), weight, self.times, [Some(&word), None]);
        if let Some(last) = &self.last_stem {
            let weight = if is_common(last) || is_common(&word) {
                PAIR_WEIGHT * STOP_FACTOR
            } else {
                PAIR_WEIGHT
            };
            let words = [Some(last.as_str()), Some(word.as_str())];
            self.features.add(format!("p{last} {word}"), weight, self.times, words);
        }
        self.last_stem = Some(word);
    }
}

#[cfg(test)]
mod tests;
