//! Contributions as they appear in answers.
//!
//! The docs of these types and their fields are published in the machine-readable description.

use operators::{RowVerdict, Tally, summary_of};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::{AllowanceKind, Contribution, ContributionStatus, OutcomeRow, Project, Resolution, Visibility};
use types::{ContributionId, OperatorId, Timestamp};

use crate::call::cx::Cx;
use crate::call::room::PageRoom;
use crate::call::wire::{BatchReason, ContributionAllowance, VerdictLine, WaitingReview, WireInstant};
use crate::error::ApiError;

/// Records with a verdict that an outcome shows. The others are at `verdictsUrl`.
const MAX_SHOWN_VERDICTS: usize = 20;

/// Progress of an upload that is being judged.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Progress")]
#[serde(rename_all = "camelCase")]
struct UploadProgress {
    /// Bytes read so far, as they were sent (before decompression).
    bytes_read: u64,
    /// Records judged so far.
    rows_judged: u64,
}

impl UploadProgress {
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
#[schemars(rename = "Lost")]
#[serde(rename_all = "camelCase")]
struct LostVersion {
    /// The reason that the administrator gave.
    reason: String,
    /// The time at which the loss was accepted.
    accepted_at: WireInstant,
}

/// A contribution and, once it is decided, its outcome.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "View")]
#[serde(rename_all = "camelCase")]
pub(in crate::ops) struct ContributionView {
    /// Id of the contribution.
    id: String,
    /// Slug of the project.
    project: String,
    /// Status of the contribution.
    status: ContributionStatus,
    /// Present and true when the answer is that of an earlier call with the same idempotency key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
    /// Source of the records, as the contributor declared it.
    #[serde(skip_serializing_if = "Option::is_none")]
    source_declaration: Option<String>,
    /// Number of records submitted; for an upload, 0 until it is decided.
    submitted_count: u32,
    /// Progress of an upload, while this process judges it.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<UploadProgress>,
    /// Time of the acknowledgement.
    submitted_at: WireInstant,
    /// Time of the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_at: Option<WireInstant>,
    /// Version that the contribution became, when merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    merged_version: Option<u64>,
    /// Number of its records that are new in that version, when merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_count: Option<u64>,
    /// Number of its records that are duplicates, once decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped_count: Option<u64>,
    /// Number of its records that are refused, once decided. Of a merged contribution, those that `onRefused: drop` left
    /// out.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_count: Option<u64>,
    /// One sentence on what was merged: how many records are new, and what was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    /// Number of records in that version, when merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    record_count: Option<u64>,
    /// Content root (BLAKE3) of that version, when merged: 64 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    /// Present when the version that it became was lost later; the number of the version may be another's now.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<LostVersion>,
    /// State of the review; absent once decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    validation: Option<WaitingReview>,
    /// Reason of a rejection or a wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<BatchReason>,
    /// Time at which a waiting contribution is judged again, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    resumes_after: Option<WireInstant>,
    /// Counts of each gate, once decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    tallies: Option<Vec<Tally>>,
    /// The first records that did not pass, at most 20 and those that are refused before duplicates, when rejected; when
    /// merged, the first that are refused and left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdicts: Option<Vec<VerdictLine>>,
    /// Address of the verdict on every record, once decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdicts_url: Option<String>,
    /// What the operator that contributed has left of the day's allowance; absent where none is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    allowance: Option<ContributionAllowance>,
}

impl ContributionView {
    /// Returns a contribution that was acknowledged just now.
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
            dropped_count: None,
            refused_count: None,
            summary: None,
            record_count: None,
            root: None,
            lost: None,
            validation: Some(WaitingReview::queued()),
            reason: None,
            resumes_after: None,
            tallies: None,
            verdicts: None,
            verdicts_url: None,
            allowance: None,
        }
    }

    /// Returns a contribution as the database has it, a rejected one with its first offending records.
    pub(in crate::ops) async fn of(cx: &Cx, slug: &str, row: Contribution) -> Result<Self, ApiError> {
        cx.app.announce(&row, cx.now);
        let uses_allowance = !row.private && row.operator != OperatorId::PLATFORM;
        // What an operator has left is of no interest to the maintainer of the project.
        let is_contributor = cx.the_operator()? == row.operator;
        let mut view = Self::submitted(row.id, slug, row.source_declaration, row.rows, row.submitted_at);
        view.status = row.status;
        if uses_allowance && is_contributor {
            view.allowance = Some(allowance(cx).await?);
        }
        match row.status {
            ContributionStatus::Submitted => {
                // Only the process that ingests the upload knows its progress, so the member is absent elsewhere.
                view.progress = UploadProgress::of(cx, row.id);
                return Ok(view);
            }
            // A batch that waits is not decided, so it has neither tallies nor verdicts to show.
            ContributionStatus::Waiting => {
                view.reason = row.waiting_reason.as_deref().map(BatchReason::held);
                view.validation = Some(WaitingReview::waiting(row.waiting_reason, row.resumes_after));
                view.resumes_after = row.resumes_after.map(Into::into);
                return Ok(view);
            }
            ContributionStatus::Merged => {
                view.merged_version = row.version.map(|version| version.0);
                view.accepted_count = row.accepted;
                view.record_count = row.record_count;
                view.root = row.root;
                view.lost = row.loss.map(|loss| LostVersion {
                    reason: loss.reason,
                    accepted_at: loss.accepted_at.into(),
                });
            }
            ContributionStatus::Rejected => {
                view.reason = row
                    .reject_code
                    .zip(row.reject_message)
                    .map(|(code, message)| BatchReason::rejected(code, message));
                view.verdicts = Some(fitting(cx, shown(verdicts(cx, row.id).await?))?);
            }
        }
        view.count(row.tallies.as_deref().map(tallies).transpose()?);
        if view.has_left_out() {
            view.verdicts = refused_of(cx, verdicts(cx, row.id).await?)?;
        }
        // The row of an upload has no count of its own. The first gate judges every record, so its count is the
        // upload's.
        if row.rows == 0 {
            view.submitted_count = view.tallies.iter().flatten().next().map_or(0, |tally| tally.rows);
        }
        view.decided_at = row.decided_at.map(Into::into);
        view.verdicts_url = Some(verdicts_url(cx, slug, row.id));
        Ok(view)
    }

    /// Returns a copy with an outcome that arrived while the caller waited. An outcome that only waits changes nothing.
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
                view.verdicts = Some(fitting(cx, shown(stored("verdicts", &outcome.verdicts)?))?);
            }
        }
        view.count(Some(tallies(&outcome.tallies)?));
        if view.has_left_out() {
            view.verdicts = refused_of(cx, stored("verdicts", &outcome.verdicts)?)?;
        }
        view.decided_at = Some(outcome.at.into());
        view.verdicts_url = Some(verdicts_url(cx, &self.project, outcome.id));
        Ok(view)
    }

    /// Sets the counts of a decided contribution by the tallies of its gates.
    fn count(&mut self, tallies: Option<Vec<Tally>>) {
        self.validation = None;
        (self.dropped_count, self.refused_count) = tallies.as_deref().map(left_out).unzip();
        self.summary = tallies
            .as_deref()
            .zip(self.accepted_count)
            .map(|(tallies, new)| summary_of(tallies, new));
        self.tallies = tallies;
    }

    /// Returns true if it was merged without the records that are refused.
    fn has_left_out(&self) -> bool {
        self.status == ContributionStatus::Merged && self.refused_count.is_some_and(|refused| refused > 0)
    }

    /// Adds what is left of the day's allowance.
    #[must_use]
    pub(in crate::ops) fn with_allowance(mut self, allowance: Option<ContributionAllowance>) -> Self {
        self.allowance = allowance;
        self
    }

    /// Returns the view of a contribution that waits because reviews are paused.
    #[must_use]
    pub(in crate::ops) fn paused(mut self) -> Self {
        self.status = ContributionStatus::Waiting;
        self.reason = Some(BatchReason::held("paused"));
        self.validation = Some(WaitingReview::waiting(Some("paused".to_owned()), None));
        self
    }

    /// Marks the view as the answer to a repeated call.
    #[must_use]
    pub(in crate::ops) const fn replayed(mut self) -> Self {
        self.replayed = true;
        self
    }
}

