//! Tokens of a text: the pieces of the vocabulary whose scores have the largest sum (`SentencePiece`, unigram).
//!
//! Invariant: a text has the tokens that the published implementation gives it, and work is linear in the text.

use crate::EncoderError;
use crate::file::{ModelFile, words};
use crate::normal::{CharacterMap, NormalText};

/// The number of pieces of the vocabulary.
pub(crate) const VOCABULARY: usize = 128_000;
/// The token of a character that no piece has.
const UNKNOWN: u32 = 0;
/// The score of an unknown character, below the least of a piece.
const UNKNOWN_SCORE: f32 = 10.0;

/// The tokens of a text, at least one.
#[derive(Debug)]
pub(crate) struct Tokens {
    /// Ids of the pieces.
    pub(crate) ids: Vec<u32>,
    /// For each token the place in the text where it begins, or `None` if the text cannot be cut there. Empty for a
    /// text of which nothing is left, whose token stands for nothing in it.
    pub(crate) starts: Vec<Option<usize>>,
}

/// A vocabulary with its scores and the normal form of its texts.
#[derive(Debug)]
pub(crate) struct Tokeniser {
    map: CharacterMap,
    pieces: PieceTrie,
    scores: Vec<f32>,
    unknown_score: f64,
}

/// The best way to a place of a normal form: the sum of the scores, and the last token.
#[derive(Clone, Copy, Debug)]
struct BestPath {
    score: f64,
    start: usize,
    id: u32,
}

impl Tokeniser {
    pub(crate) fn of(file: &ModelFile) -> Result<Self, EncoderError> {
        Self::read(&file.vocabulary).ok_or(EncoderError::Layout { part: "vocabulary" })
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (lengths, mut rest) = bytes.split_at_checked(VOCABULARY)?;
        let mut pieces = Vec::with_capacity(VOCABULARY);
        for length in lengths {
            let (piece, after) = rest.split_at_checked(usize::from(*length))?;
            pieces.push(piece);
            rest = after;
        }
        let (scores, map) = rest.split_at_checked(VOCABULARY * 4)?;
        let scores = words(scores, f32::from_le_bytes);
        let least = scores.iter().copied().fold(0.0, f32::min);
        Some(Self {
            map: CharacterMap::of(map)?,
            pieces: PieceTrie::of(&pieces)?,
            scores,
            unknown_score: f64::from(least) - f64::from(UNKNOWN_SCORE),
        })
    }

    pub(crate) fn tokens(&self, text: &str) -> Tokens {
        let normal = self.map.normal(text);
        if normal.bytes.is_empty() {
            return Tokens {
                ids: vec![UNKNOWN],
                starts: Vec::new(),
            };
        }
        let paths = self.paths(&normal.bytes);
        let mut tokens = Tokens {
            ids: Vec::new(),
            starts: Vec::new(),
        };
        let mut end = normal.bytes.len();
        while let Some(path) = paths.get(end).filter(|path| path.start < end) {
            end = path.start;
            tokens.ids.push(path.id);
            tokens.starts.push(place(&normal, end));
        }
        tokens.ids.reverse();
        tokens.starts.reverse();
        tokens
    }

    /// Finds the best path to each place of a normal form, from left to right.
    fn paths(&self, normal: &[u8]) -> Vec<BestPath> {
        let unreached = BestPath {
            score: f64::NEG_INFINITY,
            start: 0,
            id: UNKNOWN,
        };
        let mut paths = vec![unreached; normal.len() + 1];
        paths[0].score = 0.0;
        let mut start = 0;
        while let Some(first) = normal.get(start) {
            let base = paths[start].score;
            let next = start + character_bytes(*first);
            let mut offer = |end: usize, score: f64, id: u32| {
                if let Some(path) = paths.get_mut(end)
                    // On a tie the earlier start stays, as in the published implementation.
                    && score > path.score
                {
                    *path = BestPath { score, start, id };
                }
            };
            let mut is_known = false;
            self.pieces.prefixes(&normal[start..], |bytes, id, place| {
                let score = self.scores.get(place).copied().unwrap_or_default();
                is_known |= start + bytes == next;
                offer(start + bytes, base + f64::from(score), id);
            });
            if !is_known {
                offer(next, base + self.unknown_score, UNKNOWN);
            }
            start = next;
        }
        paths
    }
}

/// Returns the bytes of the character that begins with `first`.
const fn character_bytes(first: u8) -> usize {
    match first {
        0..0xC0 => 1,
        0xC0..0xE0 => 2,
        0xE0..0xF0 => 3,
        0xF0.. => 4,
    }
}

/// Returns the place in the text of a place in its normal form, or `None` inside of what replaces a character.
fn place(normal: &NormalText, at: usize) -> Option<usize> {
    let origin = normal.origins.get(at)?;
    let before = at.checked_sub(1).and_then(|before| normal.origins.get(before));
    // The sign before the first word belongs to the same character as the word.
    let begins = before.is_none_or(|before| before != origin);
    begins.then(|| usize::try_from(*origin).unwrap_or(usize::MAX))
}

/// The pieces by their bytes. The children of a node stand together, in order, so a node needs the place of the first
/// only.
#[derive(Debug)]
struct PieceTrie {
    /// For each node its first child; one more at the end.
    children: Vec<u32>,
    labels: Vec<u8>,
    /// For each node the id of its piece, or [`NO_PIECE`].
    ids: Vec<u32>,
}

const NO_PIECE: u32 = u32::MAX;

impl PieceTrie {
    fn of(pieces: &[&[u8]]) -> Option<Self> {
        let mut sorted: Vec<(&[u8], u32)> = pieces.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        let mut trie = Self {
            children: Vec::new(),
            labels: vec![0],
            ids: Vec::new(),
        };
        // Level by level: each entry is a node with the pieces below it.
        let mut level = vec![sorted.as_slice()];
        let mut depth = 0;
        while !level.is_empty() {
            let mut next = Vec::new();
            for mut below in level {
                trie.children.push(u32::try_from(trie.labels.len()).ok()?);
                let own = below.split_first().filter(|((piece, _), _)| piece.len() == depth);
                trie.ids.push(own.map_or(NO_PIECE, |((_, id), _)| *id));
                if let Some((_, rest)) = own {
                    below = rest;
                }
                for group in below.chunk_by(|(one, _), (other, _)| one.get(depth) == other.get(depth)) {
                    let (piece, _) = group.first()?;
                    trie.labels.push(*piece.get(depth)?);
                    next.push(group);
                }
            }
            level = next;
            depth += 1;
        }
        trie.children.push(u32::try_from(trie.labels.len()).ok()?);
        Some(trie)
    }

    /// Calls `found` with bytes, id and place in the vocabulary of each piece that `text` begins with, short ones
    /// first.
    fn prefixes(&self, text: &[u8], mut found: impl FnMut(usize, u32, usize)) {
        let index = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let mut node = 0;
        for (at, byte) in text.iter().enumerate() {
            let (Some(first), Some(end)) = (self.children.get(node), self.children.get(node + 1)) else {
                return;
            };
            let (first, end) = (index(*first), index(*end));
            let Some(child) = self
                .labels
                .get(first..end)
                .and_then(|labels| labels.binary_search(byte).ok())
            else {
                return;
            };
            node = first + child;
            match self.ids.get(node) {
                Some(id) if *id != NO_PIECE => found(at + 1, *id, index(*id)),
                _ => {}
            }
        }
    }
}
