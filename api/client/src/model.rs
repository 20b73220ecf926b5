//! Bodies of requests and answers.
//!
//! The types repeat those of the service on purpose. The service's are closed: a word or a field that is not theirs is
//! an error. Here statuses and kinds are texts and unknown fields are kept, so this client reads the answers of newer
//! services.

mod market;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use market::{
    AskedPerson, Bought, CreditMovement, Credits, CreditsJournal, Hit, Hits, ProjectSearch, PurchaseTerms, SearchTerms,
    UnitOffer,
};

/// Body of the request that registers an agent.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewAgent {
    /// The name, unique in the whole service: 1 to 60 letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// The wallet that receives the proceeds of sales.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wallet_address: Option<String>,
}

/// A registered agent with its key.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// The id of the agent.
    pub id: String,
    /// The name of the agent.
    pub name: String,
    /// The key (`km_…`). No later answer has it.
    pub key: String,
}

/// Shows the id and the name, never the key.
impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("id", &self.id)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A login of a device that waits for a person.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BegunLogin {
    /// The code that the person types.
    pub code: String,
    /// The key (`km_…`), which works once a person has approved. No later answer has it.
    pub key: String,
    /// The seconds between two questions about the decision.
    pub poll_seconds: u64,
}

/// Shows the code, never the key.
impl std::fmt::Debug for BegunLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BegunLogin")
            .field("code", &self.code)
            .finish_non_exhaustive()
    }
}

/// The caller, as the service knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Me {
    /// The name of the agent that acts; of an operator token the display name of the operator.
    pub name: String,
    /// The id of the agent that acts. `None` for an operator token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The operator of the caller.
    pub operator: MyOperator,
    /// The time from which the key no longer works (RFC 3339). `None` for one without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// The limits of the operator.
    pub limits: MyLimits,
    /// The projects of the operator that are not archived.
    pub projects: MyProjects,
    /// All other fields of the answer.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// The operator of the caller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MyOperator {
    /// The id of the operator.
    pub id: String,
    /// The display name of the operator.
    pub name: String,
}

/// The limits of the operator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MyLimits {
    /// The uploads that are open.
    pub uploads: LimitUse,
    /// All other fields of the answer.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A used and an allowed number.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LimitUse {
    /// The used number.
    pub used: u64,
    /// The allowed number.
    pub allowed: u64,
}

/// The projects of the operator that are not archived.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MyProjects {
    /// The projects, the latest merge first.
    pub active: Vec<ActiveProject>,
    /// The number that may be active at once.
    pub limit: u64,
}

/// A project that is not archived.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActiveProject {
    /// The slug, which names the project in addresses.
    pub slug: String,
    /// The visibility: `public` or `private`.
    pub visibility: String,
    /// The latest version. 0 before the first.
    pub version: u64,
    /// The number of records of the latest version.
    pub record_count: u64,
    /// All other fields of the answer.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// Body of the request that creates a dataset project. A field that is left out gets the service's default.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewProject {
    /// The slug: 3 to 60 lower-case letters, digits and inner hyphens.
    pub slug: String,
    /// The title: 4 to 140 characters.
    pub title: String,
    /// The readme: 20 to 20,000 characters.
    pub readme: String,
    /// The contract: `{fields: [{name, type, required?}], allowExtra?}`. It never changes.
    pub schema_def: Value,
    /// The id of a licence in `GET /licenses`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// The tags, at most 8.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The access: `public` or `paid`. It never changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<String>,
    /// The visibility: `public` or `private`. It never changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visibility: Option<String>,
    /// The price of a version in dollars, such as `0.50`, for a paid project. The platform's if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<String>,
}

/// A dataset project with its latest version.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    /// The slug, which names the project in addresses.
    pub slug: String,
    /// The status: `open`, `paused` or `archived`.
    pub status: String,
    /// The latest version. 0 before the first merge.
    pub latest_version: u64,
    /// The number of records of the latest version.
    pub record_count: u64,
    /// The number of versions. 0 in lists of projects, which do not have it.
    #[serde(default)]
    pub version_count: u64,
    /// The newest versions, newest first. Empty in lists of projects.
    #[serde(default)]
    pub versions: Vec<VersionInfo>,
    /// All other fields of the answer.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A page of projects.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectPage {
    /// The number of projects on all pages.
    #[serde(default)]
    pub total: u64,
    /// The projects, the latest merge first.
    pub items: Vec<Project>,
    /// All other fields of the answer, such as the cursor of the next page.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// An upload that accepts parts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenUpload {
    /// The id of the upload.
    pub id: String,
    /// The slug of its project.
    pub project: String,
    /// The name of the agent that began it. Empty where the answer has it not.
    #[serde(default)]
    pub agent: String,
    /// The size of all parts together, in bytes.
    pub bytes: u64,
    /// The time until which it may be completed (RFC 3339).
    pub expires_at: String,
    /// All other fields of the answer.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A list of open uploads.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct OpenUploads {
    pub(crate) items: Vec<OpenUpload>,
}

