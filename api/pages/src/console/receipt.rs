//! Receipt of a purchase, with the statement that the service signed.
//!
//! Invariant: what the page says of the purchase is what the statement says, which can be kept as a file.

use askama::Template;
use types::SaleId;
use types::vocabulary::PaidWith;

use crate::checkout::{Checkout, CheckoutThing};
use crate::chrome::{PageLayout, Theme};
use crate::time::Instant;

/// Page at `GET /console/receipts/{id}`; the file is at `…/receipt.json`.
#[derive(Debug, Template)]
#[template(path = "console/receipt.html")]
pub struct ReceiptPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Id of the sale.
    pub sale: SaleId,
    /// Item that was bought, for the price of the sale.
    pub checkout: Checkout,
    /// Money that paid.
    pub paid_with: PaidWith,
    /// Display name of the account.
    pub account: String,
    /// Name of the agent that bought, if one did.
    pub agent: Option<String>,
    /// True if the person said yes to it.
    pub is_approved: bool,
    /// Time of the sale.
    pub sold_at: Instant,
    /// Time until which it can be disputed, while that can be.
    pub disputed_until: Option<Instant>,
    /// True if it is disputed, or was.
    pub is_disputed: bool,
    /// True if the price was given back.
    pub is_refunded: bool,
    /// Hash of what was bought: the content root of the version, or the SHA-256 of the text, unless that
    /// was erased before.
    pub fingerprint: Option<String>,
    /// Id of the key that signed.
    pub key: String,
    /// The statement with its signature, as JSON.
    pub document: String,
}

impl ReceiptPage {
    /// Returns what is the buyer's now.
    fn heading(&self) -> String {
        let what = match &self.checkout.thing {
            CheckoutThing::Dataset { .. } => self.checkout.what(),
            CheckoutThing::Unit { .. } => "the write-up".to_owned(),
        };
        if self.is_refunded {
            format!("The price of {what} was given back")
        } else {
            format!("Receipt for {what}")
        }
    }

    /// Returns the words for the money that paid.
    const fn means(&self) -> &'static str {
        match self.paid_with {
            PaidWith::Credits => "bought credits",
            PaidWith::Given => "trial credit",
            PaidWith::X402 => "a wallet",
        }
    }

    /// Returns the address of the page that asks the dataset, for one.
    fn sql(&self) -> Option<String> {
        match &self.checkout.thing {
            CheckoutThing::Dataset { slug, .. } => Some(format!("/projects/{slug}/sql")),
            CheckoutThing::Unit { .. } => None,
        }
    }
}
