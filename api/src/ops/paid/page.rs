//! Pages of the things that x402 sells, for a browser that opens their addresses.
//!
//! Invariant: a page never touches a payment. It has the status and the terms of the answer to a program without one.

use pages::WalletOffer;
use schemars::JsonSchema;
use serde::Deserialize;
use types::{OperatorId, Version};

use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::page_kit::{page_layout, sentence};
use crate::rules::reading::MAX_EXACT_INTEGER;
use crate::rules::settlement::goods::{self, SaleItem, UnavailableReason};
use crate::rules::settlement::{answers, faucet};

pub(super) fn add(table: &mut Operations) {
    let page = |name, path, summary| Spec {
        name,
        path,
        summary,
        success: &[(402, "The page, with the terms in `PAYMENT-REQUIRED`.")],
        ..Spec::PAGE
    };
    table.add(
        page("pay_knowledge_page", "/paid/knowledge", "Pay for a unit with a wallet"),
        &[],
        unit,
    );
    table.add(
        page("pay_dataset_page", "/paid/dataset", "Pay for a dataset with a wallet"),
        &[],
        dataset,
    );
    table.add(
        page("pay_credits_page", "/paid/credits", "Pay for credits with a wallet"),
        &[],
        credits,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PayUnitPageQuery {
    /// Id of the unit.
    #[schemars(extend("format" = "uuid"))]
    id: String,
}

async fn unit(cx: Cx, input: PayUnitPageQuery) -> Result<PageResponse, ApiError> {
    let goods = goods::unit(&cx, &input.id).await?;
    shown(&cx, &goods, Some(format!("/units/{}", input.id))).await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PayDatasetPageQuery {
    /// Slug of the project.
    slug: String,
    /// Version to buy; the latest if absent.
    #[schemars(range(min = 1, max = MAX_EXACT_INTEGER))]
    version: Option<u64>,
}

async fn dataset(cx: Cx, input: PayDatasetPageQuery) -> Result<PageResponse, ApiError> {
    let (goods, project) = goods::dataset(&cx, &input.slug, input.version.map(Version)).await?;
    shown(&cx, &goods, Some(format!("/projects/{}", project.slug))).await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PayCreditsPageQuery {
    /// Id of the operator that gets the credits.
    #[schemars(with = "String", extend("format" = "uuid"))]
    operator: OperatorId,
}

async fn credits(cx: Cx, input: PayCreditsPageQuery) -> Result<PageResponse, ApiError> {
    let goods = goods::pack(&cx, input.operator).await?;
    let is_own = cx.operator() == Some(input.operator);
    shown(&cx, &goods, is_own.then(|| "/console/money".to_owned())).await
}

/// Returns the page of a thing on sale, with the terms as its headers.
async fn shown(cx: &Cx, goods: &SaleItem, item: Option<String>) -> Result<PageResponse, ApiError> {
    if let Some(unsold) = goods.unsold {
        return Err(UnavailableReason::error(unsold));
    }
    let (wallet, required) = wallet_offer(cx, goods);
    // Pages have another word for a unit than the terms that a wallet signs.
    let (what, message) = match &goods.unit_title {
        Some(title) => (
            format!("Write-up: {title}"),
            format!("The write-up costs ${} in test USDC", goods.price),
        ),
        None => (goods.offer.description.clone(), sentence(&goods.message)),
    };
    let page = pages::PaidPage {
        chrome: page_layout(cx).await?,
        what,
        message,
        item,
        wallet,
        buy: goods.buy.clone(),
    };
    Ok(PageResponse::page(&page)?.of_error(&required))
}

/// Returns what a page offers to a wallet, and the answer to a program that does not pay.
pub(in crate::ops) fn wallet_offer(cx: &Cx, goods: &SaleItem) -> (WalletOffer, ApiError) {
    let plane = &*cx.app.payments;
    let required = answers::required(goods, plane, None);
    let terms = answers::terms_of(required.headers()).unwrap_or_default();
    let offer = WalletOffer {
        price: goods.price,
        network: plane.asset.network.to_string(),
        asset: plane.asset.address.checksum(),
        pay_to: plane.asset.pay_to.checksum(),
        url: goods.offer.url.clone(),
        terms: terms.to_string(),
        faucet: plane.is_built_in.then_some(faucet::GIFT),
    };
    (offer, required)
}
