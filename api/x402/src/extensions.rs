//! Extensions of version 2: signed offers and receipts, identifiers of payments, sign-in of wallets, and how an address is
//! called.
//!
//! Invariant: each extension has the form that the packages of others publish, `info` and its `schema`, so that they can
//! check the one by the other.

use serde_json::{Map, Value, json};
use types::Timestamp;

use super::check::MalformedField;
use super::sign_in::{SIGN_IN_LIFE, SIGNATURE_KIND, host_of};
use super::{Network, PaymentAsset};

/// Name of the extension with signed offers and receipts.
pub const OFFER_RECEIPT: &str = "offer-receipt";
/// Name of the extension with identifiers of payments.
pub const PAYMENT_IDENTIFIER: &str = "payment-identifier";
/// Name of the extension with sign-ins of wallets.
pub const SIGN_IN: &str = "sign-in-with-x";
/// Name of the extension that says how an address is called.
const BAZAAR: &str = "bazaar";
/// Dialect of the schemas.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// Fewest and most characters of an identifier.
const IDENTIFIER_CHARS: std::ops::RangeInclusive<usize> = 16..=128;

/// Extensions of a challenge: everything that it says beside its terms.
#[derive(Clone, Debug)]
pub struct ChallengeExtensions {
    /// The signed offer, as a compact JWS.
    pub offer: String,
    /// Parameters of the query, each with its value.
    pub query: Vec<(&'static str, String)>,
    /// Means to sign in with a wallet; `None` for what is not owned.
    pub sign_in: Option<SignInChallenge>,
}

/// Challenge to sign in with a wallet.
#[derive(Clone, Debug)]
pub struct SignInChallenge {
    /// Text that no other challenge has.
    pub nonce: String,
    /// Time of the challenge, in whole seconds.
    pub issued_at: Timestamp,
    /// Address of the service.
    pub origin: String,
}

impl ChallengeExtensions {
    /// Returns the extensions of the challenge for an address.
    pub fn value(&self, url: &str, asset: &PaymentAsset) -> Value {
        let mut extensions = json!({
            PAYMENT_IDENTIFIER: payment_identifier(),
            OFFER_RECEIPT: offers(&self.offer),
            BAZAAR: self.bazaar(),
        });
        if let Some(sign_in) = &self.sign_in {
            extensions[SIGN_IN] = sign_in.value(url, asset.network);
        }
        extensions
    }

    fn bazaar(&self) -> Value {
        let parameters: Map<String, Value> = self
            .query
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.as_str().into()))
            .collect();
        json!({
            "info": {"input": {"type": "http", "method": "GET", "queryParams": parameters}, "output": {"type": "json"}},
            "schema": {
                "$schema": DIALECT,
                "type": "object",
                "properties": {
                    "input": {
                        "type": "object",
                        "properties": {
                            "type": {"type": "string", "const": "http"},
                            "method": {"type": "string", "enum": ["GET"]},
                            "queryParams": {"type": "object"},
                        },
                        "required": ["type", "method"],
                        "additionalProperties": false,
                    },
                    "output": {"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]},
                },
                "required": ["input"],
            },
        })
    }
}

fn payment_identifier() -> Value {
    json!({
        "info": {"required": false},
        "schema": {
            "$schema": DIALECT,
            "type": "object",
            "properties": {
                "required": {"type": "boolean"},
                "id": {
                    "type": "string",
                    "minLength": IDENTIFIER_CHARS.start(),
                    "maxLength": IDENTIFIER_CHARS.end(),
                    "pattern": "^[a-zA-Z0-9_-]+$",
                },
            },
            "required": ["required"],
        },
    })
}

/// The schema of a signed artifact in the compact form, which holds its payload.
fn artifact(further: &[(&str, Value)]) -> Value {
    let mut properties = json!({"format": {"type": "string", "const": "jws"}, "signature": {"type": "string"}});
    for (name, schema) in further {
        properties[*name] = schema.clone();
    }
    json!({"type": "object", "properties": properties, "required": ["format", "signature"]})
}

fn offers(jws: &str) -> Value {
    let offer = artifact(&[("acceptIndex", json!({"type": "integer"}))]);
    json!({
        "info": {"offers": [{"format": "jws", "acceptIndex": 0, "signature": jws}]},
        "schema": {
            "$schema": DIALECT,
            "type": "object",
            "properties": {"offers": {"type": "array", "items": offer}},
            "required": ["offers"],
        },
    })
}

/// Returns the extensions of an answer with a signed receipt.
pub(crate) fn receipt(jws: &str) -> Value {
    json!({OFFER_RECEIPT: {
        "info": {"receipt": {"format": "jws", "signature": jws}},
        "schema": {
            "$schema": DIALECT,
            "type": "object",
            "properties": {"receipt": artifact(&[])},
            "required": ["receipt"],
        },
    }})
}

impl SignInChallenge {
    fn value(&self, url: &str, network: Network) -> Value {
        let text = json!({"type": "string"});
        let uri = json!({"type": "string", "format": "uri"});
        let time = json!({"type": "string", "format": "date-time"});
        json!({
            "info": {
                "domain": host_of(&self.origin),
                "uri": url,
                "version": "1",
                "nonce": self.nonce,
                "issuedAt": self.issued_at.to_string(),
                "expirationTime": self.issued_at.plus(SIGN_IN_LIFE).to_string(),
                "statement": "Read what this wallet has bought",
                "resources": [url],
            },
            "supportedChains": [{"chainId": network.to_string(), "type": SIGNATURE_KIND}],
            "schema": {
                "$schema": DIALECT,
                "type": "object",
                "properties": {
                    "domain": text, "address": text, "statement": text, "uri": uri, "version": text, "chainId": text,
                    "type": text, "nonce": text, "issuedAt": time, "expirationTime": time, "notBefore": time,
                    "requestId": text, "resources": {"type": "array", "items": uri}, "signature": text,
                },
                "required": [
                    "domain", "address", "uri", "version", "chainId", "type", "nonce", "issuedAt", "signature",
                ],
            },
        })
    }
}

fn info<'m>(message: &'m Value, extension: &str) -> &'m Value {
    &message["extensions"][extension]["info"]
}

/// Returns the identifier that a payer gave a payment, if it gave one.
///
/// # Errors
/// An identifier of another form.
pub fn identifier_of(message: &Value) -> Result<Option<&str>, MalformedField> {
    let id = &info(message, PAYMENT_IDENTIFIER)["id"];
    if id.is_null() {
        return Ok(None);
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let id = id.as_str();
    id.filter(|id| IDENTIFIER_CHARS.contains(&id.len()) && id.bytes().all(is_plain))
        .map(Some)
        .ok_or(MalformedField {
            field: "payment-identifier",
            problem: "must have an `id` of 16 to 128 letters, digits, `_` and `-`",
        })
}

/// Returns the challenge to sign in that a payment echoes, as nonce and time.
pub fn echoed_challenge(message: &Value) -> Option<(&str, Timestamp)> {
    let info = info(message, SIGN_IN);
    Some((info["nonce"].as_str()?, info["issuedAt"].as_str()?.parse().ok()?))
}

/// Returns a payment without the challenge that it echoes, for others to read.
pub fn without_challenge(message: &Value) -> Value {
    let mut message = message.clone();
    if let Some(extensions) = message.get_mut("extensions").and_then(Value::as_object_mut) {
        extensions.remove(SIGN_IN);
    }
    message
}