fn shown(verdicts: Vec<RowVerdict>) -> Vec<VerdictLine> {
    let lines = verdicts.into_iter().map(VerdictLine::from);
    let (mut lines, others): (Vec<_>, Vec<_>) = lines.partition(VerdictLine::is_offending);
    // A batch can have hundreds of offending records. The others are at `verdictsUrl`.
    lines.extend(others);
    lines.truncate(MAX_SHOWN_VERDICTS);
    lines.sort_by_key(|line| line.row);
    lines
}

/// Returns the first records that a merge left out because they are refused.
fn refused_of(cx: &Cx, verdicts: Vec<RowVerdict>) -> Result<Option<Vec<VerdictLine>>, ApiError> {
    let lines = verdicts.into_iter().map(VerdictLine::from);
    let lines: Vec<_> = lines
        .filter(VerdictLine::is_offending)
        .take(MAX_SHOWN_VERDICTS)
        .collect();
    (!lines.is_empty()).then(|| fitting(cx, lines)).transpose()
}

/// Returns the first verdicts, as many as fit. The others are at `verdictsUrl`.
fn fitting(cx: &Cx, mut lines: Vec<VerdictLine>) -> Result<Vec<VerdictLine>, ApiError> {
    PageRoom::of(cx).keep(&mut lines)?;
    Ok(lines)
}

