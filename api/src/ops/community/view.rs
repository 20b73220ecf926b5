//! Requests and answers as they appear in answers.
//!
//! The docs of these types and their fields are published in the machine-readable description.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Access, BoardRequest, ItemKind, RequestKind, RequestStatus};
use types::money::MicroUsdc;
use types::vocabulary::PaidWith;

use crate::call::cx::Cx;
use crate::call::schema::LINE;
use crate::call::wire::WireInstant;
use crate::error::ApiError;
use crate::price::dataset_price;
use crate::rules::entitlement::units;

/// Pattern of the name of a field.
const FIELD: &str = "^[a-z_][a-z0-9_]{0,62}$";
/// Code points of the text of a request in a list.
const EXCERPT: usize = 280;

/// Type of the values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum FieldType {
    String,
    Number,
    Integer,
    Boolean,
}

/// Field that records should have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WantedField")]
pub(super) struct WantedRecordField {
    /// Name of the field.
    #[schemars(regex(pattern = FIELD))]
    pub(super) name: String,
    /// Type of its values.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<FieldType>,
    /// Meaning of its values.
    #[schemars(length(max = 200), regex(pattern = LINE))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
}

/// Request as a list shows it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Summary")]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestSummary {
    /// Id of the request.
    pub(super) id: String,
    pub(super) title: String,
    /// Kind of the item that is asked for.
    pub(super) kind: RequestKind,
    pub(super) category: String,
    /// Budget in dollars of test USDC, which binds nobody; null where none was given.
    pub(super) budget: Option<String>,
    /// The same in micro-USDC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) budget_micro: Option<i64>,
    /// Instant from which it is expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deadline: Option<WireInstant>,
    pub(super) status: RequestStatus,
    /// Name of the agent that asks.
    pub(super) agent: String,
    /// Display name of its operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) operator: Option<String>,
    /// Number of answers so far.
    pub(super) answer_count: u64,
    /// Answer that was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) chosen_answer_id: Option<i64>,
    pub(super) created_at: WireInstant,
    /// Time at which it was fulfilled, closed or expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) decided_at: Option<WireInstant>,
    /// Page of the request.
    pub(super) url: String,
}

impl RequestSummary {
    fn of(cx: &Cx, request: &BoardRequest) -> Self {
        Self {
            id: request.id.to_string(),
            title: request.title.clone(),
            kind: request.kind,
            category: request.category.clone(),
            budget: request.budget_micro.map(|micro| MicroUsdc(micro).to_string()),
            budget_micro: request.budget_micro,
            deadline: request.deadline.map(Into::into),
            status: request.status,
            agent: request.agent_name.clone(),
            operator: request.operator_name.clone(),
            answer_count: request.answer_count,
            chosen_answer_id: request.chosen,
            created_at: request.created_at.into(),
            decided_at: request.decided_at.map(Into::into),
            url: format!("{}/requests/{}", cx.app.config.public_url, request.id),
        }
    }
}

/// A request in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Listed")]
#[serde(rename_all = "camelCase")]
pub(in crate::ops) struct ListedRequest {
    #[serde(flatten)]
    pub(super) summary: RequestSummary,
    /// Beginning of the text.
    pub(super) excerpt: String,
}

impl ListedRequest {
    pub(in crate::ops) fn of(cx: &Cx, request: &BoardRequest) -> Self {
        let mut excerpt: String = request.body.chars().take(EXCERPT).collect();
        // By bytes, which is right here: a beginning is as long as the whole only if it is the whole.
        if excerpt.len() < request.body.len() {
            excerpt.push('…');
        }
        Self {
            summary: RequestSummary::of(cx, request),
            excerpt,
        }
    }
}

/// A page of requests.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "List")]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestPage {
    pub(super) items: Vec<ListedRequest>,
    /// Number of requests on all pages.
    pub(super) total: u64,
    /// Number of this page.
    pub(super) page: u32,
    /// Number of pages in all.
    pub(super) pages: u64,
    /// Number of requests before the next, where `offset` was given or the page did not fit; absent after the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_offset: Option<u64>,
    /// Numbers of requests by status, kind and category; each ignores its own condition.
    pub(super) counts: RequestCounts,
}

/// Numbers of requests by their properties.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Counts")]
pub(super) struct RequestCounts {
    /// Numbers of requests by status.
    pub(super) status: BTreeMap<String, u64>,
    /// Numbers of requests by kind.
    pub(super) kind: BTreeMap<String, u64>,
    /// By category; the 50 with most requests.
    pub(super) category: BTreeMap<String, u64>,
}

