//! Purchases by credits.

use http::StatusCode;
use pay::Short;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{MAX_WAITING_APPROVALS, NewPurchase, Project, Purchased, Sale};
use types::money::MicroUsdc;
use types::vocabulary::{ItemKind, PaidWith};
use types::{Kind, LedgerEventId, SaleId, UnitId, Version};

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::schema::TEXT;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::price::PriceInput;
use crate::rules::approvals::{self, APPROVAL_POLL_SECONDS, ApprovalView, MAX_REASON_CHARS};
use crate::rules::reading::MAX_EXACT_INTEGER;
use crate::rules::receipts::{self, SignedSale};
use crate::rules::{entitlement, spending};

/// Dataset to buy with credits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct BuyDataset {
    /// Slug of the project.
    slug: String,
    /// Version to buy; the latest if absent.
    #[schemars(range(min = 1, max = MAX_EXACT_INTEGER))]
    version: Option<u64>,
    /// Most dollars to pay.
    max_price: Option<PriceInput>,
    /// Words for your person.
    #[schemars(length(max = MAX_REASON_CHARS), regex(pattern = TEXT))]
    reason: Option<String>,
}

/// Unit to buy with credits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct BuyUnit {
    /// Id of the unit.
    #[schemars(extend("format" = "uuid"))]
    id: String,
    /// Most dollars to pay.
    max_price: Option<PriceInput>,
    /// Words for your person.
    #[schemars(length(max = MAX_REASON_CHARS), regex(pattern = TEXT))]
    reason: Option<String>,
}

/// Item that a call bought, that the operator had, or that waits for its person.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Bought")]
#[serde(rename_all = "camelCase")]
pub(super) struct PurchaseResult {
    /// `waiting` if a person is asked first. The same call then says what became of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    /// Slug of the dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    dataset: Option<String>,
    /// Id of the unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit_id: Option<String>,
    /// Version up to which the dataset is unlocked, or will be; absent for a unit, of which every version is.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    /// True if this call paid; false if the operator had the item, or a person is asked.
    charged: bool,
    /// Amount charged, in micro-USDC (test USDC); of a purchase that waits, the price that the person sees.
    price_micro: i64,
    /// Kind of the credits that paid.
    #[serde(skip_serializing_if = "Option::is_none")]
    paid_with: Option<PaidWith>,
    /// Id of the sale.
    #[serde(skip_serializing_if = "Option::is_none")]
    sale_id: Option<String>,
    /// Signed receipt of the sale; the same as at `/receipts/{saleId}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<SignedSale>,
    /// Row in which a person is asked, or by which the item was bought lately.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<ApprovalView>,
    /// Seconds after which the same call is worth a repeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
}

/// Item of a purchase, as its messages name it.
struct PurchasedItem<'a> {
    kind: ItemKind,
    id: String,
    /// Name in messages, such as "the dataset `weather`".
    name: String,
    dataset: Option<&'a Project>,
}

/// Terms that an agent adds to the item.
struct AgentTerms {
    max_price: Option<MicroUsdc>,
    reason: Option<String>,
}

impl AgentTerms {
    fn of(max_price: Option<PriceInput>, reason: Option<String>) -> Result<Self, ApiError> {
        let max_price = max_price.map(|price| price.amount_at("/maxPrice")).transpose()?;
        Ok(Self {
            max_price: max_price.flatten(),
            reason,
        })
    }
}

pub(super) async fn dataset(cx: Cx, input: BuyDataset) -> Result<JsonReply<PurchaseResult>, ApiError> {
    let project = entitlement::current(&cx, &input.slug).await?;
    let terms = AgentTerms::of(input.max_price, input.reason)?;
    let named = PurchasedItem {
        kind: ItemKind::Dataset,
        id: project.id.to_string(),
        name: format!("the dataset `{}`", project.slug),
        dataset: Some(&project),
    };
    buy(&cx, named, input.version.map(Version), terms).await
}

pub(super) async fn knowledge(cx: Cx, input: BuyUnit) -> Result<JsonReply<PurchaseResult>, ApiError> {
    let id: UnitId = input
        .id
        .parse()
        .map_err(|_error| ApiError::invalid("/id", "must be a UUID"))?;
    let terms = AgentTerms::of(input.max_price, input.reason)?;
    let named = PurchasedItem {
        kind: ItemKind::Unit,
        // Any version names the unit. An id that is unknown goes on as it is, and the purchase says
        // that it is missing.
        id: cx.app.store.money().unit_of(id).await?.unwrap_or(id).to_string(),
        name: format!("the unit `{id}`"),
        dataset: None,
    };
    buy(&cx, named, None, terms).await
}

