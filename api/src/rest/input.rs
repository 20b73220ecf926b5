//! Path, query, headers and body as the one object an operation takes.
//!
//! Invariant: a member of the input has one place; given in another it is refused, so nothing can be smuggled past the
//! path by the body.

use std::collections::HashSet;
use std::time::Duration;

use axum::RequestPartsExt as _;
use axum::body::{Body, HttpBody as _};
use axum::extract::{Query, RawPathParams};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use serde_json::{Map, Value};

use super::{body, takes_body};
use crate::bodies::Room;
use crate::config::Limits;
use crate::error::{ApiError, Detail};
use crate::operation::{BodySize, Input, Operation, Place};
use crate::schema::{coerce, takes, whole};

/// Reads the input of `operation`; the body, into its room, only where the operation has one.
pub(super) async fn read(
    operation: &Operation,
    parts: &mut Parts,
    body: &mut Body,
    limits: &Limits,
    room: Room,
) -> Result<Input, ApiError> {
    let mut reader = Reader {
        operation,
        input: Map::new(),
        outlined: None,
        details: Vec::new(),
    };
    reader.path(parts).await?;
    reader.query(parts)?;
    reader.headers(&parts.headers);
    if takes_body(&parts.method) && operation.has_body() {
        if !body.is_end_stream() {
            media_type(&parts.headers, operation.spec.takes)?;
        }
        let limit = match operation.spec.body {
            BodySize::Ordinary => limits.body_bytes,
            BodySize::Batch => limits.contribution_bytes,
        };
        let patience = Duration::from_secs(limits.body_patience_seconds.into());
        let bytes = body::read(&parts.headers, body, limit, room, patience).await?;
        reader.body(&parts.headers, &bytes)?;
    }
    if reader.details.is_empty() {
        Ok(Input {
            members: reader.input,
            body: reader.outlined,
        })
    } else {
        Err(ApiError::invalid_all(reader.details))
    }
}

struct Reader<'a> {
    operation: &'a Operation,
    input: Map<String, Value>,
    /// The body, where the input has only an outline of it.
    outlined: Option<Bytes>,
    details: Vec<Detail>,
}

impl Reader<'_> {
    async fn path(&mut self, parts: &mut Parts) -> Result<(), ApiError> {
        if !self.operation.spec.path.contains('{') {
            return Ok(());
        }
        // Why not found: a path that is not text names nothing.
        let segments: RawPathParams = parts
            .extract()
            .await
            .map_err(|_rejection| ApiError::not_found("there is nothing at this path"))?;
        for (name, text) in &segments {
            self.put_text(name, text);
        }
        Ok(())
    }

    fn query(&mut self, parts: &Parts) -> Result<(), ApiError> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
            .map_err(|_rejection| ApiError::invalid("", "has a query that is not URL-encoded"))?;
        let mut seen = HashSet::new();
        for (name, text) in &pairs {
            if !seen.insert(name) {
                self.refuse(name, "must be given once");
            } else if self.operation.input.property(name).is_none() {
                self.refuse(name, "is not a known query parameter");
            } else if self.operation.spec.place(name) == Place::Query {
                self.put_text(name, text);
            } else {
                self.refuse(name, "is not a query parameter");
            }
        }
        Ok(())
    }

    fn headers(&mut self, headers: &HeaderMap) {
        for (name, header) in self.operation.spec.headers {
            let values = headers.get_all(*header).iter().map(HeaderValue::to_str);
            let Ok(values) = values.collect::<Result<Vec<_>, _>>() else {
                self.refuse(name, "must have visible ASCII characters only");
                continue;
            };
            let schema = self.operation.input.property(name);
            match *values {
                [] => {}
                // A list may be given in several headers (RFC 9110 section 5.3).
                _ if schema.is_some_and(|schema| takes(schema, "array")) => {
                    self.input.insert((*name).to_owned(), values.into());
                }
                [text] => self.put_text(name, text),
                _ => self.refuse(name, "must be given once"),
            }
        }
    }

    fn body(&mut self, headers: &HeaderMap, bytes: &Bytes) -> Result<(), ApiError> {
        if headers
            .get(header::CONTENT_ENCODING)
            .is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
        {
            return Err(ApiError::invalid("", "must have a body without Content-Encoding"));
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let outline = self.operation.spec.outlined;
        let outline = outline.and_then(|member| types::json::outline(bytes, member));
        let members = if let Some(outline) = outline {
            self.outlined = Some(bytes.clone());
            outline
        } else {
            match types::json::parse(bytes).map_err(malformed)? {
                Value::Object(members) => members,
                _ => return Err(ApiError::invalid("", "must have a JSON object as its body")),
            }
        };
        for (name, value) in members {
            match self.operation.spec.place(&name) {
                Place::Body => {
                    let value = match self.operation.input.property(&name) {
                        Some(schema) => whole(schema, value),
                        None => value,
                    };
                    self.input.insert(name, value);
                }
                Place::Path => self.refuse(&name, "is in the path and must not be in the body"),
                Place::Query => self.refuse(&name, "is a query parameter and must not be in the body"),
                Place::Header(header) => {
                    self.refuse(&name, format!("is the header {header} and must not be in the body"));
                }
            }
        }
        Ok(())
    }

    fn put_text(&mut self, name: &str, text: &str) {
        let value = match self.operation.input.property(name) {
            Some(schema) => coerce(schema, text),
            None => Value::String(text.to_owned()),
        };
        self.input.insert(name.to_owned(), value);
    }

    fn refuse(&mut self, name: &str, problem: impl Into<String>) {
        let mut path = String::new();
        types::json::push_pointer(&mut path, name);
        self.details.push(Detail {
            path,
            problem: problem.into(),
        });
    }
}

/// A body that is not JSON.
fn malformed(error: types::json::JsonError) -> ApiError {
    ApiError::invalid(error.path, format!("is not strict JSON: {}", error.problem)).code("malformed_json")
}

/// Refuses a body of another type than the operation takes, or in another encoding than UTF-8. A body without a type is
/// taken for one of the first (RFC 9110 section 8.3).
fn media_type(headers: &HeaderMap, takes: &[&str]) -> Result<(), ApiError> {
    let Some(given) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let mut parts = given.to_str().unwrap_or_default().split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    let is_text = parts.all(|parameter| match parameter.split_once('=') {
        Some((name, value)) if name.eq_ignore_ascii_case("charset") => {
            value.trim_matches('"').eq_ignore_ascii_case("utf-8")
        }
        _ => true,
    });
    if is_text && takes.iter().any(|taken| taken.eq_ignore_ascii_case(essence)) {
        return Ok(());
    }
    let taken: Vec<_> = takes.iter().map(|taken| format!("`Content-Type: {taken}`")).collect();
    Err(ApiError::invalid(
        "",
        format!("must have a body in UTF-8, sent with {}", taken.join(" or ")),
    ))
}
