//! Identifiers of code in a text: whole and in parts.
//!
//! Invariant: an identifier and its parts are in lower case, so a query finds them in any spelling.

/// The most bytes of an identifier.
const MAX_IDENTIFIER_BYTES: usize = 80;

/// Calls `sink` with every identifier of a text and with its parts, in lower case. The flag is true for a whole one.
/// An identifier is a run of ASCII letters and digits that is joined by `_`, `.`, `-`, `/` or `::`, or that changes
/// case or mixes letters with digits inside.
pub fn identifiers(text: &str, sink: &mut dyn FnMut(&str, bool)) {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'/' | b':');
    let mut lower = String::new();
    for run in text.as_bytes().split(|byte| !is_part(*byte)) {
        let joins = |byte: &u8| !byte.is_ascii_alphanumeric();
        // Joints at the ends are punctuation of the sentence, such as the stop behind a name.
        let from = run.iter().position(|byte| !joins(byte)).unwrap_or(run.len());
        let to = run.iter().rposition(|byte| !joins(byte)).map_or(from, |last| last + 1);
        let run = &run[from..to];
        if run.len() < 2 || run.len() > MAX_IDENTIFIER_BYTES || !is_identifier(run) {
            continue;
        }
        let mut whole = |bytes: &[u8], is_whole: bool| {
            lower.clear();
            lower.extend(bytes.iter().map(|byte| char::from(byte.to_ascii_lowercase())));
            sink(&lower, is_whole);
        };
        whole(run, true);
        let parts: Vec<&[u8]> = run
            .split(joins)
            .filter(|part| part.len() > 1)
            .flat_map(by_case)
            .collect();
        if parts.len() > 1 {
            parts
                .into_iter()
                .filter(|part| part.len() > 1)
                .for_each(|part| whole(part, false));
        }
    }
}

/// Returns true if a run is no plain word, number or hyphenated word.
fn is_identifier(run: &[u8]) -> bool {
    let has_letter = run.iter().any(u8::is_ascii_alphabetic);
    let joined = run.iter().any(|byte| matches!(byte, b'_' | b'.' | b'/' | b':'));
    let camel = run
        .windows(2)
        .any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    let mixed = run
        .windows(2)
        .any(|pair| pair[0].is_ascii_alphabetic() && pair[1].is_ascii_digit());
    has_letter && (joined || camel || mixed)
}

/// Splits `readFileSync` and `HTTPServer` at changes of case.
fn by_case(run: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut from = 0;
    for at in 1..run.len() {
        let lower_to_upper = run[at - 1].is_ascii_lowercase() && run[at].is_ascii_uppercase();
        let acronym_ends = run[at - 1].is_ascii_uppercase()
            && run[at].is_ascii_uppercase()
            && run.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        if lower_to_upper || acronym_ends {
            parts.push(&run[from..at]);
            from = at;
        }
    }
    parts.push(&run[from..]);
    parts
}