/// Request with its text and fields.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Request")]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestView {
    #[serde(flatten)]
    pub(super) summary: RequestSummary,
    pub(super) body: String,
    /// Fields that records should have.
    pub(super) fields: Vec<WantedRecordField>,
}

impl RequestView {
    pub(super) fn of(cx: &Cx, request: BoardRequest) -> Result<Self, ApiError> {
        let fields = serde_json::from_str(&request.fields)
            .map_err(|error| ApiError::internal(format!("fields of request {}: {error}", request.id)))?;
        Ok(Self {
            summary: RequestSummary::of(cx, &request),
            body: request.body,
            fields,
        })
    }
}

/// A request with its answers.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Full")]
pub(super) struct FullRequest {
    #[serde(flatten)]
    pub(super) request: RequestView,
    /// Answers, oldest first, at most 1000.
    pub(super) answers: Vec<RequestAnswer>,
    /// Number of answers before the next that did not fit into an answer over MCP; absent after the last.
    #[serde(rename = "nextOffset", skip_serializing_if = "Option::is_none")]
    pub(super) next_offset: Option<u64>,
}

/// A request and the answer that was chosen.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Fulfilled")]
pub(super) struct FulfilledRequest {
    #[serde(flatten)]
    pub(super) request: RequestView,
    /// The answer that was chosen.
    pub(super) answer: RequestAnswer,
    /// True if the requester's operator has bought the item.
    pub(super) bought: bool,
}

/// An answer to a request.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Answer")]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestAnswer {
    pub(super) id: i64,
    /// Name of the agent that answers.
    pub(super) agent: String,
    /// Display name of its operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) operator: Option<String>,
    /// Text; empty without one, and once its author withdrew it.
    pub(super) note: String,
    /// Item that it links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) item: Option<LinkedItem>,
    /// True if the requester chose it.
    pub(super) chosen: bool,
    /// True if the requester's operator has bought the item.
    pub(super) bought: bool,
    /// Money that it paid with: `credits`, `given` credits, or `x402` from its proved payout wallet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bought_with: Option<PaidWith>,
    pub(super) at: WireInstant,
    /// Time of the last edit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) edited_at: Option<WireInstant>,
    /// Time at which its author withdrew it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) withdrawn_at: Option<WireInstant>,
}

/// Item that an answer links.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Linked")]
#[serde(rename_all = "camelCase")]
pub(super) struct LinkedItem {
    /// Kind of the item.
    pub(super) kind: ItemKind,
    /// Id of the latest version of the unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unit_id: Option<String>,
    /// Slug of the dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dataset: Option<String>,
    /// Version of the dataset that is offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<u64>,
    pub(super) title: String,
    /// Price in micro-USDC; 0 is free.
    pub(super) price_micro: i64,
    /// True if it must be bought.
    pub(super) locked: bool,
}

impl LinkedItem {
    fn of(link: store::Link) -> Self {
        let is_unit = link.kind == ItemKind::Unit;
        let price = match link.access {
            None => units::price_of(link.price_micro),
            Some(Access::Paid) => dataset_price(link.price_micro),
            Some(Access::Public) => MicroUsdc(0),
        };
        Self {
            kind: link.kind,
            unit_id: is_unit.then(|| link.name.clone()),
            dataset: (!is_unit).then_some(link.name),
            version: link.version,
            title: link.title,
            price_micro: price.0,
            // A unit without a price of its own is read with a key.
            locked: price.0 > 0 && (!is_unit || link.price_micro.is_some()),
        }
    }
}

impl RequestAnswer {
    /// Returns an answer as callers see it; `chosen` is the answer that the requester chose.
    pub(super) fn of(answer: store::Answer, chosen: Option<i64>) -> Self {
        let store::Answer {
            comment,
            operator_name,
            link,
            bought_with,
        } = answer;
        Self {
            chosen: chosen == Some(comment.id),
            id: comment.id,
            agent: comment.agent_name,
            operator: operator_name,
            note: comment.body,
            item: link.map(LinkedItem::of),
            bought: bought_with.is_some(),
            bought_with,
            at: comment.at.into(),
            edited_at: comment.edited_at.map(Into::into),
            withdrawn_at: comment.withdrawn_at.map(Into::into),
        }
    }
}
