//! Injected bugs of money that take more than a line, which the tests must detect.

use pay::{Account, AccountKind, Event, MovementLine, Split};
use sqlx::AnyConnection;
use types::LedgerEventId;
use types::money::MicroUsdc;
use types::vocabulary::PaidWith;

use super::Sale;
use super::post::{Posting, post};
use crate::Error;

/// Moves a cent of the share to the fee.
pub(super) fn lose_cent(split: Split) -> Split {
    const CENT: i64 = 10_000;
    Split {
        fee: MicroUsdc(split.fee.0 + CENT),
        share: MicroUsdc(split.share.0 - CENT),
    }
}

/// Takes the fee of the whole price, and not of each bracket.
pub(super) fn charge_whole(price: MicroUsdc) -> Split {
    let fee = price.0 / 10 * 3;
    Split {
        fee: MicroUsdc(fee),
        share: MicroUsdc(price.0 - fee),
    }
}

/// Gives the credits of a trial sale to its seller.
pub(super) fn pay_trial(movement: Event, sale: &Sale) -> Event {
    if sale.paid_with != PaidWith::Given {
        return movement;
    }
    let credit = Account::of(AccountKind::Held, sale.seller);
    let lines = movement
        .lines
        .iter()
        .map(|line| MovementLine { credit, ..*line })
        .collect();
    Event { lines, ..movement }
}

/// Returns the event of a payout under a key of its own.
pub(super) fn with_key(event: &Event, id: LedgerEventId) -> Event {
    Event {
        key: id.to_string(),
        ..event.clone()
    }
}

/// Credits a settled payment again, under a key of its own.
pub(super) async fn credit_again(cx: &mut AnyConnection, posting: &Posting<'_>) -> Result<(), Error> {
    let mut event = posting.event.clone();
    event.key.push_str(":again");
    let again = Posting {
        id: LedgerEventId::new(posting.at),
        event: &event,
        ..*posting
    };
    post(cx, &again).await.map(drop)
}

/// Writes the balance that was read before the latest change of the account, as a purchase does that reads it outside of
/// its transaction.
pub(super) async fn write_stale(cx: &mut AnyConnection, account: &str) -> Result<(), Error> {
    sqlx::query(
        "UPDATE ledger_accounts SET balance = balance + COALESCE((
             SELECT amount FROM ledger_transfers
             WHERE debit_account = $1 AND debit_seq = ledger_accounts.moves), 0)
         WHERE id = $1 AND side = 'credit'",
    )
    .bind(account)
    .execute(cx)
    .await?;
    Ok(())
}

/// Sets the counters of an owner to what they were before its latest charge, as a charge does that reads them outside of
/// its transaction.
pub(super) async fn write_stale_counter(cx: &mut AnyConnection, owner: &str) -> Result<(), Error> {
    sqlx::query(
        "UPDATE spend_used SET used = used - COALESCE((
             SELECT amount FROM spends WHERE owner = $1 AND (day = period OR month = period)
             ORDER BY event_id DESC LIMIT 1), 0)
         WHERE owner = $1",
    )
    .bind(owner.to_owned())
    .execute(cx)
    .await?;
    Ok(())
}

/// Puts the sales of a release on hold again, so that the next one releases them again.
pub(super) async fn hold_again(cx: &mut AnyConnection, release: &str) -> Result<(), Error> {
    sqlx::query("UPDATE sales SET state = 'held' WHERE release_event = $1")
        .bind(release)
        .execute(cx)
        .await?;
    Ok(())
}
