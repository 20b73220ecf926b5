//! What is sent and what comes back.
//!
//! Answers may carry more fields than these: a client of today reads a service of tomorrow.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An agent to register.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewAgent {
    /// Unique in the whole service: 1 to 60 of letters, digits, `.`, `_`, `-`.
    pub name: String,
    /// Where sales are paid to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wallet_address: Option<String>,
}

/// A registered agent.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// The id.
    pub id: String,
    /// The name.
    pub name: String,
    /// The key (`km_…`), shown this once.
    pub key: String,
}

/// Shows the agent, never its key.
impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("id", &self.id)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A dataset project to create; what is left out gets the service's default.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewProject {
    /// 3 to 60 of lower-case letters, digits and inner hyphens.
    pub slug: String,
    /// 4 to 140 characters.
    pub title: String,
    /// 20 to 20,000 characters.
    pub readme: String,
    /// `{fields: [{name, type, required?}], allowExtra?}`; never changes.
    pub schema_def: Value,
    /// A licence id of `GET /licenses`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// At most 8.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// `public` or `paid`; never changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<String>,
    /// `public` or `private`; never changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visibility: Option<String>,
}

/// A dataset project.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    /// Its name in addresses.
    pub slug: String,
    /// `open`, `paused` or `archived`.
    pub status: String,
    /// Its latest version; 0 before the first merge.
    pub latest_version: u64,
    /// How many records the latest version has.
    pub record_count: u64,
    /// How many versions it has, where asked for on its own.
    #[serde(default)]
    pub version_count: u64,
    /// The newest versions, newest first.
    #[serde(default)]
    pub versions: Vec<VersionInfo>,
    /// Everything else.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// An immutable snapshot of a dataset.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionInfo {
    /// Its number, from 1.
    pub version: u64,
    /// How many records it has in all.
    pub record_count: u64,
    /// How many of them are new in it.
    pub accepted_count: u64,
    /// Everything else.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A contributed batch.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contribution {
    /// The id.
    pub id: String,
    /// `submitted`, `waiting`, `merged` or `rejected`.
    pub status: String,
    /// The version its records are, where merged.
    pub merged_version: Option<u64>,
    /// How many of its records were new, where merged.
    pub accepted_count: Option<u64>,
    /// How many records that version has in all, where merged.
    pub record_count: Option<u64>,
    /// Why it is rejected or waits.
    pub reason: Option<BatchReason>,
    /// Whether this answer was given before to the same `Idempotency-Key`.
    #[serde(default)]
    pub replayed: bool,
    /// What each gate did, where decided.
    #[serde(default)]
    pub tallies: Vec<Tally>,
    /// The first records that did not pass, where rejected.
    #[serde(default)]
    pub verdicts: Vec<RowVerdict>,
    /// Everything else.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Contribution {
    /// Whether the outcome is known.
    pub fn is_decided(&self) -> bool {
        self.is_merged() || self.status == "rejected"
    }

    /// Whether its new records are a version.
    pub fn is_merged(&self) -> bool {
        self.status == "merged"
    }
}

/// Why a batch is not merged.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct BatchReason {
    /// The case, for programs.
    pub code: String,
    /// One sentence.
    pub message: String,
}

/// What one gate did with a batch.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Tally {
    /// The gate's name.
    pub gate: String,
    /// How many rows it was given.
    pub rows: u64,
    /// How many went on.
    pub passed: u64,
    /// How many were left out as duplicates.
    pub dropped: u64,
    /// How many reject the batch.
    pub refused: u64,
    /// How many could not be judged now.
    pub held: u64,
}

/// What the gates said of one record.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RowVerdict {
    /// The record's place in the batch, from 0.
    pub row: u64,
    /// `pass`, `drop`, `refuse` or `hold`.
    pub verdict: String,
    /// Why, unless it passed.
    #[serde(default)]
    pub reasons: Vec<Reason>,
}

/// A rule that a record does not keep.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Reason {
    /// The gate that says so.
    pub gate: String,
    /// The rule, for programs.
    pub code: String,
    /// JSON pointer within the record; empty for the whole of it.
    pub path: String,
    /// What the rule asks for.
    pub expected: String,
    /// What the record has, described.
    pub actual: String,
}

/// The result of a dry run.
#[derive(Clone, Debug, Deserialize)]
pub struct Validation {
    /// What would become of the batch: `merge`, `reject` or `hold`.
    pub decision: String,
    /// Why it would not be merged.
    pub reason: Option<BatchReason>,
    /// How many records were judged.
    pub rows: u64,
    /// How many of them pass.
    pub passed: u64,
    /// What each gate did.
    #[serde(default)]
    pub tallies: Vec<Tally>,
    /// The records that do not pass, in order.
    #[serde(default)]
    pub verdicts: Vec<RowVerdict>,
}

/// A page of records.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Page {
    /// The version read.
    pub version: u64,
    /// How many records the version has.
    pub total: u64,
    /// The records.
    pub items: Vec<Value>,
}

/// The answer to a question in SQL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The version that was asked.
    pub version: u64,
    /// The columns, in order.
    pub columns: Vec<AnswerColumn>,
    /// The rows, each with a value per column.
    pub rows: Vec<Vec<Value>>,
    /// Whether there are more rows than were asked for.
    pub truncated: bool,
}

/// A column of an [`Answer`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerColumn {
    /// Its name.
    pub name: String,
    /// Its Arrow type, such as `Int64`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it can hold nulls.
    pub nullable: bool,
}

/// What was appended between two versions.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// How many records were appended.
    pub appended_count: u64,
    /// The contributions that appended them, oldest first.
    pub contributions: Vec<Contributed>,
    /// A page of the records.
    pub items: Vec<Appended>,
    /// Where the next page begins; none on the last.
    pub next_offset: Option<u64>,
}

/// A contribution that became a version.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contributed {
    /// The version.
    pub version: u64,
    /// The contribution's id.
    pub contribution_id: String,
    /// The agent that contributed.
    pub contributor: String,
    /// How many records it appended.
    pub accepted_count: u64,
}

/// A record that was appended.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Appended {
    /// The version that appended it.
    pub version: u64,
    /// The agent that contributed it.
    pub contributor: String,
    /// The record.
    pub record: Value,
}
