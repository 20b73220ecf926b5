//! Pages of what is on sale with the ways to pay, and the form that asks for a person's yes.
//!
//! Invariant: the pages are open to anybody, since a wallet needs no account. Without one they show nothing of an account.

use pages::{BuyPage, BuyerAccount, Checkout, CheckoutState, PaymentWay, WalletOffer};
use schemars::JsonSchema;
use serde::Deserialize;
use store::PersonAsked;
use types::money::MicroUsdc;
use types::vocabulary::ItemKind;
use types::{ApprovalId, OperatorId, UnitId, Version};

use super::{money_form, of_dataset, of_unit};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{GuardedItem, Spec};
use crate::call::view::PageResponse;
use crate::call::visit;
use crate::config::ADD_CREDIT_PATH;
use crate::error::ApiError;
use crate::ids;
use crate::ops::page_kit::{id, missing, page_layout};
use crate::ops::paid;
use crate::ops::spend_lines;
use crate::price::{PATTERN, dataset_price};
use crate::rules::approvals::{self, PersonAsk};
use crate::rules::entitlement;
use crate::rules::entitlement::units::{self, ShownStatus};
use crate::rules::reading::MAX_EXACT_INTEGER;
use crate::rules::settlement::goods;

/// Address to which the form goes.
const ASK: &str = "/console/buy";

pub(super) fn add(table: &mut Operations) {
    let dataset_page = Spec {
        name: "buy_dataset_page",
        path: "/projects/{slug}/buy",
        summary: "Ways to pay for a version of a dataset",
        item: GuardedItem::Project,
        ..Spec::PAGE
    };
    table.add(dataset_page, &[], dataset);
    let unit_page = Spec {
        name: "buy_unit_page",
        path: "/units/{id}/buy",
        summary: "Ways to pay for a knowledge unit",
        ..Spec::PAGE
    };
    table.add(unit_page, &[], unit);
    let ask_form = Spec {
        success: &[(303, "The question, or the page that says what has changed.")],
        ..money_form("ask_to_buy_form", ASK, "Asks for the person's yes to a purchase")
    };
    table.add(ask_form, &[], ask);
}

/// Way to pay, in an address.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum WayInAddress {
    Credits,
    Wallet,
    Agent,
}

/// Choice on the page of a purchase of a dataset.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BuyDatasetQuery {
    /// Slug of the dataset.
    #[schemars(length(max = 80))]
    slug: String,
    /// Version to buy; the latest if absent.
    #[schemars(range(min = 1, max = MAX_EXACT_INTEGER))]
    version: Option<u64>,
    /// Way to pay.
    with: Option<WayInAddress>,
    /// Price that the person saw before, in dollars.
    #[schemars(regex(pattern = PATTERN))]
    was: Option<String>,
}

/// Choice on the page of a purchase of a unit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BuyUnitQuery {
    /// Id of the version.
    #[schemars(length(max = 64))]
    id: String,
    /// Way to pay.
    with: Option<WayInAddress>,
    /// Price that the person saw before, in dollars.
    #[schemars(regex(pattern = PATTERN))]
    was: Option<String>,
}

/// An item on sale.
struct OnSale<'i> {
    kind: ItemKind,
    /// Id of the dataset, or of the first version of the unit.
    item: &'i str,
    seller: OperatorId,
    /// Version that a purchase must unlock; for a unit 1.
    unlocks: u64,
    is_free: bool,
}

/// Returns whether an item is sold to the caller.
async fn state(cx: &Cx, on_sale: &OnSale<'_>) -> Result<CheckoutState, ApiError> {
    if cx.operator() == Some(on_sale.seller) {
        return Ok(CheckoutState::Own);
    }
    if on_sale.is_free {
        return Ok(CheckoutState::Free);
    }
    let money = cx.app.store.money();
    if let Some(operator) = cx.operator() {
        let bought = money.purchase_of(operator, on_sale.kind, on_sale.item).await?;
        // A lower version is no reason to buy none.
        let covers = |bought: &store::Bought| on_sale.kind == ItemKind::Unit || bought.sale.version >= on_sale.unlocks;
        if let Some(bought) = bought.filter(covers) {
            return Ok(CheckoutState::Bought(bought.sale.id));
        }
    }
    let offer = money.offer(on_sale.kind, on_sale.item).await?;
    Ok(match offer {
        Some(offer) if offer.visible && offer.on_sale => CheckoutState::OnSale,
        _ => CheckoutState::Unsold,
    })
}

