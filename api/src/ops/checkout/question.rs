//! The question before a purchase: its page, the person's yes, and the no.
//!
//! Invariant: what the page says of price, limits and credits is what a yes finds now; the yes itself decides again.

use pages::console::{ApprovalChange, ApprovalPage, ShownApproval};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Approved, DeniedApproval, PurchaseApproval, SpendOwner};
use types::money::MicroUsdc;
use types::vocabulary::{ApprovalState, ItemKind, StaleReason};
use types::{ApprovalId, OperatorId};

use super::{NamedItem, money_form, of_row};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::call::view::PageResponse;
use crate::codes::ErrorCode;
use crate::config::ADD_CREDIT_PATH;
use crate::error::ApiError;
use crate::ops::page_kit::{id, instant, missing, page, page_layout};
use crate::ops::spend_lines;
use crate::rules::approvals;
use crate::rules::reading::MAX_EXACT_INTEGER;

const PATH: &str = "/console/approvals/{id}";

pub(super) fn add(table: &mut Operations) {
    table.add(
        page("approval_page", PATH, "A purchase that waits for your yes"),
        &[],
        show,
    );
    let yes_form = Spec {
        success: &[(303, "The receipt, or the question with what has changed.")],
        ..money_form(
            "approve_purchase_form",
            "/console/approvals/{id}/yes",
            "Buys what an agent asked for",
        )
    };
    table.add(yes_form, &[], yes);
    let no_form = money_form(
        "deny_purchase_form",
        "/console/approvals/{id}/no",
        "Says no to a purchase",
    );
    table.add(no_form, &[], no);
}

/// Returns the page of a question.
pub(super) fn path(id: ApprovalId) -> String {
    format!("/console/approvals/{id}")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QuestionPath {
    /// Id of the question.
    #[schemars(length(max = 64))]
    id: String,
}

/// Decision of a person.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QuestionForm {
    /// Id of the question.
    #[schemars(length(max = 64))]
    id: String,
    /// Price that the page showed, in micro-USDC.
    #[schemars(range(min = 0, max = MAX_EXACT_INTEGER))]
    price: Option<u64>,
}

async fn show(cx: Cx, input: QuestionPath) -> Result<PageResponse, ApiError> {
    let approval: ApprovalId = id(&input.id, "question")?;
    let operator = cx.the_operator()?;
    let found = cx.app.store.money().approval(operator, approval, cx.now).await?;
    let asked = found.ok_or_else(|| missing("question"))?;
    let (price, changed) = if asked.state == ApprovalState::Waiting {
        now(&cx, operator, &asked).await?
    } else {
        (asked.price, None)
    };
    let named = NamedItem {
        kind: asked.kind,
        item: &asked.item,
        slug: asked.slug.as_deref(),
        title: asked.title.as_deref(),
        version: asked.version,
        price,
    };
    let checkout = of_row(&cx, named).await?;
    let (app, app_line) = app(&cx, operator, &asked).await?;
    let account = cx
        .app
        .store
        .operator(operator)
        .await?
        .ok_or_else(|| missing("account"))?;
    PageResponse::page(&ApprovalPage {
        chrome: page_layout(&cx).await?,
        id: asked.id,
        state: state(&cx, &asked).await?,
        checkout,
        changed,
        asked_by: asked.asked_by,
        line: spend_lines::line_of(&cx, SpendOwner::Agent(asked.agent)).await?,
        agent: asked.agent_name,
        app,
        app_line,
        account: account.display_name,
        reason: asked.reason,
        asked_at: instant(asked.asked_at),
        expires_at: instant(asked.expires_at),
        credits: spend_lines::credits(&cx, operator).await?,
        top_up: ADD_CREDIT_PATH.to_owned(),
    })
}

