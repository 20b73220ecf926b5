//! Violations of a schema as sentences: the place, and the rule.
//!
//! Invariant: a sentence never repeats the value that violates the rule.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;
use types::json::push_pointer;

use crate::call::schema::{LINE, TEXT, VISIBLE};
use crate::error::ErrorDetail;
use crate::price;

/// Returns the places and rules of one violation of `input`. `immutable` lists the members that exist but never change.
pub(crate) fn details(error: &ValidationError<'_>, input: &Value, immutable: &[&str]) -> Vec<ErrorDetail> {
    let path = error.instance_path().as_str().to_owned();
    let at = |name: &str| {
        let mut path = path.clone();
        push_pointer(&mut path, name);
        path
    };
    let unknown = |name: &String| {
        let known = path.is_empty() && immutable.contains(&name.as_str());
        let problem = if known {
            "never changes after creation"
        } else {
            "is not a known field"
        };
        ErrorDetail {
            path: at(name),
            problem: problem.to_owned(),
        }
    };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let path = at(property.as_str().unwrap_or_default());
            vec![ErrorDetail {
                path,
                problem: "is required".to_owned(),
            }]
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => unexpected.iter().map(unknown).collect(),
        // An object without any allowed member violates the schema `false`, and the error does not name its members.
        ValidationErrorKind::FalseSchema => {
            let members = input.pointer(&path).and_then(Value::as_object);
            members.into_iter().flatten().map(|(name, _)| unknown(name)).collect()
        }
        kind => vec![ErrorDetail {
            problem: rule(kind, error, input.pointer(&path)),
            path,
        }],
    }
}

fn rule(kind: &ValidationErrorKind, error: &ValidationError<'_>, value: Option<&Value>) -> String {
    let amount = |most| price::broken_rule(value.and_then(Value::as_str).unwrap_or_default(), most);
    match kind {
        ValidationErrorKind::Type { kind } => must_be(kind),
        ValidationErrorKind::Enum { options } => format!("must be one of {}", options_text(options)),
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        ValidationErrorKind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        ValidationErrorKind::MinLength { limit } => format!("must have at least {}", count(*limit, "character")),
        ValidationErrorKind::MaxLength { limit } => format!("must have at most {}", count(*limit, "character")),
        ValidationErrorKind::MinItems { limit } => format!("must have at least {}", count(*limit, "item")),
        ValidationErrorKind::MaxItems { limit } => format!("must have at most {}", count(*limit, "item")),
        ValidationErrorKind::MinProperties { .. } => "must have at least one property to change".to_owned(),
        ValidationErrorKind::Format { format } if format == "uuid" => "must be a UUID".to_owned(),
        ValidationErrorKind::Format { format } => format!("must have the format {format}"),
        // A pattern is no help to a caller, so the known ones are described in words.
        ValidationErrorKind::Pattern { pattern } => match pattern.as_str() {
            LINE | TEXT => "must not contain control characters".to_owned(),
            VISIBLE => "must have visible ASCII characters only".to_owned(),
            price::PATTERN => amount(price::MOST_PRICE),
            price::BUDGET_PATTERN => amount(price::MOST_BUDGET),
            other => format!("must match the pattern {other}"),
        },
        // Errors of other rules come from the validator. `masked` removes the value, which may be secret.
        _ => error.masked().to_string(),
    }
}

fn count(limit: u64, unit: &str) -> String {
    if limit == 1 {
        format!("{limit} {unit}")
    } else {
        format!("{limit} {unit}s")
    }
}

fn must_be(kind: &TypeKind) -> String {
    let article = |name: &str| match name {
        "null" => "null".to_owned(),
        "integer" | "array" | "object" => format!("an {name}"),
        _ => format!("a {name}"),
    };
    let names: Vec<String> = match kind {
        TypeKind::Single(one) => vec![article(&one.to_string())],
        TypeKind::Multiple(several) => several.iter().map(|one| article(&one.to_string())).collect(),
    };
    format!("must be {}", names.join(" or "))
}

fn options_text(options: &Value) -> String {
    let shown = |option: &Value| match option {
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    };
    options.as_array().map_or_else(String::new, |options| {
        options.iter().map(shown).collect::<Vec<_>>().join(", ")
    })
}
