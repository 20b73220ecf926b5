//! Byte classes of a text, and its plain spelling.
//!
//! Invariant: [`byte_classes`] reports every text that [`normalise`] could turn into one with an `@` or a digit, and
//! the order of the characters that stay is kept. Both are linear in the text.

/// The byte classes that occur in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "five separate facts")]
pub(crate) struct ByteClasses {
    /// The number of ASCII digits.
    pub(crate) digits: usize,
    /// True if there is an `@`.
    pub(crate) at: bool,
    /// True if there is a `<`.
    pub(crate) angle: bool,
    /// True if there is an opening parenthesis, bracket or brace.
    pub(crate) bracket: bool,
    /// True if there is a `%` or `&`, which may encode another character.
    pub(crate) encoded: bool,
    /// True if there is a byte beyond ASCII.
    pub(crate) beyond_ascii: bool,
}

const AT: u8 = 1;
const ANGLE: u8 = 2;
const BRACKET: u8 = 4;
const ENCODED: u8 = 8;
const BEYOND_ASCII: u8 = 16;

/// Classifies the bytes in one pass. The loop has no branch, so it compiles to vector instructions.
pub(crate) fn byte_classes(text: &[u8]) -> ByteClasses {
    let mut digits = 0;
    let mut seen = 0_u8;
    for chunk in text.chunks(128) {
        // A chunk has at most 128 digits, so a byte suffices to count them, and more fit into a
        // vector register.
        let mut digits_here = 0_u8;
        for &byte in chunk {
            digits_here += u8::from(byte.is_ascii_digit());
            seen |= u8::from(byte == b'@') * AT;
            seen |= u8::from(byte == b'<') * ANGLE;
            seen |= u8::from(matches!(byte, b'(' | b'[' | b'{')) * BRACKET;
            seen |= u8::from(matches!(byte, b'%' | b'&')) * ENCODED;
            seen |= u8::from(byte >= 0x80) * BEYOND_ASCII;
        }
        digits += usize::from(digits_here);
    }
    ByteClasses {
        digits,
        at: seen & AT != 0,
        angle: seen & ANGLE != 0,
        bracket: seen & BRACKET != 0,
        encoded: seen & ENCODED != 0,
        beyond_ascii: seen & BEYOND_ASCII != 0,
    }
}

/// Returns true if text beyond ASCII may have a character that folds to an `@`, a digit or a `<`. The test looks for
/// the first byte of full-width forms, of decimal digits of other scripts, and of mathematical digits.
pub(crate) fn might_normalise(text: &[u8]) -> bool {
    text.iter()
        .any(|byte| matches!(byte, 0xD9 | 0xDB | 0xDF | 0xE0 | 0xE1 | 0xEF | 0xF0))
}

/// Returns true if text beyond ASCII may have a character that disguises phrases: an invisible one, or one that folds
/// to a letter, a space or a dash. In scripts with such characters, a second byte tells them from the common ones.
pub(crate) fn might_disguise(text: &[u8]) -> bool {
    let disguises = |(at, byte): (usize, &u8)| {
        let next = || text.get(at + 1).copied().unwrap_or_default();
        match byte {
            0xC2 | 0xE2 | 0xEF | 0xF0 | 0xF3 => true,
            0xCD => next() == 0x8F,
            0xD8 => next() == 0x9C,
            0xE1 => matches!(next(), 0x85 | 0x9E | 0xA0),
            0xE3 => matches!(text.get(at + 1..at + 3), Some([0x80, 0x80] | [0x85, 0xA4])),
            _ => false,
        }
    };
    text.iter().enumerate().any(disguises)
}

/// Appends `text` in plain spelling: full-width forms and decimal digits of listed scripts as ASCII, spaces and dashes
/// of any width as ` ` and `-`, without invisible characters; `%40` and `&#64;` as `@`, `%2B` as `+`.
pub(crate) fn normalise(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        if let Some((plain, after)) = encoded(rest) {
            out.push(plain);
            rest = after;
            continue;
        }
        // Everything else is handled one character at a time.
        rest = &rest[character.len_utf8()..];
        // The long vowel mark is used as a dash between the digits of Japanese numbers.
        if character == '\u{30FC}' && out.ends_with(|last: char| last.is_ascii_digit()) {
            out.push('-');
            continue;
        }
        if let Some(plain) = plain(character) {
            out.push(plain);
        }
    }
}

/// Decodes the character that `text` begins with in the encoding of URLs or HTML, an at or the plus of a phone number,
/// and returns it with the text after it.
fn encoded(text: &str) -> Option<(char, &str)> {
    const ENCODED: [(&str, char); 6] = [
        ("%40", '@'),
        ("&#64;", '@'),
        ("&#x40;", '@'),
        ("&commat;", '@'),
        ("%2B", '+'),
        ("%2b", '+'),
    ];
    if !text.starts_with(['%', '&']) {
        return None;
    }
    ENCODED
        .iter()
        .find_map(|(encoded, plain)| Some((*plain, text.strip_prefix(encoded)?)))
}

