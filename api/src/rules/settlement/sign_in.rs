//! Sign-in of wallets (`sign-in-with-x`): a wallet proves itself by a signature, and reads what it has bought without
//! paying again.
//!
//! Invariant: a challenge is of this service, is signed within minutes, and opens one door once.

use std::time::Duration;

use store::Event;
use types::mutate;
use x402::Address;
use x402::sign_in::{SignInProblem, SignedIn};

use crate::call::cx::Cx;
use crate::error::ApiError;

/// Limit that counts the uses of a challenge.
const RULE: &str = "sign_in_nonce";
/// Time for which a use is remembered: longer than a challenge can be used, with the clocks of two replicas apart.
const REMEMBERED: Duration = Duration::from_mins(10);

/// Reads the header of a sign-in, and checks everything but the use of its challenge.
pub(crate) async fn read(cx: &Cx, headers: &[String]) -> Result<Result<SignedIn, SignInProblem>, ApiError> {
    let [header] = headers else {
        return Ok(Err(SignInProblem::Header));
    };
    let network = cx.app.payments.asset.network;
    let signed_in = match SignedIn::read(header, &cx.app.config.public_url, network, cx.now) {
        Ok(signed_in) => signed_in,
        Err(problem) => return Ok(Err(problem)),
    };
    let signer = cx.app.process.links.signer(&cx.app.store, cx.now).await?;
    let is_ours = signer.is_sign_in_nonce(&signed_in.nonce, signed_in.issued_at);
    mutate!(Bug::ForeignNonce => let is_ours = true);
    Ok(if is_ours {
        Ok(signed_in)
    } else {
        Err(SignInProblem::Nonce)
    })
}

/// Uses the challenge of a sign-in that is about to open a door. Fails if it was used.
pub(crate) async fn spend(cx: &Cx, signed_in: &SignedIn) -> Result<Result<Address, SignInProblem>, ApiError> {
    let event = Event {
        rule: RULE,
        subject: signed_in.nonce.clone(),
        // One window without an end: the row goes when no challenge can be used any more.
        window: 0,
        ends_at: signed_in.issued_at.plus(REMEMBERED),
        count: 1,
    };
    let counted = cx.app.store.counter_take(event, |counted| counted.used == 0).await?;
    let is_first = counted.used == 0;
    mutate!(Bug::NonceUsedAgain => let is_first = true);
    Ok(if is_first {
        Ok(signed_in.wallet)
    } else {
        Err(SignInProblem::Nonce)
    })
}
