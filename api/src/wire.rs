//! Parts that the inputs and answers of several operations share.

use operators::{Reason, RowVerdict, Verdict};
use pipelines::message::HISTORY_LOST;
use schemars::JsonSchema;
use serde::Serialize;
use types::Timestamp;

/// An instant in an answer: RFC 3339, UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct When(#[schemars(extend("format" = "date-time"))] String);

impl From<Timestamp> for When {
    fn from(instant: Timestamp) -> Self {
        Self(instant.to_string())
    }
}

/// The input of an operation that takes nothing.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// What the gates said of one record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VerdictLine {
    /// Index of the record in the batch.
    pub(crate) row: u32,
    /// `pass`, `drop` (a duplicate: left out), `refuse` (rejects the batch) or `hold` (to be judged later).
    verdict: VerdictWord,
    /// Why, unless it passed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<Reason>,
    /// When a held record is judged again, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    resumes_after: Option<When>,
}

impl VerdictLine {
    /// A record that passed.
    pub(crate) const fn pass(row: u32) -> Self {
        Self {
            row,
            verdict: VerdictWord::Pass,
            reasons: Vec::new(),
            resumes_after: None,
        }
    }
}

impl From<RowVerdict> for VerdictLine {
    fn from(said: RowVerdict) -> Self {
        let row = said.row;
        let (verdict, reasons, resumes_after) = match said.verdict {
            Verdict::Pass => return Self::pass(row),
            Verdict::Drop { reason } => (VerdictWord::Drop, vec![reason], None),
            Verdict::Refuse { reasons } => (VerdictWord::Refuse, reasons, None),
            Verdict::Hold { reason, resumes_after } => (VerdictWord::Hold, vec![reason], resumes_after),
        };
        Self {
            row,
            verdict,
            reasons,
            resumes_after: resumes_after.map(When::from),
        }
    }
}

/// Kind of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum VerdictWord {
    Pass,
    Drop,
    Refuse,
    Hold,
}

/// Why a batch is not merged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct BatchReason {
    /// The case, for programs.
    code: String,
    /// One sentence for the contributor.
    message: String,
}

impl BatchReason {
    /// Why a batch was rejected.
    pub(crate) const fn rejected(code: String, message: String) -> Self {
        Self { code, message }
    }

    /// Why a batch waits.
    pub(crate) fn held(code: &str) -> Self {
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
