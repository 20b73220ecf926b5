//! Injected bugs of money, which the tests must detect.
//!
//! Invariant: without the feature `faults` each function does nothing or returns what it was given.

#[cfg(not(feature = "faults"))]
use std::future::{Ready, ready};

#[cfg(feature = "faults")]
use pay::{Account, AccountKind, Line};
use pay::{Event, Split};
use sqlx::AnyConnection;
#[cfg(feature = "faults")]
use types::fault::{InjectedBug, is_injected};
use types::money::MicroUsdc;
use types::{LedgerEventId, OperatorId};

use super::post::{Posted, Posting, post};
use crate::Error;

/// Posts the event of a sale. Injected bug: the buyer has the item, and nobody pays.
pub(super) async fn may_forget_sale(cx: &mut AnyConnection, posting: &Posting<'_>) -> Result<Posted, Error> {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::SaleUnpaid) {
        return Ok(Posted::Done);
    }
    post(cx, posting).await
}

/// Returns the parts of a price. Injected bug: a cent of the share goes to the fee.
pub(super) fn may_lose_cent(split: Split) -> Split {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::FeeTooHigh) {
        const CENT: i64 = 10_000;
        return Split {
            fee: MicroUsdc(split.fee.0 + CENT),
            share: MicroUsdc(split.share.0 - CENT),
        };
    }
    split
}

/// Returns the parts of a price. Injected bug: the fee is one of the whole of it.
pub(super) fn may_charge_whole(split: Split, price: MicroUsdc) -> Split {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::FeeOnWhole) {
        let fee = price.0 / 10 * 3;
        return Split {
            fee: MicroUsdc(fee),
            share: MicroUsdc(price.0 - fee),
        };
    }
    #[cfg(not(feature = "faults"))]
    let _ = price;
    split
}

/// Returns true if given credits pay an item. Injected bug: they pay every item.
pub(super) fn may_take_given(trial_sale: bool) -> bool {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::GivenOnPriced) {
        return true;
    }
    trial_sale
}

/// Returns the event of a trial sale. Injected bug: its credits become a share of the seller.
pub(super) fn may_pay_trial(trial: Event, seller: OperatorId) -> Event {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::TrialPays) {
        let credit = Account::of(AccountKind::Held, seller);
        let lines = trial.lines.iter().map(|line| Line { credit, ..*line }).collect();
        return Event { lines, ..trial };
    }
    #[cfg(not(feature = "faults"))]
    let _ = seller;
    trial
}

/// Returns the event of a payout. Injected bug: its key is not that of the payout.
pub(super) fn may_lose_key(event: &Event, id: LedgerEventId) -> Event {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::PayoutKeyless) {
        return Event {
            key: id.to_string(),
            ..event.clone()
        };
    }
    #[cfg(not(feature = "faults"))]
    let _ = id;
    event.clone()
}

/// Revokes what a refunded sale gave. Injected bug: the buyer keeps it.
pub(super) async fn may_keep_item<F>(revoking: F) -> Result<(), Error>
where
    F: Future<Output = Result<(), Error>>,
{
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::RefundKeepsItem) {
        return Ok(());
    }
    revoking.await
}

/// Does nothing. Injected bug: credits a settled payment again, under a key of its own.
#[cfg(feature = "faults")]
pub(super) async fn may_credit_again(cx: &mut AnyConnection, posting: &Posting<'_>) -> Result<(), Error> {
    if !is_injected(InjectedBug::SettledTwice) {
        return Ok(());
    }
    let mut event = posting.event.clone();
    event.key.push_str(":again");
    let again = Posting {
        id: LedgerEventId::new(posting.at),
        event: &event,
        ..*posting
    };
    post(cx, &again).await.map(drop)
}

/// Does nothing without the feature `faults`.
#[cfg(not(feature = "faults"))]
pub(super) fn may_credit_again(_cx: &mut AnyConnection, _posting: &Posting<'_>) -> Ready<Result<(), Error>> {
    ready(Ok(()))
}

/// Does nothing. Injected bug: writes the balance that was read before the latest change of the account, as a purchase
/// does that reads it outside of its transaction.
#[cfg(feature = "faults")]
pub(super) async fn may_write_stale(cx: &mut AnyConnection, account: &str) -> Result<(), Error> {
    if is_injected(InjectedBug::StaleBalance) {
        sqlx::query(
            "UPDATE ledger_accounts SET balance = balance + COALESCE((
                 SELECT amount FROM ledger_transfers
                 WHERE debit_account = $1 AND debit_seq = ledger_accounts.moves), 0)
             WHERE id = $1 AND side = 'credit'",
        )
        .bind(account)
        .execute(cx)
        .await?;
    }
    Ok(())
}

/// Does nothing without the feature `faults`.
#[cfg(not(feature = "faults"))]
pub(super) fn may_write_stale(_cx: &mut AnyConnection, _account: &str) -> Ready<Result<(), Error>> {
    ready(Ok(()))
}

/// Does nothing. Injected bug: the sales of a release stay on hold, so the next one releases them again.
#[cfg(feature = "faults")]
pub(super) async fn may_release_again(cx: &mut AnyConnection, release: &str) -> Result<(), Error> {
    if is_injected(InjectedBug::ReleasedTwice) {
        sqlx::query("UPDATE sales SET state = 'held' WHERE release_event = $1")
            .bind(release)
            .execute(cx)
            .await?;
    }
    Ok(())
}

/// Does nothing without the feature `faults`.
#[cfg(not(feature = "faults"))]
pub(super) fn may_release_again(_cx: &mut AnyConnection, _release: &str) -> Ready<Result<(), Error>> {
    ready(Ok(()))
}
