//! Operation that contributes a batch of records.
//!
//! Invariant: a 201 is sent only after the contribution's row, which is its outbox entry, is durable. Later failures do
//! not change the answer.

use std::time::Duration;

use bytes::Bytes;
use catalog::KnownHead;
use http::Method;
use messages::{CONTRIBUTIONS_TOPIC, Records, Source, Submission};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use store::{Allowance, Idempotency, NewContribution, Project, ProjectStatus, SubmitOutcome, Visibility};
use tokio::time::Instant;
use types::vocabulary::OnRefused;
use types::{Contract, ContributionId, OperatorId, canonical, fault, metric, mutate};

use super::contributions::{ContributionView, wait_bound};
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::{SchemaBound, TEXT, VISIBLE};
use crate::call::spec::{BodySize, Spec};
use crate::call::wire::ContributionAllowance;
use crate::codes::ErrorCode;
use crate::config::Limits;
use crate::error::{ApiError, whole_seconds};
use crate::rules::entitlement;
use crate::rules::storage_quota;
use crate::state::backlog::BacklogRefusal;

/// `Retry-After` when no more contributions can be acknowledged, in seconds.
const FULL_RETRY_SECONDS: u64 = 5;
/// Example of a request body.
pub(super) const EXAMPLE: &str = r#"{
    "records": [{"gauge": "Hook of Holland", "at": "2026-11-21T06:00:00Z", "metres": 0.83}],
    "sourceDeclaration": "Read from the gauge on site."
}"#;

pub(super) fn add(table: &mut Operations, limits: &Limits) {
    table.add(
        Spec {
            name: "contribute_records",
            method: Method::POST,
            path: "/projects/{slug}/contribute",
            query: &["wait"],
            headers: &[("idempotencyKey", "Idempotency-Key")],
            summary: "Contribute a batch of records",
            description: "A 201 is durable: the batch will be judged and merged or rejected, once. The same \
                          idempotency key within its window answers for the first call, with the outcome as it is now.",
            body: BodySize::Batch,
            raw_body_member: Some("records"),
            keeps_digits: true,
            success: &[
                (
                    200,
                    "The answer of an earlier call with the same idempotency key, `replayed`.",
                ),
                (
                    201,
                    "The contribution; with `wait`, its outcome if that is known in time.",
                ),
            ],
            failure: &[
                (
                    402,
                    "The storage of the maintainer is used up, and its credits do not cover a day of more.",
                ),
                (404, "There is no such project, or it is private to others."),
                (409, "The project is not open."),
                (422, "An earlier call used the idempotency key with another body."),
                (
                    429,
                    "Too many calls, or the day's allowance is used up; `allowance.resetAt` says until when.",
                ),
                (
                    503,
                    "Too many contributions wait for their outcome, or there is no room for more: nothing was kept, \
                     `Retry-After` says when to try again. Or `onRefused: drop`, or a type of the contract, is not enabled (`not_enabled`).",
                ),
            ],
            example: EXAMPLE,
            ..Spec::CONTRIBUTION
        },
        &[wait_bound(limits), records_bound(limits)],
        contribute,
    );
}

