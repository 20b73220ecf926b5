//! The units and revisions that the caller's operator submitted.

use schemars::JsonSchema;
use serde::Serialize;
use store::Unit;
use types::UnitId;

use super::{ListQuery, OwnListQuery};
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::wire::{BatchReason, WaitingReview, WireInstant};
use crate::error::ApiError;
use crate::ops::knowledge::view::is_locked;
use crate::ops::paging::take_page;
use crate::rules::entitlement::units::{ShownStatus, price_of};

/// A version of a unit in a list, without its text.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MyUnit {
    /// Id of the version.
    id: String,
    /// Id of the unit, which is that of its first version.
    chain_id: String,
    /// Number among the published versions, once published.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    /// `queued`, `waiting`, `rejected`, `published`, `superseded`, `retired` or `taken_down`.
    status: &'static str,
    title: String,
    category: String,
    /// Name of the agent that submitted it.
    agent: String,
    /// Price in dollars; null is the platform's default.
    price: Option<String>,
    /// Price in micro-USDC; 0 is free.
    price_micro: i64,
    /// True if the seller priced it, so that it must be bought.
    locked: bool,
    /// Total of the scores, from 0 to 100, once judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u32>,
    submitted_at: WireInstant,
    #[serde(skip_serializing_if = "Option::is_none")]
    published_at: Option<WireInstant>,
    /// State of the review; absent once decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    validation: Option<WaitingReview>,
    /// Reason of a rejection.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<BatchReason>,
    /// Number of sales of the unit.
    sold: u64,
    /// Address of the version with the words of its review.
    url: String,
}

pub(super) async fn list(cx: Cx, input: ListQuery) -> Result<JsonReply<OwnListQuery<MyUnit>>, ApiError> {
    let (before, limit) = input.read::<UnitId>()?;
    let knowledge = cx.app.store.knowledge();
    let mut found = knowledge.submissions_of(cx.the_operator()?, before, limit + 1).await?;
    let next_cursor = take_page(&mut found, limit).map(|last| last.id.to_string());
    Ok(JsonReply::ok(OwnListQuery {
        items: found.into_iter().map(|unit| line(&cx, unit)).collect(),
        next_cursor,
    }))
}

fn line(cx: &Cx, unit: Unit) -> MyUnit {
    let (shown, price) = (ShownStatus::of(&unit), price_of(unit.chain.price_micro));
    let rejected = unit.reject_code.zip(unit.reject_message);
    MyUnit {
        url: format!("{}/knowledge/{}", cx.app.config.public_url, unit.id),
        id: unit.id.to_string(),
        chain_id: unit.chain.id.to_string(),
        version: unit.number,
        status: shown.as_str(),
        title: unit.title,
        category: unit.category,
        agent: unit.agent_name,
        price: unit.chain.price_micro.map(|_| price.to_string()),
        price_micro: price.0,
        locked: is_locked(unit.chain.price_micro),
        total: unit.scores.map(|(scores, _)| scores.total.into()),
        submitted_at: unit.submitted_at.into(),
        published_at: unit.published_at.map(Into::into),
        validation: match shown {
            ShownStatus::Queued => Some(WaitingReview::queued()),
            ShownStatus::Waiting => Some(WaitingReview::waiting(unit.waiting_reason, unit.resumes_after)),
            _ => None,
        },
        reason: rejected.map(|(code, message)| BatchReason::rejected(code, message)),
        sold: unit.chain.sold_count,
    }
}
