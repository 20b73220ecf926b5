//! Context words: the words near a number, or in the name of its field, that tell its kind.
//!
//! Invariant: of two words before a number the nearer one counts, so `card 12, order 4…` is an order. A word for a
//! thing counts only if nothing but signs and words such as `no` stands between it and the number. The same holds for a
//! word for a phone that has other meanings; elsewhere such a word is [`ContextFlags::LOOSE`].

use std::cell::LazyCell;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use self::words::{ENDINGS, LINKS, WORDS};

mod words;

/// A set of context flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ContextFlags(u32);

impl ContextFlags {
    pub(super) const NONE: Self = Self(0);
    /// The number is an order, a part, a product, a hash or a count: anything but a person's number.
    pub(super) const THING: Self = Self(1 | Self::ID.0);
    pub(super) const PHONE: Self = Self(1 << 1);
    pub(super) const CARD: Self = Self(1 << 2);
    pub(super) const EMAIL: Self = Self(1 << 3);
    pub(super) const KR_RESIDENT: Self = Self(1 << 4);
    pub(super) const US_SSN: Self = Self(1 << 5);
    pub(super) const UK_NINO: Self = Self(1 << 6);
    pub(super) const ES_DNI: Self = Self(1 << 7);
    pub(super) const BR_CPF: Self = Self(1 << 8);
    pub(super) const IN_AADHAAR: Self = Self(1 << 9);
    pub(super) const CN_RESIDENT: Self = Self(1 << 10);
    pub(super) const FR_NIR: Self = Self(1 << 11);
    pub(super) const PL_PESEL: Self = Self(1 << 12);
    pub(super) const CA_SIN: Self = Self(1 << 13);
    pub(super) const JP_MY_NUMBER: Self = Self(1 << 14);
    pub(super) const SE_PERSON: Self = Self(1 << 15);
    /// The number is an id. It counts as a thing unless it has the form of a person's number.
    pub(super) const ID: Self = Self(1 << 16);
    /// A word for a phone that has other meanings too, as in `call for papers`.
    pub(super) const LOOSE: Self = Self(1 << 17);
    /// The Korean word for a text message, and for a character.
    pub(super) const TEXTED: Self = Self(1 << 18);
    /// The field names a count of a loose word, as in `mobile_users`, so its integers are counts.
    pub(super) const COUNTED: Self = Self(1 << 19);

    /// The field names the numbers or codes of something that no other flag tells, as in `lot_number`.
    pub(super) const CODE: Self = Self(1 << 20);

    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns true if all flags of `other` are set.
    pub(super) const fn has_all(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns true if the words name a person's number, so that a bare integer may be one.
    pub(super) const fn names_a_number(self) -> bool {
        let other = Self::THING.0 | Self::EMAIL.0 | Self::LOOSE.0 | Self::TEXTED.0 | Self::COUNTED.0 | Self::CODE.0;
        let other = if self.has(Self::COUNTED) {
            other | Self::PHONE.0
        } else {
            other
        };
        self.0 & !other != 0
    }

    /// Returns the flags of a field's name without those that do not fit an integer of this magnitude: it is too small,
    /// too round, or more likely a time.
    pub(super) const fn for_integer(self, magnitude: u64) -> Self {
        const LEAST: u64 = 100_000_000;
        // The limit is higher here, because counts often begin with 1 or 2, and nine-digit
        // phone numbers without their zero rarely do.
        const LEAST_LOOSE: u64 = 300_000_000;
        let phone = if self.has(Self::LOOSE) {
            // Seconds or milliseconds since 1970 in the years 2004 to 2033, and the populations
            // of India and China.
            let time = matches!(magnitude, 1_100_000_000..2_000_000_000 | 1_100_000_000_000..2_000_000_000_000);
            magnitude >= LEAST_LOOSE && !time && !magnitude.is_multiple_of(1_000) && !self.has(Self::COUNTED)
        } else {
            magnitude >= LEAST
        };
        if phone {
            self
        } else {
            Self(self.0 & !(Self::PHONE.0 | Self::LOOSE.0))
        }
    }

    /// Returns the words with any of these flags.
    pub(super) fn words(self) -> impl Iterator<Item = &'static str> {
        WORDS
            .iter()
            .filter(move |(_, hint)| self.has(*hint))
            .map(|(word, _)| *word)
    }

