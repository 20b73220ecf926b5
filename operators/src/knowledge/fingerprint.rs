//! The print of a text: the hashes by which copies of it are recognised.
//!
//! Invariant: the print depends on the text only. Two texts with one normal form have one hash and one signature.

use std::collections::BTreeSet;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::facts::{TextFact, text_facts};
use super::normal::{is_east_asian, normalised};

/// The number of bins of a signature.
pub const SIGNATURE: usize = 256;
/// The characters of a shingle.
const SHINGLE: usize = 5;
/// The characters of a shingle that begins with Hangul, Han or Kana.
const EAST_ASIAN_SHINGLE: usize = 3;
/// The least characters of a paragraph that is compared.
const PARAGRAPH: usize = 120;
/// The same where half of them are Hangul, Han or Kana.
const EAST_ASIAN_PARAGRAPH: usize = 50;
/// The most details of a text that are kept.
const DETAILS: usize = 256;

/// A signature: one-permutation `MinHash` with 256 bins of 32 bits.
pub type Signature = Box<[u32; SIGNATURE]>;

/// The hashes of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// BLAKE3 of the normal form.
    pub text_hash: [u8; 32],
    /// Signature of the shingles of the normal form.
    pub signature: Signature,
    /// Number of shingles of the normal form.
    pub shingles: usize,
    /// Hash and characters of each long paragraph.
    pub paragraphs: Vec<(u64, u32)>,
    /// Characters of the normal form.
    pub characters: u32,
    /// Hashes of the words with a digit or an underscore: quantities and identifiers. Sorted, at most 256.
    pub details: Vec<u32>,
    /// Its figures and names with their places.
    pub facts: Vec<TextFact>,
}

impl Fingerprint {
    /// Computes the print of the body of a unit.
    pub fn of(body: &str) -> Self {
        let normal = normalised(body);
        let (signature, shingles) = signature(&normal);
        Self {
            text_hash: *blake3::hash(normal.as_bytes()).as_bytes(),
            signature,
            shingles,
            paragraphs: paragraphs(body),
            characters: count(normal.chars().count()),
            details: details(body),
            facts: text_facts(body),
        }
    }
}

fn count(characters: usize) -> u32 {
    u32::try_from(characters).unwrap_or(u32::MAX)
}

/// Returns the signature of a normal form and the number of its shingles.
fn signature(normal: &str) -> (Signature, usize) {
    let mut bins = [None::<u32>; SIGNATURE];
    let starts: Vec<usize> = normal.char_indices().map(|(at, _)| at).chain([normal.len()]).collect();
    let characters = starts.len() - 1;
    let mut shingles = 0;
    for (index, character) in normal.chars().enumerate() {
        let length = if is_east_asian(character) {
            EAST_ASIAN_SHINGLE
        } else {
            SHINGLE
        };
        // A text that is shorter than a shingle is one.
        let end = index + length;
        if end > characters && shingles > 0 {
            continue;
        }
        shingles += 1;
        // The first byte of the hash chooses the bin and the next four are the value, so the two are
        // independent.
        let hash = xxh3_64_with_seed(&normal.as_bytes()[starts[index]..starts[end.min(characters)]], 1);
        let [bin, a, b, c, d, ..] = hash.to_be_bytes();
        let value = u32::from_be_bytes([a, b, c, d]);
        let least = &mut bins[usize::from(bin)];
        *least = Some(least.map_or(value, |known| known.min(value)));
    }
    (densified(&bins), shingles)
}

/// Fills each empty bin from a bin that is not, chosen by a hash of the empty one (optimal densification).
fn densified(bins: &[Option<u32>; SIGNATURE]) -> Signature {
    let mut full = Box::new([0; SIGNATURE]);
    if bins.iter().all(Option::is_none) {
        return full;
    }
    for (index, value) in full.iter_mut().enumerate() {
        let mut found = bins[index];
        let mut attempt = 0_u32;
        while found.is_none() {
            let mut key = [0; 8];
            // By the bin and the try alone: two texts with the same empty bin must borrow from the same
            // full one, or their signatures would differ where the texts do not.
            key[..4].copy_from_slice(&count(index).to_le_bytes());
            key[4..].copy_from_slice(&attempt.to_le_bytes());
            let [.., other] = xxh3_64(&key).to_be_bytes();
            found = bins[usize::from(other)];
            attempt += 1;
        }
        *value = found.unwrap_or_default();
    }
    full
}

/// Returns the hash and the length of the normal form of each long paragraph. Empty lines part paragraphs, and a code
/// block is one.
fn paragraphs(body: &str) -> Vec<(u64, u32)> {
    let mut found = Vec::new();
    let mut current = String::new();
    let mut fenced = false;
    let mut end = |current: &mut String| {
        let normal = normalised(current);
        let characters = normal.chars().count();
        let east_asian = normal.chars().filter(|character| is_east_asian(*character)).count();
        // A syllable or ideograph says about as much as two or three letters.
        let least = if east_asian * 2 >= characters {
            EAST_ASIAN_PARAGRAPH
        } else {
            PARAGRAPH
        };
        if characters >= least {
            found.push((xxh3_64(normal.as_bytes()), count(characters)));
        }
        current.clear();
    };
    for line in body.lines() {
        let fence = line.trim_start().starts_with("```");
        if (fence || line.trim().is_empty()) && !fenced {
            end(&mut current);
        }
        current.push_str(line);
        current.push('\n');
        if fence {
            if fenced {
                end(&mut current);
            }
            fenced = !fenced;
        }
    }
    end(&mut current);
    found
}

