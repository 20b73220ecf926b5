//! Errors of operations, as callers and the log see them.
//!
//! Invariant: only `code`, `message`, the case fields, the details and the headers leave the service; `context` goes to
//! the log only. Every internal error has the same text, with the id of the request.

use std::time::Duration;

use http::StatusCode;
use http::header::{self, HeaderName, HeaderValue};
use serde_json::{Map, Value, json};
use types::error::with_causes;
use types::{Classify, Kind};

use crate::codes::ErrorCode;

/// Message of every error that is a defect of the service.
const INTERNAL: &str = "the service failed to answer; tell its operator the request id";
/// Message of every error of a dependency that may recover.
const UNAVAILABLE: &str = "a part of the service is not available; try again shortly";
/// `Retry-After` when a dependency is down, in seconds.
const UNAVAILABLE_RETRY_SECONDS: u64 = 2;
/// Message of every error caused by a damaged file of a table.
const DAMAGED: &str = "a file of the dataset is damaged and is not served until it is restored; tell the service's operator \
                       the request id";
/// `Retry-After` when a file is damaged, in seconds. An operator of the service must restore it.
const DAMAGED_RETRY_SECONDS: u64 = 60;
/// `Retry-After` for a version that was just merged elsewhere, in seconds.
const NOT_YET_RETRY_SECONDS: u64 = 1;
/// `Retry-After` for a fault that a person must repair, in seconds.
const HISTORY_LOST_RETRY_SECONDS: u64 = 60;
/// Greatest number of details in an answer.
pub(crate) const MAX_DETAILS: usize = 20;
/// Greatest length in bytes of a path in an answer. The paths of valid inputs are shorter.
const MAX_PATH_BYTES: usize = 1_024;

/// Place of the request that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorDetail {
    /// JSON pointer (RFC 6901) into the input; empty for the whole of it.
    pub path: String,
    /// Rule that the place breaks, as a predicate such as "must be …".
    pub problem: String,
}

/// Error of an operation.
#[derive(Debug)]
pub struct ApiError(Box<ErrorParts>);

#[derive(Debug)]
struct ErrorParts {
    kind: Kind,
    status: StatusCode,
    code: ErrorCode,
    message: String,
    fields: Map<String, Value>,
    details: Vec<ErrorDetail>,
    headers: Vec<(HeaderName, HeaderValue)>,
    context: Option<String>,
}

