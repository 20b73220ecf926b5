//! The facts of a text: its figures and the names of things, by which a copy is known in other words and other languages.
//!
//! Invariants:
//! - The facts depend on the text only, and cost time linear in it.
//! - A fact is a hash. No text can be read back from it but by trying.

use std::collections::{HashMap, HashSet};

use unicode_normalization::UnicodeNormalization;
use xxhash_rust::xxh3::xxh3_64;

use super::normal::is_east_asian;

/// The most facts of a text that are kept. A text of the longest size with a figure in every other word has more.
const MAX_FACTS: usize = 4_096;
/// The weight from which a fact tells texts apart.
pub const RARE_FACT_WEIGHT: u8 = 2;
/// Characters from which a piece ends with its line or sentence. A syllable or ideograph counts as two.
const PIECE_CHARACTERS: usize = 400;
/// Characters at which a piece ends anywhere.
const MAX_PIECE_CHARACTERS: usize = 800;
/// The most bytes of a token that is read as one fact.
const MAX_FACT_BYTES: usize = 80;

/// A figure or a name of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextFact {
    /// Hash of its normal form.
    pub hash: u32,
    /// The piece of the text that it stands in, from 0: some sentences.
    pub piece: u16,
    /// How much it tells: 1 for what many texts have by chance, such as a round number, to 4.
    pub weight: u8,
}

/// Bytes of a stored fact.
const FACT_BYTES: usize = 7;

/// Returns facts as bytes: hash, piece and weight of each, little-endian.
pub(super) fn encode_facts(facts: &[TextFact]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(facts.len() * FACT_BYTES);
    for fact in facts {
        bytes.extend_from_slice(&fact.hash.to_le_bytes());
        bytes.extend_from_slice(&fact.piece.to_le_bytes());
        bytes.push(fact.weight);
    }
    bytes
}

/// Reads what [`encode_facts`] wrote; `None` if it is something else.
pub(super) fn decode_facts(bytes: &[u8]) -> Option<Vec<TextFact>> {
    let (facts, rest) = bytes.as_chunks::<FACT_BYTES>();
    rest.is_empty().then(|| {
        let fact = |[a, b, c, d, e, f, weight]: &[u8; FACT_BYTES]| TextFact {
            hash: u32::from_le_bytes([*a, *b, *c, *d]),
            piece: u16::from_le_bytes([*e, *f]),
            weight: *weight,
        };
        facts.iter().map(fact).collect()
    })
}

/// Returns the facts of a text by hash and piece, each once in a piece.
pub fn text_facts(text: &str) -> Vec<TextFact> {
    let mut facts = Vec::new();
    visit_facts(text, |fact, _| facts.push(fact));
    facts.sort_unstable();
    facts.dedup();
    if facts.len() > MAX_FACTS {
        // The weightiest are kept, and of equal ones those with the least hashes, whatever stands first in the text.
        facts.sort_unstable_by_key(|fact| (std::cmp::Reverse(fact.weight), fact.hash, fact.piece));
        facts.truncate(MAX_FACTS);
        facts.sort_unstable();
    }
    facts
}

/// Returns the facts of a text as they are written in it, each once, in order, with their hashes and weights.
pub fn written_facts(text: &str) -> Vec<(String, TextFact)> {
    let mut seen = HashSet::new();
    let mut written = Vec::new();
    visit_facts(text, |fact, token| {
        if seen.insert(fact.hash) {
            written.push((token.to_owned(), fact));
        }
    });
    written
}

/// Calls `visit` with every fact and the token that it is.
fn visit_facts(text: &str, mut visit: impl FnMut(TextFact, &str)) {
    let mut token = String::new();
    let (mut piece, mut characters) = (0_u16, 0_usize);
    let mut letters = text.nfkc().peekable();
    while let Some(character) = letters.next() {
        characters += if is_east_asian(character) { 2 } else { 1 };
        let digit = digit_of(character);
        let is_part = digit.is_some()
            || (character.is_alphanumeric() && !is_east_asian(character))
            || matches!(character, '_' | '-')
            || (matches!(character, '.' | ',' | ':' | '/')
                && letters.peek().is_some_and(|next| next.is_alphanumeric()));
        if is_part {
            token.push(digit.unwrap_or(character));
        } else {
            end_token(&mut token, piece, &mut visit);
            let is_end = match character {
                '\n' | '。' | '！' | '？' => true,
                '.' | '!' | '?' => letters.peek().is_none_or(|next| next.is_whitespace()),
                _ => false,
            };
            if (is_end && characters >= PIECE_CHARACTERS) || characters >= MAX_PIECE_CHARACTERS {
                piece = piece.saturating_add(1);
                characters = 0;
            }
        }
    }
    end_token(&mut token, piece, &mut visit);
}

