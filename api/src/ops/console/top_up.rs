//! Page on which a person adds credit.
//!
//! Invariant: opening the page writes nothing. What pays is the public address of a pack, so it says nothing that only the
//! account knows.

use pages::console::{TopUpPage, TopUpWay};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::view::PageResponse;
use crate::config::ADD_CREDIT_PATH;
use crate::error::ApiError;
use crate::ops::page_kit::{page, page_layout};
use crate::ops::{paid, spend_lines};
use crate::rules::settlement::goods::{self, UnavailableReason};

pub(super) fn add(table: &mut Operations) {
    table.add(page("add_credit_page", ADD_CREDIT_PATH, "Add credit"), &[], show);
}

/// Way to pay, in an address.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum WayOfTopUp {
    Wallet,
    Phone,
    Agent,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TopUpQuery {
    /// Number of packs: 1, 2, 5 or 10.
    #[schemars(range(min = 1, max = 10))]
    packs: Option<u32>,
    /// Way to pay.
    with: Option<WayOfTopUp>,
}

async fn show(cx: Cx, input: TopUpQuery) -> Result<PageResponse, ApiError> {
    let operator = cx.the_operator()?;
    let packs = input.packs.unwrap_or(1);
    if !TopUpPage::offers(packs) {
        return Err(ApiError::invalid("/packs", "must be 1, 2, 5 or 10"));
    }
    let goods = goods::pack(&cx, operator).await?;
    if let Some(unsold) = goods.unsold {
        return Err(UnavailableReason::error(unsold));
    }
    let (wallet, _) = paid::wallet_offer(&cx, &goods);
    PageResponse::page(&TopUpPage {
        chrome: page_layout(&cx).await?,
        credits: spend_lines::credits(&cx, operator).await?,
        pack: goods.price,
        packs,
        way: match input.with {
            None | Some(WayOfTopUp::Wallet) => TopUpWay::Wallet,
            Some(WayOfTopUp::Phone) => TopUpWay::Phone,
            Some(WayOfTopUp::Agent) => TopUpWay::Agent,
        },
        wallet,
    })
}
