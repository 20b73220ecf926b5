//! Bodies about what is on sale and what it is bought with.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Conditions of a search. One that is absent excludes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchTerms {
    /// The words; without any the newest come first.
    pub words: Option<String>,
    /// The kind of the results: `unit` or `dataset`.
    pub kind: Option<String>,
    /// The category of units.
    pub category: Option<String>,
    /// The price: `free`, `key`, `priced` or `trial`.
    pub price: Option<String>,
    /// The most results, 1 to 50.
    pub limit: Option<u32>,
}

/// Conditions of a list of projects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectSearch {
    /// Text that slug or title contains.
    pub words: Option<String>,
    /// The most projects, 1 to 1000.
    pub limit: Option<u32>,
}

/// The results of a search.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hits {
    /// The number of matches.
    pub total: u64,
    /// The best of them.
    pub items: Vec<Hit>,
    /// All other fields of the answer.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A result of a search.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    /// Kind of the result: `unit` or `dataset`.
    pub kind: String,
    /// The id of the latest version of a unit; absent for a dataset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The slug of a dataset; absent for a unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    /// Title of the unit or dataset.
    pub title: String,
    /// The price, in micro-USDC (test USDC).
    #[serde(default)]
    pub price_micro: i64,
    /// True if the seller priced it, so that a key alone does not read it.
    #[serde(default)]
    pub locked: bool,
    /// All other fields of the answer.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// What a published unit costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitOffer {
    /// The id that was asked for.
    pub id: String,
    /// The title, where the service says it; a long one is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The price in dollars, such as `0.25`. `None` if anybody reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<String>,
    /// The price in micro-USDC (test USDC). 0 if anybody reads it.
    pub price_micro: i64,
    /// True if the key of an agent reads it without a purchase.
    pub key_reads: bool,
}

/// Body of a purchase with credits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PurchaseTerms {
    /// The version of a dataset; the latest if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The most dollars to pay, such as `0.25`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_price: Option<String>,
    /// Words for the person who is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The answer to a purchase with credits.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bought {
    /// The status `waiting`, if a person is asked first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The version up to which a dataset is unlocked, or will be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// True if this call paid; false if the operator had the item, or a person is asked.
    pub charged: bool,
    /// The amount, in micro-USDC (test USDC).
    pub price_micro: i64,
    /// The id of the sale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sale_id: Option<String>,
    /// The signed receipt of the sale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Value>,
    /// The row in which a person is asked, or by which the item was bought lately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<AskedPerson>,
    /// All other fields of the answer.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Bought {
    /// Returns true if a person is asked first, and nothing is bought yet.
    pub fn is_waiting(&self) -> bool {
        self.status.as_deref() == Some("waiting")
    }
}

/// A purchase about which a person is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedPerson {
    /// The page on which the person decides.
    pub url: String,
    /// The time from which it waits no more (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// All other fields of the answer.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// The credits of an operator.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Credits {
    /// All credits, in micro-USDC (test USDC).
    pub balance_micro: i64,
    /// Bought credits, in micro-USDC.
    pub bought_micro: i64,
    /// Given credits, which pay trial sales only, in micro-USDC.
    pub given_micro: i64,
    /// The newest movements.
    pub ledger: CreditsJournal,
    /// All other fields of the answer.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// Movements of credits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CreditsJournal {
    /// The movements, newest first.
    pub items: Vec<CreditMovement>,
    /// All other fields of the answer.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A movement of credits.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreditMovement {
    /// The time of the event (RFC 3339).
    pub at: String,
    /// The kind of the event, such as `sale`.
    pub kind: String,
    /// The change of the balance, in micro-USDC.
    pub amount_micro: i64,
    /// The item, sale or reference of the event.
    pub item: String,
    /// The agent that acted.
    #[serde(default)]
    pub agent: Option<String>,
    /// All other fields of the answer.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}
