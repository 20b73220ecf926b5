//! Injected bugs of money, which the tests must detect.
//!
//! Invariant: without the feature `faults` each function does nothing or returns what it was given.

#[cfg(not(feature = "faults"))]
use std::future::{Ready, ready};

use pay::Split;
use sqlx::AnyConnection;
#[cfg(feature = "faults")]
use types::LedgerEventId;
#[cfg(feature = "faults")]
use types::fault::{InjectedBug, is_injected};
#[cfg(feature = "faults")]
use types::money::MicroUsdc;

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
