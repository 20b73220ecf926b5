//! Input of an operation: path, query, headers and body as one object.
//!
//! Invariant: a member has one place in a request. In any other place it is refused, so a body cannot override the
//! path.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use axum::RequestPartsExt as _;
use axum::body::{Body, HttpBody as _};
use axum::extract::{FromRequest as _, Multipart, Query, RawPathParams, Request};
use bytes::Bytes;
use data_encoding::BASE64;
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{body, takes_body};
use crate::call::answer::{FORM, MULTIPART, OCTET_STREAM};
use crate::call::operation::{CallInput, Operation, check_digits, malformed};
use crate::call::schema::{coerce, takes, whole};
use crate::call::spec::{ApiKind, ParamLocation};
use crate::config::Limits;
use crate::error::{ApiError, ErrorDetail};
use crate::state::bodies::BodyReservation;

/// Field of every form that carries the token of the session.
const FORM_TOKEN: &str = "form_token";

/// Reads the input of `operation`, its body into the reservation. Fails if the path is no text; any other violation is
/// in the input.
pub(super) async fn read(
    operation: &Operation,
    parts: &mut Parts,
    body: &mut Body,
    limits: &Limits,
    reservation: BodyReservation,
) -> Result<CallInput, ApiError> {
    let mut reader = InputReader {
        operation,
        input: Map::new(),
        raw_body: None,
        form_token: None,
        details: Vec::new(),
    };
    reader.path(parts).await?;
    // The path names the item. Its visibility decides if the caller learns of a violation in the rest.
    let refused = match reader.rest(parts, body, limits, reservation).await {
        Err(error) => Some(error),
        // All violations are collected, so that a caller can repair them in one step.
        Ok(()) if reader.details.is_empty() => None,
        Ok(()) => Some(ApiError::invalid_all(reader.details)),
    };
    Ok(CallInput {
        members: reader.input,
        body: reader.raw_body,
        refused,
        form_token: reader.form_token,
    })
}

struct InputReader<'a> {
    operation: &'a Operation,
    input: Map<String, Value>,
    /// The body, if the input contains an outline of it.
    raw_body: Option<Bytes>,
    /// Token of the session, if a form carries one.
    form_token: Option<String>,
    details: Vec<ErrorDetail>,
}

