//! Disputes of purchases: opened by the buyer, answered or given in to by the seller.
//!
//! Invariant: a dispute is seen by the operators that bought and sold; to others it is missing. Only an administrator decides,
//! and no operation here does.

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{DisputeSide, DisputedSale};
use types::vocabulary::{DisputeState, ItemKind};
use types::{DisputeId, OperatorId, SaleId};

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::TEXT;
use crate::call::spec::{Effect, KEY_OR_OPERATOR, Scope, Spec};
use crate::call::wire::WireInstant;
use crate::error::ApiError;
use crate::ops::paging::{NOT_A_NEXT_CURSOR, read_cursor, take_page};
use crate::rules::disputes;

/// Disputes on a page when the caller gives no `limit`.
const DEFAULT_DISPUTES: u32 = 50;
/// Refusal of an id.
const NO_DISPUTE: (u16, &str) = (404, "There is no such dispute, or it is of other operators.");

pub(super) fn add(table: &mut Operations) {
    let read = || Spec {
        tag: "money",
        accepts: KEY_OR_OPERATOR,
        ..Spec::BASE
    };
    let write = || Spec {
        method: Method::POST,
        scope: Scope::Write,
        effect: Effect::Write,
        ..read()
    };
    table.add(
        Spec {
            name: "open_dispute",
            path: "/disputes",
            summary: "Dispute a purchase while its share is held",
            description: "The seller is asked to answer or to give the price back until `answerDue`; a person of the \
                          service decides, and time alone decides nothing. A sale has one dispute of its buyer: the \
                          same call again answers 200 with it.",
            success: &[(201, "The dispute is open."), (200, "It was opened before.")],
            failure: &[
                (404, "There is no such sale, or somebody else bought it."),
                (
                    409,
                    "The time for disputes is over, or the price was given back (`not_disputable`).",
                ),
            ],
            example: r#"{"saleId": "0197b3c0-0000-7000-8000-000000000001", "reason": "Half of the rows are of last year."}"#,
            ..write()
        },
        &[],
        open,
    );
    table.add(
        Spec {
            name: "list_disputes",
            path: "/disputes",
            summary: "Disputes of what the operator bought and sold, newest first",
            ..read()
        },
        &[],
        list,
    );
    table.add(
        Spec {
            name: "get_dispute",
            path: "/disputes/{id}",
            summary: "A dispute, for its buyer and its seller",
            failure: &[NO_DISPUTE],
            ..read()
        },
        &[],
        get,
    );
    table.add(
        Spec {
            name: "answer_dispute",
            path: "/disputes/{id}/answer",
            summary: "Answer a dispute, as its seller, once",
            description: "The buyer and a person of the service read it. An answer after `answerDue` counts while the \
                          dispute is open.",
            failure: &[
                NO_DISPUTE,
                (
                    409,
                    "It was answered with other words (`dispute_answered`), or has ended (`dispute_ended`).",
                ),
            ],
            example: r#"{"answer": "The readme says which years the version has."}"#,
            ..write()
        },
        &[],
        answer,
    );
    table.add(
        Spec {
            name: "refund_dispute",
            path: "/disputes/{id}/refund",
            summary: "Give the price of a disputed sale back, as its seller",
            description: "The share and the points of the sale are taken back, and the buyer loses the item. It is not \
                          taken back.",
            scope: Scope::Spend,
            effect: Effect::Spend,
            failure: &[NO_DISPUTE, (409, "It ended for the seller (`dispute_ended`).")],
            ..write()
        },
        &[],
        refund,
    );
}

/// A dispute as one of its sides sees it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Dispute")]
#[serde(rename_all = "camelCase")]
struct DisputeDetails {
    id: String,
    /// Id of the sale.
    sale_id: String,
    /// Side of the caller: `buyer` or `seller`.
    side: DisputeRole,
    /// `open`, `refunded` (it ended for the buyer) or `released` (for the seller).
    state: DisputeState,
    /// Kind of the item.
    kind: ItemKind,
    /// Id of the unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit_id: Option<String>,
    /// Slug of the dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    dataset: Option<String>,
    /// Version of the dataset that was sold.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    /// Title of the item; empty where it is erased.
    title: String,
    /// Price that was paid, in micro-USDC.
    price_micro: i64,
    /// Share of the seller, for the seller.
    #[serde(skip_serializing_if = "Option::is_none")]
    share_micro: Option<i64>,
    /// Words of the buyer, written by others for the seller.
    reason: String,
    /// `buyer`, or `admin` for an administrator.
    opened_by: String,
    opened_at: WireInstant,
    /// Instant until which the seller is asked to answer. Nothing happens by itself then.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer_due: Option<WireInstant>,
    /// Words of the seller.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_at: Option<WireInstant>,
    /// `seller` where it gave the price back, or `admin`; absent while open.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_at: Option<WireInstant>,
    /// Words of the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<String>,
}

/// Side of a dispute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Side")]
#[serde(rename_all = "lowercase")]
enum DisputeRole {
    Buyer,
    Seller,
}