    /// Returns the flags of a field's name: `orderPhone` is a phone, `phone_id` is not.
    pub(super) fn of_field(name: &str) -> Self {
        let mut words = String::with_capacity(name.len() + 8);
        let mut lower = false;
        for character in name.chars() {
            if lower && character.is_uppercase() {
                words.push(' ');
            }
            lower = character.is_lowercase() || character.is_ascii_digit();
            words.push(if character.is_alphanumeric() { character } else { ' ' });
        }
        let words = words.as_bytes();
        let said = before(words, None);
        if said.has(Self::THING) || said == Self::NONE {
            let said = if said == Self::NONE { said } else { Self::THING };
            return if is_code(words) { said.and(Self::CODE) } else { said };
        }
        // Trailing digits are removed, because `mobile_2` is another mobile.
        let counts = || {
            let name = words.trim_ascii_end();
            let name = &name[..name.len() - name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count()];
            self::words(words)
                .last()
                .is_some_and(|word| word.hint == Self::LOOSE && word.end < lead(name, b""))
        };
        if said.has(Self::LOOSE) && counts() {
            said.and(Self::COUNTED)
        } else {
            said
        }
    }

    /// Returns the flags of the words around `text[start..end]`.
    pub(super) fn near(text: &[u8], start: usize, end: usize) -> Self {
        const BEFORE: usize = 48;
        const AFTER: usize = 24;
        if start == 0 && end == text.len() {
            return Self::NONE;
        }
        let ahead = &text[whole_from(text, start.saturating_sub(BEFORE), start)..start];
        let found = before(ahead, Some(&text[start..end]));
        let after = &text[end..whole_to(text, end, text.len().min(end + AFTER))];
        words(after)
            .filter(|word| !word.hint.has(Self::THING) && !is_product(after, word.end) && !goes_on(after, word))
            .fold(found, |found, Word { end: at, hint, .. }| {
                // `(mobile)` describes the number, `mobile users` the thing that it counts.
                let goes_on = text[end + at..]
                    .trim_ascii_start()
                    .first()
                    .is_some_and(u8::is_ascii_alphanumeric);
                let phone = hint == Self::LOOSE && !goes_on;
                found.and(hint).and(if phone { Self::PHONE } else { Self::NONE })
            })
    }
}

/// Returns true if the words of a field's name end in one for a number or a code, behind another that is not that of a
/// place or a person where a phone may be.
fn is_code(name: &[u8]) -> bool {
    const NUMBERS: [&str; 8] = ["number", "numbers", "no", "nr", "num", "code", "codes", "nummer"];
    const OWNERS: [&str; 14] = [
        "home",
        "work",
        "office",
        "house",
        "cell",
        "emergency",
        "day",
        "night",
        "business",
        "personal",
        "private",
        "alt",
        "primary",
        "secondary",
    ];
    let is_one_of = |word: &[u8], words: &[&str]| words.iter().any(|other| word.eq_ignore_ascii_case(other.as_bytes()));
    let mut words = name.rsplit(|byte| *byte == b' ').filter(|word| !word.is_empty());
    words.next().is_some_and(|last| is_one_of(last, &NUMBERS))
        && words.next().is_some_and(|word| !is_one_of(word, &OWNERS))
}

/// Returns the flags of the words in `text`, which stands before `number`, or is the name of a field. A later word for a
/// thing cancels earlier ones, and a later word for a person's number cancels the thing. A word for a thing that does not
/// lead to the number is ignored, and a loose word for a phone that does is a word for a phone. So is a word for a phone
/// within a path, which is ignored elsewhere. A word that introduces another number is ignored.
fn before(text: &[u8], number: Option<&[u8]>) -> ContextFlags {
    let mut said = ContextFlags::NONE;
    let mut said_at = 0;
    let (mut thing_at, mut id_at, mut loose_at, mut path_at) = (None, None, None, None);
    // Both are computed once, and only if there is a known word.
    let lead = LazyCell::new(|| number.map_or(0, |number| lead(text, number)));
    let other = LazyCell::new(|| number.map_or((0, 0), |_| last_other_numbers(&text[..*lead])));
    for word in words(text) {
        let Word { start, end, hint } = word;
        if is_product(text, end) || (number.is_some() && goes_on(text, &word)) {
            continue;
        }
        if hint == ContextFlags::THING {
            thing_at = Some(end);
        } else if hint == ContextFlags::ID {
            id_at = Some(end);
        } else if hint.has(ContextFlags::PHONE.and(ContextFlags::LOOSE)) && is_of_path(text, start) {
            path_at = Some(end);
        } else if (hint == ContextFlags::LOOSE && end <= other.0) || (hint == ContextFlags::PHONE && end <= other.1) {
            // It introduces the number that stands between.
        } else {
            if hint == ContextFlags::LOOSE {
                loose_at = Some(end);
            }
            said = said.and(hint);
            said_at = end;
        }
    }
    match thing_at.max(id_at) {
        Some(last) if last > said_at || said == ContextFlags::NONE => {
            let lead = Some(*lead);
            if thing_at >= lead {
                ContextFlags::THING
            } else if id_at >= lead {
                ContextFlags::ID
            } else {
                ContextFlags::NONE
            }
        }
        _ if loose_at.max(path_at).is_some_and(|at| at >= *lead) => said.and(ContextFlags::PHONE),
        _ => said,
    }
}

