//! Contradictions of a text with itself that arithmetic can show, each with both of its figures.
//!
//! Invariants:
//! - A text without numbers has none. A rule speaks only where nothing else can be meant, and names both figures.
//! - Linear in the text: what is held against everything else, and the columns of a table, have bounds.

mod changes;
mod statements;
mod tables;
mod times;

use types::Timestamp;

use super::languages::text_languages;
use super::lexicon::LexiconLanguages;
use super::parse::parse;

/// The name of these rules, as answers give it.
pub(super) const CONSISTENCY_NAME: &str = "arithmetic-1";
/// The most contradictions of a text that are told.
const MAX_CONTRADICTIONS: usize = 5;

/// Returns a sentence for each of the first contradictions.
pub(super) fn contradictions(body: &str, submitted_at: Timestamp) -> Vec<String> {
    let mut found = Vec::new();
    let parsed = &parse(body);
    let by_comma = LexiconLanguages::ENGLISH
        .and(LexiconLanguages::KOREAN)
        .and(LexiconLanguages::SPACELESS);
    let is_grouped_otherwise = !text_languages(body).has(by_comma);
    for sentence in &parsed.sentences {
        if found.len() >= MAX_CONTRADICTIONS {
            break;
        }
        // Outside of these languages a stop before three digits may group thousands.
        if is_grouped_otherwise && has_grouping_stop(&sentence.lower) {
            continue;
        }
        statements::add(sentence, submitted_at, &mut found);
    }
    tables::add(parsed, &mut found);
    found.truncate(MAX_CONTRADICTIONS);
    found
}

/// Returns true for `12.400`.
fn has_grouping_stop(lower: &str) -> bool {
    lower
        .as_bytes()
        .windows(5)
        .any(|bytes| bytes[0].is_ascii_digit() && bytes[1] == b'.' && bytes[2..].iter().all(u8::is_ascii_digit))
}

/// Returns a number as texts have it: at most two digits behind the stop.
fn shown(value: f64) -> String {
    let rounded = (value * 100.0).round() / 100.0;
    format!("{rounded}")
}

#[cfg(test)]
mod tests;
