//! What a caller is told when an operation fails.
//!
//! Invariant: only `code`, `message`, the case fields, the details and the headers leave the service; `context` goes to
//! the log and has no other way out. A failure of the service itself always reads the same, with the request's id.

use http::StatusCode;
use http::header::{self, HeaderName, HeaderValue};
use serde_json::{Map, Value, json};
use types::{Classify, Kind};

/// The sentence of every failure that is a defect of the service.
const INTERNAL: &str = "the service failed to answer; tell its operator the request id";
/// The sentence of every failure of a part that may come back.
const UNAVAILABLE: &str = "a part of the service is not available; try again shortly";
/// Seconds after which to try again when a part is down.
const UNAVAILABLE_RETRY_SECONDS: u64 = 2;
/// The sentence of every failure for a damaged file of a table.
const DAMAGED: &str = "a file of the dataset is damaged and is not served until it is restored; tell the service's operator \
                       the request id";
/// Seconds after which to try again when a file is damaged: somebody has to restore it.
const DAMAGED_RETRY_SECONDS: u64 = 60;
/// Seconds after which to try again what was just merged elsewhere.
const NOT_YET_RETRY_SECONDS: u64 = 1;
/// Seconds after which to try again what only a person can mend.
const HISTORY_LOST_RETRY_SECONDS: u64 = 60;
/// The most details an answer carries.
pub(crate) const MAX_DETAILS: usize = 20;
/// The most bytes of a path that an answer repeats; the longest that a legal input has is shorter.
const LONGEST_PATH: usize = 1_024;

/// One place of the request that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    /// JSON pointer (RFC 6901) into the input; empty for the whole of it.
    pub path: String,
    /// The rule, as what must hold.
    pub problem: String,
}

/// Why an operation has no result.
#[derive(Debug)]
pub struct ApiError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: Kind,
    status: StatusCode,
    code: &'static str,
    message: String,
    fields: Map<String, Value>,
    details: Vec<Detail>,
    headers: Vec<(HeaderName, HeaderValue)>,
    context: Option<String>,
}