impl InputReader<'_> {
    async fn path(&mut self, parts: &mut Parts) -> Result<(), ApiError> {
        if !self.operation.spec.path.contains('{') {
            return Ok(());
        }
        // A path that is not valid text names nothing, so the answer is 404.
        let segments: RawPathParams = parts
            .extract()
            .await
            .map_err(|_rejection| ApiError::not_found("there is nothing at this path"))?;
        for (name, text) in &segments {
            self.put_text(name, text);
        }
        Ok(())
    }

    /// Reads what follows the path. A body is read only if the operation has one.
    async fn rest(
        &mut self,
        parts: &Parts,
        body: &mut Body,
        limits: &Limits,
        reservation: BodyReservation,
    ) -> Result<(), ApiError> {
        if !self.operation.spec.opaque {
            self.query(parts)?;
        }
        self.headers(&parts.headers);
        let spec = &self.operation.spec;
        // The form of a page without members still carries the token of its session.
        let is_form = spec.takes == [FORM] || spec.takes == [MULTIPART];
        if !takes_body(&parts.method) || !(self.operation.has_body() || is_form) {
            return Ok(());
        }
        // A request without a body needs no media type.
        if !body.is_end_stream() {
            media_type(&parts.headers, spec.takes)?;
        }
        let limit = spec.body.limit(limits);
        let patience = limits.body_patience.0;
        let bytes = body::read(&parts.headers, body, limit, reservation, patience).await?;
        if spec.takes == [MULTIPART] {
            let fields = multipart(&parts.headers, bytes).await?;
            self.fields(&fields);
            return Ok(());
        }
        self.body(&parts.headers, &bytes)
    }

    fn query(&mut self, parts: &Parts) -> Result<(), ApiError> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
            .map_err(|_rejection| ApiError::invalid("", "has a query that is not URL-encoded"))?;
        let spec = &self.operation.spec;
        let mut seen = HashSet::new();
        for (name, text) in &pairs {
            let is_known = self.operation.input.property(name).is_some();
            // Links to pages and documents grow parameters on the way that mean nothing to this service.
            if !is_known && (spec.lenient || spec.surface == ApiKind::Page) {
                continue;
            }
            // A form that asks sends the name of a group of checkboxes once for each that is checked.
            let is_list = spec.surface == ApiKind::Page && self.is_list(name);
            // Repeated parameters are refused, since readers disagree on which of them counts.
            if !seen.insert(name) && !is_list {
                self.refuse(name, "must be given once");
            } else if !is_known {
                self.refuse(name, "is not a known query parameter");
            } else if self.operation.spec.location_of(name) != ParamLocation::Query {
                self.refuse(name, "is not a query parameter");
            } else if is_list {
                self.push_text(name, text);
            } else {
                self.put_text(name, text);
            }
        }
        Ok(())
    }

    /// Returns true if a member is a list of texts.
    fn is_list(&self, name: &str) -> bool {
        let schema = self.operation.input.property(name);
        schema.is_some_and(|schema| takes(schema, "array"))
    }

    /// Adds a text to a member that is a list.
    fn push_text(&mut self, name: &str, text: &str) {
        let list = self.input.entry(name).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(items) = list {
            items.push(text.into());
        }
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
            // A compressed body could exceed every limit after decompression.
            return Err(ApiError::invalid("", "must have a body without Content-Encoding"));
        }
        if self.operation.spec.opaque {
            self.raw_body = Some(bytes.clone());
            return Ok(());
        }
        // The bytes of a file, whatever they are.
        if self.operation.spec.takes.contains(&OCTET_STREAM) && is_octet_stream(headers) {
            self.raw_body = Some(bytes.clone());
            return Ok(());
        }
        // A body of white space counts as none. The schema then reports the members that are missing.
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        if self.operation.spec.takes == [FORM] {
            return self.form(bytes);
        }
        if self.operation.spec.takes.contains(&OCTET_STREAM) && !is_small_beside(bytes, &FILE_MEMBERS) {
            let problem = format!("must have at most {MOST_BESIDE_FILE} bytes beside `text` and `base64`");
            return Err(ApiError::invalid("", problem));
        }
        let outline = self.operation.spec.raw_body_member;
        let outline = outline.and_then(|member| types::json::outline(bytes, member));
        let members = if let Some(outline) = outline {
            self.raw_body = Some(bytes.clone());
            outline
        } else {
            match types::json::parse(bytes).map_err(malformed)? {
                Value::Object(members) => members,
                _ => return Err(ApiError::invalid("", "must have a JSON object as its body")),
            }
        };
        check_digits(self.operation, bytes)?;
        for (name, value) in members {
            match self.operation.spec.location_of(&name) {
                ParamLocation::Body => {
                    let value = match self.operation.input.property(&name) {
                        Some(schema) => whole(schema, value),
                        None => value,
                    };
                    self.input.insert(name, value);
                }
                ParamLocation::Path => self.refuse(&name, "is in the path and must not be in the body"),
                ParamLocation::Query => self.refuse(&name, "is a query parameter and must not be in the body"),
                ParamLocation::Header(header) => {
                    self.refuse(&name, format!("is the header {header} and must not be in the body"));
                }
            }
        }
        Ok(())
    }

    /// Reads a body that a browser's form made.
    fn form(&mut self, bytes: &Bytes) -> Result<(), ApiError> {
        let pairs: Vec<(String, String)> = serde_urlencoded::from_bytes(bytes)
            .map_err(|_malformed| ApiError::invalid("", "must have a URL-encoded form as its body"))?;
        self.fields(&pairs);
        Ok(())
    }

    /// Reads the fields of a form.
    fn fields(&mut self, pairs: &[(String, String)]) {
        let mut seen = HashSet::new();
        for (name, text) in pairs {
            // A group of checkboxes sends its name once for each that is checked.
            let is_list = self.is_list(name);
            if !seen.insert(name) && !is_list {
                self.refuse(name, "must be given once");
            } else if name == FORM_TOKEN {
                self.form_token = Some(text.clone());
            } else if self.operation.spec.location_of(name) != ParamLocation::Body {
                self.refuse(name, "is not a field of the form");
            } else if is_list {
                self.push_text(name, text);
            } else {
                self.put_text(name, text);
            }
        }
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
        self.details.push(ErrorDetail {
            path,
            problem: problem.into(),
        });
    }
}

