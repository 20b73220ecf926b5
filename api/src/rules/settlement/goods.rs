//! Things that are sold by x402, as they are on sale now.
//!
//! Invariant: what the caller may not know of is 404 before anything else. What is free is 409 whatever version is named;
//! otherwise an item's version exists before its price is asked. Credentials are not read: the answer is the same for
//! everybody.

use std::time::Duration;

use store::{Bound, Offer, PaidFor, Project};
use types::money::MicroUsdc;
use types::vocabulary::ItemKind;
use types::{OperatorId, Version, mutate};
use x402::extensions::ChallengeExtensions;
use x402::wire;

use super::challenge;
use crate::call::cx::Cx;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::rules::entitlement::units::{self, ShownStatus};

/// Most characters of a title in a description.
const MAX_TITLE_CHARS: usize = 100;

/// Reason for which a thing is not sold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnavailableReason {
    /// It costs nothing, or can have no price.
    Free,
    /// It was retired, or its seller is suspended.
    NotForSale,
    /// The operator that would get the credits is suspended.
    Suspended,
}

impl UnavailableReason {
    pub(crate) fn error(self) -> ApiError {
        match self {
            Self::Free => ApiError::new(ErrorCode::FreeItem, "the item costs nothing; read it without paying"),
            Self::NotForSale => ApiError::new(ErrorCode::NotForSale, "the item is not sold any more, or not now"),
            Self::Suspended => ApiError::new(
                ErrorCode::OperatorSuspended,
                "the operator is suspended and gets no credits",
            ),
        }
    }
}

/// A thing on sale.
#[derive(Clone, Debug)]
pub(crate) struct SaleItem {
    /// Purpose that a payment is bound to.
    pub(crate) bound: Bound,
    /// True if the request names the version.
    pub(crate) names_version: bool,
    /// Operator that sells it; `None` for the platform.
    pub(crate) seller: Option<OperatorId>,
    /// Price in force now, in micro-USDC.
    pub(crate) price: MicroUsdc,
    /// Prices that are taken.
    pub(crate) prices: Vec<u64>,
    /// Reason for which it is not sold.
    pub(crate) unsold: Option<UnavailableReason>,
    /// Terms of the payment.
    pub(crate) offer: wire::Offer,
    /// Extensions of the challenge.
    pub(crate) extensions: ChallengeExtensions,
    /// Sentence with the price.
    pub(crate) message: String,
    /// Address that sells it for credits.
    pub(crate) buy: Option<String>,
    /// Title of a unit, which pages call a write-up.
    pub(crate) unit_title: Option<String>,
}

impl SaleItem {
    /// Returns the kind of item; `None` for a pack.
    pub(crate) const fn item(&self) -> Option<ItemKind> {
        match self.bound.kind {
            PaidFor::Unit => Some(ItemKind::Unit),
            PaidFor::Dataset => Some(ItemKind::Dataset),
            PaidFor::Pack => None,
        }
    }
}

/// Returns the pack of credits for an operator.
pub(crate) async fn pack(cx: &Cx, operator: OperatorId) -> Result<SaleItem, ApiError> {
    let found = cx.app.store.operator(operator).await?;
    // A sign-up that was never verified is no account yet.
    let found = found.filter(|found| found.verified_at.is_some());
    let found = found.ok_or_else(|| ApiError::not_found(format!("there is no operator `{operator}`")))?;
    let pack = cx.app.payments.tariff.pack;
    let offer = wire::Offer {
        url: cx.app.config.top_up(operator),
        description: format!("{pack} test USDC of prepaid credits"),
        tag: "credits",
        amount: super::natural(pack.0),
    };
    Ok(SaleItem {
        bound: Bound {
            kind: PaidFor::Pack,
            id: operator.to_string(),
            version: 1,
            unit_version: None,
        },
        names_version: false,
        seller: None,
        price: pack,
        prices: vec![super::natural(pack.0)],
        unsold: found.suspended.is_some().then_some(UnavailableReason::Suspended),
        // A pack is spent and not owned, so no wallet reads it again.
        extensions: challenge::extensions(cx, &offer, vec![("operator", operator.to_string())], false).await?,
        offer,
        message: format!("a pack of prepaid credits costs ${pack} in test USDC"),
        buy: None,
        unit_title: None,
    })
}

/// Returns a version of a dataset, the latest if none is named, and its project.
pub(crate) async fn dataset(cx: &Cx, slug: &str, version: Option<Version>) -> Result<(SaleItem, Project), ApiError> {
    // Without a viewer, although the caller may have a key: what is for sale at a public address
    // must not depend on who asks.
    let project = cx.app.store.project_by_slug(slug, None).await?;
    let project = project.ok_or_else(|| ApiError::no_project(slug))?;
    let (kind, id) = (ItemKind::Dataset, project.id.to_string());
    let offer = cx.app.store.money().offer(kind, &id).await?;
    let offer = offer.filter(|offer| offer.visible);
    let offer = offer.ok_or_else(|| ApiError::no_project(slug))?;
    // The latest version is fixed when the terms are made. The wallet signs for that one, also if
    // another is merged before it pays.
    let asked = version.unwrap_or(Version(offer.version));
    if asked.0 == 0 || asked.0 > offer.version {
        if is_free(&offer, cx.app.payments.terms(kind).default_price) {
            return Err(UnavailableReason::Free.error());
        }
        let message = match version {
            Some(version) => format!("the dataset `{slug}` has no version {version}"),
            None => format!("the dataset `{slug}` has no version yet"),
        };
        return Err(ApiError::not_found(message));
    }
    let base = &cx.app.config.public_url;
    let named = version.map_or_else(String::new, |version| format!("&version={version}"));
    let mut query = vec![("slug", slug.to_owned())];
    query.extend(version.map(|version| ("version", version.to_string())));
    let sold = ItemFacts {
        kind,
        number: i64::try_from(asked.0).map_err(ApiError::internal)?,
        unit_version: None,
        names_version: version.is_some(),
        url: format!("{base}/paid/dataset?slug={slug}{named}"),
        query,
        buy: format!("{base}/projects/{slug}/buy"),
        description: format!("Dataset {slug}, version {asked}"),
        tag: "dataset",
        what: format!("version {asked} of `{slug}`"),
        unit_title: None,
    };
    Ok((on_sale(cx, &offer, sold).await?, project))
}

