//! Arguments of tools as models and their clients write them: the schemas that they can read, and what they mean.
//!
//! Clients take one type for each member, and fill what a model left out with null. The schema that is advertised says
//! less than the one that is enforced, and never more.
//!
//! Invariant: only here is `"12"` a number and null nothing. The dispatcher checks what comes out by the schema of the
//! operation, as strictly as at REST.

use serde_json::{Map, Value};

use crate::call::schema::{coerce, takes, whole};
use crate::rules::reading::MAX_EXACT_INTEGER;

/// Keywords that clients refuse, or that the dispatcher checks while the list has to stay small.
const LEFT_OUT: [&str; 2] = ["additionalProperties", "pattern"];

/// Objects with members that are taken and not advertised, since the list has to stay small.
const UNSAID: [(&str, &[&str]); 1] = [(
    "/properties/schemaDef/properties/fields/items/properties",
    &["title", "description", "unit"],
)];

/// Members whose names say what their descriptions do.
const SAID_BY_NAME: [(&str, &str); 2] = [
    ("slug", "Slug of the project."),
    ("idempotencyKey", "Makes it harmless to repeat the call."),
];

/// Returns the schema of an object as it is advertised.
pub(super) fn advertised(schema: &Value) -> Value {
    let mut schema = schema.clone();
    simplify(&mut schema);
    for (name, description) in SAID_BY_NAME {
        let member = schema.pointer_mut(&format!("/properties/{name}"));
        if let Some(member) = member.and_then(Value::as_object_mut)
            && member.get("description").is_some_and(|said| said == description)
        {
            member.remove("description");
        }
    }
    for (place, unsaid) in UNSAID {
        if let Some(members) = schema.pointer_mut(place).and_then(Value::as_object_mut) {
            members.retain(|name, _| !unsaid.contains(&&**name));
        }
    }
    if let Some(members) = schema.as_object_mut() {
        // That of a type of Rust. The tool has a description of its own.
        members.remove("description");
        // Clients of OpenAI refuse an object without this member.
        members.entry("properties").or_insert_with(|| Map::new().into());
    }
    schema
}

fn simplify(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    for keyword in LEFT_OUT {
        members.remove(keyword);
    }
    // Of formats of texts, Gemini knows this one.
    if members.get("format").is_some_and(|format| format != "date-time") {
        members.remove("format");
    }
    // As a bound it tells a model nothing.
    if members.get("maximum").is_some_and(|most| *most == MAX_EXACT_INTEGER) {
        members.remove("maximum");
    }
    if let Some(Value::Array(types)) = members.get("type") {
        let one = one_of(types);
        if one == "string" {
            // Bounds of the numbers that it may be as well.
            members.remove("minimum");
            members.remove("maximum");
        }
        members.insert("type".to_owned(), one.into());
    }
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.values_mut().for_each(simplify);
    }
    if let Some(items) = members.get_mut("items") {
        simplify(items);
    }
}

/// Returns the type that stands for a list of types: text, which can say all, or the first that is not null.
fn one_of(types: &[Value]) -> String {
    let mut names = types.iter().filter_map(Value::as_str).filter(|name| *name != "null");
    let first = names.next().unwrap_or("string");
    if names.any(|name| name == "string") {
        "string"
    } else {
        first
    }
    .to_owned()
}

/// Returns the arguments of a tool as what they mean under the schema of its operation: a null is absent, and a text is
/// the number or the boolean that the schema wants.
pub(super) fn meant(schema: &Value, arguments: Map<String, Value>) -> Map<String, Value> {
    // Without properties an object is data, whose nulls and texts are what they are.
    let Some(properties) = schema.get("properties") else {
        return arguments;
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|required| required.iter().any(|one| one == name));
    let members = arguments.into_iter().filter_map(|(name, value)| {
        let property = properties.get(&name);
        // A required member that may be null says something with it. Any other null stands for a member left out.
        let is_meant = property.is_some_and(|schema| is_required(&name) && takes(schema, "null"));
        if value.is_null() && !is_meant {
            return None;
        }
        let value = match property {
            Some(schema) => value_of(schema, value),
            None => value,
        };
        Some((name, value))
    });
    members.collect()
}