impl DisputeRole {
    const fn side(self) -> DisputeSide {
        match self {
            Self::Buyer => DisputeSide::Buyer,
            Self::Seller => DisputeSide::Seller,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Page")]
#[serde(rename_all = "camelCase")]
struct DisputeList {
    items: Vec<DisputeDetails>,
    /// Cursor of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OpenDisputeInput {
    /// Id of the sale, as a purchase and its receipt name it.
    #[schemars(with = "String", extend("format" = "uuid"))]
    sale_id: SaleId,
    /// What is wrong with the item, for the seller and a person of the service.
    #[schemars(length(min = 10, max = 2_000), regex(pattern = TEXT))]
    reason: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListDisputesQuery {
    /// Keeps the disputes in which the operator has this side.
    side: Option<DisputeRole>,
    /// The `nextCursor` of the page before.
    #[schemars(extend("format" = "uuid"))]
    cursor: Option<String>,
    /// Greatest number of disputes on the page; 50 where not given.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DisputePath {
    /// Id of the dispute.
    #[schemars(with = "String", extend("format" = "uuid"))]
    id: DisputeId,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AnswerDisputeInput {
    /// Id of the dispute.
    #[schemars(with = "String", extend("format" = "uuid"))]
    id: DisputeId,
    /// Answer to what the buyer says.
    #[schemars(length(min = 10, max = 2_000), regex(pattern = TEXT))]
    answer: String,
}

async fn open(cx: Cx, input: OpenDisputeInput) -> Result<JsonReply<DisputeDetails>, ApiError> {
    let (id, is_new) = disputes::open(&cx, input.sale_id, input.reason).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let body = details(&cx, id).await?;
    Ok(JsonReply { status, body })
}

async fn list(cx: Cx, input: ListDisputesQuery) -> Result<JsonReply<DisputeList>, ApiError> {
    let operator = cx.the_operator()?;
    let before: Option<DisputeId> = read_cursor(input.cursor.as_deref(), NOT_A_NEXT_CURSOR)?;
    let limit = input.limit.unwrap_or(DEFAULT_DISPUTES);
    let side = input.side.map(DisputeRole::side);
    let mut found = both_sides(&cx, operator, side, before, limit + 1).await?;
    let next_cursor = take_page(&mut found, limit).map(|last| last.dispute.id.to_string());
    Ok(JsonReply::ok(DisputeList {
        items: found.into_iter().map(|found| view(found, operator)).collect(),
        next_cursor,
    }))
}

/// Returns the newest disputes of an operator, of one side or of both.
pub(super) async fn both_sides(
    cx: &Cx,
    operator: OperatorId,
    side: Option<DisputeSide>,
    before: Option<DisputeId>,
    limit: u32,
) -> Result<Vec<DisputedSale>, ApiError> {
    let mut found = Vec::new();
    for one in [DisputeSide::Seller, DisputeSide::Buyer] {
        if side.is_none_or(|side| side == one) {
            found.extend(cx.app.store.money().disputes_of(operator, one, before, limit).await?);
        }
    }
    // Ids begin with their time, so this is the order of the opening.
    found.sort_by_key(|found| std::cmp::Reverse(found.dispute.id.to_string()));
    found.truncate(limit as usize);
    Ok(found)
}

async fn get(cx: Cx, input: DisputePath) -> Result<JsonReply<DisputeDetails>, ApiError> {
    Ok(JsonReply::ok(details(&cx, input.id).await?))
}

async fn answer(cx: Cx, input: AnswerDisputeInput) -> Result<JsonReply<DisputeDetails>, ApiError> {
    disputes::answer(&cx, input.id, &input.answer).await?;
    Ok(JsonReply::ok(details(&cx, input.id).await?))
}

async fn refund(cx: Cx, input: DisputePath) -> Result<JsonReply<DisputeDetails>, ApiError> {
    disputes::give_back(&cx, cx.the_operator()?, input.id).await?;
    Ok(JsonReply::ok(details(&cx, input.id).await?))
}

async fn details(cx: &Cx, id: DisputeId) -> Result<DisputeDetails, ApiError> {
    let found = disputes::seen(cx, id).await?;
    Ok(view(found, cx.the_operator()?))
}

fn view(found: DisputedSale, operator: OperatorId) -> DisputeDetails {
    let is_seller = found.side_of(operator) == Some(DisputeSide::Seller);
    let DisputedSale {
        dispute,
        sale,
        slug,
        title,
    } = found;
    let is_unit = sale.kind == ItemKind::Unit;
    DisputeDetails {
        id: dispute.id.to_string(),
        sale_id: sale.id.to_string(),
        side: if is_seller {
            DisputeRole::Seller
        } else {
            DisputeRole::Buyer
        },
        state: dispute.state,
        kind: sale.kind,
        unit_id: is_unit.then_some(sale.item),
        dataset: slug,
        version: (!is_unit).then_some(sale.version),
        title: title.unwrap_or_default(),
        price_micro: sale.price.0,
        share_micro: is_seller.then_some(sale.share.0),
        reason: dispute.reason,
        opened_by: dispute.opened_by,
        opened_at: dispute.opened_at.into(),
        answer_due: dispute.answer_due.map(Into::into),
        answer: dispute.reply,
        answered_at: dispute.replied_at.map(Into::into),
        decided_by: dispute.resolved_by,
        decided_at: dispute.resolved_at.map(Into::into),
        decision: dispute.answer.filter(|words| !words.is_empty()),
    }
}

#[cfg(test)]
mod tests;
