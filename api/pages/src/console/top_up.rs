//! Credit that a person adds: how much, and with which wallet.
//!
//! Invariant: a pack is one payment by x402, whoever makes it and from wherever.

use askama::Template;
use types::money::MicroUsdc;

use crate::chrome::{PageLayout, Theme};
use crate::pay::WalletOffer;
use crate::spend::CreditBalance;

/// Numbers of packs that can be chosen.
const PACKS: [u32; 4] = [1, 2, 5, 10];

/// Way to pay for credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopUpWay {
    /// A wallet of this browser.
    Wallet,
    /// A wallet of a phone, which opens the address.
    Phone,
    /// An agent with a wallet of its own.
    Agent,
}

impl TopUpWay {
    /// Every way, in the order of the page.
    const CHOICES: &'static [Self] = &[Self::Wallet, Self::Phone, Self::Agent];

    /// Returns the value of the field.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Wallet => "wallet",
            Self::Phone => "phone",
            Self::Agent => "agent",
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Wallet => "A wallet in this browser",
            Self::Phone => "A wallet on your phone",
            Self::Agent => "Give it to an agent",
        }
    }

    const fn hint(self) -> &'static str {
        match self {
            Self::Wallet => "You sign once a pack; there is no network fee for you.",
            Self::Phone => "Scan a code, and open the page in the browser of the wallet.",
            Self::Agent => "An agent with a wallet of its own pays the address; it needs no key of yours.",
        }
    }
}

/// Number of packs that can be chosen.
struct PackChoice {
    packs: u32,
    price: MicroUsdc,
    is_chosen: bool,
}

/// Page at `GET /console/money/add` with `packs` and `with`.
#[derive(Debug, Template)]
#[template(path = "console/top_up.html")]
pub struct TopUpPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Credits of the account now.
    pub credits: CreditBalance,
    /// Price and content of a pack.
    pub pack: MicroUsdc,
    /// Number of packs that is chosen.
    pub packs: u32,
    /// Way to pay that is chosen.
    pub way: TopUpWay,
    /// Terms of one pack for a wallet.
    pub wallet: WalletOffer,
}

impl TopUpPage {
    /// Returns true if the page offers this number of packs.
    pub fn offers(packs: u32) -> bool {
        PACKS.contains(&packs)
    }

    fn choices(&self) -> Vec<PackChoice> {
        let choice = |packs: u32| PackChoice {
            packs,
            price: self.price_of(packs),
            is_chosen: packs == self.packs,
        };
        PACKS.into_iter().map(choice).collect()
    }

    fn price_of(&self, packs: u32) -> MicroUsdc {
        MicroUsdc(self.pack.0.saturating_mul(i64::from(packs)))
    }

    fn price(&self) -> MicroUsdc {
        self.price_of(self.packs)
    }

    /// Returns the words to say to an agent.
    fn say(&self) -> String {
        let times = match self.packs {
            1 => String::new(),
            packs => format!("\nIt sells ${} at a time: pay it {packs} times.", self.pack),
        };
        format!(
            "Add ${} to the credit of my Sluice account.\nPay this x402 address with at most {} test USDC:\n{}{times}",
            self.price(),
            self.price(),
            self.wallet.url
        )
    }

    /// Returns the call that asks for the terms.
    fn curl(&self) -> String {
        format!(
            "# 402 with the terms; send it again with PAYMENT-SIGNATURE\n# {}/guide/agents.md shows a client\ncurl -i '{}'",
            self.chrome.base, self.wallet.url
        )
    }
}
