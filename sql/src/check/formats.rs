//! Check of formats for dates and times.
//!
//! Invariant: the engine prints unknown patterns unchanged. So a format must be a literal of known patterns, and
//! letters outside of them are refused.

use datafusion::sql::sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value};

use super::Refusal;

/// Letters that may follow `%`.
const PATTERN_LETTERS: &str = "YCyqmbBhdeaAwuUWGgVjDxFvHkIlPpMSfRTXrZzcs+%";
/// Patterns of several characters that may follow `%`.
const LONG_PATTERNS: [&str; 9] = [".3f", ".6f", ".9f", ".f", "3f", "6f", "9f", "::z", ":z"];
/// Letters that may stand outside of a pattern.
const PUNCTUATION: &str = "TZ";

/// Checks the format in a call of a function that formats dates and times.
pub(super) fn written(function: &Function, args: &FunctionArguments) -> Result<(), Refusal> {
    let rule = "its format must be a text of % patterns such as '%Y-%m-%dT%H:%M:%SZ', without other letters than T and Z outside the patterns";
    let FunctionArguments::List(list) = args else {
        return Ok(());
    };
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(format))) = list.args.get(1) else {
        return Ok(());
    };
    match format {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) if is_known(text) => Ok(()),
            _ => Err(Refusal::of(function, rule)),
        },
        _ => Err(Refusal::of(function, rule)),
    }
}

fn is_known(format: &str) -> bool {
    let mut rest = format;
    let mut patterns = 0;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        if character != '%' {
            if character.is_alphabetic() && !PUNCTUATION.contains(character) {
                return false;
            }
            continue;
        }
        patterns += 1;
        // `-`, `_` or `0` selects the padding of a number.
        rest = rest.strip_prefix(['-', '_', '0']).unwrap_or(rest);
        let known = LONG_PATTERNS.iter().find_map(|pattern| rest.strip_prefix(pattern));
        let Some(after) = known.or_else(|| rest.strip_prefix(|letter| PATTERN_LETTERS.contains(letter))) else {
            return false;
        };
        rest = after;
    }
    patterns > 0
}

#[cfg(test)]
mod tests {
    use super::is_known;

    #[test]
    fn a_format_is_made_of_known_patterns() {
        for known in [
            "%Y-%m-%d",
            "%Y-%m-%dT%H:%M:%S%.3fZ",
            "%-d. %_H %0e",
            "%%%d",
            "%+",
            "%H:%M %:z",
            "%Y年",
        ] {
            assert_eq!(is_known(known), !known.contains('年'), "{known}");
        }
        for unknown in ["", "YYYY-MM-DD", "%Y-MM", "%Q", "%", "%-", "day %d", "2026"] {
            assert!(!is_known(unknown), "{unknown}");
        }
    }
}
