//! Messages of the protocol: payments in headers, challenges, answers of facilitators.
//!
//! Invariant: a payment is read from strict JSON in canonical base64. What is not read has no meaning here.

use data_encoding::BASE64;
use serde_json::{Map, Value, json};

use super::check::{MalformedField, RefusalReason};
use super::extensions::{self, ChallengeExtensions};
use super::signature::SignatureError;
use super::{Address, Authorization, MAX_HEADER, PaymentAsset, WalletSignature};

/// Seconds within which a payment must be made.
pub const MAX_TIMEOUT_SECONDS: u64 = 300;
/// Most digits of an amount.
const MAX_DIGITS: usize = 18;
/// The only scheme that is offered.
pub const PAYMENT_SCHEME: &str = "exact";
/// Way to move the token that is signed for.
const TRANSFER_METHOD: &str = "eip3009";

/// Version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Version 1, whose payment is in `X-PAYMENT`.
    V1,
    /// Version 2, whose payment is in `PAYMENT-SIGNATURE`.
    V2,
}

impl Protocol {
    /// Returns the number of the version.
    pub const fn number(self) -> u8 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }

    /// Returns the version of this number.
    pub const fn of(number: i64) -> Option<Self> {
        match number {
            1 => Some(Self::V1),
            2 => Some(Self::V2),
            _ => None,
        }
    }

    /// Returns the name of the network in this version.
    pub fn network(self, asset: &PaymentAsset) -> String {
        match self {
            Self::V1 => asset
                .network
                .v1_name()
                .map_or_else(|| asset.network.to_string(), str::to_owned),
            Self::V2 => asset.network.to_string(),
        }
    }
}

/// A payment whose form is right and which is for our asset. Its signature is not checked.
#[derive(Clone, Debug)]
pub struct Payment {
    /// Version of the message.
    pub protocol: Protocol,
    /// The message as it arrived.
    pub message: Value,
    /// The text of the message, as it arrived.
    pub text: Vec<u8>,
    /// The transfer that the payer agrees to.
    pub authorization: Authorization,
    /// Signature of the payer.
    pub signature: WalletSignature,
    /// Amount that the payer was asked for, if the message repeats it.
    pub accepted_amount: Option<u64>,
}

/// Reason for which a message is not a payment to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaymentMismatch {
    /// The form is wrong: 400.
    Malformed(MalformedField),
    /// The form is right, and it does not pay us: 402.
    Refused(RefusalReason),
}

impl From<RefusalReason> for PaymentMismatch {
    fn from(reason: RefusalReason) -> Self {
        Self::Refused(reason)
    }
}

fn malformed(field: &'static str, problem: &'static str) -> PaymentMismatch {
    PaymentMismatch::Malformed(MalformedField { field, problem })
}

/// Decodes the header of a payment. Checks form, scheme, network, asset and recipient.
///
/// # Errors
/// [`PaymentMismatch`], by the first rule that the payment breaks.
pub fn read_header(protocol: Protocol, header: &str, asset: &PaymentAsset) -> Result<Payment, PaymentMismatch> {
    let (text, message) = decoded(header)?;
    Ok(Payment {
        text,
        ..read(protocol, message, asset)?
    })
}

/// Returns the text of a header and the message in it.
fn decoded(header: &str) -> Result<(Vec<u8>, Value), PaymentMismatch> {
    if header.len() > MAX_HEADER {
        return Err(malformed("header", "must have at most 16 KiB"));
    }
    // Canonical base64 only: one payment has one text.
    let text = BASE64.decode(header.as_bytes());
    let text = text.map_err(|_error| malformed("header", "must be base64 with padding (RFC 4648 section 4)"))?;
    let message = types::json::parse(&text);
    let message = message.map_err(|_error| malformed("header", "must be base64 of strict JSON"))?;
    Ok((text, message))
}

/// Transfer of a message, read without the terms that it was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizedTransfer {
    /// Version that the message says it has.
    pub protocol: Option<Protocol>,
    /// The transfer that the payer agrees to.
    pub authorization: Authorization,
}

/// Decodes the header of a payment of any version, and reads its authorization only.
///
/// # Errors
/// [`PaymentMismatch::Malformed`], or the reason of a number in the authorization that is too large.
pub fn authorized(header: &str) -> Result<AuthorizedTransfer, PaymentMismatch> {
    let (_, message) = decoded(header)?;
    let members = members(&message)?;
    let (authorization, late) = authorization(object(object(members, "payload")?, "authorization")?)?;
    if let Some(reason) = late {
        return Err(reason.into());
    }
    let version = members.get("x402Version").and_then(Value::as_i64);
    Ok(AuthorizedTransfer {
        protocol: version.and_then(Protocol::of),
        authorization,
    })
}

fn members(message: &Value) -> Result<&Map<String, Value>, PaymentMismatch> {
    message
        .as_object()
        .ok_or_else(|| malformed("payment", "must be an object"))
}

