//! Operation that returns what an operator has used and may use.
//!
//! Invariant: every figure is counted when asked, none is estimated.

use schemars::JsonSchema;
use serde::Serialize;
use store::AllowanceKind;

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{KEY, Spec};
use crate::call::wire::{self, NoInput, WireInstant};
use crate::error::ApiError;
use crate::rules::spending::{self, CallerLimits};
use crate::rules::storage_quota;
use crate::state::egress::account;

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "my_quota",
            path: "/quota",
            summary: "Storage, egress and validation allowance of the operator, used and allowed",
            tag: "accounts",
            accepts: KEY,
            ..Spec::BASE
        },
        &[],
        quota,
    );
}

/// Used and allowed amounts of an operator.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Quota")]
pub(super) struct OperatorQuota {
    storage: StorageQuota,
    egress: EgressQuota,
    validation: ValidationQuota,
    /// Limits of the calling agent, and of the app that acts as it.
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<CallerLimits>,
}

/// Used and allowed bytes of storage.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Storage")]
struct StorageQuota {
    /// Bytes of the operator's datasets and uploads.
    used: u64,
    /// Bytes that they may have now: the free ones, and those of which bought credits cover a day.
    allowed: u64,
}

/// Bytes sent in the UTC month.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Egress")]
#[serde(rename_all = "camelCase")]
struct EgressQuota {
    used: u64,
    allowed: u64,
    /// Beginning of the next month.
    resets_at: WireInstant,
}

/// State of the reviews, and the allowance of the UTC day.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Validation")]
#[serde(rename_all = "camelCase")]
struct ValidationQuota {
    /// State: `running` or `waiting`.
    state: &'static str,
    /// Reason of the wait: `budget`, `provider` or `paused`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// One sentence about that.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// Time at which they go on, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    resumes_after: Option<WireInstant>,
    /// Submissions still allowed today.
    remaining: SubmissionAllowances,
    /// Submissions allowed in a day.
    allowed: SubmissionAllowances,
    /// Beginning of the next day.
    reset_at: WireInstant,
}

/// Numbers of submissions by kind.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Allowances")]
struct SubmissionAllowances {
    /// Units, submissions and revisions together.
    knowledge: u32,
    /// Contributions to public datasets.
    contributions: u32,
}

async fn quota(cx: Cx, _: NoInput) -> Result<JsonReply<OperatorQuota>, ApiError> {
    Ok(JsonReply::ok(of(&cx).await?))
}

/// Used and allowed amounts of an operator, as the answer and the pages show them.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuotaFigures {
    /// Bytes of its datasets.
    pub(super) stored: u64,
    /// Bytes of its uploads.
    pub(super) uploading: u64,
    /// Bytes that may be stored.
    pub(super) storage_allowed: u64,
    /// Bytes sent in the UTC month.
    pub(super) egress_used: u64,
    /// Bytes that may be sent in it.
    pub(super) egress_allowed: u64,
    /// Units and revisions of the UTC day.
    pub(super) knowledge_used: u32,
    /// Contributions to public datasets of the UTC day.
    pub(super) contributions_used: u32,
}

impl QuotaFigures {
    /// Returns the bytes of datasets and uploads together.
    pub(super) const fn storage_used(&self) -> u64 {
        self.stored.saturating_add(self.uploading)
    }
}

/// Returns what the caller's operator, whose datasets have `stored` bytes, has used and may use.
pub(super) async fn figures(cx: &Cx, stored: u64) -> Result<QuotaFigures, ApiError> {
    let (operator, store) = (cx.the_operator()?, &cx.app.store);
    // Egress that this process has counted and not stored yet is stored first, so that the answer is complete.
    cx.app.egress.store(store, cx.now).await?;
    let (day, month) = (cx.now.day(), cx.now.month());
    let (uploading, egress_used, knowledge_used, contributions_used) = tokio::try_join!(
        store.upload_bytes_held(operator),
        store.egress(operator, month),
        store.allowance_used(operator, AllowanceKind::Knowledge, day),
        store.allowance_used(operator, AllowanceKind::Contribution, day),
    )?;
    let (_, paid_blocks) = store.money().egress_month(&account(operator), month).await?;
    // Blocks that credits have paid may be sent as well.
    let paid = paid_blocks.saturating_mul(pay::BLOCK_BYTES);
    Ok(QuotaFigures {
        stored,
        uploading,
        storage_allowed: storage_quota::allowed(cx, operator).await?,
        egress_used,
        egress_allowed: cx.app.pay.free_egress_bytes.saturating_add(paid),
        knowledge_used,
        contributions_used,
    })
}

/// Returns why the reviews wait and until when, if they do.
pub(super) async fn reviews_wait(cx: &Cx) -> Result<Option<wire::WaitingReview>, ApiError> {
    let (state, _) = cx.app.store.validation().await?;
    let held = state.held(cx.now);
    Ok(held.map(|(reason, until)| wire::WaitingReview::waiting(Some(reason), until)))
}

/// Returns what the caller's operator has used and may use.
pub(super) async fn of(cx: &Cx) -> Result<OperatorQuota, ApiError> {
    let (operator, limits) = (cx.the_operator()?, &cx.app.limits);
    let stored = storage_quota::stored_bytes(cx, operator).await?;
    let figures = figures(cx, stored).await?;
    let allowed = SubmissionAllowances {
        knowledge: limits.knowledge_per_day,
        contributions: limits.public_contributions_per_day,
    };
    let waiting = reviews_wait(cx).await?;
    let (state, reason, message, resumes_after) = waiting.map_or(("running", None, None, None), |waiting| {
        (waiting.state, waiting.reason, waiting.message, waiting.resumes_after)
    });
    Ok(OperatorQuota {
        storage: StorageQuota {
            used: figures.storage_used(),
            allowed: figures.storage_allowed,
        },
        egress: EgressQuota {
            used: figures.egress_used,
            allowed: figures.egress_allowed,
            resets_at: cx.now.next_month().into(),
        },
        validation: ValidationQuota {
            state,
            reason,
            message,
            resumes_after,
            remaining: SubmissionAllowances {
                knowledge: allowed.knowledge.saturating_sub(figures.knowledge_used),
                contributions: allowed.contributions.saturating_sub(figures.contributions_used),
            },
            allowed,
            reset_at: cx.now.next_day().into(),
        },
        limits: spending::limits_of(cx).await?,
    })
}