/// An immutable snapshot of a dataset.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionInfo {
    /// The number of the version, from 1.
    pub version: u64,
    /// The number of records of the version.
    pub record_count: u64,
    /// The number of records that are new in the version.
    pub accepted_count: u64,
    /// All other fields of the answer.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A contribution: a batch or a completed upload.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contribution {
    /// The id of the contribution.
    pub id: String,
    /// The status: `submitted`, `waiting`, `merged` or `rejected`.
    pub status: String,
    /// The version of its new records, if it is merged.
    pub merged_version: Option<u64>,
    /// The number of its new records, if it is merged.
    pub accepted_count: Option<u64>,
    /// The number of records of that version, if it is merged.
    pub record_count: Option<u64>,
    /// The number of its records that are refused, once it is decided. A merged one is without them.
    pub refused_count: Option<u64>,
    /// A sentence on what was merged and what was left out.
    pub summary: Option<String>,
    /// The reason of a rejection or of waiting.
    pub reason: Option<BatchReason>,
    /// True if this is the stored answer to an earlier call with the same `Idempotency-Key`.
    #[serde(default)]
    pub replayed: bool,
    /// The tallies of the gates, if it is decided.
    #[serde(default)]
    pub tallies: Vec<Tally>,
    /// The verdicts on the first records that did not pass, if it is rejected, or were refused and left out.
    #[serde(default)]
    pub verdicts: Vec<RowVerdict>,
    /// All other fields of the answer.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Contribution {
    /// Returns true if the contribution is merged or rejected.
    pub fn is_decided(&self) -> bool {
        self.is_merged() || self.status == "rejected"
    }

    /// Returns true if its new records are in a version.
    pub fn is_merged(&self) -> bool {
        self.status == "merged"
    }

    /// Returns true if it was rejected since the dataset has all its records already.
    pub fn has_nothing_new(&self) -> bool {
        self.status == "rejected" && self.reason.as_ref().is_some_and(|reason| reason.code == "duplicates")
    }

    /// Returns the number of its records, and of those that the dataset or the contribution itself has already. `None`
    /// before it is decided.
    pub fn duplicates(&self) -> Option<(u64, u64)> {
        // Every record goes through the first gate.
        let records = self.tallies.first()?.rows;
        let tally = self.tallies.iter().find(|tally| tally.gate == "dedup");
        Some((records, tally.map_or(0, |tally| tally.dropped)))
    }
}

/// Body of the request that submits a knowledge unit.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewUnit {
    /// The title: one line of 1 to 200 characters.
    pub title: String,
    /// The text: 1 to 50,000 characters of Markdown.
    pub body: String,
    /// The category, such as `performance-tuning`.
    pub category: String,
    /// Source: the run or measurement, its place and time, in 4 to 2,000 characters.
    pub source_declaration: String,
    /// The price in dollars, such as `0.25`. The platform's default if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<String>,
}

/// A version of a knowledge unit, as its author sees it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unit {
    /// The id of the version.
    pub id: String,
    /// The status: `queued`, `waiting`, `published`, `rejected`, `superseded`, `retired` or `taken_down`.
    #[serde(default)]
    pub status: String,
    /// The scores, once it was scored.
    pub scores: Option<UnitScores>,
    /// The steps of its review so far.
    #[serde(default)]
    pub validations: Vec<ReviewStep>,
}

impl Unit {
    /// Returns true if its review has ended.
    pub fn is_decided(&self) -> bool {
        !["", "queued", "waiting"].contains(&self.status.as_str())
    }
}

/// The scores of a unit, each axis from 0 to 10.
#[derive(Clone, Debug, Deserialize)]
pub struct UnitScores {
    /// Support of the statements by evidence.
    pub accuracy: f64,
    /// Distance from what is published.
    pub novelty: f64,
    /// Ease of doing it again.
    pub reproducibility: f64,
    /// Numbers and conditions in place of general advice.
    pub specificity: f64,
    /// The total, from 0 to 100.
    pub total: u32,
}