/// Returns the ends of the last group of digits in `text`, and of the last one of three digits or more: a word before it
/// introduces that number. Shorter ones also count phones, as in `phone 2:`.
fn last_other_numbers(text: &[u8]) -> (usize, usize) {
    const SHORT: usize = 2;
    let last = |text: &[u8]| text.iter().rposition(u8::is_ascii_digit).map_or(0, |last| last + 1);
    let any = last(text);
    let mut end = any;
    while end > 0 {
        let digits = text[..end]
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if digits > SHORT {
            break;
        }
        end = last(&text[..end - digits]);
    }
    (any, end)
}

/// Returns true if a word of ASCII letters is only the beginning of a longer name, as in `call_in` or `call-graph`. The
/// name may go on with words that only lead to a number, as in `phone_number_2`.
fn goes_on(text: &[u8], word: &Word) -> bool {
    let is_hyphen = word.hint == ContextFlags::LOOSE;
    let mut at = word.end;
    loop {
        match text[at..] {
            [b'_', next, ..] if next.is_ascii_alphanumeric() => {}
            [b'-', next, ..] if is_hyphen && next.is_ascii_alphabetic() => {}
            _ => return false,
        }
        at += 1;
        let part = text[at..]
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric())
            .count();
        let name = &text[at..at + part];
        let leads =
            name.iter().all(u8::is_ascii_digit) || LINKS.iter().any(|link| name.eq_ignore_ascii_case(link.as_bytes()));
        if !leads {
            return true;
        }
        at += part;
    }
}

/// Returns the first position from `at` up to `end` at which a window may begin without cutting a word or a character.
fn whole_from(text: &[u8], at: usize, end: usize) -> usize {
    let mut from = at;
    while from < end && (0x80..0xC0).contains(&text[from]) {
        from += 1;
    }
    if from == 0 || name_before(text, from).is_none() {
        return from;
    }
    while from < end
        && let Some(length) = name_after(text, from)
    {
        from += length;
    }
    from.min(end)
}

/// Returns the last position from `start` up to `at` at which a window may end without cutting a word or a character.
fn whole_to(text: &[u8], start: usize, at: usize) -> usize {
    let mut to = at;
    while to > start && to < text.len() && (0x80..0xC0).contains(&text[to]) {
        to -= 1;
    }
    if to == text.len() || name_after(text, to).is_none() {
        return to;
    }
    while to > start
        && let Some(length) = name_before(text, to)
    {
        to -= length;
    }
    to.max(start)
}

/// Returns the position in `ahead`, the text before a number, from which everything only leads up to the number: signs,
/// words such as `no` and `is`, and other numbers of its form, with which it forms a list.
fn lead(ahead: &[u8], number: &[u8]) -> usize {
    let broken = ahead.iter().take_while(|byte| (0x80..0xC0).contains(*byte)).count();
    let Ok(mut rest) = std::str::from_utf8(&ahead[broken..]) else {
        return ahead.len();
    };
    // A group joined to the number by a space or a slash may be part of it; a single digit only if numbers begin so.
    if number.iter().all(|byte| byte.is_ascii_digit() || *byte == b' ') {
        while let Some(joined) = rest.strip_suffix([' ', '/']) {
            let shorter = joined.trim_end_matches(|sign: char| sign.is_ascii_digit());
            if matches!(&joined[shorter.len()..], "" | "2" | "3" | "4" | "5" | "6" | "9") {
                break;
            }
            rest = shorter;
        }
    }
    loop {
        let listed = rest.trim_end_matches(|sign: char| !sign.is_alphanumeric());
        if let Some(shorter) = strip_alike(listed, number) {
            rest = shorter;
            continue;
        }
        // These signs end a sentence or clause, so a word before them does not concern the
        // number.
        let bare = rest.trim_end_matches(|sign: char| !sign.is_alphanumeric() && !",;!?、。".contains(sign));
        match strip_link(bare) {
            Some(shorter) => rest = shorter,
            None => return broken + bare.len(),
        }
    }
}