/// Reads the message of a payment, as [`read_header`] does after decoding.
///
/// # Errors
/// [`PaymentMismatch::Malformed`] for a member that is missing or has the wrong form, [`PaymentMismatch::Refused`] for another
/// scheme, network, asset or recipient and a signature that cannot be read.
pub fn read(protocol: Protocol, message: Value, asset: &PaymentAsset) -> Result<Payment, PaymentMismatch> {
    let members = members(&message)?;
    // `2.0` is another spelling that readers disagree on, so only the integer passes.
    let version = members.get("x402Version").and_then(Value::as_u64);
    if version != Some(protocol.number().into()) {
        return Err(malformed(
            "x402Version",
            "must be the version of the header that carries it",
        ));
    }
    let payload = object(members, "payload")?;
    let signature = text(payload, "signature")?;
    let fields = object(payload, "authorization")?;
    let (authorization, late) = authorization(fields)?;
    let accepted = match protocol {
        Protocol::V1 => None,
        Protocol::V2 => Some(object(members, "accepted")?),
    };
    let accepted_amount = match accepted {
        None => None,
        Some(accepted) => Some(number(accepted, "amount")?.ok_or(RefusalReason::Value)?),
    };
    let terms = accepted.unwrap_or(members);
    let (scheme, network) = (text(terms, "scheme")?, text(terms, "network")?);
    if scheme != PAYMENT_SCHEME {
        return Err(RefusalReason::Scheme.into());
    }
    if network != protocol.network(asset) {
        return Err(RefusalReason::Network.into());
    }
    if let Some(accepted) = accepted {
        accepts(accepted, asset)?;
    }
    // Compared with what was signed. The terms that the message repeats are not covered by the
    // signature.
    if authorization.to != asset.pay_to {
        return Err(RefusalReason::Recipient.into());
    }
    // A number that is too large is a wrong amount or time and not a wrong form, so it is reported only
    // after the reasons that come before it in the order of the protocol.
    if let Some(reason) = late {
        return Err(reason.into());
    }
    let signature = match WalletSignature::read(signature) {
        Ok(signature) => signature,
        Err(SignatureError::NotHex) => return Err(malformed("signature", "must be `0x` and hexadecimal digits")),
        Err(SignatureError::Contract) => return Err(RefusalReason::UnsupportedSignature.into()),
        Err(SignatureError::Invalid) => return Err(RefusalReason::Signature.into()),
    };
    Ok(Payment {
        protocol,
        text: message.to_string().into_bytes(),
        message,
        authorization,
        signature,
        accepted_amount,
    })
}

/// Checks by meaning the rest of the terms that a message of version 2 repeats.
fn accepts(accepted: &Map<String, Value>, asset: &PaymentAsset) -> Result<(), PaymentMismatch> {
    if address(accepted, "asset")? != asset.address {
        return Err(RefusalReason::Asset.into());
    }
    if address(accepted, "payTo")? != asset.pay_to {
        return Err(RefusalReason::Recipient.into());
    }
    let extra = object(accepted, "extra")?;
    let method = match extra.get("assetTransferMethod") {
        None => TRANSFER_METHOD,
        Some(method) => method
            .as_str()
            .ok_or_else(|| malformed("assetTransferMethod", "must be text"))?,
    };
    if method != TRANSFER_METHOD || text(extra, "name")? != asset.name || text(extra, "version")? != asset.version {
        return Err(RefusalReason::Requirements.into());
    }
    Ok(())
}

/// Reads an authorization. A number that is too large to be right is kept as its reason.
fn authorization(fields: &Map<String, Value>) -> Result<(Authorization, Option<RefusalReason>), PaymentMismatch> {
    let nonce = text(fields, "nonce")?.parse();
    let nonce = nonce.map_err(|_error| malformed("nonce", "must be `0x` and 64 hexadecimal digits"))?;
    let value = number(fields, "value")?;
    let valid_after = number(fields, "validAfter")?;
    let valid_before = number(fields, "validBefore")?;
    let mut late = None;
    let mut fits = |number: Option<u64>, reason: RefusalReason| {
        number.unwrap_or_else(|| {
            late.get_or_insert(reason);
            0
        })
    };
    let authorization = Authorization {
        from: address(fields, "from")?,
        to: address(fields, "to")?,
        value: fits(value, RefusalReason::Value),
        valid_after: fits(valid_after, RefusalReason::ValidAfter),
        valid_before: fits(valid_before, RefusalReason::ValidBefore),
        nonce,
    };
    Ok((authorization, late))
}

fn object<'m>(members: &'m Map<String, Value>, name: &'static str) -> Result<&'m Map<String, Value>, PaymentMismatch> {
    let value = members.get(name).and_then(Value::as_object);
    value.ok_or_else(|| malformed(name, "must be an object"))
}

fn text<'m>(members: &'m Map<String, Value>, name: &'static str) -> Result<&'m str, PaymentMismatch> {
    let value = members.get(name).and_then(Value::as_str);
    value.ok_or_else(|| malformed(name, "must be text"))
}

