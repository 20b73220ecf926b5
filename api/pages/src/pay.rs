//! Payments of a person by a wallet: the page of a thing that x402 sells, and the faucet of test USDC.
//!
//! Invariant: whatever shows an amount says that it is test USDC. Without a script a page says what an agent is to do.

use askama::Template;
use types::money::MicroUsdc;

use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::form::{Errors as _, FieldError};
use crate::qr::QrCode;

/// Offer of x402 that a wallet of the browser takes.
#[derive(Clone, Debug)]
pub struct WalletOffer {
    /// Price that is signed for.
    pub price: MicroUsdc,
    /// Network of the token (CAIP-2).
    pub network: String,
    /// Address of the token.
    pub asset: String,
    /// Address that is paid.
    pub pay_to: String,
    /// Address of this service that is paid.
    pub url: String,
    /// Terms of version 2 of x402, as JSON.
    pub terms: String,
    /// Test USDC that a form asks for; `None` on a real network.
    pub faucet: Option<u32>,
}

impl WalletOffer {
    /// Returns no error: what the person types on this page is checked on the next.
    #[expect(clippy::unused_self, reason = "a template calls functions through a value")]
    pub(crate) const fn no_error(&self) -> Option<&str> {
        None
    }

    /// Returns the code of the address that is paid; `None` for one that is too long.
    pub(crate) fn code(&self) -> Option<QrCode> {
        QrCode::of(&self.url)
    }

    /// Returns the address that is paid as a script of the page calls it, which is of this service.
    pub(crate) fn path(&self, chrome: &PageLayout) -> &str {
        self.url.strip_prefix(&chrome.base).unwrap_or(&self.url)
    }
}

/// `GET /paid/…` for a browser: what is sold, for how much, and the ways to pay.
#[derive(Debug, Template)]
#[template(path = "paid.html")]
pub struct PaidPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Thing that is sold, with the title that its owner gave it.
    pub what: String,
    /// Sentence with the price.
    pub message: String,
    /// Page of the thing, if it has one.
    pub item: Option<String>,
    /// Offer for a wallet.
    pub wallet: WalletOffer,
    /// Address that sells it for credits to an agent with a key.
    pub buy: Option<String>,
}

impl PaidPage {
    /// Returns the call to hand to an agent.
    fn call(&self) -> String {
        let base = &self.chrome.base;
        let faucet = if self.wallet.faucet.is_some() {
            format!(
                "# an empty wallet is given test USDC\ncurl -s {base}/faucet -H \"Content-Type: application/json\" -d \
                 '{{\"wallet\": \"0x…\"}}'\n"
            )
        } else {
            String::new()
        };
        let url = &self.wallet.url;
        let buy = self.buy.as_ref().map(|buy| {
            format!("\n# or with prepaid credits\ncurl -s -X POST {buy} -H \"Authorization: Bearer $SLUICE_KEY\"")
        });
        let buy = buy.unwrap_or_default();
        format!("{faucet}# the terms are in the answer; {base}/guide/agents.md shows a client\ncurl -s '{url}'{buy}")
    }
}

/// `GET /test-usdc`: a form to `POST /test-usdc` with `wallet` and `next`.
#[derive(Debug, Template)]
#[template(path = "faucet.html")]
pub struct FaucetPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Wallet as typed, or the payout address of the person.
    pub wallet: String,
    /// Balance of that wallet in micro-USDC, once one is named.
    pub balance: Option<i64>,
    /// Whole test USDC of a gift.
    pub gift: u32,
    /// Most test USDC of a wallet in a day.
    pub most_of_wallet: u32,
    /// Most test USDC that a person asks for in a day.
    pub most_of_person: u32,
    /// Network of the token (CAIP-2).
    pub network: String,
    /// Address of the token.
    pub asset: String,
    /// Page that the person came from.
    pub next: Option<String>,
    /// Rules that the input breaks: the field `wallet`.
    pub errors: Vec<FieldError>,
}
