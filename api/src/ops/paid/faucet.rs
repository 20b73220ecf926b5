//! Test USDC for nothing, of the built-in ledger: for programs, and a form for people.
//!
//! Invariant: on a real network there is no faucet, and both doors answer 404.

use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::WalletGiven;
use x402::Address;

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::LINE;
use crate::call::spec::{Effect, OPTIONAL, Scope, Spec};
use crate::call::view::PageResponse;
use crate::call::visit::local_path;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::page_kit::{page_layout, sentence};
use crate::rules::settlement::faucet;

const PATH: &str = "/faucet";
/// Path of the page, which is no operation of the API.
const PAGE: &str = "/test-usdc";
const NOTICE: &str = "Test USDC is worth nothing. It pays at this service only, and balances may be reset.";

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "faucet",
            method: Method::POST,
            path: PATH,
            summary: "Gives test USDC to a wallet, where payments are on the built-in ledger",
            description: "Nothing is needed. A key or a token counts for its operator instead of the address of the \
                          client. The wallet then pays at `/paid/…`.",
            tag: "payments",
            accepts: OPTIONAL,
            scope: Scope::Write,
            effect: Effect::Write,
            // The counts of the day are the trail.
            audit: false,
            success: &[(200, "The wallet has it.")],
            failure: &[
                (404, "Payments are on a real network, which has faucets of its own."),
                (
                    429,
                    "A day is used up: of the wallet, of the caller, or of all (`faucet_limit`).",
                ),
            ],
            example: r#"{"wallet": "0x7a3F0b6E5d2C4A19885fE0C3B8d1F6a2E4b591cE"}"#,
            ..Spec::BASE
        },
        &[],
        given,
    );
    let page = Spec {
        name: "faucet_page",
        path: PAGE,
        summary: "Test USDC for a wallet",
        ..Spec::PAGE
    };
    table.add(page.clone(), &[], show);
    table.add(
        Spec {
            name: "faucet_form",
            method: Method::POST,
            scope: Scope::Write,
            effect: Effect::Write,
            audit: false,
            success: &[(303, "It is done; the browser opens the page again.")],
            ..page
        },
        &[],
        sent,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FaucetInput {
    /// Wallet that gets it: `0x` and 40 hexadecimal digits.
    #[schemars(length(max = 42), regex(pattern = "^0x[0-9a-fA-F]{40}$"))]
    wallet: String,
    /// Whole test USDC; 5 where not given.
    #[schemars(range(min = 1, max = faucet::MOST_OF_WALLET))]
    usdc: Option<u32>,
}

/// Test USDC that a wallet was given.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Gift")]
#[serde(rename_all = "camelCase")]
struct WalletGift {
    /// Wallet that has it.
    wallet: String,
    /// Amount that was given, in micro-USDC.
    given_micro: i64,
    /// Balance of the wallet, in micro-USDC.
    balance_micro: i64,
    /// Network of the token (CAIP-2).
    network: String,
    /// Address of the token.
    asset: String,
    notice: &'static str,
}

async fn given(cx: Cx, input: FaucetInput) -> Result<JsonReply<WalletGift>, ApiError> {
    cx.app.payments.has_faucet()?;
    let usdc = input.usdc.unwrap_or(faucet::GIFT);
    let (wallet, balance) = give(&cx, &input.wallet, usdc).await?;
    let asset = &cx.app.payments.asset;
    Ok(JsonReply::ok(WalletGift {
        wallet: wallet.checksum(),
        given_micro: i64::from(usdc) * faucet::USDC,
        balance_micro: balance,
        network: asset.network.to_string(),
        asset: asset.address.checksum(),
        notice: NOTICE,
    }))
}

/// Gives whole test USDC to a wallet, and returns its balance.
async fn give(cx: &Cx, wallet: &str, usdc: u32) -> Result<(Address, i64), ApiError> {
    let problem = "must be the address of a wallet: `0x` and 40 hexadecimal digits, not all of them 0";
    let wallet: Address = wallet.parse().map_err(|_error| ApiError::invalid("/wallet", problem))?;
    if wallet == Address::ZERO {
        return Err(ApiError::invalid("/wallet", problem));
    }
    let asset = &cx.app.payments.asset;
    // The treasury would hold more than its books say, and nobody could ever spend it.
    if wallet == asset.pay_to || wallet == asset.address {
        let problem = "must be a wallet of yours, not an address of the service";
        return Err(ApiError::invalid("/wallet", problem));
    }
    let gift = faucet::gift(&wallet, usdc, cx.operator(), cx.client, cx.now);
    match cx.app.store.wallets().gift(gift).await? {
        WalletGiven::Given { balance } => Ok((wallet, balance)),
        WalletGiven::Refused { rule, left } => {
            let message = format!("{} a UTC day, of which {left} are left", faucet::whose(rule));
            let seconds = cx.now.next_day().since(cx.now).as_secs().saturating_add(1);
            Err(ApiError::limited(ErrorCode::FaucetLimit, message, seconds))
        }
    }
}

/// Wallet whose balance the page shows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FaucetPageQuery {
    /// Wallet, as its address.
    #[schemars(length(max = 100), regex(pattern = LINE))]
    wallet: Option<String>,
    /// Page that the person came from.
    #[schemars(length(max = 3_500), regex(pattern = LINE))]
    next: Option<String>,
}

