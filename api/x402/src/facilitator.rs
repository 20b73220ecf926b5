//! Facilitators: who moves the money, and what their answers prove.
//!
//! Invariants:
//! - [`judge`] alone decides what a settlement came to. A success without a transaction, of another payer, network or
//!   amount is not known.
//! - A refusal proves that nothing moved only with a reason of [`BEFORE_BROADCAST`], without a transaction.

use std::fmt::Debug;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::wire::Protocol;
use super::{Address, Bytes32, PaymentAsset};

/// Reasons that end with one of these words are given before anything is sent to the chain.
const BEFORE_BROADCAST: [&str; 21] = [
    "insufficient_funds",
    "insufficient_balance",
    "_signature",
    "valid_after",
    "valid_before",
    "invalid_payment_early",
    "invalid_payment_expired",
    "authorization_value",
    "value_mismatch",
    "value_too_low",
    "invalid_payment_amount",
    "recipient_mismatch",
    "invalid_network",
    "network_mismatch",
    "chain_id_mismatch",
    "asset_mismatch",
    "scheme",
    "invalid_payload",
    "invalid_payment_requirements",
    "accepted_requirements_mismatch",
    "invalid_x402_version",
];
/// Most characters of a reason that is kept.
const MAX_REASON: usize = 100;

/// Payment with the terms that it meets, as a facilitator gets it. Its text contains a signature and is never logged.
#[derive(Clone)]
pub struct SettlementOrder {
    /// Version of both messages.
    pub protocol: Protocol,
    /// The payment as the buyer sent it.
    pub payment: Value,
    /// The terms of the challenge that the payment accepts.
    pub requirements: Value,
    /// Transfer that the payment must make.
    pub expected: ExpectedTransfer,
}

impl Debug for SettlementOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Order")
            .field("expected", &self.expected)
            .finish_non_exhaustive()
    }
}

impl SettlementOrder {
    /// Returns the body of a request to a facilitator.
    pub fn body(&self) -> Value {
        json!({
            "x402Version": self.protocol.number(),
            "paymentPayload": self.payment,
            "paymentRequirements": self.requirements,
        })
    }
}

/// Transfer that a settlement must have made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedTransfer {
    /// Address of the wallet that pays.
    pub payer: Address,
    /// Wallet that is paid.
    pub pay_to: Address,
    /// Amount in the smallest units of the asset.
    pub amount: u64,
    /// Nonce of the authorization.
    pub nonce: Bytes32,
    /// Second before which it can be made.
    pub valid_before: u64,
}

/// Answer to the question if a payment would settle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaymentVerdict {
    /// The payment would settle now.
    Valid,
    /// It would not, and nothing was sent.
    Invalid(String),
}

/// Outcome of a settlement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The transfer was made.
    Done(Bytes32),
    /// The transfer was refused before anything was sent. It proves that for this attempt only.
    Refused(String),
    /// The request did not leave: nothing was sent.
    NotSent(String),
    /// The transfer may have been made.
    Unknown(SettlementDoubt),
}

impl Settlement {
    /// Returns the outcome of a request that may have arrived and has no answer that can be read.
    pub(crate) const fn unknown(reason: String) -> Self {
        Self::Unknown(SettlementDoubt {
            reason,
            transaction: None,
            is_alarming: false,
        })
    }
}

/// Circumstances of a settlement that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettlementDoubt {
    /// Reason, for the row.
    pub reason: String,
    /// Transaction that was named.
    pub transaction: Option<Bytes32>,
    /// True if the answer contradicts the payment, so that a person should look.
    pub is_alarming: bool,
}

/// No answer that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the facilitator gives no answer: {reason}")]
pub struct UnusableAnswer {
    /// Reason, for the log. It contains no part of a payment.
    pub reason: String,
    /// True if the request cannot have arrived.
    pub is_unsent: bool,
}

impl From<outbound::NotPosted> for UnusableAnswer {
    fn from(failed: outbound::NotPosted) -> Self {
        Self {
            reason: failed.error.to_string(),
            is_unsent: failed.is_unsent,
        }
    }
}

