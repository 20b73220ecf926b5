//! Sentences of the engine about types and groups, said in the words of SQL.
//!
//! Invariant: a sentence names the rule that is broken and what to do.

use crate::check::functions::ALLOWED_FUNCTIONS;

/// Operators of the engine's sentences. Longer ones come first.
const OPERATORS: [&str; 24] = [
    "IS NOT DISTINCT FROM",
    "IS DISTINCT FROM",
    "NOT ILIKE",
    "NOT LIKE",
    "SIMILAR TO",
    "ILIKE",
    "LIKE",
    "AND",
    "OR",
    "!~*",
    "!~",
    "~*",
    "||",
    "<=",
    ">=",
    "!=",
    "<>",
    "+",
    "-",
    "*",
    "/",
    "%",
    "=",
    "~",
];
/// Further operators, of which others begin with one.
const SHORT_OPERATORS: [&str; 5] = ["<", ">", "&", "|", "#"];

/// Returns what a sentence of the engine means, or `None` for one that is not known. Its types have the names of SQL.
pub(super) fn said(text: &str) -> Option<String> {
    of_operator(text)
        .or_else(|| of_function(text))
        .or_else(|| of_case(text))
        .or_else(|| of_groups(text))
        .or_else(|| {
            let table = text.strip_prefix("Invalid qualifier ")?;
            Some(format!("there is no table `{table}` in FROM"))
        })
}

/// Returns the rule of a sentence that names a function, if it names one that statements can call.
pub(super) fn of_any_function(text: &str) -> Option<String> {
    let mut names = text.split('\'').skip(1).step_by(2);
    let name = names.find(|name| ALLOWED_FUNCTIONS.binary_search(name).is_ok())?;
    Some(unlike(name))
}

/// The rule of a function that is called with other values than it takes.
fn unlike(name: &str) -> String {
    format!(
        "{name}() cannot be used with values of these types, or with so many: cast its arguments, such as x::text or x::numeric"
    )
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    rest.split_once(end).map(|(inside, _)| inside)
}

fn of_operator(text: &str) -> Option<String> {
    for keyword in ["LIKE", "ILIKE", "SIMILAR TO"] {
        if let Some(kinds) = between(text, "common type to coerce ", &format!(" in {keyword} expression")) {
            let kinds = kinds.replace(" and ", " with ");
            return Some(format!(
                "{keyword} compares texts only, not {kinds}: cast the operand with ::text"
            ));
        }
    }
    if let Some(kinds) = between(text, "Failed to coerce types ", " in BETWEEN expression") {
        return Some(format!("BETWEEN does not compare {kinds}: cast one of them"));
    }
    let operation = between(text, "Cannot coerce arithmetic expression ", " to valid types")
        .or_else(|| between(text, "Cannot get result type for temporal operation ", ":"))
        .or_else(|| {
            let (_, rest) = text.split_once("Cannot infer common ")?;
            rest.split_once(" operation ").map(|(_, operation)| operation)
        })?;
    let found = OPERATORS.iter().chain(&SHORT_OPERATORS).find_map(|operator| {
        let (left, right) = operation.split_once(&format!(" {operator} "))?;
        Some((*operator, left.trim(), right.trim()))
    });
    Some(match found {
        Some((operator, left, right)) => {
            let remedy = remedy(operator, left, right);
            format!("`{operator}` cannot be used with {left} and {right}: {remedy}")
        }
        None => "an operator cannot be used with values of these types: cast one of them".to_owned(),
    })
}

fn remedy(operator: &str, left: &str, right: &str) -> String {
    let is_time = |kind: &str| kind.starts_with("timestamp") || kind == "date";
    let computes = matches!(operator, "+" | "-" | "*" | "/" | "%");
    if computes && (is_time(left) || is_time(right)) {
        return "a time is computed with an interval, such as INTERVAL '1 day'".to_owned();
    }
    let to = if computes {
        "numeric"
    } else if matches!(operator, "AND" | "OR") {
        "boolean"
    } else if matches!(operator, "||" | "~" | "~*" | "!~" | "!~*") {
        "text"
    } else {
        let is_simple = |kind: &&str| matches!(*kind, "text" | "bigint" | "integer" | "date" | "double precision");
        [left, right].into_iter().find(is_simple).unwrap_or("text")
    };
    format!("cast one of them, such as x::{to}")
}

fn of_function(text: &str) -> Option<String> {
    if let Some((name, inner)) = text.split_once(" user-defined coercion failed with: ") {
        let name = between(name, "Function '", "'")?;
        // A function of our own says what it takes.
        if inner.starts_with(&format!("{name}()")) {
            return Some(inner.to_owned());
        }
        return Some(unlike(name));
    }
    let (_, rest) = text.split_once("Failed to coerce arguments to satisfy a call to '")?;
    let (name, rest) = rest.split_once('\'')?;
    let kinds = between(rest, "coercion from ", " to the signature");
    let of = kinds.filter(|kinds| !kinds.is_empty()).unwrap_or("no value");
    Some(format!(
        "{name}() cannot be used with {of}: cast its arguments, such as x::text or x::numeric"
    ))
}

fn of_case(text: &str) -> Option<String> {
    if !text.contains("CASE WHEN expression") && !text.contains("common type for then") {
        return None;
    }
    let part = if text.contains("Failed to coerce case") {
        "the values that CASE compares have"
    } else {
        "the results of CASE have"
    };
    Some(format!("{part} no common type: cast them to one, such as x::text"))
}

fn of_groups(text: &str) -> Option<String> {
    let (before, _) =
        text.split_once(" must appear in the GROUP BY clause or must be part of an aggregate function")?;
    let column = before.rsplit('"').nth(1)?;
    let column = column.rsplit('.').next()?;
    Some(format!(
        "the column `{column}` must be in GROUP BY, or in an aggregate such as max({column})"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_the_rule_and_the_remedy() {
        for (engine, expected) in [
            (
                "Cannot coerce arithmetic expression text + bigint to valid types",
                "`+` cannot be used with text and bigint: cast one of them, such as x::numeric",
            ),
            (
                "Cannot infer common argument type for comparison operation timestamp with time zone <= boolean",
                "`<=` cannot be used with timestamp with time zone and boolean: cast one of them, such as x::text",
            ),
            (
                "Cannot infer common string type for string concat operation boolean || list of bigint",
                "`||` cannot be used with boolean and list of bigint: cast one of them, such as x::text",
            ),
            (
                "Function 'sum' user-defined coercion failed with: sum() takes numbers, not text",
                "sum() takes numbers, not text",
            ),
            (
                "Failed to coerce arguments to satisfy a call to 'ln' function: coercion from boolean to the signature Numeric(1) failed",
                "ln() cannot be used with boolean: cast its arguments, such as x::text or x::numeric",
            ),
            (
                "While expanding wildcard, column \"records.station\" must appear in the GROUP BY clause or must be part of an \
                 aggregate function, currently only \"records.id\" appears in the SELECT clause satisfies this requirement",
                "the column `station` must be in GROUP BY, or in an aggregate such as max(station)",
            ),
        ] {
            assert_eq!(said(engine).as_deref(), Some(expected), "{engine}");
        }
        assert_eq!(said("there is no column `x`"), None);
    }
}