/// Returns what the caller's operator has left of the day's allowance; `None` for a private project, which uses none.
pub(in crate::ops) async fn left(cx: &Cx, project: &Project) -> Option<ContributionAllowance> {
    if project.visibility == Visibility::Private {
        return None;
    }
    // What was begun or completed stands, so an error here must not become one of the call.
    allowance(cx).await.ok()
}

/// Returns what the caller's operator has left of the day's allowance.
async fn allowance(cx: &Cx) -> Result<ContributionAllowance, ApiError> {
    let operator = cx.the_operator()?;
    let used = cx
        .app
        .store
        .allowance_used(operator, AllowanceKind::Contribution, cx.now.day());
    let limit = cx.app.limits.public_contributions_per_day;
    Ok(ContributionAllowance::new(limit, used.await?, cx.now))
}

/// Returns the numbers of duplicates and of refused records that a merge left out.
fn left_out(tallies: &[Tally]) -> (u64, u64) {
    let sum = |count: fn(&Tally) -> u32| tallies.iter().map(|tally| u64::from(count(tally))).sum();
    (sum(|tally| tally.dropped), sum(|tally| tally.refused))
}

/// Returns the numbers of duplicates and of refused records that a merged version left out, by its stored tallies.
pub(in crate::ops) fn stored_left_out(text: &str) -> Result<(u64, u64), ApiError> {
    Ok(left_out(&tallies(text)?))
}

fn tallies(text: &str) -> Result<Vec<Tally>, ApiError> {
    stored("tallies", text)
}

fn verdicts_url(cx: &Cx, slug: &str, id: ContributionId) -> String {
    let base = &cx.app.config.public_url;
    format!("{base}/projects/{slug}/contributions/{id}/verdicts")
}

/// Returns the verdicts other than `pass` of a decided contribution, in row order.
pub(in crate::ops) async fn verdicts(cx: &Cx, id: ContributionId) -> Result<Vec<RowVerdict>, ApiError> {
    match cx.app.store.contribution_verdicts(id).await? {
        Some(text) => stored("verdicts", &text),
        None => Ok(Vec::new()),
    }
}

fn stored<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, ApiError> {
    serde_json::from_str(text).map_err(|error| ApiError::internal(format!("stored {what}: {error}")))
}