impl From<outbound::Error> for UnusableAnswer {
    fn from(error: outbound::Error) -> Self {
        Self {
            reason: error.to_string(),
            is_unsent: false,
        }
    }
}

/// Kind of payment that a facilitator settles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledKind {
    /// Version of the protocol.
    pub version: u64,
    /// Scheme of the payment, such as `exact`.
    pub scheme: String,
    /// Network, as the version spells it.
    pub network: String,
}

/// A facilitator. [`conformance`](super::conformance) has the tests that each passes.
#[async_trait]
pub trait Facilitator: Debug + Send + Sync {
    /// Returns the kinds of payments that it settles.
    ///
    /// # Errors
    /// [`UnusableAnswer`] if the facilitator cannot be reached or answers in another form.
    async fn supported(&self) -> Result<Vec<SettledKind>, UnusableAnswer>;

    /// Asks if a payment would settle.
    ///
    /// # Errors
    /// [`UnusableAnswer`] if the facilitator cannot be reached or answers in another form.
    async fn verify(&self, order: &SettlementOrder) -> Result<PaymentVerdict, UnusableAnswer>;

    /// Settles a payment. The same order may be sent again: the chain takes a nonce once.
    async fn settle(&self, order: &SettlementOrder) -> Settlement;
}

/// Answer of a facilitator at `/verify`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VerifyAnswer {
    pub(crate) is_valid: bool,
    pub(crate) invalid_reason: Option<String>,
}

/// Answer of a facilitator at `/settle`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SettleAnswer {
    /// True if the transfer was made.
    pub success: bool,
    /// Reason for which it was not.
    pub error_reason: Option<String>,
    /// Transaction; empty if there is none.
    pub transaction: Option<String>,
    /// Network of the transaction.
    pub network: Option<String>,
    /// Address of the wallet that paid.
    pub payer: Option<String>,
    /// Amount that was paid.
    pub amount: Option<String>,
}

/// Decides what an answer of `/settle` proves.
pub fn judge(
    answer: &SettleAnswer,
    protocol: Protocol,
    expected: &ExpectedTransfer,
    asset: &PaymentAsset,
) -> Settlement {
    let named = answer.transaction.as_deref().filter(|text| !text.is_empty());
    let transaction = named.and_then(|text| text.parse::<Bytes32>().ok());
    let doubt = |reason: &str, is_alarming| {
        Settlement::Unknown(SettlementDoubt {
            reason: shortened(reason),
            transaction,
            is_alarming,
        })
    };
    if !answer.success {
        let reason = answer.error_reason.as_deref().unwrap_or("no_reason");
        // By the end of the word, because facilitators put different prefixes before the same reasons
        // (`invalid_exact_evm_payload_…`). A reason that is not in the list proves nothing.
        let is_before = BEFORE_BROADCAST.iter().any(|word| reason.ends_with(word));
        // A refusal that names a transaction contradicts itself: something was sent.
        return if is_before && named.is_none() {
            Settlement::Refused(shortened(reason))
        } else {
            doubt(reason, false)
        };
    }
    let Some(found) = transaction else {
        return doubt("success_without_transaction", true);
    };
    let network = answer.network.as_deref();
    // A facilitator may use the name of either version of the protocol. Both name one chain.
    if network != Some(protocol.network(asset).as_str()) && network != Some(asset.network.to_string().as_str()) {
        return doubt("success_on_another_network", true);
    }
    let payer = answer.payer.as_deref().filter(|payer| !payer.is_empty());
    if payer.is_some_and(|payer| payer.parse() != Ok(expected.payer)) {
        return doubt("success_of_another_payer", true);
    }
    if answer
        .amount
        .as_deref()
        .is_some_and(|amount| amount != expected.amount.to_string())
    {
        return doubt("success_of_another_amount", true);
    }
    Settlement::Done(found)
}

/// Cuts a word that a stranger chose, and keeps letters, digits and underscores of it.
pub(crate) fn shortened(reason: &str) -> String {
    let plain = reason.chars().take(MAX_REASON);
    plain
        // The word comes from outside and is stored, logged and shown, so nothing of it may be markup
        // or the beginning of a second log line.
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
        .collect()
}