fn address(members: &Map<String, Value>, name: &'static str) -> Result<Address, PaymentMismatch> {
    let address = text(members, name)?.parse();
    address.map_err(|_error| malformed(name, "must be `0x` and 40 hexadecimal digits"))
}

/// Reads a number as the protocol spells it: decimal digits as text. `None` if it has too many.
fn number(members: &Map<String, Value>, name: &'static str) -> Result<Option<u64>, PaymentMismatch> {
    let text = text(members, name)?;
    let is_plain =
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if !is_plain {
        return Err(malformed(name, "must be decimal digits without sign and leading zeros"));
    }
    // Eighteen digits fit 64 bits with and without a sign, which the database's integers have.
    if text.len() > MAX_DIGITS {
        return Ok(None);
    }
    Ok(text.parse().ok())
}

/// An item that is offered for a payment.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Address of the request that is paid for.
    pub url: String,
    /// Item that is sold, for people.
    pub description: String,
    /// Kind of the item, for lists.
    pub tag: &'static str,
    /// Amount in micro-USDC.
    pub amount: u64,
}

impl Offer {
    /// Returns the terms in version 1.
    pub fn v1(&self, asset: &PaymentAsset) -> Value {
        json!({
            "scheme": PAYMENT_SCHEME,
            "network": Protocol::V1.network(asset),
            "maxAmountRequired": self.amount.to_string(),
            "resource": self.url,
            "description": ascii(&self.description),
            "mimeType": "application/json",
            "payTo": asset.pay_to.checksum(),
            "maxTimeoutSeconds": MAX_TIMEOUT_SECONDS,
            "asset": asset.address.checksum(),
            // A v1 client takes the EIP-712 domain that it signs for from here.
            "extra": {"name": asset.name, "version": asset.version},
        })
    }

    /// Returns the terms in version 2.
    pub fn v2(&self, asset: &PaymentAsset) -> Value {
        json!({
            "scheme": PAYMENT_SCHEME,
            "network": Protocol::V2.network(asset),
            "amount": self.amount.to_string(),
            "asset": asset.address.checksum(),
            "payTo": asset.pay_to.checksum(),
            "maxTimeoutSeconds": MAX_TIMEOUT_SECONDS,
            "extra": {
                "assetTransferMethod": TRANSFER_METHOD,
                "name": asset.name,
                "version": asset.version,
                "paymentFlow": "upfront",
            },
        })
    }

    /// Returns the challenge in version 2.
    pub fn challenge(&self, asset: &PaymentAsset, error: &str, extensions: &ChallengeExtensions) -> Value {
        json!({
            "x402Version": 2,
            "error": error,
            "resource": {
                "url": self.url,
                "description": ascii(&self.description),
                "mimeType": "application/json",
                "serviceName": "Sluice",
                "tags": [self.tag],
            },
            "accepts": [self.v2(asset)],
            "extensions": extensions.value(&self.url, asset),
        })
    }

    /// Returns the terms that a facilitator is sent beside a payment.
    pub fn requirements(&self, payment: &Payment, asset: &PaymentAsset) -> Value {
        match payment.protocol {
            Protocol::V1 => self.v1(asset),
            // The terms as the payer repeats them: a facilitator compares the two.
            Protocol::V2 => payment.message["accepted"].clone(),
        }
    }
}

/// Returns the value of a header with a message.
pub fn header(message: &Value) -> String {
    BASE64.encode(message.to_string().as_bytes())
}

/// Replaces every character outside of ASCII by `?` and every control character by a space, so that no client has to
/// guess the encoding of a header.
fn ascii(text: &str) -> String {
    let plain = text.chars().map(|letter| match letter {
        ' '..='~' => letter,
        letter if letter.is_control() => ' ',
        _ => '?',
    });
    plain.collect()
}

/// Receipt of a settlement, as a header of the answer has it.
#[derive(Clone, Debug)]
pub struct Receipt<'a> {
    /// Version of the answer.
    pub protocol: Protocol,
    /// Address of the wallet that paid.
    pub payer: Address,
    /// Transaction that paid; none if it is not known.
    pub transaction: Option<&'a str>,
    /// Amount that was paid.
    pub amount: u64,
    /// Reason for which it is no success.
    pub error: Option<&'a str>,
    /// The receipt that the service signed, as a compact JWS.
    pub signed: Option<&'a str>,
    /// Address of the receipt of the sale, for the wallet that signs in.
    pub sale: Option<&'a str>,
}

impl Receipt<'_> {
    /// Returns the message.
    pub fn message(&self, asset: &PaymentAsset) -> Value {
        let mut message = json!({
            "success": self.error.is_none(),
            "transaction": self.transaction.unwrap_or_default(),
            "network": self.protocol.network(asset),
            "payer": self.payer.checksum(),
        });
        match self.error {
            None => message["amount"] = self.amount.to_string().into(),
            Some(reason) => message["errorReason"] = reason.into(),
        }
        if let Some(signed) = self.signed {
            message["extensions"] = extensions::receipt(signed);
        }
        if let Some(sale) = self.sale {
            message["saleReceipt"] = sale.into();
        }
        message
    }
}
