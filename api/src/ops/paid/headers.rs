//! Headers that carry a payment, or the sign-in of a wallet.
//!
//! Invariants:
//! - A request has one payment. Of two headers with the same authorization one is read, so it is settled once.
//! - A sign-in reads what its wallet owns, and moves nothing.

use types::mutate;
use x402::MalformedField;
use x402::wire::{self, PaymentMismatch, Protocol};

use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::rules::settlement::goods::{self, SaleItem};
use crate::rules::settlement::{self, answers, sign_in};
use crate::state::links::GrantAccount;

/// Returns the header of a request with its payment, if there is one, given the headers of version 1 and of version 2.
pub(super) fn sent(
    cx: &Cx,
    v1: Option<Vec<String>>,
    v2: Option<Vec<String>>,
) -> Result<Option<(Protocol, String)>, ApiError> {
    let answer_is_sent = cx.answer_is_sent;
    mutate!(Bug::HeadSettles => let answer_is_sent = true);
    // A HEAD asks for the terms only.
    if !answer_is_sent {
        return Ok(None);
    }
    match (v1.unwrap_or_default().as_slice(), v2.unwrap_or_default().as_slice()) {
        ([], []) => Ok(None),
        ([v1], []) => Ok(Some((Protocol::V1, v1.clone()))),
        ([], [v2]) => Ok(Some((Protocol::V2, v2.clone()))),
        ([v1], [v2]) => one_of(v1, v2).map(Some),
        _ => Err(answers::malformed("header", "must be in one header of a version, once")),
    }
}

/// Returns the account of the wallet that signed in and owns what is sold, if one did. A sign-in that fails is an error only
/// without a payment, which goes on by itself.
pub(super) async fn signed_in(
    cx: &Cx,
    goods: &SaleItem,
    headers: Option<Vec<String>>,
    has_payment: bool,
) -> Result<Option<GrantAccount>, ApiError> {
    let headers = headers.unwrap_or_default();
    // A HEAD asks for the terms only.
    if headers.is_empty() || !cx.answer_is_sent {
        return Ok(None);
    }
    let plane = &*cx.app.payments;
    let not_taken = |problem| {
        if has_payment {
            Ok(None)
        } else {
            Err(answers::not_signed_in(goods, plane, problem))
        }
    };
    let signed_in = match sign_in::read(cx, &headers).await? {
        Ok(signed_in) => signed_in,
        Err(problem) => return not_taken(Some(problem)),
    };
    let owner = settlement::owner(&plane.asset, &signed_in.wallet);
    if !goods::is_owned(cx, goods, &owner).await? {
        return not_taken(None);
    }
    // Last, so that a challenge which opens nothing is not used up.
    match sign_in::spend(cx, &signed_in).await? {
        Ok(_wallet) => Ok(Some(GrantAccount::Wallet(owner))),
        Err(problem) => not_taken(Some(problem)),
    }
}

/// Returns one of two headers that carry the same payment, as clients send it that know both versions.
fn one_of(v1: &str, v2: &str) -> Result<(Protocol, String), ApiError> {
    let read = |text: &str| {
        wire::authorized(text).map_err(|unfit| match unfit {
            PaymentMismatch::Malformed(MalformedField { field, problem }) => answers::malformed(field, problem),
            PaymentMismatch::Refused(_) => {
                answers::malformed("authorization", "must have numbers of at most 18 digits")
            }
        })
    };
    let (first, second) = (read(v1)?, read(v2)?);
    // One of two payments cannot be told to be the meant one, and settling both would charge twice.
    if first.authorization != second.authorization {
        return Err(answers::malformed(
            "header",
            "must have the same authorization in both headers, or be in one",
        ));
    }
    // Some send the message of one version under both names. Each message is of the version that it says.
    for (text, sent) in [(v2, second), (v1, first)] {
        if let Some(protocol) = sent.protocol {
            return Ok((protocol, text.to_owned()));
        }
    }
    Err(answers::malformed("x402Version", "must be 1 or 2"))
}
