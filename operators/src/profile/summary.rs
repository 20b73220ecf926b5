//! One line about a column, for people.
//!
//! Invariant: it is one line, whatever the values are, and shows text of a record only if the figures do.

use types::contract::FieldTypeName;

use super::figures::{ColumnProfile, Histogram, JsonKinds, LengthProfile, ProfileValue};
use super::{digits, figures};
use crate::is_invisible;

/// The most characters of a value that are shown.
const MAX_VALUE_CHARS: usize = 40;
/// Significant digits of a double that is shown to people.
pub const VALUE_DIGITS: usize = 6;
/// Significant digits of a mean that is shown to people.
pub const MEAN_DIGITS: usize = 3;

/// Returns the figures of a column in one line for people, such as "−2.41 to 5.87, mean 1.12".
pub fn summary(column: &ColumnProfile) -> String {
    let mut parts = Vec::new();
    if column.distinct.about == 0 {
        parts.push("no values".to_owned());
    } else {
        match column.kind {
            FieldTypeName::Integer | FieldTypeName::Number | FieldTypeName::Decimal => numbers(column, &mut parts),
            FieldTypeName::Timestamp | FieldTypeName::Date => times(column, &mut parts),
            FieldTypeName::String => texts(column, &mut parts),
            FieldTypeName::Boolean => parts.extend(trues(column).map(|percent| format!("{percent} % true"))),
            FieldTypeName::Json => {
                parts.extend(column.kinds.map(kinds));
                parts.extend(column.length.as_ref().and_then(lengths));
            }
        }
    }
    match (column.nulls, column.null_percent) {
        (Some(nulls @ 1..), _) => parts.push(format!("{} null", grouped(nulls))),
        (None, Some(percent @ 1..)) => parts.push(format!("{percent} % null")),
        _ => {}
    }
    parts.join(", ")
}

fn numbers(column: &ColumnProfile, parts: &mut Vec<String>) {
    match column.range() {
        Some((least, most)) if least == most => parts.push(format!("always {}", number(least, VALUE_DIGITS))),
        Some((least, most)) => {
            parts.push(format!(
                "{} to {}",
                number(least, VALUE_DIGITS),
                number(most, VALUE_DIGITS)
            ));
            parts.extend(
                column
                    .mean
                    .map(|mean| format!("mean {}", short_number(mean, MEAN_DIGITS))),
            );
        }
        None => match ends(column.histogram.as_ref()) {
            Some((low, high)) => parts.push(format!(
                "mostly {} to {}",
                number(low, VALUE_DIGITS),
                number(high, VALUE_DIGITS)
            )),
            None => parts.push(different(column)),
        },
    }
}

fn times(column: &ColumnProfile, parts: &mut Vec<String>) {
    let (low, high, word) = match (column.range(), ends(column.histogram.as_ref())) {
        (Some((first, last)), _) => (first.to_string(), last.to_string(), ""),
        (None, Some((low, high))) => (low.to_string(), high.to_string(), "mostly "),
        (None, None) => {
            parts.push(different(column));
            return;
        }
    };
    if low == high {
        parts.push(format!("always {low}"));
        return;
    }
    let days = low.split_once('T').zip(high.split_once('T'));
    parts.push(match days {
        Some(((low, _), (high, _))) if low != high => format!("{word}{low} to {high} (UTC)"),
        _ => format!("{word}{low} to {high}"),
    });
}

fn texts(column: &ColumnProfile, parts: &mut Vec<String>) {
    parts.push(different(column));
    let top = column.top.as_ref().and_then(|top| top.first());
    // One of many different texts would say nothing about the others.
    match top.filter(|top| top.exact && top.count > 1) {
        Some(top) if top.value.is_empty() => parts.push("most often empty".to_owned()),
        Some(top) => parts.push(format!("most often “{}”", plain(&top.value))),
        None => parts.extend(column.length.as_ref().and_then(lengths)),
    }
}

fn different(column: &ColumnProfile) -> String {
    let figures::DistinctCount { about, exact } = column.distinct;
    let (word, ending) = (if exact { "" } else { "about " }, if about == 1 { "" } else { "s" });
    format!("{word}{} different value{ending}", grouped(about))
}

fn trues(column: &ColumnProfile) -> Option<u8> {
    let counts = column.trues.zip(column.falses);
    let percent = counts.map(|(trues, falses)| {
        let percent = digits::percent(trues, trues.saturating_add(falses));
        // Nearly all is not all.
        if trues > 0 && falses > 0 {
            percent.clamp(1, 99)
        } else {
            percent
        }
    });
    percent.or(column.true_percent)
}

fn kinds(kinds: JsonKinds) -> String {
    let counts = [
        (kinds.object, "objects"),
        (kinds.array, "arrays"),
        (kinds.string, "strings"),
        (kinds.number, "numbers"),
        (kinds.boolean, "booleans"),
    ];
    let mut present: Vec<_> = counts.into_iter().filter(|(rows, _)| *rows > 0).collect();
    present.sort_by_key(|(rows, _)| std::cmp::Reverse(*rows));
    let words: Vec<_> = present.into_iter().map(|(_, word)| word).collect();
    match words.split_last() {
        Some((last, words)) if !words.is_empty() => format!("{} and {last}", words.join(", ")),
        _ => words.concat(),
    }
}

fn lengths(length: &LengthProfile) -> Option<String> {
    match (length.min.zip(length.max), ends(length.histogram.as_ref())) {
        (Some((min, max)), _) if min == max => Some(format!("{} characters", grouped(min))),
        (Some((min, max)), _) => Some(format!("{} to {} characters", grouped(min), grouped(max))),
        (None, Some((low, high))) => Some(format!("mostly {low} to {high} characters")),
        (None, None) => None,
    }
}

/// Returns the ends of the bins.
fn ends(histogram: Option<&Histogram>) -> Option<(&ProfileValue, &ProfileValue)> {
    let edges = &histogram?.edges;
    edges.first().zip(edges.last())
}

/// Returns a number with a minus sign, which is as wide as a digit. A double has this many digits.
fn number(value: &ProfileValue, significant: usize) -> String {
    match value {
        ProfileValue::Number(value) => signed(&ProfileValue::Number(digits::rounded(*value, significant)).to_string()),
        value => signed(&value.to_string()),
    }
}

fn signed(text: &str) -> String {
    match text.strip_prefix('-') {
        Some(digits) => format!("−{digits}"),
        None => text.to_owned(),
    }
}

/// Returns a number for people with this many significant digits, or with all digits before the point. With three it is
/// "−0.333", "44102" or "1.23e-9".
pub fn short_number(value: f64, significant: usize) -> String {
    let is_written_out = (1e3..1e15).contains(&value.abs());
    let before = usize::try_from(digits::exponent(value) + 1).unwrap_or(0);
    let significant = if is_written_out {
        significant.max(before)
    } else {
        significant
    };
    number(&ProfileValue::Number(value), significant)
}

/// Returns a count with a comma after every third digit.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a text without characters that would break or turn the line, cut if it is long.
fn plain(text: &str) -> String {
    let visible = text.chars().filter(|letter| !is_invisible(u32::from(*letter)));
    let letter = |letter: char| {
        if letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}') {
            ' '
        } else {
            letter
        }
    };
    let mut letters = visible.map(letter);
    let mut shown: String = letters.by_ref().take(MAX_VALUE_CHARS).collect();
    if letters.next().is_some() {
        shown.push('…');
    }
    shown
}