async fn show(cx: Cx, input: FaucetPageQuery) -> Result<PageResponse, ApiError> {
    cx.app.payments.has_faucet()?;
    let mut page = page(&cx, input.next.as_deref()).await?;
    let wallet = input.wallet.unwrap_or_default();
    // The balance is read, so an address that somebody made up says nothing that is not so.
    if let Ok(wallet) = wallet.parse::<Address>() {
        page.balance = Some(cx.app.store.wallets().balance(&wallet.to_string()).await?);
        page.wallet = wallet.checksum();
    }
    PageResponse::page(&page)
}

async fn page(cx: &Cx, next: Option<&str>) -> Result<pages::FaucetPage, ApiError> {
    let asset = &cx.app.payments.asset;
    let mut wallet = String::new();
    if let Some(operator) = cx.operator() {
        let payout = cx.app.store.accounts().payout(operator, cx.now).await?;
        wallet = payout.address.unwrap_or_default();
    }
    Ok(pages::FaucetPage {
        chrome: page_layout(cx).await?,
        wallet,
        balance: None,
        gift: faucet::GIFT,
        most_of_wallet: faucet::MOST_OF_WALLET,
        most_of_person: faucet::MOST_OF_CALLER,
        network: asset.network.to_string(),
        asset: asset.address.checksum(),
        next: next.map(|next| local_path(next).to_owned()),
        errors: Vec::new(),
    })
}

/// Form as the person filled it in.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FilledFaucetForm {
    /// Wallet, as the person typed it.
    #[schemars(length(max = 100), regex(pattern = LINE))]
    wallet: String,
    /// Page that the person came from.
    #[schemars(length(max = 3_500), regex(pattern = LINE))]
    next: Option<String>,
}

async fn sent(cx: Cx, input: FilledFaucetForm) -> Result<PageResponse, ApiError> {
    cx.app.payments.has_faucet()?;
    let typed = input.wallet.trim();
    match give(&cx, typed, faucet::GIFT).await {
        Ok((wallet, _)) => {
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            query.append_pair("wallet", &wallet.checksum());
            if let Some(next) = input.next.as_deref().filter(|next| !next.is_empty()) {
                query.append_pair("next", local_path(next));
            }
            PageResponse::see(&format!("{PAGE}?{}", query.finish()))
        }
        // A person mends the address in the form, and reads there whose day is used up.
        Err(error) if matches!(error.status().as_u16(), 400 | 429) => {
            let problem = error.details().first().map(|detail| detail.problem.as_str());
            let message = problem.unwrap_or_else(|| error.message());
            let mut page = page(&cx, input.next.as_deref()).await?;
            typed.clone_into(&mut page.wallet);
            page.errors = vec![pages::FieldError::new("wallet", sentence(message))];
            Ok(PageResponse::page(&page)?.of_error(&error))
        }
        Err(error) => Err(error),
    }
}