/// Strips the number at the end of `text` if it has the form of `number`, digit for digit.
fn strip_alike<'a>(text: &'a str, number: &[u8]) -> Option<&'a str> {
    let (rest, last) = text
        .as_bytes()
        .split_at_checked(text.len().checked_sub(number.len())?)?;
    let alike = last
        .iter()
        .zip(number)
        .all(|(one, other)| one == other || (one.is_ascii_digit() && other.is_ascii_digit()));
    (alike && !last.is_empty() && !rest.last().is_some_and(u8::is_ascii_digit)).then(|| &text[..rest.len()])
}

/// Strips the word at the end of `text` if it only leads to a number.
fn strip_link(text: &str) -> Option<&str> {
    let rest = text.trim_end_matches(char::is_alphabetic);
    let word = &text[rest.len()..];
    if LINKS.iter().any(|link| word.eq_ignore_ascii_case(link)) {
        return Some(rest);
    }
    ENDINGS
        .iter()
        .find_map(|ending| word.strip_suffix(ending))
        .map(|word| &text[..rest.len() + word.len()])
}

/// Returns true if the word that begins at `start` begins a path, as in `GET /contact`; in `tel./fax` it does not.
fn is_of_path(text: &[u8], start: usize) -> bool {
    let joins = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'.';
    matches!(&text[..start], [rest @ .., b'/'] if !rest.last().is_some_and(joins))
}

/// Returns true if the word that ends at `end` is the name of a program before its version, as in `Mobile/15E148`.
fn is_product(text: &[u8], end: usize) -> bool {
    matches!(text[end..], [b'/', b'0'..=b'9', ..])
}

/// Returns the length of the letter that ends at `at`: an ASCII letter, or one of an alphabet beyond it whose words are
/// parted by spaces (two bytes in UTF-8: Latin, Greek, Cyrillic).
fn letter_before(text: &[u8], at: usize) -> Option<usize> {
    match text[..at] {
        [.., byte] if byte.is_ascii_alphabetic() => Some(1),
        [.., 0xC3..=0xD4, 0x80..0xC0] => Some(2),
        _ => None,
    }
}

/// Returns the length of the letter that begins at `at`, as [`letter_before`] does.
fn letter_after(text: &[u8], at: usize) -> Option<usize> {
    match text[at..] {
        [byte, ..] if byte.is_ascii_alphabetic() => Some(1),
        [0xC3..=0xD4, 0x80..0xC0, ..] => Some(2),
        _ => None,
    }
}

/// As [`letter_before`], for the characters of names of variables too.
fn name_before(text: &[u8], at: usize) -> Option<usize> {
    let is_sign = text[..at]
        .last()
        .is_some_and(|byte| byte.is_ascii_digit() || *byte == b'_');
    if is_sign { Some(1) } else { letter_before(text, at) }
}

/// As [`letter_after`], for the characters of names of variables too.
fn name_after(text: &[u8], at: usize) -> Option<usize> {
    let is_sign = text[at..]
        .first()
        .is_some_and(|byte| byte.is_ascii_digit() || *byte == b'_');
    if is_sign { Some(1) } else { letter_after(text, at) }
}

/// A known word of a text.
struct Word {
    start: usize,
    end: usize,
    hint: ContextFlags,
}

/// The known words of `text`. A word of ASCII letters counts only as a whole word.
fn words(text: &[u8]) -> impl Iterator<Item = Word> {
    WORDS_AUTOMATON
        .iter()
        .flat_map(move |automaton| automaton.find_overlapping_iter(text))
        .filter_map(move |found| {
            let (word, hint) = WORDS[found.pattern().as_usize()];
            let is_letter = |edge: Option<u8>| edge.is_some_and(|byte| byte.is_ascii_alphabetic());
            let joined = (is_letter(word.bytes().next()) && letter_before(text, found.start()).is_some())
                || (is_letter(word.bytes().last()) && letter_after(text, found.end()).is_some());
            (!joined && (!word.starts_with("문자") || is_message(&text[..found.start()], &text[found.end()..])))
                .then_some(Word {
                    start: found.start(),
                    end: found.end(),
                    hint,
                })
        })
}

