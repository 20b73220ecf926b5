//! What a challenge says beside its terms: the signed offer, and how to sign in with a wallet.
//!
//! Invariant: the offer states the terms that the challenge asks for, at the address that is paid for.

use proof::jws::ServiceDid;
use proof::terms::{OFFER_SECONDS, OfferTerms};
use types::Timestamp;
use x402::extensions::{ChallengeExtensions, SignInChallenge};
use x402::wire::{Offer, PAYMENT_SCHEME};

use super::natural;
use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::keys::KeyRing;

/// Returns the whole second of an instant, since 1970.
pub(crate) fn second(instant: Timestamp) -> u64 {
    natural(instant.micros().div_euclid(1_000_000))
}

/// Returns the extensions of the challenge for an offer with these parameters of its address. A wallet signs in for what
/// it can own.
pub(crate) async fn extensions(
    cx: &Cx,
    offer: &Offer,
    query: Vec<(&'static str, String)>,
    can_be_owned: bool,
) -> Result<ChallengeExtensions, ApiError> {
    let (app, asset) = (&cx.app, &cx.app.payments.asset);
    let ring = KeyRing::load(&app.store, &*app.clock).await?;
    let terms = OfferTerms {
        version: OfferTerms::VERSION,
        resource_url: offer.url.clone(),
        scheme: PAYMENT_SCHEME.to_owned(),
        network: asset.network.to_string(),
        asset: asset.address.checksum(),
        pay_to: asset.pay_to.checksum(),
        amount: offer.amount.to_string(),
        valid_until: second(ring.issued_at(cx.now)).saturating_add(OFFER_SECONDS),
    };
    let did = ServiceDid::of_origin(&app.config.public_url);
    let signed = terms.sign(&did, ring.signer()).map_err(ApiError::internal)?;
    let sign_in = if can_be_owned {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(ApiError::unavailable)?;
        // Whole seconds, because some clients compare the text with what their library makes of it.
        let issued_at = Timestamp::from_micros(cx.now.micros().div_euclid(1_000_000).saturating_mul(1_000_000));
        let signer = app.process.links.signer(&app.store, cx.now).await?;
        Some(SignInChallenge {
            nonce: signer.sign_in_nonce(random, issued_at),
            issued_at,
            origin: app.config.public_url.clone(),
        })
    } else {
        None
    };
    Ok(ChallengeExtensions {
        offer: signed,
        query,
        sign_in,
    })
}