fn value_of(schema: &Value, value: Value) -> Value {
    match value {
        Value::Object(members) => meant(schema, members).into(),
        Value::Array(items) => match schema.get("items") {
            Some(schema) => items.into_iter().map(|item| value_of(schema, item)).collect(),
            None => items.into(),
        },
        // The advertised type may have no other way to say it.
        Value::String(text) if text == "null" && takes(schema, "null") => Value::Null,
        Value::String(text) if !takes(schema, "string") => coerce(schema, &text),
        other => whole(schema, other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "description": "Of Rust.",
            "additionalProperties": false,
            "properties": {
                "limit": {"type": "integer", "minimum": 1, "maximum": 9_007_199_254_740_991_u64},
                "share": {"type": "number", "maximum": 1},
                "loud": {"type": "boolean"},
                "q": {"type": "string", "pattern": "^a"},
                "price": {"type": ["string", "number", "null"], "minimum": 0, "maximum": 9, "pattern": "^[0-9]"},
                "size": {"type": ["integer", "null"], "minimum": 0},
                "id": {"type": "string", "format": "uuid"},
                "at": {"type": "string", "format": "date-time"},
                "pattern": {"type": "object", "additionalProperties": false, "properties": {
                    "format": {"type": "boolean"},
                }},
                "rows": {"type": "array", "maxItems": 5, "items": {"type": "object", "additionalProperties": true}},
                "levels": {"type": "array", "items": {"type": "integer"}},
            },
            "required": ["limit", "price"],
        })
    }

    #[test]
    fn what_a_name_says_is_not_said_again() {
        let member = |said: &str| json!({"type": "string", "description": said});
        let schema = json!({"type": "object", "properties": {
            "slug": member("Slug of the project."),
            "idempotencyKey": member("Another sentence."),
        }});
        let advertised = advertised(&schema);
        assert_eq!(advertised["properties"]["slug"], json!({"type": "string"}));
        assert_eq!(
            advertised["properties"]["idempotencyKey"],
            member("Another sentence."),
            "what the name does not say stays"
        );
    }

    #[test]
    fn one_type_is_advertised_for_each_member() {
        let expected = json!({
            "type": "object",
            "properties": {
                "limit": {"type": "integer", "minimum": 1},
                "share": {"type": "number", "maximum": 1},
                "loud": {"type": "boolean"},
                "q": {"type": "string"},
                "price": {"type": "string"},
                "size": {"type": "integer", "minimum": 0},
                "id": {"type": "string"},
                "at": {"type": "string", "format": "date-time"},
                "pattern": {"type": "object", "properties": {"format": {"type": "boolean"}}},
                "rows": {"type": "array", "maxItems": 5, "items": {"type": "object"}},
                "levels": {"type": "array", "items": {"type": "integer"}},
            },
            "required": ["limit", "price"],
        });
        assert_eq!(advertised(&schema()), expected);
        assert_eq!(
            advertised(&json!({"type": "object"})),
            json!({"type": "object", "properties": {}})
        );
    }

    #[test]
    fn texts_and_nulls_are_what_they_mean() {
        let read = |arguments: Value| match arguments {
            Value::Object(members) => Value::Object(meant(&schema(), members)),
            other => other,
        };
        for (given, meant) in [
            (
                json!({"limit": "12", "share": "0.5", "loud": "true"}),
                json!({"limit": 12, "share": 0.5, "loud": true}),
            ),
            (
                json!({"limit": "-3", "loud": "false"}),
                json!({"limit": -3, "loud": false}),
            ),
            // A text that is no number or boolean stays a text, and is refused.
            (
                json!({"limit": "12a", "loud": "yes"}),
                json!({"limit": "12a", "loud": "yes"}),
            ),
            (
                json!({"limit": "1.5", "share": ""}),
                json!({"limit": "1.5", "share": ""}),
            ),
            (
                json!({"limit": 12.0, "levels": ["7", 8]}),
                json!({"limit": 12, "levels": [7, 8]}),
            ),
            // A text stays one where a text is taken.
            (json!({"q": "12", "price": "12"}), json!({"q": "12", "price": "12"})),
            (
                json!({"q": null, "share": null, "size": null, "nobody": null}),
                json!({}),
            ),
            (json!({"limit": null, "price": null}), json!({"price": null})),
            (
                json!({"price": "null", "q": "null"}),
                json!({"price": null, "q": "null"}),
            ),
            (
                json!({"pattern": {"format": "true", "more": null}}),
                json!({"pattern": {"format": true}}),
            ),
            // Records are data.
            (
                json!({"rows": [{"n": null, "m": "12"}, null]}),
                json!({"rows": [{"n": null, "m": "12"}, null]}),
            ),
            (json!({"nobody": "12"}), json!({"nobody": "12"})),
        ] {
            assert_eq!(read(given.clone()), meant, "{given}");
        }
    }
}
