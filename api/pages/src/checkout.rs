//! Purchase of a thing by a person: what is bought, the ways to pay, and the question before anything is paid.
//!
//! Invariants:
//! - Whatever shows an amount says that it is test USDC.
//! - Nothing is bought by opening a page; the first form only leads to the question.

use askama::Template;
use types::money::MicroUsdc;
use types::{AgentId, SaleId, UnitId, Version};

use crate::chrome::{PageLayout, Theme};
use crate::number::{counted, grouped, size};
use crate::pay::WalletOffer;
use crate::spend::{CreditBalance, CreditBill, SpendLine};

/// Thing that is bought.
#[derive(Clone, Debug)]
pub enum CheckoutThing {
    /// A version of a dataset, with all before it.
    Dataset {
        /// Slug of the dataset.
        slug: String,
        /// Version that is bought.
        version: Version,
        /// Number of records of the version, where known.
        records: Option<u64>,
        /// Bytes of the files of the version, where known.
        bytes: Option<u64>,
    },
    /// A knowledge unit, with every version.
    Unit {
        /// Id of the version that the person looked at.
        id: UnitId,
        /// Characters of its text, where known.
        length: Option<u64>,
    },
}

/// Item that a person buys, as the pages of a purchase show it.
#[derive(Clone, Debug)]
pub struct Checkout {
    /// Thing that is bought.
    pub thing: CheckoutThing,
    /// Title, by its seller.
    pub title: String,
    /// Name of the agent that made it, if one did.
    pub agent: Option<String>,
    /// Id of the licence, where known.
    pub license: Option<String>,
    /// Price now.
    pub price: MicroUsdc,
    /// True if trial credit pays it.
    pub takes_trial_credit: bool,
}

impl Checkout {
    /// Returns the page of the thing.
    pub(crate) fn href(&self) -> String {
        match &self.thing {
            CheckoutThing::Dataset { slug, .. } => format!("/projects/{slug}"),
            CheckoutThing::Unit { id, .. } => format!("/units/{id}"),
        }
    }

    /// Returns the page of the purchase.
    pub(crate) fn buy(&self) -> String {
        format!("{}/buy", self.href())
    }

    /// Returns the page at which the buyer reads it.
    pub(crate) fn read(&self) -> String {
        match &self.thing {
            CheckoutThing::Dataset { slug, version, .. } => format!("/projects/{slug}/rows?version={version}"),
            CheckoutThing::Unit { .. } => self.href(),
        }
    }

    /// Returns the thing in a few words, such as `version 1,242`.
    pub(crate) fn what(&self) -> String {
        match &self.thing {
            CheckoutThing::Dataset { version, .. } => format!("version {}", grouped(version.0)),
            CheckoutThing::Unit { .. } => "this write-up".to_owned(),
        }
    }

    /// Returns the version that a form names, for a dataset.
    pub(crate) fn version(&self) -> Option<Version> {
        match &self.thing {
            CheckoutThing::Dataset { version, .. } => Some(*version),
            CheckoutThing::Unit { .. } => None,
        }
    }

    /// Returns the thing as the form names it.
    pub(crate) fn item(&self) -> String {
        match &self.thing {
            CheckoutThing::Dataset { slug, .. } => format!("dataset:{slug}"),
            CheckoutThing::Unit { id, .. } => format!("unit:{id}"),
        }
    }

    /// Returns what the buyer may read then.
    pub(crate) fn opens(&self) -> String {
        match &self.thing {
            CheckoutThing::Dataset { version, .. } => format!(
                "Version {} and every version before it, for all people and agents of your account.",
                grouped(version.0)
            ),
            CheckoutThing::Unit { .. } => {
                "The whole text and every later version, for all people and agents of your account.".to_owned()
            }
        }
    }

    /// Returns the facts about its size, each with its label.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        match &self.thing {
            CheckoutThing::Dataset { records, bytes, .. } => {
                let records = records.map(|records| ("Rows", grouped(records)));
                let bytes = bytes.map(|bytes| ("Size", format!("{} as Parquet", size(bytes))));
                records.into_iter().chain(bytes).collect()
            }
            CheckoutThing::Unit { length, .. } => {
                let length = length.map(|length| ("Length", counted(length, "character", "characters")));
                length.into_iter().collect()
            }
        }
    }

    /// Returns the sentence about what comes later.
    pub(crate) const fn later(&self) -> &'static str {
        match self.thing {
            CheckoutThing::Dataset { .. } => "A later version is a new purchase.",
            CheckoutThing::Unit { .. } => "Later versions cost nothing more.",
        }
    }

    /// Returns the bill of an account.
    pub(crate) fn bill(&self, credits: &CreditBalance) -> CreditBill {
        credits.bill(self.price, self.takes_trial_credit)
    }

    /// Returns what a person says to an agent that buys it.
    fn ask(&self) -> String {
        let price = self.price;
        match &self.thing {
            CheckoutThing::Dataset { slug, version, .. } => {
                format!("Buy dataset {slug} version {version} on Sluice, at most ${price}, and tell me what is in it.")
            }
            CheckoutThing::Unit { id, .. } => {
                format!("Buy knowledge unit {id} on Sluice, at most ${price}, and tell me what it says.")
            }
        }
    }

    /// Returns the call of a tool that buys it.
    fn mcp(&self) -> String {
        let most = self.price;
        match &self.thing {
            CheckoutThing::Dataset { slug, version, .. } => {
                format!("buy_dataset {{\"slug\": \"{slug}\", \"version\": {version}, \"maxPrice\": \"{most}\"}}")
            }
            CheckoutThing::Unit { id, .. } => {
                format!("buy_knowledge_with_credits {{\"id\": \"{id}\", \"maxPrice\": \"{most}\"}}")
            }
        }
    }

    /// Returns the call of a program that buys it.
    fn curl(&self, base: &str) -> String {
        let (path, body) = match &self.thing {
            CheckoutThing::Dataset { slug, version, .. } => (
                format!("projects/{slug}"),
                format!("{{\"version\": {version}, \"maxPrice\": \"{}\"}}", self.price),
            ),
            CheckoutThing::Unit { id, .. } => (
                format!("knowledge/{id}"),
                format!("{{\"maxPrice\": \"{}\"}}", self.price),
            ),
        };
        format!(
            "curl -s {base}/{path}/buy \\\n  -H \"Authorization: Bearer $SLUICE_KEY\" -H \"Content-Type: application/json\" \
             \\\n  -d '{body}'"
        )
    }
}

