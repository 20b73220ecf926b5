//! Limits on what agents and apps spend: how answers show them, and the refusal of what does not fit.
//!
//! Invariant: a refusal names the owner of the cap, what it is for, and when it begins anew, so that an agent can tell its
//! person what to change.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use store::{SpendCapped, SpendLimits, SpendOf, SpendOwner, SpendPeriod, Spending};
use types::Timestamp;
use types::money::MicroUsdc;

use crate::call::cx::Cx;
use crate::call::wire::WireInstant;
use crate::codes::ErrorCode;
use crate::error::ApiError;

/// Limits of the caller and its spending, in micro-USDC.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CallerLimits")]
pub(crate) struct CallerLimits {
    /// Those of the agent, whatever acts as it.
    agent: OwnerLimits,
    /// Those of the app that calls; null for the agent's own key.
    app: Option<OwnerLimits>,
}

/// Limits of an agent or an app.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OwnerLimits {
    /// Most for one purchase; null if there is no cap.
    purchase_cap_micro: Option<i64>,
    /// The UTC day.
    day: PeriodLimit,
    /// The UTC month.
    month: PeriodLimit,
    /// Price above which a person is asked; null if never.
    approve_above_micro: Option<i64>,
}

/// Cap of a day or a month, and what is spent of it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PeriodLimit {
    /// Most that is spent; null if there is no cap.
    cap_micro: Option<i64>,
    /// Spent so far.
    used_micro: i64,
    /// Beginning of the next period.
    reset_at: WireInstant,
}

/// Returns the limits of the caller; `None` for one that is no agent.
pub(crate) async fn limits_of(cx: &Cx) -> Result<Option<CallerLimits>, ApiError> {
    let Some(spender) = cx.spender() else {
        return Ok(None);
    };
    let mut owners = vec![SpendOwner::Agent(spender.agent)];
    owners.extend(spender.app.map(SpendOwner::App));
    let spendings = cx.app.store.money().spendings(&owners, cx.now).await?;
    let mut shown = spendings.into_iter().map(|spending| OwnerLimits::of(spending, cx.now));
    Ok(shown.next().map(|agent| CallerLimits {
        agent,
        app: shown.next(),
    }))
}

impl OwnerLimits {
    fn of(spending: Spending, now: Timestamp) -> Self {
        let micro = |limit: Option<MicroUsdc>| limit.map(|limit| limit.0);
        let SpendLimits {
            per_purchase,
            per_day,
            per_month,
            approve_above,
        } = spending.limits;
        Self {
            purchase_cap_micro: micro(per_purchase),
            day: PeriodLimit {
                cap_micro: micro(per_day),
                used_micro: spending.on_day.0,
                reset_at: now.next_day().into(),
            },
            month: PeriodLimit {
                cap_micro: micro(per_month),
                used_micro: spending.in_month.0,
                reset_at: now.next_month().into(),
            },
            approve_above_micro: micro(approve_above),
        }
    }
}

/// Sets the limits of an agent or an app of the caller's operator.
///
/// # Errors
/// 404 if the operator has no such agent, or the app is not connected any more.
pub(crate) async fn set_limits(cx: &Cx, owner: SpendOwner, limits: SpendLimits) -> Result<(), ApiError> {
    let operator = cx.the_operator()?;
    if cx.app.store.money().limits_set(operator, owner, limits, cx.now).await? {
        return Ok(());
    }
    Err(ApiError::not_found(match owner {
        SpendOwner::Agent(_) => "there is no such agent",
        SpendOwner::App(_) => "there is no such connection",
    }))
}

/// Returns the refusal of a purchase that does not fit a cap.
pub(crate) fn capped_refusal(name: &str, capped: &SpendCapped) -> ApiError {
    let price = capped.price;
    let message = format!("{name} costs ${price} in test USDC, and {}", sentence(capped));
    let error = ApiError::new(ErrorCode::SpendCap, message);
    members(capped)
        .into_iter()
        .fold(error, |error, (member, value)| error.field(member, value))
}

/// Returns the members of a refusal that name a cap.
pub(crate) fn members(capped: &SpendCapped) -> [(&'static str, Value); 6] {
    [
        ("of", capped.of.as_str().into()),
        ("period", capped.period.as_str().into()),
        ("capMicro", capped.cap.0.into()),
        ("usedMicro", capped.used.0.into()),
        ("priceMicro", capped.price.0.into()),
        ("resetAt", json!(capped.resets_at.map(|at| at.to_string()))),
    ]
}

/// Says what a cap lets pass, and who changes it.
pub(crate) fn sentence(capped: &SpendCapped) -> String {
    let SpendCapped { cap, used, .. } = capped;
    let owner = match capped.of {
        SpendOf::Agent => "the agent",
        SpendOf::App => "the app",
    };
    let spent = match capped.period {
        SpendPeriod::Purchase => format!("{owner} may spend at most ${cap} on a purchase"),
        SpendPeriod::Day => format!("{owner} has spent ${used} of the ${cap} that it may spend on a UTC day"),
        SpendPeriod::Month => format!("{owner} has spent ${used} of the ${cap} that it may spend in a UTC month"),
    };
    let refunded = if capped.has_refund {
        "; a refund gives nothing back to it"
    } else {
        ""
    };
    format!("{spent}{refunded}; the person behind it changes that in the console")
}