async fn dataset(cx: Cx, input: BuyDatasetQuery) -> Result<PageResponse, ApiError> {
    let project = entitlement::current(&cx, &input.slug).await?;
    let version = Version(input.version.unwrap_or(project.version.0));
    if version > project.version {
        let message = format!("the dataset `{}` has no version {version}", project.slug);
        return Err(ApiError::not_found(message));
    }
    let item = project.id.to_string();
    let price = dataset_price(project.price_micro);
    let on_sale = OnSale {
        kind: ItemKind::Dataset,
        item: &item,
        seller: project.operator,
        unlocks: version.0,
        // A public dataset has no price, even if the database has one.
        is_free: project.access == store::Access::Public || price == MicroUsdc(0),
    };
    let state = match state(&cx, &on_sale).await? {
        CheckoutState::OnSale if version == Version::EMPTY => CheckoutState::Empty,
        state => state,
    };
    let checkout = of_dataset(&cx, &project, version, price, project.trial_sale).await?;
    let way = way(&cx, input.with);
    let wallet = if state == CheckoutState::OnSale && way == PaymentWay::Wallet {
        let (goods, _) = goods::dataset(&cx, &project.slug, Some(version)).await?;
        Some(paid::wallet_offer(&cx, &goods).0)
    } else {
        None
    };
    shown(&cx, checkout, state, way, wallet, input.was.as_deref()).await
}

async fn unit(cx: Cx, input: BuyUnitQuery) -> Result<PageResponse, ApiError> {
    let unit = units::find(&cx.app, &input.id).await?;
    let is_own = cx.operator() == Some(unit.chain.operator);
    let chain = unit.chain.id.to_string();
    let on_sale = OnSale {
        kind: ItemKind::Unit,
        item: &chain,
        seller: unit.chain.operator,
        unlocks: 1,
        // A unit without a price of its own is read with the key of an agent for nothing.
        is_free: unit.chain.price_micro.is_none_or(|price| price == 0),
    };
    let found = state(&cx, &on_sale).await?;
    // What the caller may not know of is a 404, like a missing unit.
    let is_known = match ShownStatus::of(&unit) {
        ShownStatus::Published | ShownStatus::Superseded => true,
        ShownStatus::Retired => is_own || matches!(found, CheckoutState::Bought(_)),
        ShownStatus::Queued | ShownStatus::Waiting | ShownStatus::Rejected => is_own,
        ShownStatus::TakenDown => false,
    };
    if !is_known {
        return Err(ApiError::no_unit());
    }
    let checkout = of_unit(&unit, units::price_of(unit.chain.price_micro));
    let way = way(&cx, input.with);
    let wallet = if found == CheckoutState::OnSale && way == PaymentWay::Wallet {
        let goods = goods::unit(&cx, &input.id).await?;
        Some(paid::wallet_offer(&cx, &goods).0)
    } else {
        None
    };
    shown(&cx, checkout, found, way, wallet, input.was.as_deref()).await
}

/// Returns the way to pay: the one of the address, else credits for a person with an account and a wallet for others.
fn way(cx: &Cx, asked: Option<WayInAddress>) -> PaymentWay {
    match asked {
        Some(WayInAddress::Credits) => PaymentWay::Credits,
        Some(WayInAddress::Wallet) => PaymentWay::Wallet,
        Some(WayInAddress::Agent) => PaymentWay::Agent,
        None if cx.operator().is_some() => PaymentWay::Credits,
        None => PaymentWay::Wallet,
    }
}

