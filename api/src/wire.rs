//! Parts that the inputs and answers of several operations share.

use operators::{Reason, RowVerdict, Tally, Verdict};
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

/// Who may read the records of a dataset.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum AccessWord {
    Public,
    Paid,
}

/// Who may know of a dataset.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum VisibilityWord {
    Public,
    Private,
}

/// Whether a dataset takes contributions.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum ProjectStatusWord {
    Open,
    Paused,
    Archived,
}

/// Where a contribution stands.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum ContributionStatusWord {
    Submitted,
    Waiting,
    Merged,
    Rejected,
}

/// What the gates said of one record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VerdictLine {
    /// Index of the record in the batch.
    pub(crate) row: u32,
    /// `pass`, `drop` (a duplicate: left out), `refuse` (rejects the batch) or `hold` (to be judged later).
    #[schemars(with = "VerdictWord")]
    verdict: &'static str,
    /// Why, unless it passed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<ReasonView>,
    /// When a held record is judged again, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    resumes_after: Option<When>,
}

impl VerdictLine {
    /// A record that passed.
    pub(crate) const fn pass(row: u32) -> Self {
        Self {
            row,
            verdict: "pass",
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
            Verdict::Drop { reason } => ("drop", vec![reason], None),
            Verdict::Refuse { reasons } => ("refuse", reasons, None),
            Verdict::Hold { reason, resumes_after } => ("hold", vec![reason], resumes_after),
        };
        let reasons = reasons.into_iter().map(ReasonView::from).collect();
        Self {
            row,
            verdict,
            reasons,
            resumes_after: resumes_after.map(When::from),
        }
    }
}

/// Why a record did not pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct ReasonView {
    /// The gate that says so.
    gate: String,
    /// The rule, for programs.
    code: String,
    /// JSON pointer within the record; empty for the whole record.
    path: String,
    /// What the rule asks for.
    expected: String,
    /// What the record has, described.
    actual: String,
}

impl From<Reason> for ReasonView {
    fn from(reason: Reason) -> Self {
        let Reason {
            gate,
            code,
            path,
            expected,
            actual,
        } = reason;
        Self {
            gate,
            code,
            path,
            expected,
            actual,
        }
    }
}

#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
enum VerdictWord {
    Pass,
    Drop,
    Refuse,
    Hold,
}

/// What one gate did with the records it was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct TallyView {
    /// The gate.
    gate: String,
    /// How many it was given: the sum of the others.
    rows: u32,
    /// How many went on.
    passed: u32,
    /// How many were left out as duplicates.
    dropped: u32,
    /// How many reject the batch.
    refused: u32,
    /// How many could not be judged.
    held: u32,
}

impl TallyView {
    /// How many it was given.
    pub(crate) const fn rows(&self) -> u32 {
        self.rows
    }
}

impl From<Tally> for TallyView {
    fn from(tally: Tally) -> Self {
        let Tally {
            gate,
            rows,
            passed,
            dropped,
            refused,
            held,
        } = tally;
        Self {
            gate,
            rows,
            passed,
            dropped,
            refused,
            held,
        }
    }
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
