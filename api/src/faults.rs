//! Injected bugs of this package that take more than a line, which the tests must detect.

use store::{NewContribution, PaymentState, Store, SubmitOutcome};
use x402::chain::NonceStatus;
use x402::{RefusalReason, Settlement, wire};

/// Begins the transaction of an acknowledgement, and answers while it still runs.
pub(crate) fn submit_later(store: &Store, new: &NewContribution) -> SubmitOutcome {
    let (store, new) = (store.clone(), new.clone());
    drop(tokio::spawn(
        async move { store.contribution_submit_counted(new).await },
    ));
    SubmitOutcome::Submitted
}

/// Takes more than a price for it.
pub(crate) fn take_more(
    priced: Result<(), RefusalReason>,
    sent: &wire::Payment,
    prices: &[u64],
) -> Result<(), RefusalReason> {
    if prices.iter().any(|price| *price <= sent.authorization.value) {
        return Ok(());
    }
    priced
}

/// Takes a settlement without an answer for a refusal.
pub(crate) fn refused(settlement: Settlement) -> Settlement {
    match settlement {
        Settlement::Unknown(doubt) => Settlement::Refused(doubt.reason),
        settlement => settlement,
    }
}

/// Tells that a payment which is not known has another state.
pub(crate) fn unknown_as(told: PaymentState, state: PaymentState) -> PaymentState {
    if state == PaymentState::Unknown { told } else { state }
}

/// Does not see a transfer.
pub(crate) fn overlook(sight: NonceStatus) -> NonceStatus {
    match sight {
        NonceStatus::Used(_) => NonceStatus::Cancelled,
        sight => sight,
    }
}