async fn shown(
    cx: &Cx,
    checkout: Checkout,
    state: CheckoutState,
    way: PaymentWay,
    wallet: Option<WalletOffer>,
    was: Option<&str>,
) -> Result<PageResponse, ApiError> {
    let account = match cx.operator() {
        Some(operator) => Some(account(cx, operator).await?),
        None => None,
    };
    let before = was.and_then(|was| was.parse::<MicroUsdc>().ok());
    PageResponse::page(&BuyPage {
        chrome: page_layout(cx).await?,
        price_before: before.filter(|before| *before < checkout.price && state == CheckoutState::OnSale),
        sign_in: visit::sign_in(&cx.the_visit()?.path),
        form: ids::new(cx.now),
        checkout,
        state,
        way,
        account,
        wallet,
    })
}

async fn account(cx: &Cx, operator: OperatorId) -> Result<BuyerAccount, ApiError> {
    Ok(BuyerAccount {
        credits: spend_lines::credits(cx, operator).await?,
        agents: spend_lines::agents(cx, operator).await?,
        top_up: ADD_CREDIT_PATH.to_owned(),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskToBuyForm {
    /// Id of the form. However often it is sent, it asks once.
    #[schemars(length(max = 64))]
    form: String,
    /// `dataset:` and a slug, or `unit:` and an id.
    #[schemars(length(max = 120))]
    item: String,
    /// Version of a dataset.
    #[schemars(range(min = 1, max = MAX_EXACT_INTEGER))]
    version: Option<u64>,
    /// Id of the agent that buys.
    #[serde(default)]
    #[schemars(length(max = 64))]
    agent: String,
    /// Price that the page showed, in dollars.
    #[schemars(regex(pattern = PATTERN))]
    price: String,
}

/// Item that a form names.
struct AskedItem {
    kind: ItemKind,
    /// Id of the dataset, or of the first version of the unit.
    item: String,
    /// Page of the purchase.
    page: String,
}

/// Finds the item that a form names. A person sees it or does not, as on its page.
async fn find(cx: &Cx, named: &str, version: Option<u64>) -> Result<AskedItem, ApiError> {
    match named.split_once(':') {
        Some(("dataset", slug)) => {
            let project = entitlement::current(cx, slug).await?;
            let page = format!("/projects/{}/buy", project.slug);
            Ok(AskedItem {
                kind: ItemKind::Dataset,
                item: project.id.to_string(),
                page: match version {
                    Some(version) => format!("{page}?version={version}&"),
                    None => format!("{page}?"),
                },
            })
        }
        Some(("unit", text)) => {
            let unit: UnitId = id(text, "unit")?;
            let chain = cx.app.store.money().unit_of(unit).await?;
            let chain = chain.ok_or_else(ApiError::no_unit)?;
            Ok(AskedItem {
                kind: ItemKind::Unit,
                item: chain.to_string(),
                page: format!("/units/{unit}/buy?"),
            })
        }
        _ => Err(ApiError::invalid(
            "/item",
            "must be `dataset:` and a slug, or `unit:` and an id",
        )),
    }
}

async fn ask(cx: Cx, input: AskToBuyForm) -> Result<PageResponse, ApiError> {
    let form: ApprovalId = input
        .form
        .parse()
        .map_err(|_error| ApiError::invalid("/form", "must be the id of a form of this service"))?;
    let price: MicroUsdc = input
        .price
        .parse()
        .map_err(|_error| ApiError::invalid("/price", "must be the price that the page showed"))?;
    if input.agent.is_empty() {
        return Err(ApiError::invalid("/agent", "must be chosen"));
    }
    let agent = id(&input.agent, "agent")?;
    let found = find(&cx, &input.item, input.version).await?;
    let ask = PersonAsk {
        form: form.to_string(),
        kind: found.kind,
        item: found.item,
        version: input.version.map(Version),
        agent,
        price,
    };
    match approvals::ask_for_person(&cx, ask).await? {
        PersonAsked::Row(row) => PageResponse::see(&super::question::path(row.id)),
        PersonAsked::PriceAbove(_) => PageResponse::see(&format!("{}was={price}", found.page)),
        PersonAsked::NotSold => PageResponse::see(found.page.trim_end_matches(['?', '&'])),
        PersonAsked::Owned { sale } => PageResponse::see(&super::receipt::path(sale)),
        PersonAsked::NoAgent => Err(missing("agent")),
    }
}