impl ApiError {
    /// Creates an error of this code, with its kind and status and a sentence for the caller.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorParts {
            kind: code.kind(),
            status: code.status(),
            code,
            message: message.into(),
            fields: Map::new(),
            details: Vec::new(),
            headers: Vec::new(),
            context: None,
        }))
    }

    /// Creates a 400 for a request that breaks a rule at `path`.
    pub fn invalid(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::invalid_all(vec![ErrorDetail {
            path: path.into(),
            problem: problem.into(),
        }])
    }

    /// Creates a 400 for a request that breaks these rules. The message names the first.
    pub fn invalid_all(mut details: Vec<ErrorDetail>) -> Self {
        // The details name places that the caller chose, so their number and length must have a bound.
        details.truncate(MAX_DETAILS);
        for detail in &mut details {
            shorten(&mut detail.path);
        }
        // The message makes sense alone, for clients that do not show the details.
        let message = match details.first() {
            None => "the request does not match its schema".to_owned(),
            Some(ErrorDetail { path, problem }) if path.is_empty() => format!("the request {problem}"),
            Some(ErrorDetail { path, problem }) => format!("`{path}` {problem}"),
        };
        let mut error = Self::new(ErrorCode::InvalidRequest, message);
        error.0.details = details;
        error
    }

    /// Creates a 404. It also stands for things that the caller may not know of.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotFound, message)
    }

    /// Creates the 404 for a project. A missing and a hidden project get the same text.
    pub fn no_project(slug: &str) -> Self {
        // The caller sent the slug, so repeating it reveals nothing.
        Self::not_found(format!("there is no project `{slug}`"))
    }

    /// Creates the 404 for a knowledge unit. A missing and a hidden unit get the same text.
    pub fn no_unit() -> Self {
        Self::not_found("there is no such unit")
    }

    /// Creates the 404 for a request on the board. A missing and a hidden request get the same text.
    pub fn no_request() -> Self {
        Self::not_found("there is no such request")
    }

    /// Creates the 422 for an idempotency key that came with another input before.
    pub fn key_reused() -> Self {
        Self::new(
            ErrorCode::IdempotencyKeyReused,
            "an earlier call used the idempotency key with another body",
        )
    }

    /// Returns true for such an error.
    pub fn is_key_reused(&self) -> bool {
        self.0.code == ErrorCode::IdempotencyKeyReused
    }

    /// Creates the 404 for a comment. A missing and a hidden comment get the same text.
    pub fn no_comment() -> Self {
        Self::not_found("there is no such comment")
    }

    /// Creates an error for a limit that is used up for `seconds` more (at least 1): sets `Retry-After` and `retryAfter`.
    pub(crate) fn limited(code: ErrorCode, message: impl Into<String>, seconds: u64) -> Self {
        // A client that waits for 0 seconds would call in a loop.
        let seconds = seconds.max(1);
        Self::new(code, message).retry_after(seconds)
    }

    /// Creates the 429 `rate_limited`, for a client with too many calls, streams or connections: it may come back after
    /// `seconds` (at least 1).
    pub fn rate_limited(message: impl Into<String>, seconds: u64) -> Self {
        Self::limited(ErrorCode::RateLimited, message, seconds)
    }

    /// Creates a 500 for a defect of the service; `context` is for the log only.
    pub fn internal(context: impl std::fmt::Display) -> Self {
        Self::new(ErrorCode::Internal, INTERNAL).context(context)
    }

    /// Creates a 503 for a dependency that is down; `context` is for the log only.
    pub fn unavailable(context: impl std::fmt::Display) -> Self {
        Self::new(ErrorCode::Unavailable, UNAVAILABLE)
            .retry_after(UNAVAILABLE_RETRY_SECONDS)
            .context(context)
    }

    /// Creates a 503 for a file that differs from what was written to it; `context` is for the log only.
    pub fn damaged(context: impl std::fmt::Display) -> Self {
        Self::new(ErrorCode::TableDamaged, DAMAGED)
            .retry_after(DAMAGED_RETRY_SECONDS)
            .context(context)
    }

    /// Adds a case field to the body.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.fields.insert(name.to_owned(), value.into());
        self
    }

    /// Says in the body and in `Retry-After` when to come back, in seconds.
    #[must_use]
    pub(crate) fn retry_after(self, seconds: u64) -> Self {
        self.field("retryAfter", seconds)
            .header(header::RETRY_AFTER, HeaderValue::from(seconds))
    }

    /// Adds a header to the answer.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    /// Replaces the code, for a case of its own with the same kind and status.
    #[must_use]
    pub(crate) fn with_code(mut self, code: ErrorCode) -> Self {
        self.0.code = code;
        self
    }

    /// Replaces the sentence for the caller, for a case that says more.
    #[must_use]
    pub(crate) fn with_message(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self
    }

    /// Creates a 503 for a version that exists but is not visible in this process yet; `Retry-After` is a second.
    pub fn not_yet(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotYet, message).retry_after(NOT_YET_RETRY_SECONDS)
    }

    /// Replaces the kind and its status, for a door that answers a code with another status than the rest.
    #[must_use]
    pub(crate) fn with_kind(mut self, kind: Kind) -> Self {
        self.0.kind = kind;
        self.0.status = status(kind);
        self
    }

    /// Creates a 503 for a table that lacks a version that the service has announced. Nothing of it is read until it is
    /// restored, or an administrator accepts the loss.
    pub fn history_lost(slug: &str) -> Self {
        let message = format!(
            "the table of `{slug}` lacks versions that it had; nothing of it is answered until the operators of the \
             service restore it or accept the loss"
        );
        Self::new(ErrorCode::HistoryLost, message).retry_after(HISTORY_LOST_RETRY_SECONDS)
    }

    /// Replaces the status that follows from the code, for a case that has an HTTP status of its own.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.0.status = status;
        self
    }

    /// Renames members in `headers` to their header in the details and the message, for a transport that carries them
    /// there.
    #[must_use]
    pub(crate) fn naming_headers(mut self, headers: &[(&str, &str)]) -> Self {
        // Callers know the header, not the name of the member in the input.
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

    /// Sets the description of the actual fault, for the log only.
    #[must_use]
    pub fn context(mut self, context: impl std::fmt::Display) -> Self {
        self.0.context = Some(context.to_string());
        self
    }

    /// Returns the kind of error, independent of the transport.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Returns the HTTP status.
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// Returns the machine code, such as `not_found`.
    pub fn machine_code(&self) -> &'static str {
        self.0.code.word()
    }

    pub(crate) fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// Returns the sentence for the caller.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the places of the request that break a rule.
    pub fn details(&self) -> &[ErrorDetail] {
        &self.0.details
    }

    /// Returns the additional headers of the answer.
    pub fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.0.headers
    }

    /// Returns the text for the log that the caller does not see, if there is one.
    pub fn log_context(&self) -> Option<&str> {
        self.0.context.as_deref()
    }

    /// Returns the fault for the log: the text that the caller does not see, or else the sentence for the caller.
    pub fn reason(&self) -> &str {
        self.log_context().unwrap_or_else(|| self.message())
    }

    /// Returns the body of the answer: `{error, message, …case fields, details?, requestId?}`.
    pub fn body(&self, request_id: &str) -> Value {
        let mut body = Map::new();
        body.insert("error".to_owned(), self.machine_code().into());
        body.insert("message".to_owned(), self.0.message.clone().into());
        for (name, value) in &self.0.fields {
            body.insert(name.clone(), value.clone());
        }
        if !self.0.details.is_empty() {
            let details = self.0.details.iter();
            let details = details.map(|detail| json!({"path": detail.path, "problem": detail.problem}));
            body.insert("details".to_owned(), details.collect());
        }
        // A caller reports a failure of the service by its request id.
        if self.0.status.is_server_error() {
            body.insert("requestId".to_owned(), request_id.into());
        }
        Value::Object(body)
    }
}

