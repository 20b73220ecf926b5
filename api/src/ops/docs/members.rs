//! Members of inputs and answers, read from their schemas.
//!
//! Invariant: the work and the list are bounded, whatever a schema is.

use pages::DocumentedMember;
use serde_json::Value;

use crate::call::operation::Operation;
use crate::call::spec::ParamLocation;
use crate::rules::reading::MAX_EXACT_INTEGER;

/// Members of a list; further ones are left out.
const MAX_MEMBERS: usize = 120;
/// Depth to which members within members are listed.
const MAX_DEPTH: usize = 4;
/// Words of a choice that are named.
const MAX_WORDS: usize = 12;
/// Keywords whose schemas are ways in which a value may be.
const WAYS: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// Returns the members of an operation that stand in the path, the query and the headers.
pub(super) fn parameters(operation: &Operation) -> Vec<DocumentedMember> {
    let members = operation.input.properties().filter_map(|(name, schema)| {
        let (name, place) = match operation.spec.location_of(name) {
            ParamLocation::Path => (name.as_str(), "path"),
            ParamLocation::Query => (name.as_str(), "query"),
            ParamLocation::Header(header) => (header, "header"),
            ParamLocation::Body => return None,
        };
        let is_required = place != "path" && operation.input.requires(name);
        Some(DocumentedMember {
            name: name.to_owned(),
            note: format!(
                "{place}, {}{}",
                kind(schema),
                if is_required { ", required" } else { "" }
            ),
            meaning: meaning(schema),
        })
    });
    members.collect()
}

/// Returns the members of the body of an operation, with those within them.
pub(super) fn body(operation: &Operation) -> Vec<DocumentedMember> {
    let mut found = Vec::new();
    for (name, schema) in operation.input.properties() {
        if operation.spec.location_of(name) == ParamLocation::Body {
            let is_required = operation.input.requires(name);
            member(name, schema, is_required.then_some(", required"), 1, &mut found);
        }
    }
    bounded(found)
}

/// Returns the members of an answer, with those within them.
pub(super) fn answer(schema: &Value) -> Vec<DocumentedMember> {
    let mut found = Vec::new();
    within(schema, "", 0, &mut found);
    bounded(found)
}

/// Cuts a list that is too long, and says so.
fn bounded(mut found: Vec<DocumentedMember>) -> Vec<DocumentedMember> {
    if found.len() > MAX_MEMBERS {
        found.truncate(MAX_MEMBERS);
        found.push(DocumentedMember {
            name: "…".to_owned(),
            note: String::new(),
            meaning: "Further members stand in `/openapi.json`.".to_owned(),
        });
    }
    found
}

/// Adds a member and those within it.
fn member(name: &str, schema: &Value, note: Option<&str>, depth: usize, found: &mut Vec<DocumentedMember>) {
    if found.len() > MAX_MEMBERS || found.iter().any(|known| known.name == name) {
        return;
    }
    found.push(DocumentedMember {
        name: name.to_owned(),
        note: format!("{}{}", kind(schema), note.unwrap_or_default()),
        meaning: meaning(schema),
    });
    within(schema, name, depth, found);
}

/// Adds the members within a value.
fn within(schema: &Value, name: &str, depth: usize, found: &mut Vec<DocumentedMember>) {
    if depth >= MAX_DEPTH {
        return;
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (inner, schema) in properties {
            let path = if name.is_empty() {
                inner.clone()
            } else {
                format!("{name}.{inner}")
            };
            member(&path, schema, None, depth + 1, found);
        }
    }
    if let Some(items) = schema.get("items") {
        within(items, &format!("{name}[]"), depth, found);
    }
    for way in WAYS.into_iter().filter_map(|way| schema.get(way)?.as_array()).flatten() {
        within(way, name, depth, found);
    }
}

/// Returns the meaning of a member, with what it is if it is absent.
fn meaning(schema: &Value) -> String {
    let said = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let default = schema.get("default").filter(|default| !default.is_null());
    let default = default.map(|default| format!(" If absent, `{default}`."));
    format!("{said}{}", default.unwrap_or_default()).trim_start().to_owned()
}

/// Returns the type of a value in words, with its bounds.
fn kind(schema: &Value) -> String {
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        let named = words.iter().filter(|word| !word.is_null()).take(MAX_WORDS);
        let mut named: Vec<String> = named.map(word).collect();
        if words.len() > MAX_WORDS {
            named.push("…".to_owned());
        }
        return named.join(", ");
    }
    if let Some(one) = schema.get("const") {
        return word(one);
    }
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
        _ => {
            let ways = WAYS.into_iter().filter_map(|way| schema.get(way)?.as_array()).flatten();
            let mut kinds: Vec<String> = Vec::new();
            for kind in ways.map(kind) {
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
            return if kinds.is_empty() {
                "any value".to_owned()
            } else {
                kinds.join(" or ")
            };
        }
    };
    let kinds = types.into_iter().map(|name| of_type(name, schema));
    kinds.collect::<Vec<_>>().join(" or ")
}

/// Returns a value of a choice as code.
fn word(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

/// Returns one of the types of a value in words.
fn of_type(name: &str, schema: &Value) -> String {
    match name {
        "string" => match schema.get("format").and_then(Value::as_str) {
            Some("uuid") => "id".to_owned(),
            Some("date-time") => "time".to_owned(),
            Some("date") => "day".to_owned(),
            _ => format!("text{}", bounds(schema, "minLength", "maxLength", " characters")),
        },
        "integer" => format!("integer{}", bounds(schema, "minimum", "maximum", "")),
        "number" => format!("number{}", bounds(schema, "minimum", "maximum", "")),
        "boolean" => "true or false".to_owned(),
        "array" => format!("list{}", bounds(schema, "minItems", "maxItems", " items")),
        "null" => "null".to_owned(),
        other => other.to_owned(),
    }
}

/// Returns the bounds that a schema has, as words behind the type.
fn bounds(schema: &Value, least: &str, most: &str, unit: &str) -> String {
    let number = |name: &str| schema.get(name).and_then(Value::as_u64);
    // The greatest integer that JSON readers keep bounds nothing that a caller would send.
    let most = number(most).filter(|most| *most < MAX_EXACT_INTEGER);
    match (number(least), most) {
        (Some(least), Some(most)) => format!(", {least} to {most}{unit}"),
        (None, Some(most)) => format!(", at most {most}{unit}"),
        (Some(least), None) if least > 0 => format!(", at least {least}{unit}"),
        _ => String::new(),
    }
}
