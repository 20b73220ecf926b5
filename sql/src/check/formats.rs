//! Formats in which functions write dates and times.
//!
//! Invariant: the engine writes out what it does not know, so a format is a text of the statement that is made of known
//! patterns, and letters outside of them are refused.

use datafusion::sql::sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value};

use super::Refusal;

/// The letters after `%`.
const LETTERS: &str = "YCyqmbBhdeaAwuUWGgVjDxFvHkIlPpMSfRTXrZzcs+%";
/// The patterns of several characters after `%`.
const LONGER: [&str; 9] = [".3f", ".6f", ".9f", ".f", "3f", "6f", "9f", "::z", ":z"];
/// The letters that stand in a date and time by themselves.
const BETWEEN: &str = "TZ";

/// Checks the format of a call of a function that writes dates and times.
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
            if character.is_alphabetic() && !BETWEEN.contains(character) {
                return false;
            }
            continue;
        }
        patterns += 1;
        // A `-`, `_` or `0` says how a number is padded.
        rest = rest.strip_prefix(['-', '_', '0']).unwrap_or(rest);
        let known = LONGER.iter().find_map(|pattern| rest.strip_prefix(pattern));
        let Some(after) = known.or_else(|| rest.strip_prefix(|letter| LETTERS.contains(letter))) else {
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
