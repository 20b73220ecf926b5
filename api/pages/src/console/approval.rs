//! Purchase that waits for a person's yes.
//!
//! Invariant: opening the page changes nothing, and the words of an agent stand on it as the words of an agent.

use askama::Template;
use types::money::MicroUsdc;
use types::vocabulary::{AskedBy, StaleReason};
use types::{ApprovalId, SaleId};

use crate::checkout::Checkout;
use crate::chrome::{PageLayout, Theme};
use crate::spend::{CreditBalance, CreditBill, SpendLine};
use crate::time::Instant;

/// State of a purchase that a person decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownApproval {
    /// The person decides.
    Waiting,
    /// It was bought, by this sale.
    Bought(SaleId),
    /// The person said no at this time.
    Denied(Option<Instant>),
    /// Nobody decided in time.
    Expired,
    /// The yes came too late, for this reason; the question that took its place, if there is one.
    Stale(StaleReason, Option<ApprovalId>),
}

/// Change since the question, so that a yes buys nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalChange {
    /// The price has risen to this one.
    Price(MicroUsdc),
    /// The item is not sold now.
    Item,
    /// The account has bought it, by this sale.
    Owned(SaleId),
}

/// Page at `GET /console/approvals/{id}`, with forms to `POST …/yes` and `…/no`.
#[derive(Debug, Template)]
#[template(path = "console/approval.html")]
pub struct ApprovalPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Id of the question.
    pub id: ApprovalId,
    /// State of it.
    pub state: ShownApproval,
    /// Item that is bought. Its price is the one that the question names, or a lower one of now.
    pub checkout: Checkout,
    /// Change since then, while it waits.
    pub changed: Option<ApprovalChange>,
    /// Agent or person.
    pub asked_by: AskedBy,
    /// Name of the agent that buys.
    pub agent: String,
    /// Name of the app that asked as the agent.
    pub app: Option<String>,
    /// Display name of the account.
    pub account: String,
    /// Words of the agent about why.
    pub reason: Option<String>,
    /// Time of the question.
    pub asked_at: Instant,
    /// Time until which it waits.
    pub expires_at: Instant,
    /// Credits of the account.
    pub credits: CreditBalance,
    /// Limits of the agent, and what it has spent.
    pub line: SpendLine,
    /// The same of the app.
    pub app_line: Option<SpendLine>,
    /// Address that sells credits.
    pub top_up: String,
}

impl ApprovalPage {
    /// Returns the heading.
    fn heading(&self) -> String {
        let (what, price) = (self.checkout.what(), self.checkout.price);
        match self.state {
            ShownApproval::Waiting => format!("Buy {what} for ${price}?"),
            ShownApproval::Bought(_) => format!("{} is bought", capital(&what)),
            ShownApproval::Denied(_) => format!("You did not buy {what}"),
            ShownApproval::Expired => "Nobody decided in time".to_owned(),
            ShownApproval::Stale(..) => "Nothing was bought".to_owned(),
        }
    }

    /// Returns the cap that a yes would not fit, with the page that changes it.
    fn capped(&self) -> Option<(&str, String)> {
        let price = self.checkout.price;
        let agent = self.line.obstacle(price).map(|said| (self.agent.as_str(), said));
        let app = || {
            let said = self.app_line.as_ref()?.obstacle(price)?;
            Some((self.app.as_deref().unwrap_or("the app"), said))
        };
        agent.or_else(app)
    }

    /// Returns what is left of the caps of the agent, and after the purchase.
    fn rest(&self) -> Option<String> {
        self.line.rest_after(self.checkout.price)
    }

    /// Returns the same of the app.
    fn rest_of_app(&self) -> Option<String> {
        self.app_line.as_ref()?.rest_after(self.checkout.price)
    }
}

/// Returns words with a capital letter at their beginning.
fn capital(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}
