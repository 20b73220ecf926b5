//! Idempotency keys of operations that make something, as their schemas and answers show them.
//!
//! Invariant: the answer for what an earlier call made says so.

use http::StatusCode;
use serde_json::{Value, json};

use super::answer::OperationOutput;
use super::schema::VISIBLE;
use crate::error::ApiError;

/// Member of the input that carries the key.
pub(crate) const MEMBER: &str = "idempotencyKey";
/// Header of that member.
pub(crate) const HEADERS: &[(&str, &str)] = &[(MEMBER, "Idempotency-Key")];

/// Returns the member with its schema.
pub(crate) fn member() -> (&'static str, Value) {
    let schema = json!({
        "type": "string",
        "minLength": 1,
        "maxLength": 255,
        "pattern": VISIBLE,
        "description": "Makes it harmless to repeat the call.",
    });
    (MEMBER, schema)
}

/// Returns the schema of an answer with the mark of a replay.
pub(crate) fn marked_schema(mut schema: Value) -> Value {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let description = "Present and true when the answer is for an earlier call with the same idempotency key.";
        properties.insert(
            "replayed".to_owned(),
            json!({"type": "boolean", "description": description}),
        );
    }
    schema
}

/// Returns the schema of an answer with its types by name, marked likewise. Its name is another than that of the thing,
/// which other operations show without the mark.
pub(crate) fn marked_named(mut named: Value) -> Value {
    if let Some(Value::String(title)) = named.get_mut("title") {
        title.insert_str(0, "Made");
    }
    marked_schema(named)
}

/// Returns an answer as that of a replay: 200, and `replayed`.
pub(crate) fn marked(output: OperationOutput) -> Result<OperationOutput, ApiError> {
    let OperationOutput::Whole {
        headers,
        content_type,
        body,
        ..
    } = output
    else {
        return Err(ApiError::internal("a replay is streamed"));
    };
    let unreadable = |error| ApiError::internal(format!("answer: {error}"));
    let mut answer: Value = serde_json::from_slice(&body).map_err(unreadable)?;
    answer["replayed"] = true.into();
    Ok(OperationOutput::Whole {
        status: StatusCode::OK,
        headers,
        content_type,
        body: serde_json::to_vec(&answer).map_err(unreadable)?.into(),
    })
}