impl ApiError {
    /// An error of this kind with a machine code and a sentence for the caller.
    pub fn new(kind: Kind, code: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            status: status(kind),
            code,
            message: message.into(),
            fields: Map::new(),
            details: Vec::new(),
            headers: Vec::new(),
            context: None,
        }))
    }

    /// The request breaks a rule at `path`.
    pub fn invalid(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::invalid_all(vec![Detail {
            path: path.into(),
            problem: problem.into(),
        }])
    }

    /// The request breaks these rules; the message names the first.
    pub fn invalid_all(mut details: Vec<Detail>) -> Self {
        details.truncate(MAX_DETAILS);
        for detail in &mut details {
            shorten(&mut detail.path);
        }
        let message = match details.first() {
            None => "the request does not match its schema".to_owned(),
            Some(Detail { path, problem }) if path.is_empty() => format!("the request {problem}"),
            Some(Detail { path, problem }) => format!("`{path}` {problem}"),
        };
        let mut error = Self::new(Kind::Invalid, "invalid_request", message);
        error.0.details = details;
        error
    }

    /// There is no such thing, or the caller may not know that there is.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, "not_found", message)
    }

    /// No project of this slug that the caller may see. The only sentence for a missing and for a hidden one.
    pub fn no_project(slug: &str) -> Self {
        Self::not_found(format!("there is no project `{slug}`"))
    }

    /// It contradicts the current state.
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Kind::Conflict, code, message)
    }

    /// A limit is used up for `seconds` more (at least 1): sets `Retry-After` and `retryAfter`.
    pub fn limited(code: &'static str, message: impl Into<String>, seconds: u64) -> Self {
        let seconds = seconds.max(1);
        Self::new(Kind::Limited, code, message)
            .field("retryAfter", seconds)
            .header(header::RETRY_AFTER, HeaderValue::from(seconds))
    }

    /// A defect of the service; `context` is for the log only.
    pub fn internal(context: impl std::fmt::Display) -> Self {
        Self::new(Kind::Internal, "internal", INTERNAL).context(context)
    }

    /// A part of the service is down; `context` is for the log only.
    pub fn unavailable(context: impl std::fmt::Display) -> Self {
        Self::new(Kind::Unavailable, "unavailable", UNAVAILABLE)
            .field("retryAfter", UNAVAILABLE_RETRY_SECONDS)
            .header(header::RETRY_AFTER, HeaderValue::from(UNAVAILABLE_RETRY_SECONDS))
            .context(context)
    }

    /// A file that the answer needs is not what was written; `context` is for the log only.
    pub fn damaged(context: impl std::fmt::Display) -> Self {
        Self::new(Kind::Damaged, "table_damaged", DAMAGED)
            .header(header::RETRY_AFTER, HeaderValue::from(DAMAGED_RETRY_SECONDS))
            .context(context)
    }

    /// Adds a field of the case to the body.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.fields.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a header to the answer.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    /// Replaces the code, for an invalid request with a case of its own.
    #[must_use]
    pub fn code(mut self, code: &'static str) -> Self {
        self.0.code = code;
        self
    }

    /// There is such a thing, but not here yet: it can be read in a second.
    pub fn not_yet(message: impl Into<String>) -> Self {
        Self::new(Kind::Unavailable, "not_yet", message)
            .field("retryAfter", NOT_YET_RETRY_SECONDS)
            .header(header::RETRY_AFTER, HeaderValue::from(NOT_YET_RETRY_SECONDS))
    }

    /// Replaces what the error means.
    #[must_use]
    pub(crate) fn with_kind(mut self, kind: Kind) -> Self {
        self.0.kind = kind;
        self
    }

    /// The table of a dataset lacks a version that the service has told of: nothing of it is read until it is restored, or an
    /// administrator accepts the loss.
    pub fn history_lost(slug: &str) -> Self {
        let message = format!(
            "the table of `{slug}` lacks versions that it had; nothing of it is answered until the operators of the \
             service restore it or accept the loss"
        );
        Self::new(Kind::Unavailable, "history_lost", message)
            .field("retryAfter", HISTORY_LOST_RETRY_SECONDS)
            .header(header::RETRY_AFTER, HeaderValue::from(HISTORY_LOST_RETRY_SECONDS))
    }

    /// Replaces the status, for a case HTTP has a status of its own for.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.0.status = status;
        self
    }

    /// The same for a transport that takes members in `headers`: a detail names the header, not the member.
    #[must_use]
    pub(crate) fn naming_headers(mut self, headers: &[(&str, &str)]) -> Self {
        for (member, header) in headers {
            let (member, header) = (format!("/{member}"), format!("/{header}"));
            for detail in self.0.details.iter_mut().filter(|detail| detail.path == member) {
                detail.path.clone_from(&header);
                self.0.message = self
                    .0
                    .message
                    .replacen(&format!("`{member}`"), &format!("`{header}`"), 1);
            }
        }
        self
    }

    /// Says what really happened, for the log.
    #[must_use]
    pub fn context(mut self, context: impl std::fmt::Display) -> Self {
        self.0.context = Some(context.to_string());
        self
    }

    /// What the error means, independent of the transport.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// The machine code.
    pub fn machine_code(&self) -> &'static str {
        self.0.code
    }

    /// The sentence for the caller.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The headers of the answer.
    pub fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.0.headers
    }

    /// What to log, where there is something the caller is not told.
    pub fn log_context(&self) -> Option<&str> {
        self.0.context.as_deref()
    }

    /// The body of the answer: `{error, message, …case fields, details?, requestId?}`.
    pub fn body(&self, request_id: &str) -> Value {
        let mut body = Map::new();
        body.insert("error".to_owned(), self.0.code.into());
        body.insert("message".to_owned(), self.0.message.clone().into());
        for (name, value) in &self.0.fields {
            body.insert(name.clone(), value.clone());
        }
        if !self.0.details.is_empty() {
            let details = self.0.details.iter();
            let details = details.map(|detail| json!({"path": detail.path, "problem": detail.problem}));
            body.insert("details".to_owned(), details.collect());
        }
        if self.0.status.is_server_error() {
            body.insert("requestId".to_owned(), request_id.into());
        }
        Value::Object(body)
    }
}

/// The HTTP status of a kind.
pub const fn status(kind: Kind) -> StatusCode {
    match kind {
        Kind::Invalid => StatusCode::BAD_REQUEST,
        Kind::Unauthenticated => StatusCode::UNAUTHORIZED,
        Kind::PaymentRequired => StatusCode::PAYMENT_REQUIRED,
        Kind::Forbidden => StatusCode::FORBIDDEN,
        Kind::NotFound => StatusCode::NOT_FOUND,
        Kind::Conflict => StatusCode::CONFLICT,
        Kind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Kind::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
        Kind::Limited => StatusCode::TOO_MANY_REQUESTS,
        Kind::Unavailable | Kind::Damaged => StatusCode::SERVICE_UNAVAILABLE,
        Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Cuts what a caller sent to a length that is worth sending back.
fn shorten(text: &mut String) {
    if text.len() > LONGEST_PATH {
        text.truncate(text.floor_char_boundary(LONGEST_PATH));
        text.push('…');
    }
}

/// An error with its causes, outermost first: for the log.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// A failure of a plane below: the caller learns only whether trying again can help.
fn below(error: &(impl Classify + std::error::Error)) -> ApiError {
    match error.kind() {
        Kind::Unavailable => ApiError::unavailable(chain(error)),
        Kind::Damaged => ApiError::damaged(chain(error)),
        _ => ApiError::internal(chain(error)),
    }
}

impl From<store::Error> for ApiError {
    fn from(error: store::Error) -> Self {
        below(&error)
    }
}

impl From<crate::keys::Error> for ApiError {
    fn from(error: crate::keys::Error) -> Self {
        below(&error)
    }
}

impl From<proof::Error> for ApiError {
    fn from(error: proof::Error) -> Self {
        Self::internal(chain(&error))
    }
}

impl From<catalog::Error> for ApiError {
    fn from(error: catalog::Error) -> Self {
        below(&error)
    }
}

#[cfg(test)]
mod tests;
