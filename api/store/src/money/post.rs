//! Posting of an event: the one place that changes balances.
//!
//! Invariant: each account of an event is updated once, in the order of kinds, and the updated row gives the balances
//! and numbers of the movements. An event of a kind and key is posted once.

use std::collections::BTreeMap;

use pay::{Account, Event};
use sqlx::AnyConnection;
use types::{LedgerEventId, Timestamp, mutate};

use super::seals::open_time;
use crate::Error;
use crate::query::{sql, text};
use crate::row::{Columns, Row as _, row};

/// Event to post.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posting<'a> {
    pub(crate) id: LedgerEventId,
    /// Asset of the ledger.
    pub(crate) asset: &'a str,
    pub(crate) event: &'a Event,
    /// Time of the event, by the clock. It is posted at a later one if the day is closed.
    pub(crate) at: Timestamp,
    /// Item, sale or reference of the event.
    pub(crate) subject: &'a str,
    /// Agent that acted; empty if none did.
    pub(crate) actor: &'a str,
}

/// Result of [`post`]. After another result than `Done` the change must be undone, unless it wrote nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Posted {
    /// The event and its movements are written.
    Done,
    /// An event of this kind and key exists; nothing was written.
    Repeated,
    /// An account does not cover its movements.
    Short(Account),
    /// An account cannot hold its balance.
    Full(Account),
}

row! {
    /// Balance and number of movements of an account.
    #[derive(Clone, Copy, Debug)]
    struct Balance {
        balance: i64,
        seq: i64 = "moves",
    }
}

/// Writes an event with its movements and changes the balances.
pub(crate) async fn post(cx: &mut AnyConnection, posting: &Posting<'_>) -> Result<Posted, Error> {
    let Posting { event, asset, .. } = *posting;
    if event.lines.is_empty() {
        // An event without a movement would prove nothing.
        return Err(Error::Range {
            column: "amount",
            value: 0,
        });
    }
    let at = open_time(cx, posting.at).await?;
    let id = posting.id.to_string();
    let added = sql!(
        "INSERT INTO ledger_events (id, asset, kind, key, at, month, subject, actor)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (kind, key) DO NOTHING",
        id.as_str(),
        asset,
        event.kind.as_str(),
        event.key.as_str(),
        at,
        at.month(),
        posting.subject,
        posting.actor
    )
    .run(cx)
    .await?;
    // The unique key of kind and key makes a repeated event a no-op, whatever its caller does not know
    // of the first attempt.
    if added == 0 {
        return Ok(Posted::Repeated);
    }
    // Sorted by kind, so that two events lock their accounts in the same order.
    let mut moves: BTreeMap<Account, (i64, i64)> = BTreeMap::new();
    for line in &event.lines {
        for account in [line.debit, line.credit] {
            let (sum, number) = moves.entry(account).or_default();
            *sum += line.effect(account);
            *number += 1;
        }
    }
    let mut running: BTreeMap<Account, Balance> = BTreeMap::new();
    // Every account is touched once, with the sum of its movements: a second update of one row would
    // find the balance of the first, and an account may go below zero in between although the event as
    // a whole covers it.
    for (account, (sum, number)) in moves {
        let Some(after) = adjust_balance(cx, asset, account, sum, number, at).await? else {
            return Ok(if sum < 0 {
                Posted::Short(account)
            } else {
                Posted::Full(account)
            });
        };
        running.insert(
            account,
            Balance {
                // The returned row has the balance after the event. The balances after each movement
                // are counted forward from where the row was before, still under its lock.
                balance: after.balance - sum,
                seq: after.seq - number,
            },
        );
    }
    for (number, line) in (0_i64..).zip(&event.lines) {
        let mut step = |account: Account| {
            let at = running.entry(account).or_insert(Balance { balance: 0, seq: 0 });
            at.balance += line.effect(account);
            at.seq += 1;
            *at
        };
        let (debit, credit) = (step(line.debit), step(line.credit));
        sql!(
            "INSERT INTO ledger_transfers
                 (event_id, line, amount, debit_account, debit_seq, debit_after, credit_account, credit_seq,
                  credit_after, month)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            id.as_str(),
            number,
            line.amount.0,
            line.debit.id(asset),
            debit.seq,
            debit.balance,
            line.credit.id(asset),
            credit.seq,
            credit.balance,
            at.month()
        )
        .run(cx)
        .await?;
    }
    Ok(Posted::Done)
}

/// Adds to a balance. Returns what the account has then, or `None` if the balance would be below zero or too large.
async fn adjust_balance(
    cx: &mut AnyConnection,
    asset: &str,
    account: Account,
    sum: i64,
    number: i64,
    now: Timestamp,
) -> Result<Option<Balance>, Error> {
    let id = account.id(asset);
    let row = if sum < 0 {
        mutate!(Bug::StaleBalance => super::faults::write_stale(cx, &id).await?);
        // The condition is evaluated on the locked row, so nobody spends a balance twice.
        sql!(
            text!(
                "UPDATE ledger_accounts SET balance = balance + $2, moves = moves + $3, updated_at = $4
                 WHERE id = $1 AND balance + $2 >= 0 RETURNING ",
                Balance::COLUMNS
            ),
            id,
            sum,
            number,
            now
        )
        .row_if_any(cx)
        .await?
    } else {
        sql!(
            text!(
                "INSERT INTO ledger_accounts (id, asset, kind, operator_id, side, balance, moves, updated_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                 ON CONFLICT (id) DO UPDATE SET
                     balance = ledger_accounts.balance + excluded.balance, moves = ledger_accounts.moves + excluded.moves,
                     updated_at = excluded.updated_at
                 WHERE ledger_accounts.balance <= 9223372036854775807 - excluded.balance
                 RETURNING ",
                Balance::COLUMNS
            ),
            id,
            asset,
            account.kind().as_str(),
            account.operator(),
            account.kind().side().as_str(),
            sum,
            number,
            now
        )
        .row_if_any(cx)
        .await?
    };
    row.map(|row| Balance::of(&row)).transpose()
}

/// Returns the balance of an account and keeps it from changing until the transaction ends.
pub(crate) async fn locked_balance(cx: &mut AnyConnection, asset: &str, account: Account) -> Result<i64, Error> {
    // A write that changes nothing takes the lock of the row on both engines; SQLite has no `FOR
    // UPDATE`.
    let row = sql!(
        "UPDATE ledger_accounts SET moves = moves WHERE id = $1 RETURNING balance",
        account.id(asset)
    )
    .row_if_any(cx)
    .await?;
    row.map_or(Ok(0), |row| row.get("balance"))
}
