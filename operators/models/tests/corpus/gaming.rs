//! Attacks on the reviewer: sentences of gaming families put into a text.
//!
//! Invariant: the same seed makes the same text.

use std::collections::BTreeMap;

use super::texts::{GamingSentence, LabelledText};

/// A source of numbers for attacks: `SplitMix64`.
#[derive(Clone, Debug)]
pub(crate) struct AttackRandom(u64);

impl AttackRandom {
    pub(crate) fn new(seed: &str) -> Self {
        let hash = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        Self(seed.bytes().fold(0xcbf2_9ce4_8422_2325, hash))
    }

    /// Returns a number below a bound, 0 below none.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mixed = usize::try_from((mixed ^ (mixed >> 31)) >> 1).unwrap_or(0);
        mixed.checked_rem(bound).unwrap_or(0)
    }
}

/// The place of gaming sentences in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttackPlace {
    Begin,
    End,
    Spread,
}

/// Puts sentences into a body.
pub(crate) fn gamed(body: &str, sentences: &[&str], place: AttackPlace, random: &mut AttackRandom) -> String {
    let mut parts = parts(body);
    let count = sentences.len();
    for (number, sentence) in sentences.iter().enumerate() {
        let at = match place {
            AttackPlace::Begin => number,
            AttackPlace::End => parts.len(),
            AttackPlace::Spread => (parts.len() * (number + 1) / (count + 1) + random.below(2)).min(parts.len()),
        };
        parts.insert(at, (*sentence).to_owned());
    }
    parts.join("\n")
}

/// Cuts a body at the ends of its lines and of its sentences, code apart.
fn parts(body: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut is_code = false;
    for line in body.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code || line.starts_with('|') {
            parts.push(line.to_owned());
            continue;
        }
        let mut rest = line;
        while let Some(end) = rest
            .find(". ")
            .map(|at| at + 1)
            .or_else(|| rest.find('。').map(|at| at + '。'.len_utf8()))
        {
            parts.push(rest[..end].to_owned());
            rest = rest[end..].trim_start();
        }
        parts.push(rest.to_owned());
    }
    parts
}

/// Returns a copy of a text for each family, with one passage of it at its place; the kind of a copy is the family.
pub(crate) fn passage_copies(text: &LabelledText, sentences: &[GamingSentence]) -> Vec<LabelledText> {
    let mut families: BTreeMap<&str, Vec<&GamingSentence>> = BTreeMap::new();
    let has_own = sentences.iter().any(|sentence| sentence.language == text.language);
    // Who has no sentences in the language of a text takes English ones.
    let language = if has_own { text.language.as_str() } else { "en" };
    // Sentences without a place are for attackers that choose it.
    let placed = sentences.iter().filter(|sentence| !sentence.place.is_empty());
    for sentence in placed.filter(|sentence| sentence.language == language) {
        families.entry(&sentence.family).or_default().push(sentence);
    }
    let mut random = AttackRandom::new(&text.id);
    let copy = |(family, of): (&str, Vec<&GamingSentence>)| {
        let sentence = of[random.below(of.len())];
        let place = match sentence.place.as_str() {
            "start" => AttackPlace::Begin,
            "middle" | "spread" => AttackPlace::Spread,
            _ => AttackPlace::End,
        };
        let passages = sentence.about(&text.title);
        let passages: Vec<&str> = passages.iter().map(String::as_str).collect();
        let mut copy = text.clone();
        copy.body = gamed(&text.body, &passages, place, &mut random);
        family.clone_into(&mut copy.kind);
        copy
    };
    families.into_iter().map(copy).collect()
}
