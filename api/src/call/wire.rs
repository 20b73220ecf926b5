//! Wire types that the inputs and answers of several operations share.
//!
//! The docs of these types and their fields are published in the machine-readable description.

use messages::HISTORY_LOST;
use operators::{Reason, RowVerdict, Verdict};
use schemars::JsonSchema;
use serde::Serialize;
use types::Timestamp;

/// Instant in an answer: RFC 3339, UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "When")]
#[serde(transparent)]
pub(crate) struct WireInstant(#[schemars(extend("format" = "date-time"))] String);

impl WireInstant {
    /// Returns the instant; 1970 if the text is malformed.
    pub(crate) fn instant(&self) -> Timestamp {
        self.0.parse().unwrap_or_default()
    }
}

impl From<Timestamp> for WireInstant {
    fn from(instant: Timestamp) -> Self {
        Self(instant.to_string())
    }
}

/// Input of an operation without members.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoInput {}

/// The day's allowance of an operator for contributions to public datasets. A contribution counts however it is decided.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContributionAllowance {
    /// Always `contribution`.
    kind: &'static str,
    /// Number allowed in a UTC day.
    limit: u32,
    /// Number used today.
    used: u32,
    /// Number left today.
    remaining: u32,
    /// Beginning of the next day.
    reset_at: WireInstant,
}

impl ContributionAllowance {
    /// Returns the allowance of the day of `now`, of which `used` are used.
    pub(crate) fn new(limit: u32, used: u32, now: Timestamp) -> Self {
        Self {
            kind: "contribution",
            limit,
            used,
            remaining: limit.saturating_sub(used),
            reset_at: now.next_day().into(),
        }
    }
}

/// Verdict of the gates on one record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VerdictLine {
    /// Index of the record in the batch. Of an upload, index of its line, or with a `reading` of the record in the file.
    pub(crate) row: u32,
    /// Line of an upload on which the record begins, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// `pass`, `drop` (a duplicate: left out), `refuse` (rejects the batch, or is left out with `onRefused: drop`) or `hold`
    /// (to be judged later).
    verdict: VerdictKind,
    /// The reasons, unless the record passed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<Reason>,
    /// The time at which a held record is judged again, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    resumes_after: Option<WireInstant>,
}

impl VerdictLine {
    /// Returns true if the record is the reason for which its batch was not merged, or is refused and left out.
    pub(crate) const fn is_offending(&self) -> bool {
        matches!(self.verdict, VerdictKind::Refuse | VerdictKind::Hold)
    }

    /// Returns the verdict of a record that passed.
    pub(crate) const fn pass(row: u32) -> Self {
        Self {
            row,
            line: None,
            verdict: VerdictKind::Pass,
            reasons: Vec::new(),
            resumes_after: None,
        }
    }
}

impl From<RowVerdict> for VerdictLine {
    fn from(row_verdict: RowVerdict) -> Self {
        let row = row_verdict.row;
        let (verdict, reasons, resumes_after) = match row_verdict.verdict {
            Verdict::Pass => return Self::pass(row),
            Verdict::Drop { reason } => (VerdictKind::Drop, vec![reason], None),
            Verdict::Refuse { reasons } => (VerdictKind::Refuse, reasons, None),
            Verdict::Hold { reason, resumes_after } => (VerdictKind::Hold, vec![reason], resumes_after),
        };
        Self {
            row,
            line: row_verdict.line,
            verdict,
            reasons,
            resumes_after: resumes_after.map(WireInstant::from),
        }
    }
}

/// Kind of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum VerdictKind {
    Pass,
    Drop,
    Refuse,
    Hold,
}

/// Reason why a batch is not merged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct BatchReason {
    /// Code of the case, for programs.
    code: String,
    /// One sentence for the contributor.
    pub(crate) message: String,
}

impl BatchReason {
    /// Returns the reason of a rejection, as the worker gave it.
    pub(crate) const fn rejected(code: String, message: String) -> Self {
        Self { code, message }
    }

    /// Returns the reason why a batch waits. An unknown code gets the general sentence, since workers may be newer than
    /// this replica.
    pub(crate) fn held(code: &str) -> Self {
        // The codes are those of the worker, and are passed on to callers as they are.
        let message = match code {
            "budget" => "the budget of the judging model is spent; the batch is kept and judged later",
            "provider" => "the judging model does not answer; the batch is kept and judged later",
            HISTORY_LOST => {
                "the dataset's table lacks versions that it had; the batch is kept and judged once the operators of the \
                 service have restored the table or accepted the loss"
            }
            "paused" => "validation is paused; the batch is kept and judged later",
            _ => "the batch is kept and judged later",
        };
        Self {
            code: code.to_owned(),
            message: message.to_owned(),
        }
    }
}

/// State of a review that has no outcome yet.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Validation")]
#[serde(rename_all = "camelCase")]
pub(crate) struct WaitingReview {
    /// State: `queued` or `waiting`.
    pub(crate) state: &'static str,
    /// Reason of the wait: `budget`, `provider` or `paused`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// One sentence about that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// Time at which it goes on, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resumes_after: Option<WireInstant>,
}

impl WaitingReview {
    /// Returns the state of what is not judged yet.
    pub(crate) const fn queued() -> Self {
        Self {
            state: "queued",
            reason: None,
            message: None,
            resumes_after: None,
        }
    }

    /// Returns the state of what waits for this reason.
    pub(crate) fn waiting(reason: Option<String>, resumes_after: Option<Timestamp>) -> Self {
        // An unknown word gets the general sentence, since workers may be newer than this replica.
        let message = match reason.as_deref() {
            Some("budget") => "the budget of the judging model is spent; what was submitted is kept and judged later",
            Some("provider") => "the judging model does not answer; what was submitted is kept and judged later",
            Some("paused") => "reviews are paused; what was submitted is kept and judged later",
            _ => "what was submitted is kept and judged later",
        };
        Self {
            state: "waiting",
            reason,
            message: Some(message.to_owned()),
            resumes_after: resumes_after.map(Into::into),
        }
    }
}