/// Members of a body that are a file.
const FILE_MEMBERS: [&str; 2] = ["text", "base64"];
/// The most bytes of a body beside its file: values of JSON take many times their text.
const MOST_BESIDE_FILE: usize = 1 << 20;

/// Returns true if the members of an object that are not `large` are small together. Nothing is built of them. A text that
/// is no object is left to the parser.
fn is_small_beside(bytes: &[u8], large: &'static [&'static str]) -> bool {
    struct Members(&'static [&'static str]);

    impl<'de> Visitor<'de> for Members {
        type Value = bool;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<bool, A::Error> {
            let mut beside = 0;
            while let Some((name, value)) = members.next_entry::<Cow<'_, str>, &RawValue>()? {
                if !self.0.contains(&&*name) {
                    beside += name.len() + value.get().len();
                }
            }
            Ok(beside <= MOST_BESIDE_FILE)
        }
    }

    let mut text = serde_json::Deserializer::from_slice(bytes);
    text.deserialize_map(Members(large))
        .unwrap_or(bytes.len() <= MOST_BESIDE_FILE)
}

/// Returns the fields of a form with a file (RFC 7578). A file is its bytes in Base64, and its name is the field `…_name`.
async fn multipart(headers: &HeaderMap, body: Bytes) -> Result<Vec<(String, String)>, ApiError> {
    let broken = || ApiError::invalid("", "must have a form of the type `multipart/form-data` as its body");
    let mut request = Request::new(Body::from(body));
    if let Some(given) = headers.get(header::CONTENT_TYPE) {
        // The boundary is a parameter of the type.
        request.headers_mut().insert(header::CONTENT_TYPE, given.clone());
    }
    let mut parts = Multipart::from_request(request, &())
        .await
        .map_err(|_rejection| broken())?;
    let mut fields = Vec::new();
    while let Some(part) = parts.next_field().await.map_err(|_broken| broken())? {
        let name = part.name().unwrap_or_default().to_owned();
        let file = part.file_name().map(str::to_owned);
        let bytes = part.bytes().await.map_err(|_broken| broken())?;
        match file {
            Some(file) => {
                fields.push((format!("{name}_name"), file));
                fields.push((name, BASE64.encode(&bytes)));
            }
            None => match String::from_utf8(bytes.into()) {
                Ok(text) => fields.push((name, text)),
                Err(_not_text) => return Err(broken()),
            },
        }
    }
    Ok(fields)
}

/// Returns true if a body is said to be bytes. [`media_type`] has accepted its type.
fn is_octet_stream(headers: &HeaderMap) -> bool {
    let given = headers.get(header::CONTENT_TYPE).and_then(|given| given.to_str().ok());
    let essence = given.and_then(|given| given.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(OCTET_STREAM)
}

/// Refuses a body of a media type that the operation does not accept, or in an encoding other than UTF-8. A body
/// without a type is taken for one of the first accepted type (RFC 9110 section 8.3).
pub(super) fn media_type(headers: &HeaderMap, takes: &[&str]) -> Result<(), ApiError> {
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