/// Returns what a yes would charge now, and what has changed so that it would buy nothing.
async fn now(
    cx: &Cx,
    operator: OperatorId,
    asked: &PurchaseApproval,
) -> Result<(MicroUsdc, Option<ApprovalChange>), ApiError> {
    let money = cx.app.store.money();
    let owned = money.purchase_of(operator, asked.kind, &asked.item).await?;
    let covers = |bought: &store::Bought| asked.kind == ItemKind::Unit || bought.sale.version >= asked.version;
    if let Some(bought) = owned.filter(covers) {
        return Ok((asked.price, Some(ApprovalChange::Owned(bought.sale.id))));
    }
    let offer = money.offer(asked.kind, &asked.item).await?;
    let Some(offer) = offer.filter(|offer| offer.visible && offer.on_sale && offer.can_be_priced) else {
        return Ok((asked.price, Some(ApprovalChange::Item)));
    };
    let price = offer.price.map(MicroUsdc);
    let price = match asked.kind {
        ItemKind::Unit => price,
        ItemKind::Dataset => price.or(Some(pay::DEFAULT_DATASET_PRICE)),
    };
    Ok(match price.filter(|price| *price > MicroUsdc(0)) {
        None => (asked.price, Some(ApprovalChange::Item)),
        Some(price) if price > asked.price => (asked.price, Some(ApprovalChange::Price(price))),
        // It was lowered meanwhile, and the lower price is what is paid.
        Some(price) => (price, None),
    })
}

/// Returns the state of a question as its page shows it.
async fn state(cx: &Cx, asked: &PurchaseApproval) -> Result<ShownApproval, ApiError> {
    Ok(match (asked.state, asked.sale) {
        (ApprovalState::Waiting, _) => ShownApproval::Waiting,
        (ApprovalState::Bought, Some(sale)) => ShownApproval::Bought(sale),
        (ApprovalState::Bought, None) => return Err(ApiError::internal("a purchase that was approved has no sale")),
        (ApprovalState::Denied, _) => ShownApproval::Denied(asked.decided_at.map(instant)),
        (ApprovalState::Expired, _) => ShownApproval::Expired,
        (ApprovalState::Stale, _) => {
            let why = asked.why.unwrap_or(StaleReason::Item);
            let money = cx.app.store.money();
            let later = money.approval_waiting_for(asked.agent, asked.kind, &asked.item, asked.version, cx.now);
            ShownApproval::Stale(why, later.await?.map(|later| later.id))
        }
    })
}

/// Returns the name of the app that asked, and its limits; nothing for an agent itself, and once its connection has ended.
async fn app(
    cx: &Cx,
    operator: OperatorId,
    asked: &PurchaseApproval,
) -> Result<(Option<String>, Option<pages::SpendLine>), ApiError> {
    let Some(connection) = asked.app else {
        return Ok((None, None));
    };
    let connections = cx.app.store.oauth().connections_of(operator, cx.now).await?;
    let found = connections.iter().find(|app| app.id == connection);
    let line = spend_lines::line_of(cx, SpendOwner::App(connection)).await?;
    Ok((found.map(crate::ops::console::app_name), Some(line)))
}

async fn yes(cx: Cx, input: QuestionForm) -> Result<PageResponse, ApiError> {
    let approval: ApprovalId = id(&input.id, "question")?;
    let shown = input.price.and_then(|price| i64::try_from(price).ok()).map(MicroUsdc);
    match approvals::yes(&cx, approval, shown).await? {
        Approved::Bought(row) => match row.sale {
            Some(sale) => PageResponse::see(&super::receipt::path(sale)),
            None => Err(ApiError::internal("a purchase that was approved has no sale")),
        },
        Approved::Stale {
            successor: Some(successor),
            ..
        } => PageResponse::see(&path(successor)),
        // The page says what stands in the way, as it is now.
        Approved::Ended(_)
        | Approved::Stale { .. }
        | Approved::Capped(_)
        | Approved::Short { .. }
        | Approved::NotForSale => PageResponse::see(&path(approval)),
        Approved::Missing => Err(missing("question")),
        // The session has ended with the suspension.
        Approved::Suspended => Err(ApiError::new(ErrorCode::NotSignedIn, "sign in to open this page")),
    }
}

async fn no(cx: Cx, input: QuestionForm) -> Result<PageResponse, ApiError> {
    let approval: ApprovalId = id(&input.id, "question")?;
    match approvals::no(&cx, approval).await? {
        DeniedApproval::Denied(_) => PageResponse::see(&path(approval)),
        DeniedApproval::Ended(row) => PageResponse::see(&match row.sale {
            // It was bought meanwhile, in another tab.
            Some(sale) => super::receipt::path(sale),
            None => path(approval),
        }),
        DeniedApproval::Missing => Err(missing("question")),
    }
}
