//! Purchases by credits.

use pay::Short;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{NewPurchase, Project, Purchased, Sale, SaleTerms};
use types::money::MicroUsdc;
use types::vocabulary::{ItemKind, PaidWith};
use types::{LedgerEventId, SaleId, UnitId, Version};

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::rules::entitlement;
use crate::rules::reading::MAX_EXACT_INTEGER;

/// Dataset to buy with credits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BuyDataset {
    /// Slug of the project.
    slug: String,
    /// Version to buy; the latest if absent.
    #[schemars(range(min = 1, max = MAX_EXACT_INTEGER))]
    version: Option<u64>,
}

/// Unit to buy with credits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BuyUnit {
    /// Id of the unit.
    #[schemars(extend("format" = "uuid"))]
    id: String,
}

/// Item that a call bought, or that the operator had.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Bought")]
#[serde(rename_all = "camelCase")]
pub(super) struct PurchaseResult {
    /// Slug of the dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    dataset: Option<String>,
    /// Id of the unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit_id: Option<String>,
    /// Version up to which the dataset is unlocked; absent for a unit, of which every version is.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    /// True if this call paid; false if the operator had the item.
    charged: bool,
    /// Amount charged, in micro-USDC (test USDC).
    price_micro: i64,
    /// Kind of the credits that paid.
    #[serde(skip_serializing_if = "Option::is_none")]
    paid_with: Option<PaidWith>,
    /// Id of the sale.
    #[serde(skip_serializing_if = "Option::is_none")]
    sale_id: Option<String>,
}

/// Item of a purchase, as its messages name it.
struct PurchasedItem<'a> {
    kind: ItemKind,
    id: String,
    /// Name in messages, such as "the dataset `weather`".
    name: String,
    dataset: Option<&'a Project>,
}

pub(super) async fn dataset(cx: Cx, input: BuyDataset) -> Result<JsonReply<PurchaseResult>, ApiError> {
    let project = entitlement::current(&cx, &input.slug).await?;
    let named = PurchasedItem {
        kind: ItemKind::Dataset,
        id: project.id.to_string(),
        name: format!("the dataset `{}`", project.slug),
        dataset: Some(&project),
    };
    buy(&cx, named, input.version.map(Version)).await
}

pub(super) async fn knowledge(cx: Cx, input: BuyUnit) -> Result<JsonReply<PurchaseResult>, ApiError> {
    let id: UnitId = input
        .id
        .parse()
        .map_err(|_error| ApiError::invalid("/id", "must be a UUID"))?;
    let named = PurchasedItem {
        kind: ItemKind::Unit,
        // Any version names the unit. An id that is unknown goes on as it is, and the purchase says
        // that it is missing.
        id: cx.app.store.money().unit_of(id).await?.unwrap_or(id).to_string(),
        name: format!("the unit `{id}`"),
        dataset: None,
    };
    buy(&cx, named, None).await
}

async fn buy(
    cx: &Cx,
    named: PurchasedItem<'_>,
    version: Option<Version>,
) -> Result<JsonReply<PurchaseResult>, ApiError> {
    let tariff = &cx.app.pay;
    let new = NewPurchase {
        sale: SaleId::new(cx.now),
        event: LedgerEventId::new(cx.now),
        kind: named.kind,
        item: named.id.clone(),
        version,
        buyer: cx.the_operator()?,
        agent: cx.agent(),
        terms: SaleTerms {
            asset: tariff.asset.clone(),
            // An item without a price of its own is sold at the default that is in force now.
            default_price: match named.kind {
                ItemKind::Unit => pay::UNIT_DEFAULT,
                ItemKind::Dataset => pay::DEFAULT_DATASET_PRICE,
            },
            fee: tariff.fee.clone(),
            dispute_window: tariff.dispute_window(),
            quote_window: tariff.quote_window(),
        },
        now: cx.now,
    };
    let name = &named.name;
    match cx.app.store.money().purchase(new).await? {
        Purchased::Bought(sale) => Ok(JsonReply::ok(named.bought(&sale))),
        Purchased::Owned { version } => Ok(JsonReply::ok(named.owned(version))),
        Purchased::Own => Err(ApiError::new(
            ErrorCode::OwnItem,
            format!("{name} is the operator's own; its agents read it"),
        )),
        Purchased::Free => Err(ApiError::new(
            ErrorCode::FreeItem,
            format!("{name} costs nothing with a key; read it"),
        )),
        Purchased::NotForSale => Err(ApiError::new(
            ErrorCode::NotForSale,
            format!("{name} is not sold, because it was retired or its seller does not sell now"),
        )),
        Purchased::Missing => Err(named.missing()),
        Purchased::NoVersion { latest } => Err(ApiError::not_found(match latest {
            0 => format!("{name} has no version yet"),
            latest => format!("{name} has no such version; the latest is {latest}"),
        })),
        Purchased::Short { price, balance, given } => Err(short(cx, &named, version, price, Short { balance, given })),
    }
}

/// Returns the error for credits that do not cover a price.
fn short(cx: &Cx, named: &PurchasedItem<'_>, version: Option<Version>, price: MicroUsdc, short: Short) -> ApiError {
    let quote = match named.dataset {
        Some(project) => entitlement::dataset_quote(cx, project, version, price),
        None => entitlement::unit_quote(cx, &named.id, price),
    };
    let message = format!(
        "{} costs ${price} in test USDC, and the operator has ${} of bought credits{}",
        named.name,
        short.balance,
        if short.given.0 > 0 {
            format!(
                " and ${} of given credits, which pay trial sales that they cover",
                short.given
            )
        } else {
            String::new()
        }
    );
    let quote = pay::Quote {
        message,
        short: Some(short),
        ..quote
    };
    entitlement::refusal(&quote)
}

impl PurchasedItem<'_> {
    fn bought(&self, sale: &Sale) -> PurchaseResult {
        PurchaseResult {
            charged: true,
            price_micro: sale.price.0,
            paid_with: Some(sale.paid_with),
            sale_id: Some(sale.id.to_string()),
            ..self.owned(sale.version)
        }
    }

    fn owned(&self, version: u64) -> PurchaseResult {
        PurchaseResult {
            dataset: self.dataset.map(|project| project.slug.clone()),
            unit_id: self.dataset.is_none().then(|| self.id.clone()),
            version: self.dataset.map(|_| version),
            charged: false,
            price_micro: 0,
            paid_with: None,
            sale_id: None,
        }
    }

    fn missing(&self) -> ApiError {
        match self.dataset {
            Some(project) => ApiError::no_project(&project.slug),
            None => ApiError::not_found(format!("there is no unit `{}`", self.id)),
        }
    }
}