/// Returns a unit. Its buyer has every version, and is served the one that the request names.
pub(crate) async fn unit(cx: &Cx, id: &str) -> Result<SaleItem, ApiError> {
    let unit = units::find(&cx.app, id).await?;
    if matches!(
        ShownStatus::of(&unit),
        ShownStatus::Queued | ShownStatus::Waiting | ShownStatus::Rejected | ShownStatus::TakenDown
    ) {
        return Err(ApiError::no_unit());
    }
    let offer = cx
        .app
        .store
        .money()
        .offer(ItemKind::Unit, &unit.chain.id.to_string())
        .await?;
    let offer = offer.filter(|offer| offer.visible).ok_or_else(ApiError::no_unit)?;
    let (base, chain, title) = (&cx.app.config.public_url, unit.chain.id, shortened(&unit.title));
    let sold = ItemFacts {
        kind: ItemKind::Unit,
        number: unit.number.unwrap_or(1).into(),
        unit_version: Some(unit.id.to_string()),
        names_version: false,
        url: format!("{base}/paid/knowledge?id={id}"),
        query: vec![("id", id.to_owned())],
        buy: format!("{base}/knowledge/{chain}/buy"),
        description: format!("Knowledge unit: {title}"),
        tag: "knowledge",
        what: "the unit".to_owned(),
        unit_title: Some(title),
    };
    on_sale(cx, &offer, sold).await
}

/// Facts about an item that its offer lacks.
pub(super) struct ItemFacts {
    pub(super) kind: ItemKind,
    pub(super) number: i64,
    pub(super) unit_version: Option<String>,
    pub(super) names_version: bool,
    pub(super) url: String,
    /// Parameters of the address.
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) buy: String,
    pub(super) description: String,
    pub(super) tag: &'static str,
    pub(super) what: String,
    pub(super) unit_title: Option<String>,
}

/// Returns an item with its prices.
pub(super) async fn on_sale(cx: &Cx, offer: &Offer, sold: ItemFacts) -> Result<SaleItem, ApiError> {
    let terms = cx.app.payments.terms(sold.kind);
    // Prices of the last minutes are taken too, because a wallet needs time between the challenge and
    // the payment.
    let default = terms.default_price;
    let price = MicroUsdc(offer.price.unwrap_or(default.0));
    let window: Duration = terms.quote_window;
    let money = cx.app.store.money();
    let prices = money
        .prices_in_force(sold.kind, &offer.item, default.0, window, cx.now)
        .await?;
    let unsold = match (is_free(offer, default), offer.on_sale) {
        (true, _) => Some(UnavailableReason::Free),
        (false, false) => Some(UnavailableReason::NotForSale),
        (false, true) => None,
    };
    let kind = match sold.kind {
        ItemKind::Unit => PaidFor::Unit,
        ItemKind::Dataset => PaidFor::Dataset,
    };
    let terms = wire::Offer {
        url: sold.url,
        description: sold.description,
        tag: sold.tag,
        amount: super::natural(price.0),
    };
    Ok(SaleItem {
        bound: Bound {
            kind,
            id: offer.item.clone(),
            version: sold.number,
            unit_version: sold.unit_version,
        },
        names_version: sold.names_version,
        seller: Some(offer.seller),
        price,
        prices: prices.into_iter().map(super::natural).collect(),
        unsold,
        extensions: challenge::extensions(cx, &terms, sold.query, true).await?,
        offer: terms,
        message: format!("{} costs ${price} in test USDC", sold.what),
        buy: Some(sold.buy),
        unit_title: sold.unit_title,
    })
}

/// Returns true if an item costs nothing, or can have no price. `default` is the price of one without its own.
fn is_free(offer: &Offer, default: MicroUsdc) -> bool {
    offer.price.unwrap_or(default.0) == 0 || !offer.can_be_priced
}

/// Returns true if a wallet, by its name as an owner, has what is sold, at the version that is asked for.
pub(crate) async fn is_owned(cx: &Cx, goods: &SaleItem, owner: &str) -> Result<bool, ApiError> {
    let Some(kind) = goods.item() else {
        return Ok(false);
    };
    let money = cx.app.store.money();
    let owned = money.owned_by_wallet(owner, kind, &goods.bound.id).await?;
    let needed = match kind {
        ItemKind::Unit => 1,
        ItemKind::Dataset => u64::try_from(goods.bound.version).unwrap_or(u64::MAX),
    };
    mutate!(Bug::OwnerByPath => let owned = Some(u64::MAX));
    Ok(owned.is_some_and(|owned| owned >= needed))
}

/// Returns the first characters of a title.
pub(super) fn shortened(title: &str) -> String {
    // The description is part of a header, which clients and proxies bound.
    title.chars().take(MAX_TITLE_CHARS).collect()
}

/// Returns the answer to a payment of the seller for its own item.
pub(crate) fn own_item() -> ApiError {
    ApiError::new(
        ErrorCode::OwnItem,
        "the wallet is the payout address of the operator that sells the item",
    )
}
