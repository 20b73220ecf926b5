//! Headers that carry a payment.
//!
//! Invariant: a request has one payment. Of two headers with the same authorization one is read, so it is settled once.

use types::mutate;
use x402::MalformedField;
use x402::wire::{self, PaymentMismatch, Protocol};

use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::rules::settlement::answers;

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
