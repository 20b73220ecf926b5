//! Operation that judges records without contributing them.
//!
//! Invariant: the chain is the one that judges contributions. Nothing is stored and no allowance is used.

use std::sync::Arc;

use http::Method;
use operators::{Decision, Tally, standard_chain, summary_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{ProjectStatus, Visibility};
use types::key::{KeyLookup, NoKeys};
use types::vocabulary::OnRefused;
use types::{Batch, Kind};

use super::contribute::{EXAMPLE, contract, not_open, records_bound};
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::TEXT;
use crate::call::spec::{BodySize, GuardedItem, KEY, Scope, Spec};
use crate::call::wire::{BatchReason, VerdictLine, WireInstant};
use crate::config::Limits;
use crate::error::ApiError;
use crate::rules::entitlement;
use crate::rules::reading::{self, NOT_YET};

pub(super) fn add(table: &mut Operations, limits: &Limits) {
    table.add(
        Spec {
            name: "validate_records",
            method: Method::POST,
            path: "/projects/{slug}/validate",
            summary: "Judge records without contributing them",
            description: "The gates say what they would say of a contribution now. Nothing is kept, no allowance is \
                          used. Who may not read the dataset's records is not told which of them it has.",
            tag: "datasets",
            accepts: KEY,
            // A dry run takes the same doors as the contribution that it stands for.
            scope: Scope::Write,
            item: GuardedItem::Project,
            body: BodySize::Batch,
            keeps_digits: true,
            success: &[(
                200,
                "What would become of the batch, and the verdict of every record that does not pass.",
            )],
            failure: &[
                (404, "There is no such project, or it is private to others."),
                (409, "The project is not open."),
                NOT_YET,
            ],
            example: EXAMPLE,
            ..Spec::BASE
        },
        &[records_bound(limits)],
        validate,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ValidateInput {
    /// Slug of the project.
    slug: String,
    /// Records to judge.
    #[schemars(with = "Vec<Map<String, Value>>", length(min = 1, max = 500))]
    records: Vec<Value>,
    /// Source of the records: what was measured, where and when, or whose work it is.
    #[schemars(length(max = 500), regex(pattern = TEXT))]
    #[expect(
        dead_code,
        reason = "taken so that the body of a contribution is the body of its dry run"
    )]
    source_declaration: Option<String>,
    /// What refused records do: `reject` the batch, or `drop`: they are left out unless they are more than half.
    #[serde(default)]
    on_refused: OnRefused,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DryRun {
    /// Decision on the batch: `merge`, `reject`, or `hold` to judge it later.
    decision: BatchFate,
    /// One sentence on what would be merged: how many records are new, and what is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    /// Reason why the batch would not be merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<BatchReason>,
    /// Time at which a batch that is held would be judged again, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    resumes_after: Option<WireInstant>,
    /// Records among which duplicates are sought: the whole `dataset`, or only the `batch` if the caller may not read
    /// the dataset.
    compared_with: ComparedRecords,
    /// Number of records judged.
    rows: u32,
    /// Number of records that pass.
    passed: usize,
    /// Counts of each gate.
    tallies: Vec<Tally>,
    /// The records that do not pass, in order.
    verdicts: Vec<VerdictLine>,
}

/// Records that a dry run looks for duplicates among.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Compared")]
#[serde(rename_all = "lowercase")]
enum ComparedRecords {
    Dataset,
    Batch,
}

/// Decision on the whole batch.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Fate")]
#[serde(rename_all = "lowercase")]
enum BatchFate {
    Merge,
    Reject,
    Hold,
}

async fn validate(cx: Cx, input: ValidateInput) -> Result<JsonReply<DryRun>, ApiError> {
    let project = entitlement::current(&cx, &input.slug).await?;
    if project.status != ProjectStatus::Open {
        return Err(not_open(&project.slug, project.status));
    }
    let contract = Arc::new(contract(&project)?);
    // Finding a duplicate reveals that a dataset contains a record, and reading a paid dataset costs money. So a caller
    // without entitlement learns of duplicates within the batch only.
    let (compared_with, known): (_, Arc<dyn KeyLookup>) =
        match entitlement::records(&cx, &project, project.version, None).await {
            Ok(()) => {
                // The snapshot is not used. It fails if the table is behind or lost history, when duplicates would be
                // missed.
                reading::snapshot(&cx, &project, None).await?;
                (ComparedRecords::Dataset, cx.app.catalog.known(project.id).await?)
            }
            Err(unpaid) if unpaid.kind() == Kind::PaymentRequired => (ComparedRecords::Batch, Arc::new(NoKeys)),
            Err(error) => return Err(error),
        };
    // Private records are never sent to a remote judge, so the chain of a private project has no screen.
    let screen = (project.visibility == Visibility::Public).then(|| Arc::clone(&cx.app.screener));
    let place = Arc::clone(&cx.app.process.dry_runs)
        .acquire_owned()
        .await
        .map_err(ApiError::internal)?;
    // The gates are synchronous and use the processor for long, so they run on a blocking thread and not on the
    // runtime's.
    let runtime = tokio::runtime::Handle::current();
    let (records, on_refused) = (input.records, input.on_refused);
    let judging = tokio::task::spawn_blocking(move || {
        let batch = Batch::decode(&contract, &records);
        let judged = runtime.block_on(standard_chain(known, screen).run(batch));
        // The permit goes to the blocking thread: a caller that disconnects does not end the work, so it must not free
        // the permit.
        drop(place);
        judged
    });
    let judged = judging
        .await
        .map_err(|error| ApiError::internal(format!("dry run: {error}")))?;
    let (decision, reason, resumes_after) = match judged.decision(on_refused) {
        Decision::Merge => (BatchFate::Merge, None, None),
        Decision::Reject { code, message } => (BatchFate::Reject, Some(BatchReason::rejected(code, message)), None),
        Decision::Hold { reason, resumes_after } => (BatchFate::Hold, Some(BatchReason::held(&reason)), resumes_after),
    };
    let summary = matches!(decision, BatchFate::Merge).then(|| summary_of(&judged.tallies, judged.passed.len() as u64));
    Ok(JsonReply::ok(DryRun {
        decision,
        summary,
        reason,
        resumes_after: resumes_after.map(Into::into),
        compared_with,
        rows: judged.rows,
        passed: judged.passed.len(),
        tallies: judged.tallies,
        verdicts: judged.verdicts.into_iter().map(Into::into).collect(),
    }))
}

#[cfg(test)]
mod tests;
