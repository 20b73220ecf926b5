//! Contributions as callers see them.

use operators::{RowVerdict, Tally};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::{Contribution, ContributionStatus, OutcomeRow, Resolution};
use types::{ContributionId, Timestamp};

use crate::cx::Cx;
use crate::error::ApiError;
use crate::wire::{BatchReason, VerdictLine, When};

/// How many offending records an outcome shows.
const SHOWN: usize = 20;

/// How far an upload is.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Progress {
    /// How many of its bytes were read, as they were sent.
    bytes_read: u64,
    /// How many records were judged.
    rows_judged: u64,
}

impl Progress {
    fn of(cx: &Cx, id: ContributionId) -> Option<Self> {
        let staging = cx.app.uploads.stagings.of(id)?;
        Some(Self {
            bytes_read: staging.bytes_read,
            rows_judged: staging.rows_judged,
        })
    }
}

/// The loss of a version that a contribution became.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Lost {
    /// The reason that the administrator gave.
    reason: String,
    /// The time at which the loss was accepted.
    accepted_at: When,
}

/// A contribution and, once there is one, its outcome.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::ops) struct View {
    /// Its id.
    id: String,
    /// The slug of its project.
    project: String,
    /// Where it stands.
    status: ContributionStatus,
    /// Present and true when the answer is that of an earlier call with the same idempotency key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
    /// Source of the records, as the contributor declared it.
    #[serde(skip_serializing_if = "Option::is_none")]
    source_declaration: Option<String>,
    /// How many records were submitted; of an upload, 0 until it is decided.
    submitted_count: u32,
    /// How far an upload is, while it is judged and this process knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
    /// When it was acknowledged.
    submitted_at: When,
    /// When it was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_at: Option<When>,
    /// The version it became, when merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    merged_version: Option<u64>,
    /// How many of its records are new in that version, when merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_count: Option<u64>,
    /// How many records that version has in all, when merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    record_count: Option<u64>,
    /// Content root (BLAKE3) of that version, when merged: 64 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    /// Present when the version that it became was lost later; the number of the version may be another's now.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<Lost>,
    /// Why it is rejected or waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<BatchReason>,
    /// When it will be judged, when it waits and that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    resumes_after: Option<When>,
    /// What each gate did, once decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    tallies: Option<Vec<Tally>>,
    /// The first records that did not pass, at most 20, when rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdicts: Option<Vec<VerdictLine>>,
    /// Where every record's verdict is, once decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdicts_url: Option<String>,
}

impl View {
    /// A contribution that was acknowledged just now.
    pub(in crate::ops) fn submitted(
        id: ContributionId,
        slug: &str,
        source_declaration: Option<String>,
        rows: u32,
        now: Timestamp,
    ) -> Self {
        Self {
            id: id.to_string(),
            project: slug.to_owned(),
            status: ContributionStatus::Submitted,
            replayed: false,
            source_declaration,
            submitted_count: rows,
            progress: None,
            submitted_at: now.into(),
            decided_at: None,
            merged_version: None,
            accepted_count: None,
            record_count: None,
            root: None,
            lost: None,
            reason: None,
            resumes_after: None,
            tallies: None,
            verdicts: None,
            verdicts_url: None,
        }
    }

    /// A contribution as the database has it; a rejected one with its first offending records.
    pub(in crate::ops) async fn of(cx: &Cx, slug: &str, row: Contribution) -> Result<Self, ApiError> {
        let mut view = Self::submitted(row.id, slug, row.source_declaration, row.rows, row.submitted_at);
        view.status = row.status;
        match row.status {
            ContributionStatus::Submitted => {
                view.progress = Progress::of(cx, row.id);
                return Ok(view);
            }
            ContributionStatus::Waiting => {
                view.reason = row.waiting_reason.as_deref().map(BatchReason::held);
                view.resumes_after = row.resumes_after.map(Into::into);
                return Ok(view);
            }
            ContributionStatus::Merged => {
                view.merged_version = row.version.map(|version| version.0);
                view.accepted_count = row.accepted;
                view.record_count = row.record_count;
                view.root = row.root;
                view.lost = row.loss.map(|loss| Lost {
                    reason: loss.reason,
                    accepted_at: loss.accepted_at.into(),
                });
            }
            ContributionStatus::Rejected => {
                view.reason = row
                    .reject_code
                    .zip(row.reject_message)
                    .map(|(code, message)| BatchReason::rejected(code, message));
                view.verdicts = Some(shown(verdicts(cx, row.id).await?));
            }
        }
        view.tallies = row.tallies.as_deref().map(tallies).transpose()?;
        // Why: how many records an upload has is known once they were judged, and every gate was told of the first.
        if row.rows == 0 {
            view.submitted_count = view.tallies.iter().flatten().next().map_or(0, |tally| tally.rows);
        }
        view.decided_at = row.decided_at.map(Into::into);
        view.verdicts_url = Some(verdicts_url(cx, slug, row.id));
        Ok(view)
    }

    /// The same once it is decided.
    pub(in crate::ops) fn decided(&self, cx: &Cx, outcome: OutcomeRow) -> Result<Self, ApiError> {
        let mut view = self.clone();
        match outcome.resolution {
            Resolution::Waiting { .. } => return Ok(view),
            Resolution::Merged {
                version,
                accepted,
                record_count,
                root,
            } => {
                view.status = ContributionStatus::Merged;
                view.merged_version = Some(version.0);
                view.accepted_count = Some(accepted);
                view.record_count = Some(record_count);
                view.root = Some(root);
            }
            Resolution::Rejected { code, message } => {
                view.status = ContributionStatus::Rejected;
                view.reason = Some(BatchReason::rejected(code, message));
                view.verdicts = Some(shown(stored("verdicts", &outcome.verdicts)?));
            }
        }
        view.tallies = Some(tallies(&outcome.tallies)?);
        view.decided_at = Some(outcome.at.into());
        view.verdicts_url = Some(verdicts_url(cx, &self.project, outcome.id));
        Ok(view)
    }

    /// The same, as an answer to a repeated call.
    #[must_use]
    pub(in crate::ops) const fn replayed(mut self) -> Self {
        self.replayed = true;
        self
    }
}

fn shown(mut said: Vec<RowVerdict>) -> Vec<VerdictLine> {
    said.truncate(SHOWN);
    said.into_iter().map(Into::into).collect()
}

fn tallies(text: &str) -> Result<Vec<Tally>, ApiError> {
    stored("tallies", text)
}

fn verdicts_url(cx: &Cx, slug: &str, id: ContributionId) -> String {
    let base = &cx.app.config.public_url;
    format!("{base}/projects/{slug}/contributions/{id}/verdicts")
}

/// The verdicts other than pass of a decided contribution, in row order.
pub(super) async fn verdicts(cx: &Cx, id: ContributionId) -> Result<Vec<RowVerdict>, ApiError> {
    match cx.app.store.contribution_verdicts(id).await? {
        Some(text) => stored("verdicts", &text),
        None => Ok(Vec::new()),
    }
}

fn stored<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, ApiError> {
    serde_json::from_str(text).map_err(|error| ApiError::internal(format!("stored {what}: {error}")))
}
