//! The form on the page of an operation that sends its call.
//!
//! Invariant: only calls that anybody makes, that read, and that no limit counts are tried, without any credential: a link to
//! such a page does for its reader what the address of the call itself does.

use http::{Method, StatusCode};
use pages::{SampleTrial, TrialAnswer, TrialField};
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::samples::SampleCall;
use crate::call::answer::{JSON, OperationOutput};
use crate::call::cx::Cx;
use crate::call::operation::Operation;
use crate::call::schema::coerce;
use crate::call::spec::{ApiKind, CallRate, Credential, Effect, GuardedItem, ParamLocation};
use crate::error::ApiError;

/// Member of the query by which the form is sent.
const SENT: &str = "try";
/// Bytes of an answer that are shown.
const MAX_SHOWN_BYTES: usize = 6_000;

/// Returns true if the call of an operation can be tried by anybody.
pub(super) fn is_open(operation: &Operation) -> bool {
    let spec = &operation.spec;
    let is_public = !spec.reads_credential() || spec.accepts(Credential::Anonymous);
    let is_plain = spec.limits.is_empty() && !spec.lenient && !spec.egress && spec.rate == CallRate::Call;
    let in_query = |name: &String| spec.location_of(name) == ParamLocation::Query;
    spec.surface == ApiKind::Rest
        && spec.method == Method::GET
        && spec.effect == Effect::Read
        && spec.item == GuardedItem::None
        && operation.content_type == JSON
        && is_public
        && is_plain
        && operation.input.properties().all(|(name, _)| in_query(name))
}

/// Returns the fields of the form, with the values of a query, or of the sample.
pub(super) fn fields(operation: &Operation, query: Option<&str>) -> Vec<TrialField> {
    let sample = SampleCall::of(operation, "");
    let value = |name: &str| match query {
        Some(query) => given(query, name).unwrap_or_default(),
        None => sample
            .members
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            .unwrap_or_default(),
    };
    let fields = operation.input.properties().map(|(name, schema)| {
        let words = schema.get("enum").and_then(Value::as_array);
        TrialField {
            name: name.clone(),
            value: value(name),
            choices: words
                .into_iter()
                .flatten()
                .filter_map(|word| word.as_str().map(str::to_owned))
                .collect(),
        }
    });
    fields.collect()
}

/// Returns the last value of a member of a query.
fn given(query: &str, name: &str) -> Option<String> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    let values = pairs.filter(|(known, _)| known == name);
    values.last().map(|(_, value)| value.into_owned())
}

/// Sends the call of the form, if the query is that of a form that was sent.
pub(super) async fn tried(cx: &Cx, operation: &Operation, query: &str) -> Result<Option<SampleTrial>, ApiError> {
    if !is_open(operation) || given(query, SENT).is_none() {
        return Ok(None);
    }
    let begun = cx.app.clock.now();
    let (status, body) = match send(cx, operation, query).await {
        Ok(OperationOutput::Whole { status, body, .. }) => {
            let value: Value = serde_json::from_slice(&body)
                .map_err(|error| ApiError::internal(format!("answer that is tried: {error}")))?;
            (status, value)
        }
        // No operation that is open answers with a stream.
        Ok(OperationOutput::Stream { status, .. }) => (status, Value::Null),
        Err(error) => (error.status(), error.body(&cx.request_id)),
    };
    let spent = cx.app.clock.now().since(begun);
    Ok(Some(SampleTrial {
        fields: fields(operation, Some(query)),
        answer: Some(shown(
            status,
            &body,
            u64::try_from(spent.as_millis()).unwrap_or(u64::MAX),
        )?),
    }))
}

async fn send(cx: &Cx, operation: &Operation, query: &str) -> Result<OperationOutput, ApiError> {
    let mut members: Map<String, Value> = Map::new();
    for (name, schema) in operation.input.properties() {
        // A field that was left empty is a member that is not there.
        if let Some(text) = given(query, name).filter(|text| !text.is_empty()) {
            members.insert(name.clone(), coerce(schema, &text));
        }
    }
    let input = Value::Object(members);
    operation.input.check(&input, operation.spec.immutable)?;
    let anybody = Cx {
        caller: None,
        visit: None,
        ..cx.clone()
    };
    (operation.call)(anybody, input).await
}

/// Returns an answer as the page shows it.
fn shown(status: StatusCode, body: &Value, millis: u64) -> Result<TrialAnswer, ApiError> {
    let compact = body.to_string().len();
    let mut text = serde_json::to_string_pretty(body)
        .map_err(|error| ApiError::internal(format!("answer that is tried: {error}")))?;
    let is_cut = text.len() > MAX_SHOWN_BYTES;
    if is_cut {
        text.truncate(text.floor_char_boundary(MAX_SHOWN_BYTES));
        text.push_str("\n…");
    }
    Ok(TrialAnswer {
        status: status.as_u16(),
        millis,
        bytes: u64::try_from(compact).unwrap_or(u64::MAX),
        text,
        is_cut,
    })
}