/// Returns true if 문자 between these texts means a message, and is not part of another word such as 주문자 or 문자열.
fn is_message(before: &[u8], after: &[u8]) -> bool {
    const PARTICLES: [&str; 8] = ["로", "는", "를", "도", "만", "주세요", "메시지", "메세지"];
    let is_syllable = |bytes: &[u8; 3]| {
        std::str::from_utf8(bytes).is_ok_and(|text| text.starts_with(|sign| ('가'..='힣').contains(&sign)))
    };
    !before.last_chunk().is_some_and(is_syllable)
        && (!after.first_chunk().is_some_and(is_syllable)
            || PARTICLES.iter().any(|particle| after.starts_with(particle.as_bytes())))
}

/// The automaton of all words. The patterns are constants, so building cannot fail; a test builds it.
static WORDS_AUTOMATON: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .build(WORDS.iter().map(|(word, _)| word))
        .ok()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_automaton_is_built_from_every_word() {
        let automaton = WORDS_AUTOMATON.as_ref().unwrap();
        assert_eq!(automaton.patterns_len(), WORDS.len());
        assert!(WORDS.iter().all(|(word, _)| !word.is_empty()));
    }

    #[test]
    fn the_last_word_of_a_field_decides() {
        for (name, hint) in [
            ("phone", ContextFlags::PHONE),
            ("homePhone", ContextFlags::PHONE),
            ("order_phone_2", ContextFlags::PHONE),
            ("phone_id", ContextFlags::THING),
            ("PhoneModel", ContextFlags::THING),
            ("ssn", ContextFlags::US_SSN),
            ("hotel", ContextFlags::NONE),
            ("telemetry", ContextFlags::NONE),
            ("주민등록번호", ContextFlags::KR_RESIDENT),
            ("고객_전화번호", ContextFlags::PHONE),
            ("value", ContextFlags::NONE),
            ("mobile", ContextFlags::PHONE.and(ContextFlags::LOOSE)),
            ("contactNumber2", ContextFlags::PHONE.and(ContextFlags::LOOSE)),
            (
                "mobile_users",
                ContextFlags::PHONE.and(ContextFlags::LOOSE).and(ContextFlags::COUNTED),
            ),
            ("call_phone", ContextFlags::PHONE.and(ContextFlags::LOOSE)),
        ] {
            assert_eq!(ContextFlags::of_field(name), hint, "{name}");
        }
    }

    #[test]
    fn the_nearer_word_before_a_number_counts() {
        let near = |text: &str| {
            let start = text.find('#').unwrap();
            ContextFlags::near(text.as_bytes(), start, start + 1)
        };
        assert!(near("card, order #").has(ContextFlags::THING));
        assert!(near("order paid by card #").has(ContextFlags::CARD));
        assert!(!near("order paid by card #").has(ContextFlags::THING));
        assert!(near("# is my phone").has(ContextFlags::PHONE));
        assert!(near("call no. #").has(ContextFlags::PHONE));
        assert_eq!(near("call for papers #"), ContextFlags::LOOSE);
        assert!(near("# (mobile)").has(ContextFlags::PHONE));
        assert_eq!(near("# mobile users"), ContextFlags::LOOSE);
        assert_eq!(near("hotel discard #"), ContextFlags::NONE);
        assert_eq!(near("phone, order of today #"), ContextFlags::NONE);
        assert_eq!(near(&format!("phone {} #", "x".repeat(60))), ContextFlags::NONE);
    }
    #[test]
    fn a_thing_leads_to_its_number() {
        let near = |text: &str| {
            let start = text.rfind("415").unwrap();
            ContextFlags::near(text.as_bytes(), start, text.len())
        };
        for text in [
            "order 415-555-2671",
            "order415-555-2671",
            "Order No.: 415-555-2671",
            "{\"order_id\": \"415-555-2671\"}",
            "the order numbers are 415-555-2671",
            "“order” → (415-555-2671",
            "order 231-555-0000, 415-555-2671",
            "orders nos. 231-555-0000; 212-555-0001 and so on, order 415-555-2671",
            "제품번호는 415-555-2671",
            "제품 번호: 415-555-2671",
            "注文番号は415-555-2671",
            "订单号为 415-555-2671",
            "order 12 34 415 555 2671",
            "order 030/4155552671",
        ] {
            assert_eq!(near(text), ContextFlags::THING, "{text}");
        }
        for text in [
            "order of Kim 415-555-2671",
            "your order, 415-555-2671",
            "order 7, 415-555-2671",
            "order 9231-555-0000, 415-555-2671",
            "order casino 415-555-2671",
            "제품 문의 415-555-2671",
            "注文者 415-555-2671",
        ] {
            assert_eq!(near(text), ContextFlags::NONE, "{text}");
        }
        assert_eq!(near("Employee ID: 415-555-2671"), ContextFlags::ID);
    }
}
