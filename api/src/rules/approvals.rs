//! Purchases that wait for a person: what an agent is told of them, and what a person decides.
//!
//! Invariant: one function of the store decides, in one transaction; here are its terms, its letters, and the names in the
//! trail.

use schemars::JsonSchema;
use serde::Serialize;
use store::{
    ApprovalLetter, ApprovalState, Approved, DeniedApproval, NewNo, NewPersonAsk, NewPurchaseAsk, NewYes, PersonAsked,
    PurchaseApproval, SaleTerms,
};
use types::money::MicroUsdc;
use types::vocabulary::ItemKind;
use types::{AgentId, ApprovalId, LedgerEventId, OperatorId, SaleId, SessionId, Version};

use crate::call::cx::Cx;
use crate::call::wire::WireInstant;
use crate::error::ApiError;
use crate::rules::letters::{self, LetterPayload};
use crate::state::app::App;

/// Seconds after which an agent asks again what became of its purchase.
pub(crate) const APPROVAL_POLL_SECONDS: u64 = 30;
/// Greatest length of what an agent says of a purchase, in characters.
pub(crate) const MAX_REASON_CHARS: u32 = 280;

/// Row of a purchase that waits for a person, or was bought by one, as an agent sees it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Approval")]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApprovalView {
    /// Id of the row.
    id: String,
    /// State: `waiting`, `bought` or `denied`.
    status: ApprovalState,
    /// Page on which the person decides.
    url: String,
    /// Instant from which it waits no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<WireInstant>,
    /// Id of the sale, once it is bought.
    #[serde(skip_serializing_if = "Option::is_none")]
    sale_id: Option<String>,
    /// Price that the person saw, in micro-USDC (test USDC).
    price_micro: i64,
}

/// Returns a row as an agent sees it.
pub(crate) fn view(app: &App, approval: &PurchaseApproval) -> ApprovalView {
    let waits = approval.state == ApprovalState::Waiting;
    ApprovalView {
        id: approval.id.to_string(),
        status: approval.state,
        url: app.config.approval_page(approval.id),
        expires_at: waits.then(|| approval.expires_at.into()),
        sale_id: approval.sale.map(|sale| sale.to_string()),
        price_micro: approval.price.0,
    }
}

/// Returns the terms of a sale of an item of a kind.
pub(crate) fn sale_terms(app: &App, kind: ItemKind) -> SaleTerms {
    let tariff = &app.pay;
    SaleTerms {
        asset: tariff.asset.clone(),
        default_price: default_price(kind),
        fee: tariff.fee.clone(),
        dispute_window: tariff.dispute_window(),
        quote_window: tariff.quote_window(),
    }
}

/// Returns the price of an item without a price of its own, which is the default that is in force now.
const fn default_price(kind: ItemKind) -> MicroUsdc {
    match kind {
        ItemKind::Unit => pay::UNIT_DEFAULT,
        ItemKind::Dataset => pay::DEFAULT_DATASET_PRICE,
    }
}

/// Returns the ask of the calling agent, with a letter to its person.
pub(crate) fn ask_of_agent(cx: &Cx, operator: OperatorId, reason: Option<String>) -> NewPurchaseAsk {
    let id = ApprovalId::new(cx.now);
    let input = |approval| letters::input(&LetterPayload::Approval { approval });
    // An agent can ask as often as it likes, so the last letters of a day are not for that.
    let budget = letters::for_strangers(cx.app.config.mails_per_day);
    NewPurchaseAsk {
        id,
        reason: reason.filter(|reason| !reason.trim().is_empty()),
        letter: Some(ApprovalLetter {
            mail: letters::mail(
                &LetterPayload::Approval { approval: id },
                Some(operator),
                Some(budget),
                cx.now,
            ),
            input,
        }),
    }
}

/// Choice of a person on a page: an item, and the agent that buys it.
#[derive(Clone, Debug)]
pub(crate) struct PersonAsk {
    /// Id of the form, a UUID.
    pub(crate) form: String,
    /// Kind of the item.
    pub(crate) kind: ItemKind,
    /// Id of the unit or the dataset.
    pub(crate) item: String,
    /// Version of a dataset; the latest if absent.
    pub(crate) version: Option<Version>,
    /// Agent that buys.
    pub(crate) agent: AgentId,
    /// Price that the page showed.
    pub(crate) price: MicroUsdc,
}

/// Makes the row of what a person chose, or finds the one that there is.
pub(crate) async fn ask_for_person(cx: &Cx, ask: PersonAsk) -> Result<PersonAsked, ApiError> {
    let PersonAsk {
        form,
        kind,
        item,
        version,
        agent,
        price,
    } = ask;
    let (operator, _) = the_person(cx)?;
    let new = NewPersonAsk {
        id: ApprovalId::new(cx.now),
        operator,
        form,
        kind,
        item,
        version,
        agent,
        price,
        default_price: default_price(kind),
        now: cx.now,
    };
    Ok(cx.app.store.acting_as(agent).money().approval_ask(new).await?)
}

/// Buys what a row waits for, by the yes of the person who is signed in.
/// `shown` is the price that the person saw.
pub(crate) async fn yes(cx: &Cx, id: ApprovalId, shown: Option<MicroUsdc>) -> Result<Approved, ApiError> {
    let (operator, session) = the_person(cx)?;
    // Only for the kind of the item and the name in the trail, neither of which changes.
    let Some(approval) = cx.app.store.money().approval(operator, id, cx.now).await? else {
        return Ok(Approved::Missing);
    };
    let new = NewYes {
        id,
        operator,
        session,
        shown,
        sale: SaleId::new(cx.now),
        event: LedgerEventId::new(cx.now),
        successor: ApprovalId::new(cx.now),
        terms: sale_terms(&cx.app, approval.kind),
        now: cx.now,
    };
    Ok(cx.app.store.acting_as(approval.agent).money().approve(new).await?)
}

/// Ends a row that waits, by the no of the person who is signed in.
pub(crate) async fn no(cx: &Cx, id: ApprovalId) -> Result<DeniedApproval, ApiError> {
    let (operator, session) = the_person(cx)?;
    let Some(approval) = cx.app.store.money().approval(operator, id, cx.now).await? else {
        return Ok(DeniedApproval::Missing);
    };
    let new = NewNo {
        id,
        operator,
        session,
        default_price: default_price(approval.kind),
        now: cx.now,
    };
    Ok(cx.app.store.acting_as(approval.agent).money().deny(new).await?)
}

/// Returns the person of a session: nobody else decides.
fn the_person(cx: &Cx) -> Result<(OperatorId, SessionId), ApiError> {
    cx.session()
        .ok_or_else(|| ApiError::internal("a decision of a person was asked of an operation without a session"))
}