/// Returns the hashes of the words with a digit or an underscore.
fn details(body: &str) -> Vec<u32> {
    let separators = |character: char| !(character.is_alphanumeric() || matches!(character, '_' | '.' | '-' | '%'));
    let words = body.split(separators).map(|word| word.trim_matches(['.', '-']));
    let told = words.filter(|word| word.contains(|c: char| c.is_ascii_digit() || c == '_'));
    let hashes: BTreeSet<u32> = told
        .map(|word| {
            let [a, b, c, d, ..] = xxh3_64(word.to_lowercase().as_bytes()).to_le_bytes();
            u32::from_le_bytes([a, b, c, d])
        })
        .collect();
    hashes.into_iter().take(DETAILS).collect()
}

/// A vector with one signed byte for each dimension and one scale for all.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantisedVector {
    /// Factor of every byte.
    pub scale: f32,
    /// One byte for each dimension.
    pub bytes: Vec<i8>,
}

impl QuantisedVector {
    /// Quantises the vectors of a text.
    pub fn of_each(vectors: &[Vec<f32>]) -> Vec<Self> {
        vectors.iter().map(|vector| Self::of(vector)).collect()
    }

    /// Returns the vector of a text to which a model gives none: its cosine with each other vector is 0. The text counts as
    /// one with vectors, so nobody tries again to make some.
    pub fn near_to_nothing(dimensions: usize) -> Self {
        Self {
            scale: f32::MIN_POSITIVE,
            bytes: vec![0; dimensions],
        }
    }

    /// Quantises a vector to whole steps from -127 to 127.
    pub fn of(vector: &[f32]) -> Self {
        let most = vector.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        let scale = if most > 0.0 { most / 127.0 } else { 0.0 };
        let byte = |value: &f32| {
            let steps = if scale > 0.0 { (value / scale).round() } else { 0.0 };
            #[expect(clippy::cast_possible_truncation, reason = "the value is whole and from -127 to 127")]
            let byte = steps.clamp(-127.0, 127.0) as i8;
            byte
        };
        Self {
            scale,
            bytes: vector.iter().map(byte).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::ChunkVectors;
    use super::*;

    /// Words of a fixed sequence.
    fn words(seed: u64, count: u64) -> String {
        let word = |at: u64| format!("{:x}", xxh3_64_with_seed(&at.to_le_bytes(), seed) >> 40);
        (0..count).map(word).collect::<Vec<_>>().join(" ")
    }

    fn share(one: &Fingerprint, other: &Fingerprint) -> f64 {
        let pairs = one.signature.iter().zip(other.signature.iter());
        f64::from(count(pairs.filter(|(one, other)| one == other).count())) / 256.0
    }

    fn jaccard(one: &str, other: &str) -> f64 {
        let set = |text: &str| {
            let all: Vec<char> = normalised(text).chars().collect();
            all.windows(5).map(<[char]>::to_vec).collect::<HashSet<_>>()
        };
        let (one, other) = (set(one), set(other));
        let common = count(one.intersection(&other).count());
        f64::from(common) / f64::from(count(one.union(&other).count()))
    }

    #[test]
    fn the_estimate_is_within_four_sigma_of_the_share_of_common_shingles() {
        for kept in [20, 50, 80, 90, 95, 99] {
            let one = words(1, 400);
            let other = format!("{} {}", words(1, 4 * kept), words(2, 400 - 4 * kept));
            let (true_share, estimate) = (
                jaccard(&one, &other),
                share(&Fingerprint::of(&one), &Fingerprint::of(&other)),
            );
            let sigma = (true_share * (1.0 - true_share) / 256.0).sqrt();
            assert!(
                (true_share - estimate).abs() <= 4.0 * sigma + 0.01,
                "{true_share} {estimate}"
            );
        }
    }

    #[test]
    fn one_normal_form_has_one_print() {
        let (one, other) = (Fingerprint::of("Hello,  World"), Fingerprint::of("hello world!"));
        assert_eq!((one.text_hash, one.signature), (other.text_hash, other.signature));
        assert_eq!(Fingerprint::of("a").shingles, 1);
    }

    #[test]
    fn paragraphs_are_parted_at_empty_lines_and_a_code_block_is_one() {
        let long = words(3, 40);
        let korean = "가나다라마바사아자차".repeat(6);
        let code = format!("```\n{}\n\n{}\n```", words(4, 20), words(5, 20));
        let body = format!("{long}\n\nshort\n\n{korean}\n{code}\n{long}");
        let found = paragraphs(&body);
        assert_eq!(found.len(), 4, "{found:?}");
        assert_eq!(found[0], found[3]);
        assert!(paragraphs(&"가".repeat(49)).is_empty());
    }

    #[test]
    fn a_quantised_cosine_is_close() {
        let vector = |seed: u64| -> Vec<f32> {
            let value = |at: u64| f32::from(xxh3_64_with_seed(&at.to_le_bytes(), seed).to_le_bytes()[0]) - 127.5;
            (0..512).map(value).collect()
        };
        let exact = |one: &[f32], other: &[f32]| {
            let dot = |one: &[f32], other: &[f32]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f32>();
            dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
        };
        for seed in 0..20_u8 {
            let (one, mut other) = (vector(u64::from(seed)), vector(u64::from(seed) + 100));
            other
                .iter_mut()
                .zip(&one)
                .for_each(|(other, one)| *other += one * 0.2 * f32::from(seed));
            let length = |vector: &[f32]| vector.iter().map(|value| value * value).sum::<f32>().sqrt();
            let whole = |vector: &[f32]| vector.iter().map(|value| value / length(vector)).collect::<Vec<_>>();
            let mut vectors = ChunkVectors::new(512);
            assert!(vectors.add(0, &[QuantisedVector::of(&whole(&one))]));
            let quantised = vectors.best_of_rows(&QuantisedVector::of(&whole(&other)), 0..1);
            assert!((quantised - exact(&one, &other)).abs() <= 0.005);
        }
    }
}