/// Returns the bound on the records of a batch, from the configuration.
pub(super) fn records_bound(limits: &Limits) -> SchemaBound {
    SchemaBound {
        at: "/properties/records",
        keyword: "maxItems",
        value: limits.records_per_contribution.get().into(),
        asserted: true,
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ContributeInput {
    /// Slug of the project.
    slug: String,
    /// Seconds to wait for the outcome.
    #[serde(default)]
    #[schemars(range(min = 0, max = 20))]
    wait: u32,
    /// Key by which a repeated call is recognised, so that repeating it is harmless.
    #[schemars(length(min = 1, max = 255), regex(pattern = VISIBLE))]
    idempotency_key: Option<String>,
    /// Records of the batch.
    // If the call has a body, these are an outline of it, see `Spec::raw_body_member`.
    #[schemars(with = "Vec<Map<String, Value>>", length(min = 1, max = 500))]
    records: Vec<Value>,
    /// Source of the records: what was measured, where and when, or whose work it is.
    #[schemars(length(max = 500), regex(pattern = TEXT))]
    source_declaration: Option<String>,
    /// What refused records do: `reject` the batch, or `drop`: they are left out unless they are more than half.
    #[serde(default)]
    on_refused: OnRefused,
}

async fn contribute(mut cx: Cx, input: ContributeInput) -> Result<JsonReply<ContributionView>, ApiError> {
    let project = entitlement::current(&cx, &input.slug).await?;
    let contract = contract(&project)?;
    check_enabled(&cx, input.on_refused, &contract)?;
    let wait = Duration::from_secs(input.wait.into());
    let id = ContributionId::new(cx.now);
    // The body is moved out of the context: the submission contains it, and a request that waits for its outcome must
    // not keep it in memory.
    let body = cx.body.take();
    let (new, record) = submission(&cx, &project, contract, id, input, body)?;
    let (rows, bytes, paused) = (new.rows, new.submission.len(), new.paused);
    let refused = match cx.app.backlog.rejection() {
        Some(rejected) => Some(no_more(rejected)),
        None => storage_quota::admit(&cx, &project, bytes as u64).await.err(),
    };
    let before = match refused {
        None => None,
        // A repeated call is answered even when nothing new is accepted.
        Some(refused) => match cx.app.store.idempotency_used(&new).await? {
            None => return Err(refused),
            used => used,
        },
    };
    let acknowledged = ContributionView::submitted(id, &project.slug, new.source_declaration.clone(), rows, cx.now);
    let acknowledged = if paused { acknowledged.paused() } else { acknowledged };
    // Registered before the row exists, so that an outcome that arrives at once is not missed.
    let subscription = (!wait.is_zero()).then(|| cx.app.waiters.subscribe(id));
    mutate!(Bug::AckBeforeRow => let before =
        before.or_else(|| Some(crate::faults::submit_later(&cx.app.store, &new))));
    let (answered, used) = match before {
        Some(before) => (before, None),
        None => cx.app.store.contribution_submit_counted(new).await?,
    };
    let limit = cx.app.limits.public_contributions_per_day;
    let left = used.map(|used| ContributionAllowance::new(limit, used, cx.now));
    let acknowledged = acknowledged.with_allowance(left);
    match answered {
        SubmitOutcome::Submitted => {
            acknowledged_in_log(id, &project);
            // The sweeper appends the submission if this process ends before the relay does.
            cx.app.backlog.add(bytes);
            metrics::counter!(metric::CONTRIBUTIONS, "state" => "acknowledged").increment(1);
            fault::point("ack.respond");
            // The sweeper appends what waits when the pause ends.
            if !paused {
                cx.app.relay.submit(CONTRIBUTIONS_TOPIC, record);
            }
            let Some(subscription) = subscription else {
                return Ok(JsonReply::created(acknowledged));
            };
            // The time spent on the notice counts toward `wait`.
            let begun = Instant::now();
            let applied = subscription.recv(wait).await;
            let decided = match applied {
                Some(applied) => acknowledged.decided(&cx, applied),
                None => outcome(&cx, &project, id, wait.saturating_sub(begun.elapsed())).await,
            };
            // The contribution is acknowledged, so an error of reading its outcome must not become an error of the
            // call.
            Ok(JsonReply::created(decided.unwrap_or_else(|error| {
                tracing::warn!(
                    contribution = %id, error = error.log_context(),
                    "cannot read the outcome of a contribution; answered without it"
                );
                acknowledged
            })))
        }
        SubmitOutcome::Replayed(earlier) => Ok(JsonReply::ok(outcome(&cx, &project, earlier, wait).await?.replayed())),
        SubmitOutcome::KeyReused => Err(ApiError::key_reused()),
        SubmitOutcome::NotOpen { status } => Err(not_open(&project.slug, status)),
        SubmitOutcome::AllowanceSpent => Err(allowance_spent(&cx)),
    }
}

/// Logs an acknowledged contribution, and records its ids in the span of the request.
pub(super) fn acknowledged_in_log(id: ContributionId, project: &Project) {
    let span = tracing::Span::current();
    span.record("contribution", tracing::field::display(id));
    span.record("dataset", tracing::field::display(project.id));
    tracing::info!("contribution acknowledged");
}

/// Returns the contribution's row, and the message of which that row is the outbox entry.
fn submission(
    cx: &Cx,
    project: &Project,
    contract: Contract,
    id: ContributionId,
    input: ContributeInput,
    body: Option<Bytes>,
) -> Result<(NewContribution, eventlog::Record), ApiError> {
    let limits = &cx.app.limits;
    let (agent, operator) = (cx.the_agent()?, cx.the_operator()?);
    let private = project.visibility == Visibility::Private;
    let rows = u32::try_from(input.records.len()).map_err(ApiError::internal)?;
    let unencodable = |error: &dyn std::error::Error| ApiError::internal(format!("submission: {error}"));
    let records = match body {
        Some(body) => Records::of_body(body),
        None => Records::of(&input.records).map_err(|error| unencodable(&error))?,
    };
    // The hash covers the records' values, so a repeated call may format its JSON differently.
    let idempotency = match input.idempotency_key {
        None => None,
        Some(key) => {
            let values = records.values().map_err(|error| unencodable(&error))?;
            Some(Idempotency {
                key,
                body_hash: body_hash(&values, input.source_declaration.as_deref(), input.on_refused),
                window: limits.idempotency_window.0,
            })
        }
    };
    let message = Submission {
        format: Submission::format_for(input.on_refused, &contract),
        contribution: id,
        generation: 0,
        dataset: project.id,
        agent,
        private,
        contract,
        submitted_at: cx.now,
        source: Source::Inline(records),
        origin: Some(cx.origin()),
        head: known_head(project),
        on_refused: input.on_refused,
        reading: None,
    };
    let record = message.record().map_err(|error| unencodable(&error))?;
    let allowance = Allowance {
        limit: limits.public_contributions_per_day,
        day: cx.now.day(),
    };
    let new = NewContribution {
        id,
        project: project.id,
        agent,
        operator,
        source_declaration: input.source_declaration,
        rows,
        private,
        paused: !private && cx.app.validation.is_paused(),
        submission: record.value.to_vec(),
        now: cx.now,
        idempotency,
        // Contributions to private projects use no allowance, and collectors have none.
        allowance: (!private && operator != OperatorId::PLATFORM).then_some(allowance),
        first_sweep: cx.app.sweeper.first(cx.now),
    };
    Ok((new, record))
}

/// Returns the latest version that applied outcomes have announced, for the worker to check the table against.
pub(super) fn known_head(project: &Project) -> Option<KnownHead> {
    let root = project.head.as_ref()?.root.parse().ok()?;
    Some(KnownHead {
        version: project.version,
        root,
    })
}

/// Parses the contract that a project was created with, and returns its rules. Tables and submissions have no more of it.
pub(in crate::ops) fn contract(project: &Project) -> Result<Contract, ApiError> {
    Ok(documented_contract(project)?.rules())
}

/// Parses the contract that a project was created with.
pub(in crate::ops) fn documented_contract(project: &Project) -> Result<Contract, ApiError> {
    serde_json::from_str(&project.contract_json)
        .map_err(|error| ApiError::internal(format!("contract of project {}: {error}", project.id)))
}

/// Refuses a policy or a type that the workers may not know: one that does not would reject the contribution for good.
pub(in crate::ops) fn check_enabled(cx: &Cx, on_refused: OnRefused, contract: &Contract) -> Result<(), ApiError> {
    if Submission::format_for(on_refused, contract) <= cx.app.config.write_format {
        return Ok(());
    }
    let message = if contract.has_new_types() {
        "fields of the types `date` and `decimal` are not enabled in this service".to_owned()
    } else {
        format!("`onRefused: {on_refused}` is not enabled in this service; send it without the refused records")
    };
    Err(ApiError::new(ErrorCode::NotEnabled, message))
}

/// Hashes the content of a body in canonical form, independent of its formatting.
fn body_hash(records: &[Value], source_declaration: Option<&str>, on_refused: OnRefused) -> [u8; 32] {
    let mut text = Vec::new();
    canonical::write_value(&mut text, &source_declaration.map_or(Value::Null, Value::from));
    for record in records {
        // Canonical JSON has no line break of its own, so the breaks keep the records apart.
        text.push(b'\n');
        canonical::write_value(&mut text, record);
    }
    // Another policy may have another outcome. The usual one adds nothing, as in hashes that are kept.
    if on_refused != OnRefused::Reject {
        text.push(b'\n');
        text.extend_from_slice(on_refused.as_str().as_bytes());
    }
    Sha256::digest(&text).into()
}

/// Returns the contribution as it is when it is decided or `wait` has passed.
async fn outcome(cx: &Cx, project: &Project, id: ContributionId, wait: Duration) -> Result<ContributionView, ApiError> {
    let row = cx.app.waiters.outcome(&cx.app.store, id, wait).await?;
    let row = row.ok_or_else(|| ApiError::internal(format!("contribution {id} is not in the database")))?;
    ContributionView::of(cx, &project.slug, row).await
}

/// Returns the 503 for a contribution that cannot be acknowledged now.
pub(super) fn no_more(rejected: BacklogRefusal) -> ApiError {
    let (code, message) = match rejected {
        BacklogRefusal::Backlog => (
            ErrorCode::BacklogFull,
            "too many contributions wait for their outcome; nothing was kept, try again later",
        ),
        BacklogRefusal::Disk => (
            ErrorCode::StorageFull,
            "the service has no room for contributions; nothing was kept, try again later",
        ),
    };
    ApiError::new(code, message)
        .field("retryAfter", FULL_RETRY_SECONDS)
        .header(http::header::RETRY_AFTER, FULL_RETRY_SECONDS.into())
}

/// Returns the 409 for a contribution to a project that is not open.
pub(super) fn not_open(slug: &str, status: ProjectStatus) -> ApiError {
    let message = format!("the project `{slug}` is {status} and accepts no contributions");
    ApiError::new(ErrorCode::ProjectNotOpen, message).field("status", status.as_str())
}

pub(super) fn allowance_spent(cx: &Cx) -> ApiError {
    let limit = cx.app.limits.public_contributions_per_day;
    let resets_at = cx.now.next_day();
    // The clock is read again, since `Retry-After` counts from the answer and not from the beginning of the call.
    let seconds = whole_seconds(resets_at.since(cx.app.clock.now()));
    let message = format!("the operator has made {limit} contributions to public datasets today, which is the limit");
    let allowance = serde_json::json!({
        "kind": "contribution", "limit": limit, "used": limit, "remaining": 0, "resetAt": resets_at.to_string(),
    });
    ApiError::limited(ErrorCode::AllowanceSpent, message, seconds).field("allowance", allowance)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_same_body_in_another_spelling_has_the_same_hash() {
        let hash = |body, source| body_hash(&[body], source, OnRefused::Reject);
        let one = hash(json!({"a": 1, "b": "x"}), Some("s"));
        assert_eq!(one, hash(json!({"b": "x", "a": 1.0}), Some("s")));
    }

    #[test]
    fn another_body_has_another_hash() {
        let hash = |records: &[Value], source| body_hash(records, source, OnRefused::Reject);
        let records = [json!({"a": 1}), json!({"a": 2})];
        let one = hash(&records, None);
        for other in [
            hash(&[json!({"a": 2}), json!({"a": 1})], None),
            hash(&[json!({"a": 1})], None),
            hash(&records, Some("")),
            hash(&[json!({"a": "1"}), json!({"a": 2})], None),
            body_hash(&records, None, OnRefused::Drop),
        ] {
            assert_ne!(one, other);
        }
    }
}