/// The zero of each script's run of ten decimal digits (Unicode general category Nd).
const ZEROS: [u32; 20] = [
    0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xE50, 0xED0, 0xF20, 0x1040,
    0x1090, 0x17E0, 0x1810, 0x1946,
];

/// Returns the plain spelling of a character, or `None` if it is invisible.
fn plain(character: char) -> Option<char> {
    // ASCII is plain already.
    if character.is_ascii() {
        return Some(character);
    }
    let code = u32::from(character);
    match code {
        0xFF01..=0xFF5E => char::from_u32(code - 0xFF01 + 0x21),
        0xA0 | 0x2000..=0x200A | 0x202F | 0x205F | 0x3000 => Some(' '),
        0x2010..=0x2015 | 0x2043 | 0x2212 | 0xFE58 | 0xFE63 | 0xFF70 => Some('-'),
        0xB7 | 0x2024 | 0x2027 | 0x30FB | 0xFE52 | 0xFF65 => Some('.'),
        0xFE6B => Some('@'),
        // Mathematical letters: runs of 52, capitals before small letters.
        0x1D400..=0x1D6A3 => char::from_u32(if (code - 0x1D400) % 52 < 26 { 65 } else { 71 } + (code - 0x1D400) % 52),
        0x1D7CE..=0x1D7FF => char::from_digit((code - 0x1D7CE) % 10, 10),
        _ if is_invisible(code) => None,
        _ => ZEROS
            .iter()
            .find(|zero| (**zero..**zero + 10).contains(&code))
            .map_or(Some(character), |zero| char::from_digit(code - zero, 10)),
    }
}

/// Returns true for soft hyphens, joiners, direction marks, variation selectors, tags and other invisible characters.
pub fn is_invisible(code: u32) -> bool {
    matches!(
        code,
        0xAD | 0x34F
            | 0x61C
            | 0x115F
            | 0x1160
            | 0x17B4
            | 0x17B5
            | 0x180B..=0x180E
            | 0x200B..=0x200F
            | 0x202A..=0x202E
            | 0x2060..=0x206F
            | 0x3164
            | 0xFE00..=0xFE0F
            | 0xFEFF
            | 0xFFA0
            | 0xE0000..=0xE0FFF
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        let mut out = String::new();
        normalise(text, &mut out);
        out
    }

    #[test]
    fn other_spellings_become_plain() {
        for (text, plain) in [
            ("０１０－１２３４－５６７８", "010-1234-5678"),
            ("a\u{200b}b\u{ad}c\u{feff}@\u{2060}d\u{fe0f}", "abc@d"),
            ("٠١٢٣٤٥٦٧٨٩ ۴ ४ 𝟜𝟵", "0123456789 4 4 49"),
            ("1\u{a0}2\u{3000}3–4—5−6", "1 2 3-4-5-6"),
            ("x%40y &#64; &commat; 100%", "x@y @ @ 100%"),
            ("tel=%2B4930555014&x=%2b1 %2C &amp;", "tel=+4930555014&x=+1 %2C &amp;"),
            ("ｈｏｎｇ＠ｅｘａｍｐｌｅ．ｃｏｍ", "hong@example.com"),
            ("𝐣𝗼𝘩𝚗", "john"),
            ("온도 24℃ ① m²", "온도 24℃ ① m²"),
            ("カード ０３ー１２", "カード 03-12"),
        ] {
            assert_eq!(folded(text), plain);
        }
    }

    #[test]
    fn what_disguises_a_phrase_is_seen() {
        for character in ('\u{80}'..=char::MAX).filter(|character| {
            plain(*character).is_none_or(|plain| plain.is_ascii_alphabetic() || matches!(plain, ' ' | '-'))
        }) {
            let text = format!("ab{character}cd");
            assert!(might_disguise(text.as_bytes()), "{character:?}");
        }
        // What most texts of a script have does not.
        for text in [
            "수위가 올랐다ㅋㅋ",
            "水位が上がった。",
            "كان منسوب المياه",
            "წყლის დონე",
            "über",
        ] {
            assert!(!might_disguise(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_glance_counts_digits_and_sees_marks() {
        let long = "7".repeat(1000);
        assert_eq!(
            byte_classes(long.as_bytes()),
            ByteClasses {
                digits: 1000,
                ..ByteClasses::default()
            }
        );
        let all = byte_classes("1@<[%é".as_bytes());
        assert!(all.at && all.angle && all.bracket && all.encoded && all.beyond_ascii);
        assert_eq!(byte_classes(b"plain text"), ByteClasses::default());
    }

    #[test]
    fn whatever_folds_to_a_digit_or_an_at_is_noticed() {
        for character in (0x80..=0x10_FFFF).filter_map(char::from_u32) {
            if plain(character).is_some_and(|plain| plain.is_ascii_digit() || plain == '@') {
                assert!(might_normalise(character.to_string().as_bytes()), "{character:?}");
            }
        }
    }
}
