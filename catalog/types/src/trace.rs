//! Traces that cross processes: the position of a message in the trace of the request that caused it.
//!
//! Invariant: a trace is for people. Losing one, or reading one that somebody made up, changes no outcome.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};
use tracing::Span;

/// The most bytes of an origin's texts; the longest that this service writes have 55.
const MAX_ORIGIN_BYTES: usize = 128;

/// The request that a message comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// Id of the request, as in the header `x-request-id` of its answer.
    pub request_id: String,
    /// Position in the trace: the value of a `traceparent` header (W3C Trace Context, section 3.2). Absent where no
    /// trace is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl Origin {
    /// Returns the origin of messages that the current span sends for the request `request_id`.
    pub fn of_current(request_id: &str, propagator: &dyn Propagator) -> Self {
        Self {
            request_id: request_id.to_owned(),
            traceparent: propagator.inject(&Span::current()),
        }
    }

    /// Makes `span` a part of the trace and records the request's id in its field `request_id`. Must be called before
    /// the span is entered. Texts that are too long to be of this service are left out.
    pub fn apply(&self, span: &Span, propagator: &dyn Propagator) {
        // The texts come from a message, which may be damaged or written by another program.
        if self.request_id.len() <= MAX_ORIGIN_BYTES {
            span.record("request_id", self.request_id.as_str());
        }
        if let Some(traceparent) = self
            .traceparent
            .as_deref()
            .filter(|text| text.len() <= MAX_ORIGIN_BYTES)
        {
            propagator.extract(span, traceparent);
        }
    }
}

/// Carries positions between spans of this process and text.
pub trait Propagator: Debug + Send + Sync {
    /// Returns the position of `span` as the value of a `traceparent` header; `None` where its trace is not recorded.
    fn inject(&self, span: &Span) -> Option<String>;

    /// Makes `span`, which was not entered yet, a child of the span at the position. Ignores text that is no position.
    fn extract(&self, span: &Span, traceparent: &str);
}

/// A propagator of a process that records no traces.
#[derive(Clone, Copy, Debug)]
pub struct NoTraces;

impl Propagator for NoTraces {
    fn inject(&self, _span: &Span) -> Option<String> {
        None
    }

    fn extract(&self, _span: &Span, _traceparent: &str) {}
}
