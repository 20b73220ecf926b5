//! Offers and receipts of x402, signed by the service (its extension `offer-receipt`, version 1).
//!
//! Invariant: an offer or a receipt counts only for addresses of the service whose key signed it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use types::Timestamp;

use crate::json::{members, typed};
use crate::jws::{self, CompactJws, ServiceDid};
use crate::{Error, KeyId, Keys, SigningKey};

/// The version of the payloads.
const PAYLOAD_VERSION: u64 = 1;
/// Seconds for which an offer holds.
pub const OFFER_SECONDS: u64 = 300;

/// Terms of a payment that the service commits to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OfferTerms {
    /// Version of the payload: 1.
    pub version: u64,
    /// Address that is paid for.
    pub resource_url: String,
    /// Scheme of the payment, such as `exact`.
    pub scheme: String,
    /// Network of the payment (CAIP-2).
    pub network: String,
    /// Address of the token.
    pub asset: String,
    /// Wallet that is paid.
    pub pay_to: String,
    /// Amount in the smallest unit of the token.
    pub amount: String,
    /// Second until which the offer holds, since 1970.
    pub valid_until: u64,
}

/// Statement that a wallet has paid and was served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PaymentReceipt {
    /// Version of the payload: 1.
    pub version: u64,
    /// Network of the payment (CAIP-2).
    pub network: String,
    /// Address that was paid for.
    pub resource_url: String,
    /// Wallet that paid.
    pub payer: String,
    /// Second of the receipt, since 1970.
    pub issued_at: u64,
    /// Transaction that paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<String>,
}

/// Something that the service signed about a payment by x402.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaymentTerms {
    /// Terms that it offers.
    Offer(OfferTerms),
    /// A receipt.
    Receipt(PaymentReceipt),
}

impl OfferTerms {
    /// Returns the version of the payload that this build writes.
    pub const VERSION: u64 = PAYLOAD_VERSION;

    /// Signs the offer in the compact form.
    ///
    /// # Errors
    /// Terms that are no JSON object.
    pub fn sign(&self, did: &ServiceDid, secret: &SigningKey) -> Result<String, Error> {
        Ok(jws::sign(&members(OFFER_NAME, self)?, did, secret))
    }
}

impl PaymentReceipt {
    /// Returns the version of the payload that this build writes.
    pub const VERSION: u64 = PAYLOAD_VERSION;

    /// Signs the receipt in the compact form.
    ///
    /// # Errors
    /// A receipt that is no JSON object.
    pub fn sign(&self, did: &ServiceDid, secret: &SigningKey) -> Result<String, Error> {
        Ok(jws::sign(&members(RECEIPT_NAME, self)?, did, secret))
    }
}

/// The name of an offer in errors.
const OFFER_NAME: &str = "offer";
/// The name of a receipt in errors.
const RECEIPT_NAME: &str = "receipt of a payment";

/// Terms or a receipt that a key with the right to signed, for an address of its service.
#[derive(Clone, Debug)]
pub struct VerifiedTerms {
    terms: PaymentTerms,
    key: KeyId,
}

impl VerifiedTerms {
    /// Parses a compact JWS and verifies that a key in `keys` signed it and may do so.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn parse(text: &str, keys: &Keys) -> Result<Self, Error> {
        let jws = CompactJws::parse(text)?;
        let (what, terms) = read(jws.payload())?;
        let (version, url, issued) = match &terms {
            PaymentTerms::Offer(offer) => (
                offer.version,
                &offer.resource_url,
                // An offer does not say when it was signed, and holds for a fixed time.
                offer.valid_until.saturating_sub(OFFER_SECONDS),
            ),
            PaymentTerms::Receipt(receipt) => (receipt.version, &receipt.resource_url, receipt.issued_at),
        };
        let malformed = |path: &str, problem: &str| Error::Malformed {
            what,
            path: path.to_owned(),
            problem: problem.to_owned(),
        };
        if version != PAYLOAD_VERSION {
            return Err(malformed("/version", "is not 1"));
        }
        // Otherwise the key of one service could sign for the addresses of another.
        if ServiceDid::of_origin(url) != *jws.did() {
            return Err(malformed(
                "/resourceUrl",
                "is not an address of the service that signed",
            ));
        }
        jws.holds(what, Timestamp::from_micros(0).plus(Duration::from_secs(issued)), keys)?;
        Ok(Self { terms, key: jws.key() })
    }

    /// Returns the terms or the receipt.
    pub const fn terms(&self) -> &PaymentTerms {
        &self.terms
    }

    /// Returns the id of the signing key.
    pub const fn key(&self) -> KeyId {
        self.key
    }
}

/// Reads a payload. A receipt names its payer, and an offer does not.
fn read(payload: &Map<String, Value>) -> Result<(&'static str, PaymentTerms), Error> {
    let value = Value::Object(payload.clone());
    Ok(if payload.contains_key("payer") {
        (
            RECEIPT_NAME,
            PaymentTerms::Receipt(typed(RECEIPT_NAME, "/payload", value)?),
        )
    } else {
        (OFFER_NAME, PaymentTerms::Offer(typed(OFFER_NAME, "/payload", value)?))
    })
}

#[cfg(test)]
mod tests;