/// Reads a token as facts and empties it. One of several parts, such as `a=1/b`, is read part by part where it is no path.
fn end_token(token: &mut String, piece: u16, visit: &mut impl FnMut(TextFact, &str)) {
    {
        let whole = token.trim_matches(['.', ',', ':', '/']);
        let is_option = whole.starts_with("--");
        let trimmed = whole.trim_matches('-');
        if !trimmed.is_empty() {
            let mut read = |part: &str| {
                if let Some((form, weight)) = normal_fact(part, is_option) {
                    let [a, b, c, d, ..] = xxh3_64(form.as_bytes()).to_le_bytes();
                    let hash = u32::from_le_bytes([a, b, c, d]);
                    visit(TextFact { hash, piece, weight }, part);
                }
            };
            // A colon or slash joins figures of their own: `12:30`, `9/10`, `host:5432`.
            if trimmed.len() <= MAX_FACT_BYTES && !trimmed.contains(['/', ':']) {
                read(trimmed);
            } else {
                trimmed
                    .split(['/', ':'])
                    .map(|part| part.trim_matches(['-', '.', ',']))
                    .filter(|part| !part.is_empty() && part.len() <= MAX_FACT_BYTES)
                    .for_each(read);
            }
        }
    }
    token.clear();
}

/// Returns the normal form and the weight of a token, or `None` if it is no fact.
fn normal_fact(token: &str, is_option: bool) -> Option<(String, u8)> {
    let is_number_first = token.starts_with(|c: char| c.is_ascii_digit());
    if is_number_first {
        let end = token
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',')))
            .unwrap_or(token.len());
        let (number, unit) = token.split_at(end);
        // `48ms` and `12.5GB` are the number; `3f9a2c` and `2026-10-14` are names.
        let is_unit = unit.len() <= 4 && unit.chars().all(char::is_alphabetic);
        if is_unit {
            return normal_number(number);
        }
        return Some((token.to_lowercase(), 4));
    }
    let has_digit = token.contains(|c: char| c.is_ascii_digit());
    let inner_upper = token.chars().skip(1).any(char::is_uppercase) && token.contains(|c: char| c.is_lowercase());
    let is_name = token.contains('_') || inner_upper || is_option || (token.contains('.') && token.len() >= 5);
    if !(has_digit || is_name) {
        return None;
    }
    let lower = token.to_lowercase();
    let weight = match lower.chars().count() {
        // `p99`, `v2`, `x86`: many texts have them.
        0..=3 => 1,
        4..=5 => 2,
        _ => 4,
    };
    Some((lower, weight))
}

/// Returns the value of a number and its weight, or `None` of a single digit.
fn normal_number(number: &str) -> Option<(String, u8)> {
    let points = number.matches(['.', ',']).count();
    let groups_of_three = |sign: char| number.split(sign).skip(1).all(|group| group.len() == 3);
    let (whole, fraction) = match (number.find('.'), number.find(',')) {
        (None, None) => (number.to_owned(), ""),
        // The last of two signs is the decimal one.
        (Some(point), Some(comma)) => {
            let last = number.rfind(['.', ','])?;
            let grouping = if point < comma { '.' } else { ',' };
            (number[..last].replace(grouping, ""), &number[last + 1..])
        }
        (None, Some(_)) if groups_of_three(',') => (number.replace(',', ""), ""),
        (Some(_), None) if points >= 2 => return Some((number.to_owned(), 4)), // a version
        _ => number
            .split_once(['.', ','])
            .map(|(whole, fraction)| (whole.to_owned(), fraction))?,
    };
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let digits = if fraction.is_empty() {
        whole.trim_end_matches('0').len()
    } else if whole.is_empty() {
        fraction.trim_start_matches('0').len()
    } else {
        whole.len() + fraction.len()
    };
    let is_year = fraction.is_empty() && whole.len() == 4 && (whole.starts_with("19") || whole.starts_with("20"));
    let weight = match digits {
        0 | 1 if whole.len() < 2 && fraction.is_empty() => return None,
        0 | 1 => 1,
        _ if is_year => 1,
        2 => 2,
        _ => 4,
    };
    let form = if fraction.is_empty() {
        whole.to_owned()
    } else {
        format!("{whole}.{fraction}")
    };
    Some((form, weight))
}