/// Returns the default HTTP status of a kind.
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

/// Truncates text that the caller sent to a length that is useful in an answer.
fn shorten(text: &mut String) {
    if text.len() > MAX_PATH_BYTES {
        // The path has names that the caller chose, so the cut may fall into a character.
        text.truncate(text.floor_char_boundary(MAX_PATH_BYTES));
        text.push('…');
    }
}

/// Returns a wait in whole seconds, rounded up, so that a caller that waits as long is not refused again.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

/// Converts an error of a dependency. The caller learns only if a retry can help.
fn below(error: &(impl Classify + std::error::Error)) -> ApiError {
    // Any other kind means that this package used the dependency wrongly.
    match error.kind() {
        Kind::Unavailable => ApiError::unavailable(with_causes(error)),
        Kind::Damaged => ApiError::damaged(with_causes(error)),
        // A dataset that was deleted during the call, which began while there was one.
        Kind::NotFound => ApiError::not_found("there is no such dataset any more"),
        _ => ApiError::internal(with_causes(error)),
    }
}

impl From<store::Error> for ApiError {
    fn from(error: store::Error) -> Self {
        // The dispatcher answers for the earlier call, unless its input was another.
        if matches!(error, store::Error::Repeated) {
            return Self::key_reused();
        }
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
        Self::internal(with_causes(&error))
    }
}

impl From<catalog::Error> for ApiError {
    fn from(error: catalog::Error) -> Self {
        below(&error)
    }
}

#[cfg(test)]
mod tests;
