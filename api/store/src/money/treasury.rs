//! The treasury: what the books say of it, and what the platform itself pays into it.
//!
//! Invariant: a transaction is booked once, as a purchase or as a deposit.

use pay::{Account, Event};
use sqlx::AnyConnection;
use types::money::MicroUsdc;
use types::{LedgerEventId, Timestamp};

use super::post::{Posted, Posting, locked_balance, post};
use super::{Money, MoneyFault};
use crate::Error;
use crate::query::{sql, tx};
use crate::row::row;
use crate::writer::Change;

row! {
    /// Sums of the books about the treasury of an asset.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Treasury {
        /// Balance of the account.
        pub balance: MicroUsdc,
        /// Sum of all payouts and refunds that were paid.
        pub paid: MicroUsdc,
        /// Sum of those that may have been paid and are not booked.
        pub under_way: MicroUsdc,
    }
}

impl Treasury {
    /// Returns the fault of a wallet that has less than the books say. The books were read before its balance, and again
    /// after it, so that payouts that were made meanwhile are no fault. More than the books say is none either: what
    /// somebody sends is booked once an administrator says so.
    pub fn fault(self, wallet: u64, after: Self) -> Option<MoneyFault> {
        // Wider than the sums, because a difference of two can pass the bounds of one.
        let left = i128::from(self.balance.0) - i128::from(after.paid.0 - self.paid.0) - i128::from(after.under_way.0);
        (i128::from(wallet) < left).then(|| MoneyFault {
            rule: "M13",
            subject: format!("treasury of {wallet}, {left} by the books"),
            problem: "the treasury has less on the chain than the books say",
        })
    }
}

/// Deposit of the platform.
#[derive(Clone, Debug)]
pub struct NewDeposit {
    /// Transaction that moved it to the treasury.
    pub transaction: String,
    /// Asset of the ledger.
    pub asset: String,
    /// Amount, more than zero.
    pub amount: MicroUsdc,
    /// Ids of the two events.
    pub events: [LedgerEventId; 2],
    /// Time of the booking.
    pub now: Timestamp,
}

impl Money<'_> {
    /// Returns what the books say of the treasury.
    pub async fn treasury(&self, asset: &str) -> Result<Treasury, Error> {
        self.0
            .one(sql!(
                "SELECT (SELECT CAST(COALESCE(SUM(balance), 0) AS BIGINT) FROM ledger_accounts
                  WHERE asset = $1 AND kind = 'treasury') AS balance,
                 (SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM payouts
                  WHERE asset = $1 AND state = 'done') AS paid,
                 (SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM payouts
                  WHERE asset = $1 AND state IN ('sending', 'unknown')) AS under_way",
                asset
            ))
            .await
    }

    /// Books what the platform sent to the treasury: it backs granted credits, and what is beyond those stays without a
    /// place. Returns false if the transaction was booked before.
    ///
    /// # Errors
    /// [`Error::Range`] for an amount of zero or less, or one that the books cannot hold.
    pub async fn deposit(&self, new: NewDeposit) -> Result<bool, Error> {
        self.0
            .write_aside(tx!(async move |cx| { deposit(cx, &new).await }))
            .await
    }
}

async fn deposit(cx: &mut AnyConnection, new: &NewDeposit) -> Result<Change<bool>, Error> {
    let range = || Error::Range {
        column: "amount",
        value: new.amount.0.unsigned_abs(),
    };
    if new.amount.0 <= 0 {
        return Err(range());
    }
    // A purchase that came by this transaction was booked as one, and its amount is somebody's already.
    let paid = sql!(
        "SELECT id FROM payments WHERE transaction_hash = $1 LIMIT 1",
        new.transaction.as_str()
    )
    .row_if_any(cx)
    .await?;
    if paid.is_some() {
        return Ok(Change::Undo(false));
    }
    // Granted credits are owed to sellers once they are spent, so a deposit backs those first.
    let mut events = vec![Event::unmatched(&new.transaction, new.amount)];
    let granted = locked_balance(cx, &new.asset, Account::SUBSIDY).await?;
    if granted > 0 {
        let amount = MicroUsdc(granted.min(new.amount.0));
        events.push(Event::assigned_to_platform(&new.transaction, amount));
    }
    for (event, id) in events.iter().zip(new.events) {
        let posting = Posting {
            id,
            asset: &new.asset,
            event,
            at: new.now,
            subject: &new.transaction,
            actor: "",
        };
        match post(cx, &posting).await? {
            Posted::Done => {}
            // Two administrators can book one transaction at once; the key of the event lets one of them in.
            Posted::Repeated => return Ok(Change::Undo(false)),
            Posted::Short(_) | Posted::Full(_) => return Err(range()),
        }
    }
    Ok(Change::Keep(true))
}
