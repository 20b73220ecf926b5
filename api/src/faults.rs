//! Injected bugs of this package, which the crash tests must detect.
//!
//! Invariant: without the feature `faults` each function does what its argument does or returns what it was given,
//! so a release waits for the row.

#[cfg(not(feature = "faults"))]
use std::future::{Ready, ready};

use store::{PaymentState, SubmitOutcome};
#[cfg(feature = "faults")]
use types::fault::{InjectedBug, is_injected};
use x402::chain::Sight;
use x402::{Reason, Settlement, Word, wire};

use crate::error::ApiError;

/// Waits for the transaction of an acknowledgement. Injected bug: answers while it still runs.
pub(crate) async fn may_answer_early<F>(submit: F) -> Result<(SubmitOutcome, Option<u32>), store::Error>
where
    F: Future<Output = Result<(SubmitOutcome, Option<u32>), store::Error>> + Send + 'static,
{
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::AckBeforeRow) {
        drop(tokio::spawn(submit));
        return Ok((SubmitOutcome::Submitted, None));
    }
    submit.await
}

/// Returns the nonce of an attempt of a payout. Injected bug: each attempt has its own.
pub(crate) fn may_change_nonce(nonce: Word, attempts: i64) -> Word {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::PayoutNonces) {
        let Word(mut bytes) = nonce;
        bytes[0] = bytes[0].wrapping_add(attempts.to_le_bytes()[0]);
        return Word(bytes);
    }
    #[cfg(not(feature = "faults"))]
    let _ = attempts;
    nonce
}

/// Returns true if whoever sends an authorization again may have its answer. Injected bug: anybody may.
pub(crate) fn may_replay_to_anybody(is_first_sender: bool) -> bool {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::ReplayToAnybody) {
        return true;
    }
    is_first_sender
}

/// Commits the step of a payment that is about to be settled, and returns true if it is this caller's. Injected bug:
/// nothing is committed.
pub(crate) async fn may_begin_uncommitted<F>(begin: F) -> Result<bool, store::Error>
where
    F: Future<Output = Result<bool, store::Error>>,
{
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::SettlesUncommitted) {
        return Ok(true);
    }
    begin.await
}

/// Does nothing. Injected bug: grants what is not settled.
#[cfg(feature = "faults")]
pub(crate) async fn may_grant_first<F>(grant: F) -> Result<(), ApiError>
where
    F: Future<Output = Result<(), ApiError>>,
{
    if is_injected(InjectedBug::GrantsFirst) {
        return grant.await;
    }
    Ok(())
}

/// Does nothing without the feature `faults`.
#[cfg(not(feature = "faults"))]
pub(crate) fn may_grant_first<F>(_grant: F) -> Ready<Result<(), ApiError>> {
    ready(Ok(()))
}

/// Does nothing. Injected bug: fails a payment for a refusal of a later attempt.
#[cfg(feature = "faults")]
pub(crate) async fn may_believe_refusal<F>(fail: F) -> Result<(), ApiError>
where
    F: Future<Output = Result<(), ApiError>>,
{
    if is_injected(InjectedBug::RefusalIsProof) {
        return fail.await;
    }
    Ok(())
}

/// Does nothing without the feature `faults`.
#[cfg(not(feature = "faults"))]
pub(crate) fn may_believe_refusal<F>(_fail: F) -> Ready<Result<(), ApiError>> {
    ready(Ok(()))
}

/// Returns what a settlement came to. Injected bug: one without an answer is refused.
pub(crate) fn may_take_for_refused(settlement: Settlement) -> Settlement {
    #[cfg(feature = "faults")]
    if let Settlement::Unknown(doubt) = &settlement
        && is_injected(InjectedBug::LostIsRefused)
    {
        return Settlement::Refused(doubt.reason.clone());
    }
    settlement
}

/// Returns the state of a payment that its caller is told. Injected bug: one that is not known is served, or asked for
/// again.
pub(crate) fn may_misread(state: PaymentState) -> PaymentState {
    #[cfg(feature = "faults")]
    if state == PaymentState::Unknown {
        if is_injected(InjectedBug::ServesUnsettled) {
            return PaymentState::Settled;
        }
        if is_injected(InjectedBug::AsksAgain) {
            return PaymentState::Failed;
        }
    }
    state
}

/// Returns what became of the authorization of a failed payment. Injected bug: a transfer is not seen.
pub(crate) fn may_overlook(sight: Sight) -> Sight {
    #[cfg(feature = "faults")]
    if matches!(sight, Sight::Used(_)) && is_injected(InjectedBug::LateIsIgnored) {
        return Sight::Cancelled;
    }
    sight
}

/// Returns if the amount of a payment is a price. Injected bug: more than a price is one.
pub(crate) fn may_take_more(priced: Result<(), Reason>, sent: &wire::Payment, prices: &[u64]) -> Result<(), Reason> {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::TakesMore) && prices.iter().any(|price| *price <= sent.authorization.value) {
        return Ok(());
    }
    #[cfg(not(feature = "faults"))]
    let _ = (sent, prices);
    priced
}

/// Returns true if a wallet is its operator's. Injected bug: it is, although it never proved itself.
pub(crate) fn may_trust(is_proved: bool) -> bool {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::UnprovedOwner) {
        return true;
    }
    is_proved
}

/// Returns true if the payment of a request counts. Injected bug: that of a HEAD does.
pub(crate) fn may_pay_by_head(answer_is_sent: bool) -> bool {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::HeadSettles) {
        return true;
    }
    answer_is_sent
}

/// Returns no reason, since an authorization is looked up before its time is judged. Injected bug: its time is first.
pub(crate) fn may_judge_first(timely: Result<(), Reason>) -> Result<(), Reason> {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::JudgesTimeFirst) {
        return timely;
    }
    timely.or(Ok(()))
}

/// Returns the number of bytes to lease. Injected bug: none.
pub(crate) fn may_skip_lease(missing: u64) -> u64 {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::SendsUnleased) {
        return 0;
    }
    missing
}

/// Returns the version up to which a wallet has an item. Injected bug: whoever names an item in the path has all of it.
pub(crate) fn may_own_by_path(owned: Option<u64>) -> Option<u64> {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::OwnerByPath) {
        return Some(u64::MAX);
    }
    owned
}

/// Returns true if a call through a door may be charged. Injected bug: one of the directory may.
pub(crate) fn may_charge_at(may_spend: bool) -> bool {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::DirectoryCharged) {
        return true;
    }
    may_spend
}