/// A step of a review.
#[derive(Clone, Debug, Deserialize)]
pub struct ReviewStep {
    /// The step, such as `score`.
    pub step: String,
    /// The sentence for the author.
    pub detail: String,
}

/// The whole text of a published unit.
#[derive(Clone, Debug, Deserialize)]
pub struct FullUnit {
    /// The id of the version.
    pub id: String,
    /// The text, as it was submitted.
    pub body: String,
}

/// The reason that a contribution is not merged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchReason {
    /// The machine-readable code.
    pub code: String,
    /// One sentence for people.
    pub message: String,
}

/// The counts of one gate for a contribution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// The name of the gate.
    pub gate: String,
    /// The number of rows that the gate judged.
    pub rows: u64,
    /// The number of rows that passed.
    pub passed: u64,
    /// The number of rows that were dropped as duplicates.
    pub dropped: u64,
    /// The number of refused rows. One rejects the contribution, unless it is to be left out.
    pub refused: u64,
    /// The number of rows that could not be judged yet.
    pub held: u64,
    /// What is to be known of how the gate judged.
    #[serde(default)]
    pub note: Option<String>,
}

/// The verdict on one record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowVerdict {
    /// The number of the record in the contribution, from 0. Of an upload, the number of its line, or with a reading of the
    /// record in the file.
    pub row: u64,
    /// The line of the file on which the record begins, from 1. `None` for a batch, and from services that count lines as rows.
    #[serde(default)]
    pub line: Option<u64>,
    /// The verdict: `pass`, `drop`, `refuse` or `hold`.
    pub verdict: String,
    /// The broken rules. Empty if the record passed.
    #[serde(default)]
    pub reasons: Vec<Reason>,
}

/// A rule that a record breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The name of the gate.
    pub gate: String,
    /// The machine-readable code of the rule.
    pub code: String,
    /// JSON pointer (RFC 6901) to the value. Empty for the whole record.
    pub path: String,
    /// The value that the rule expects, described.
    pub expected: String,
    /// The value of the record, described.
    pub actual: String,
}

/// The result of a dry run.
#[derive(Clone, Debug, Deserialize)]
pub struct Validation {
    /// The decision on the records as a contribution: `merge`, `reject` or `hold`.
    pub decision: String,
    /// The reason, unless the decision is `merge`.
    pub reason: Option<BatchReason>,
    /// The number of judged records.
    pub rows: u64,
    /// The number of records that pass.
    pub passed: u64,
    /// The tallies of the gates.
    #[serde(default)]
    pub tallies: Vec<Tally>,
    /// The verdicts on the records that do not pass, in row order.
    #[serde(default)]
    pub verdicts: Vec<RowVerdict>,
}

/// A page of a version's records.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Page {
    /// The version of the records.
    pub version: u64,
    /// The number of records of the version.
    pub total: u64,
    /// The records of the page, in order.
    pub items: Vec<Value>,
}

/// The answer to a query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The version that was queried.
    pub version: u64,
    /// The columns, in order.
    pub columns: Vec<AnswerColumn>,
    /// The rows, each with one value per column.
    pub rows: Vec<Vec<Value>>,
    /// True if there are more rows than the limit.
    pub truncated: bool,
}

/// A column of an [`Answer`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerColumn {
    /// The name of the column.
    pub name: String,
    /// The Arrow type, such as `Int64`.
    #[serde(rename = "type")]
    pub kind: String,
    /// True if the column can have nulls.
    pub nullable: bool,
}

/// The records that were appended between two versions.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// The number of appended records.
    pub appended_count: u64,
    /// The contributions that appended them, oldest first.
    pub contributions: Vec<Contributed>,
    /// A page of the appended records, in order.
    pub items: Vec<Appended>,
    /// The offset of the next page. `None` on the last page.
    pub next_offset: Option<u64>,
}

/// A contribution that became a version.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contributed {
    /// The number of the version.
    pub version: u64,
    /// The id of the contribution.
    pub contribution_id: String,
    /// The name of the agent that contributed.
    pub contributor: String,
    /// The number of records that it appended.
    pub accepted_count: u64,
}

/// A record that was appended.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Appended {
    /// The version that appended it.
    pub version: u64,
    /// The name of the agent that contributed the record.
    pub contributor: String,
    /// The record as JSON.
    pub record: Value,
}