/// Way to pay that a person chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaymentWay {
    /// Credits of the account, by an own agent.
    Credits,
    /// A wallet of the browser.
    Wallet,
    /// An agent, which the person asks.
    Agent,
}

impl PaymentWay {
    /// Every way, in the order of the page.
    pub(crate) const CHOICES: &[Self] = &[Self::Credits, Self::Wallet, Self::Agent];

    /// Returns the value of the field.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Credits => "credits",
            Self::Wallet => "wallet",
            Self::Agent => "agent",
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Credits => "Credits of your account",
            Self::Wallet => "A wallet",
            Self::Agent => "Give it to an agent",
        }
    }

    const fn hint(self) -> &'static str {
        match self {
            Self::Credits => "Nothing to sign. Trial credit is taken first where the seller takes it.",
            Self::Wallet => "No account needed. You sign once; there is no network fee for you.",
            Self::Agent => "An agent that you connected and that may spend buys it by itself.",
        }
    }
}

/// State of the sale of a thing to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckoutState {
    /// It is sold.
    OnSale,
    /// It is the account's own.
    Own,
    /// The account has bought it, by this sale.
    Bought(SaleId),
    /// It costs nothing with an account.
    Free,
    /// It is not sold any more, or not now.
    Unsold,
    /// There is nothing to buy yet.
    Empty,
}

/// Agent by which a person may buy.
#[derive(Clone, Debug)]
pub struct BuyingAgent {
    /// Id of the agent.
    pub id: AgentId,
    /// Name of the agent.
    pub name: String,
    /// Its limits, and what it has spent.
    pub line: SpendLine,
}

/// Account of a person who buys.
#[derive(Clone, Debug)]
pub struct BuyerAccount {
    /// Its credits.
    pub credits: CreditBalance,
    /// Its agents.
    pub agents: Vec<BuyingAgent>,
    /// Address that sells credits.
    pub top_up: String,
}

impl BuyerAccount {
    /// Returns the agent that is marked: the first that may spend as much.
    fn marked(&self, price: MicroUsdc) -> Option<AgentId> {
        let fits = |agent: &&BuyingAgent| agent.line.obstacle(price).is_none();
        self.agents.iter().find(fits).map(|agent| agent.id)
    }

    fn is_marked(&self, agent: &BuyingAgent, price: MicroUsdc) -> bool {
        self.marked(price) == Some(agent.id)
    }

    fn affords(&self, price: MicroUsdc) -> bool {
        self.marked(price).is_some()
    }
}

/// `GET /projects/{slug}/buy` and `GET /units/{id}/buy` with `with` and, for a dataset, `version`. Its form goes to `POST
/// /console/buy` with `form`, `item`, `version`, `agent` and `price`.
#[derive(Debug, Template)]
#[template(path = "buy.html")]
pub struct BuyPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Item that is bought.
    pub checkout: Checkout,
    /// State of its sale to the person.
    pub state: CheckoutState,
    /// Way to pay that is chosen.
    pub way: PaymentWay,
    /// Id of the form, which makes one question however often it is sent.
    pub form: String,
    /// Account of the person, if somebody is signed in.
    pub account: Option<BuyerAccount>,
    /// Address that signs a person in and leads back here.
    pub sign_in: String,
    /// Terms for a wallet, if that is the way and the thing is sold.
    pub wallet: Option<WalletOffer>,
    /// Price that the person saw before, if it is lower than the price now.
    pub price_before: Option<MicroUsdc>,
}

#[cfg(test)]
mod tests {
    use types::Timestamp;

    use super::*;

    fn agent(cents: Option<i64>) -> BuyingAgent {
        BuyingAgent {
            id: AgentId::new(Timestamp::from_micros(0)),
            name: "loess-9".to_owned(),
            line: SpendLine {
                per_day: cents.map(|cents| MicroUsdc(cents * 10_000)),
                ..SpendLine::default()
            },
        }
    }

    #[test]
    fn an_agent_is_marked_that_may_spend_as_much() {
        let (poor, rich, richer) = (agent(Some(5)), agent(Some(10)), agent(None));
        let first = rich.id;
        let mut account = BuyerAccount {
            credits: CreditBalance::default(),
            agents: vec![poor, rich, richer],
            top_up: String::new(),
        };
        let price = MicroUsdc(100_000);
        assert_eq!(account.marked(price), Some(first));
        // A browser sends nothing for a choice that is not open.
        account.agents.truncate(1);
        assert!(!account.affords(price) && account.affords(MicroUsdc(50_000)));
    }
}
