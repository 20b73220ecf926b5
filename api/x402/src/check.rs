//! Rules of a payment, in the order in which they are checked, and the words of the protocol for them.
//!
//! Invariant: [`signed`] comes before [`timely`]: a known authorization is looked up between the two, so that its
//! answer stays the same whatever the clock says by then.

use super::wire::Payment;
use super::{Address, PaymentAsset};

/// Seconds that a payment must still be valid for.
pub const MARGIN_SECONDS: u64 = 6;
/// Most seconds that a payment may be valid for.
pub const LONGEST_SECONDS: u64 = 900;

/// Field of a payment whose form is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedField {
    /// Name of the field.
    pub field: &'static str,
    /// Rule, as a predicate such as "must be …".
    pub problem: &'static str,
}

/// Reason for which a payment is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalReason {
    /// The scheme is not `exact`.
    Scheme,
    /// The network is another.
    Network,
    /// The token is another.
    Asset,
    /// The recipient is another.
    Recipient,
    /// The domain of the token or the way to move it is another.
    Requirements,
    /// The signature is not the payer's.
    Signature,
    /// The signature is not one of a key, and contracts are not asked.
    UnsupportedSignature,
    /// The amount is not a price of the item.
    Value,
    /// The payment is not valid yet.
    ValidAfter,
    /// The payment is not valid any more, too short or too long.
    ValidBefore,
}

impl RefusalReason {
    /// Returns the word of the protocol.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Scheme => "invalid_scheme",
            Self::Network => "invalid_network",
            Self::Asset => "asset_mismatch",
            Self::Recipient => "invalid_exact_evm_payload_recipient_mismatch",
            Self::Requirements => "invalid_payment_requirements",
            Self::Signature => "invalid_exact_evm_payload_signature",
            Self::UnsupportedSignature => "unsupported_signature",
            Self::Value => "invalid_exact_evm_payload_authorization_value_mismatch",
            Self::ValidAfter => "invalid_exact_evm_payload_authorization_valid_after",
            Self::ValidBefore => "invalid_exact_evm_payload_authorization_valid_before",
        }
    }

    /// Returns the rule that is broken, for people: a sentence about the payment, without its full stop.
    pub fn rule(self) -> String {
        match self {
            Self::Scheme => "`scheme` must be `exact`".to_owned(),
            Self::Network => "`network` must be that of the terms".to_owned(),
            Self::Asset => "`asset` must be that of the terms".to_owned(),
            Self::Recipient => "`to` and `payTo` must be the `payTo` of the terms".to_owned(),
            Self::Requirements => "`extra` must be that of the terms".to_owned(),
            Self::Signature => "`signature` must be the one of `from` over these terms".to_owned(),
            Self::UnsupportedSignature => "`signature` must be the one of a key; contracts are not asked".to_owned(),
            Self::Value => "`value` must be exactly the amount of the terms".to_owned(),
            Self::ValidAfter => "`validAfter` must not be later than now".to_owned(),
            Self::ValidBefore => format!(
                "`validBefore` must be after `validAfter`, and {MARGIN_SECONDS} to {LONGEST_SECONDS} seconds after now"
            ),
        }
    }
}

/// Checks that the payer made the signature.
///
/// # Errors
/// [`RefusalReason::Signature`] if another wallet signed, or the payer is the zero address, the payee or the token.
pub fn signed(payment: &Payment, asset: &PaymentAsset) -> Result<(), RefusalReason> {
    let payer = payment.authorization.from;
    // Tokens take a failed recovery for the zero address. The service and the token buy nothing.
    let is_odd = [Address::ZERO, asset.pay_to, asset.address].contains(&payer);
    if is_odd || payment.authorization.signer(asset, &payment.signature) != Some(payer) {
        return Err(RefusalReason::Signature);
    }
    Ok(())
}

/// Checks that the amount is one of the prices, exactly.
///
/// # Errors
/// [`RefusalReason::Value`] for any other amount, also a larger one.
pub fn priced(payment: &Payment, prices: &[u64]) -> Result<(), RefusalReason> {
    let amount = payment.authorization.value;
    // Exactly, not at least: a larger amount would be taken without an item that it pays for, and the
    // scheme `exact` leaves no change to give back.
    let is_price = prices.contains(&amount) && payment.accepted_amount.is_none_or(|accepted| accepted == amount);
    if is_price { Ok(()) } else { Err(RefusalReason::Value) }
}

/// Checks that the payment is valid at `now`, in seconds, and for some time.
///
/// # Errors
/// [`RefusalReason::ValidAfter`] if it is not valid yet, [`RefusalReason::ValidBefore`] if it ends too soon to settle it or
/// too late.
pub fn timely(payment: &Payment, now: u64) -> Result<(), RefusalReason> {
    let (after, before) = (payment.authorization.valid_after, payment.authorization.valid_before);
    // A payment is settled at once, so it must be valid already. The margin at the end leaves the time
    // that a facilitator and a block need, and the longest time bounds how long a row can stay
    // undecided.
    if after > now {
        return Err(RefusalReason::ValidAfter);
    }
    if before < now + MARGIN_SECONDS || before > now + LONGEST_SECONDS || before <= after {
        return Err(RefusalReason::ValidBefore);
    }
    Ok(())
}