/// Returns the ASCII digit of a decimal digit of another script, of those that numbers are written in.
fn digit_of(character: char) -> Option<char> {
    const ZEROS: [u32; 4] = [0x30, 0x660, 0x6F0, 0x966];
    let code = u32::from(character);
    let zero = ZEROS.into_iter().find(|zero| (*zero..*zero + 10).contains(&code))?;
    char::from_digit(code - zero, 10)
}

/// What two texts have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SharedFacts {
    /// Rare facts that both have, each counted once.
    pub count: usize,
    /// True if they make one text a copy of the other, should the meanings be alike too: there are enough of them, and they
    /// are most of the rare facts of the new text, or of the known one and stand close together in both.
    pub is_strong: bool,
    /// True if they are most of the rare facts of the new text, be they few, or of a part of it.
    pub is_most: bool,
}

/// Rare facts that a copy has in common with its original.
const MIN_STRONG_FACTS: usize = 5;
/// Rare facts that make a text near if they are most of its own.
const MIN_NEAR_FACTS: usize = 3;
/// Their share of the weight of the rare facts, in percent. Texts of one template have up to 70 in common.
const MOST_PERCENT: u32 = 75;

/// Compares the facts of a new text, by hash, with those of a published one. `is_rare` says if a fact tells texts apart.
pub(super) fn compare_facts(new: &[TextFact], known: &[TextFact], is_rare: impl Fn(TextFact) -> bool) -> SharedFacts {
    let mut known_pieces: HashMap<u32, Vec<u16>> = HashMap::new();
    for fact in known {
        known_pieces.entry(fact.hash).or_default().push(fact.piece);
    }
    let rare: Vec<TextFact> = new.iter().copied().filter(|fact| is_rare(*fact)).collect();
    let (mut all, mut shared) = (FactSum::default(), FactSum::default());
    // Of each window of two pieces of the new text: its rare facts, and by window of the known text those of both.
    let mut windows: HashMap<u16, FactSum> = HashMap::new();
    let mut pairs: HashMap<(u16, u16), FactSum> = HashMap::new();
    for fact in rare {
        let in_known = known_pieces.get(&fact.hash);
        all.add(fact);
        if in_known.is_some() {
            shared.add(fact);
        }
        for window in windows_of(fact.piece) {
            windows.entry(window).or_default().add(fact);
            // A fact that stands everywhere in the known text is counted in some of its pieces.
            for piece in in_known.into_iter().flatten().take(MAX_PIECES_OF_FACT) {
                for known_window in windows_of(*piece) {
                    pairs.entry((window, known_window)).or_default().add(fact);
                }
            }
        }
    }
    let mut all_known = FactSum::default();
    for fact in known.iter().copied().filter(|fact| is_rare(*fact)) {
        all_known.add(fact);
    }
    let is_close = pairs.iter().any(|((window, _), common)| {
        let whole = windows.get(window).copied().unwrap_or_default();
        common.count >= MIN_STRONG_FACTS && common.is_most_of(whole)
    });
    // A whole text that stands among figures of others is most of itself.
    let is_contained = pairs
        .values()
        .any(|common| common.count >= MIN_STRONG_FACTS && common.is_most_of(all_known));
    let is_most = shared.is_most_of(all);
    SharedFacts {
        count: shared.count,
        is_strong: is_contained || (is_most && shared.count >= MIN_STRONG_FACTS),
        // A part that two reports of one template have in common is close too.
        is_most: is_close || (is_most && shared.count >= MIN_NEAR_FACTS),
    }
}

/// The pieces of the known text in which a fact is looked for.
const MAX_PIECES_OF_FACT: usize = 4;

/// Returns the first pieces of the windows of two neighbouring pieces that a piece is in.
fn windows_of(piece: u16) -> impl Iterator<Item = u16> {
    piece.checked_sub(1).into_iter().chain([piece])
}