async fn buy(
    cx: &Cx,
    named: PurchasedItem<'_>,
    version: Option<Version>,
    terms: AgentTerms,
) -> Result<JsonReply<PurchaseResult>, ApiError> {
    let buyer = cx.the_operator()?;
    let spender = cx.spender();
    let new = NewPurchase {
        sale: SaleId::new(cx.now),
        event: LedgerEventId::new(cx.now),
        kind: named.kind,
        item: named.id.clone(),
        version,
        buyer,
        agent: spender.map(|spender| spender.agent),
        app: spender.and_then(|spender| spender.app),
        max_price: terms.max_price,
        ask: approvals::ask_of_agent(cx, buyer, terms.reason),
        terms: approvals::sale_terms(&cx.app, named.kind),
        now: cx.now,
    };
    match cx.app.store.money().purchase(new).await? {
        Purchased::Bought(sale) => Ok(JsonReply::ok(PurchaseResult {
            receipt: receipts::after_purchase(cx, sale.id).await,
            ..named.bought(&sale)
        })),
        Purchased::Owned { version } => Ok(JsonReply::ok(named.owned(version))),
        Purchased::Approved { version, approval } => Ok(JsonReply::ok(PurchaseResult {
            receipt: match approval.sale {
                Some(sale) => receipts::after_purchase(cx, sale).await,
                None => None,
            },
            approval: Some(approvals::view(&cx.app, &approval)),
            ..named.owned(version)
        })),
        Purchased::Waiting(approval) => Ok(JsonReply {
            status: StatusCode::ACCEPTED,
            body: PurchaseResult {
                status: Some("waiting"),
                price_micro: approval.price.0,
                approval: Some(approvals::view(&cx.app, &approval)),
                retry_after: Some(APPROVAL_POLL_SECONDS),
                ..named.owned(approval.version)
            },
        }),
        refused => Err(refusal(cx, &named, version, refused)),
    }
}

/// Returns the error for a purchase that the store refused.
fn refusal(cx: &Cx, named: &PurchasedItem<'_>, version: Option<Version>, refused: Purchased) -> ApiError {
    let name = &named.name;
    match refused {
        Purchased::Own => ApiError::new(
            ErrorCode::OwnItem,
            format!("{name} is the operator's own; its agents read it"),
        ),
        Purchased::Free => ApiError::new(ErrorCode::FreeItem, format!("{name} costs nothing with a key; read it")),
        Purchased::NotForSale => ApiError::new(
            ErrorCode::NotForSale,
            format!("{name} is not sold, because it was retired or its seller does not sell now"),
        ),
        Purchased::NoVersion { latest } => ApiError::not_found(match latest {
            0 => format!("{name} has no version yet"),
            latest => format!("{name} has no such version; the latest is {latest}"),
        }),
        Purchased::Short { price, balance, given } => short(cx, named, version, price, Short { balance, given }),
        Purchased::Capped(capped) => spending::capped_refusal(name, &capped),
        Purchased::PriceAbove { price } => ApiError::new(
            ErrorCode::PriceChanged,
            format!("{name} costs ${price} in test USDC, which is above `maxPrice`"),
        )
        .with_kind(Kind::Conflict)
        .field("price", price.to_string())
        .field("priceMicro", price.0),
        Purchased::Denied { approval, until } => ApiError::new(
            ErrorCode::ApprovalDenied,
            format!("the person said no to {name}; until {until} that holds, unless the price falls"),
        )
        .field("approval", json!(approvals::view(&cx.app, &approval)))
        .field("until", until.to_string()),
        Purchased::TooManyWaiting => ApiError::limited(
            ErrorCode::ApprovalsFull,
            format!(
                "{MAX_WAITING_APPROVALS} purchases of the agent wait for its person, who decides at {}/console/money",
                cx.app.config.public_url
            ),
            APPROVAL_POLL_SECONDS,
        ),
        Purchased::Missing
        | Purchased::Bought(_)
        | Purchased::Owned { .. }
        | Purchased::Approved { .. }
        | Purchased::Waiting(_) => named.missing(),
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
            ..PurchaseResult::default()
        }
    }

    fn missing(&self) -> ApiError {
        match self.dataset {
            Some(project) => ApiError::no_project(&project.slug),
            None => ApiError::not_found(format!("there is no unit `{}`", self.id)),
        }
    }
}
