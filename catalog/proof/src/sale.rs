//! Receipts of sales: what was sold to whom, for how much, and the event of the ledger that moved the money.
//!
//! Invariant: a receipt names one item and one version of it by a hash, so that its holder can show what was bought.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::vocabulary::PaidWith;
use types::{AgentId, LedgerEventId, SaleId, Timestamp};

use crate::statement::Statement;
use crate::{FileHash, Root, time};

/// Prefix of an item that is a dataset, before its slug.
const DATASET: &str = "dataset:";
/// Prefix of an item that is a knowledge unit, before its id.
const UNIT: &str = "unit:";

/// The receipt of a sale.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SaleReceipt {
    /// The version of the format.
    pub format: SaleFormat,
    /// The id of the sale.
    #[schemars(with = "String")]
    pub sale_id: SaleId,
    /// `dataset:` and the slug of a dataset, or `unit:` and the id of a knowledge unit.
    pub item: String,
    /// Number of the version that was sold.
    pub version: u64,
    /// The content root of the version of a dataset: 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub content_root: Option<Root>,
    /// The SHA-256 of the text of the version of a unit: 64 hexadecimal digits. Absent if the text was erased before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub body_sha256: Option<FileHash>,
    /// Price in micro-USDC.
    pub price_micro: u64,
    /// Part of the price that is the platform's, in micro-USDC.
    pub fee_micro: u64,
    /// Money that paid.
    pub paid_with: PaidWith,
    /// Id of the operator that bought; a wallet that paid by x402, as `{network}:{address}` (CAIP-10).
    pub buyer: String,
    /// Id of the agent that bought; null if none did.
    #[schemars(with = "Option<String>")]
    pub agent: Option<AgentId>,
    /// `person` if a person said yes to the purchase; null if nobody was asked.
    pub approved_by: Option<SaleApprover>,
    /// The licence of the item.
    pub license: String,
    /// The id of the event of the ledger that moved the money.
    #[schemars(with = "String")]
    pub ledger_event: LedgerEventId,
    /// Transaction that paid by x402: `0x` and 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<String>,
    /// Time of the sale: RFC 3339 in UTC.
    #[serde(with = "time")]
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// Time of the signature: RFC 3339 in UTC.
    #[serde(with = "time")]
    #[schemars(with = "String")]
    pub issued_at: Timestamp,
}

/// The version of the format of a sale's receipt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SaleFormat {
    /// The first version of the format.
    #[default]
    #[serde(rename = "sluice-sale-1")]
    V1,
}

/// Approver of a purchase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SaleApprover {
    /// A person.
    Person,
}

impl SaleReceipt {
    /// Returns the name of a dataset as an item.
    pub fn dataset(slug: &str) -> String {
        format!("{DATASET}{slug}")
    }

    /// Returns the name of a knowledge unit as an item.
    pub fn unit(id: &str) -> String {
        format!("{UNIT}{id}")
    }
}

impl Statement for SaleReceipt {
    const FORMAT: &'static str = "sluice-sale-1";
    const NAME: &'static str = "receipt of a sale";

    fn issued_at(&self) -> Timestamp {
        self.issued_at
    }

    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let is_dataset = self.item.starts_with(DATASET);
        if !is_dataset && !self.item.starts_with(UNIT) {
            return Err(("/item", "is neither `dataset:` and a slug nor `unit:` and an id"));
        }
        if self.content_root.is_some() != is_dataset {
            return Err((
                "/contentRoot",
                "is that of a dataset, which has one, and of nothing else",
            ));
        }
        if self.body_sha256.is_some() && is_dataset {
            return Err(("/bodySha256", "is that of a unit"));
        }
        if self.fee_micro > self.price_micro {
            return Err(("/feeMicro", "is more than the price"));
        }
        if self.transaction.is_some() != (self.paid_with == PaidWith::X402) {
            return Err((
                "/transaction",
                "is that of a payment by x402, which has one, and of nothing else",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