/// Facts that are counted, each once, and their weight.
#[derive(Clone, Copy, Debug, Default)]
struct FactSum {
    count: usize,
    weight: u32,
    /// The last fact: facts come by hash, so one that stands in two pieces comes twice in a row.
    last: Option<u32>,
}

impl FactSum {
    fn add(&mut self, fact: TextFact) {
        if self.last != Some(fact.hash) {
            self.count += 1;
            self.weight += u32::from(fact.weight);
            self.last = Some(fact.hash);
        }
    }

    fn is_most_of(self, whole: Self) -> bool {
        self.weight * 100 >= whole.weight * MOST_PERCENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(text: &str) -> Vec<String> {
        written_facts(text).into_iter().map(|(written, _)| written).collect()
    }

    fn is_rare(fact: TextFact) -> bool {
        fact.weight >= RARE_FACT_WEIGHT
    }

    const ENGLISH: &str = "On PostgreSQL 15.4 the nightly export of orders_2026 took 812 ms; with work_mem at 64MB it took \
                           97 ms, and 1,204,331 rows were read. Exit code 137 was gone.";
    const KOREAN: &str = "PostgreSQL 15.4에서 orders_2026의 야간 내보내기는 812ms가 걸렸다. work_mem을 64MB로 올리자 97ms가 되었고 \
                          1204331행을 읽었다. 종료 코드 137은 사라졌다.";

    #[test]
    fn figures_and_names_are_facts_and_words_are_none() {
        assert_eq!(
            forms(ENGLISH),
            [
                "PostgreSQL",
                "15.4",
                "orders_2026",
                "812",
                "work_mem",
                "64MB",
                "97",
                "1,204,331",
                "137"
            ]
        );
        assert_eq!(forms("A text of words, in 3 parts: one-off, re-read."), [] as [&str; 0]);
        assert_eq!(
            forms("--no-verify 12:30 /var/log/app.log"),
            ["no-verify", "12", "30", "app.log"]
        );
    }

    #[test]
    fn a_figure_is_one_fact_however_it_is_written() {
        for (one, other) in [
            ("1,204,331", "1204331"),
            ("1.204.331,50", "1,204,331.5"),
            ("12,5 %", "12.50 %"),
            ("48ms", "48 ms"),
            ("٤٨", "48"),
            ("４８ms", "48"),
        ] {
            let hashes = |text| text_facts(text).into_iter().map(|fact| fact.hash).collect::<Vec<_>>();
            assert_eq!(hashes(one), hashes(other), "{one} {other}");
            assert_eq!(hashes(one).len(), 1, "{one}");
        }
    }

    #[test]
    fn a_translation_shares_its_facts_and_a_text_of_the_same_form_does_not() {
        let shared = compare_facts(&text_facts(KOREAN), &text_facts(ENGLISH), is_rare);
        assert!(shared.is_strong && shared.count >= 8, "{shared:?}");
        let other = ENGLISH
            .replace("812", "455")
            .replace("97", "31")
            .replace("1,204,331", "88,120");
        let other = other
            .replace("15.4", "16.1")
            .replace("orders_2026", "visits_2025")
            .replace("137", "2");
        let shared = compare_facts(&text_facts(&other), &text_facts(ENGLISH), is_rare);
        assert!(!shared.is_strong, "{shared:?}");
    }

    #[test]
    fn a_copy_in_a_long_text_of_other_figures_is_found_by_its_place() {
        let filler = |seed: u32| -> String {
            let line = |at: u32| {
                format!(
                    "Part {} of the report has {} rows and {} pages.\n",
                    at + 310,
                    seed * 977 + at * 131,
                    at * 53 + seed
                )
            };
            (0..40).map(line).collect()
        };
        let padded = format!("{}{KOREAN}\n{}", filler(3), filler(7));
        let shared = compare_facts(&text_facts(&padded), &text_facts(ENGLISH), is_rare);
        assert!(shared.is_strong, "{shared:?}");
    }

    #[test]
    fn facts_survive_being_stored() {
        let facts = text_facts(ENGLISH);
        assert_eq!(decode_facts(&encode_facts(&facts)), Some(facts));
        assert_eq!(decode_facts(&[1, 2, 3]), None);
    }
}
