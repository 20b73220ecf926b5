//! The built-in test ledger: balances of wallets and the nonces that were used.
//!
//! Invariant: a nonce is used in the transaction that moves the balance, once. These tables stand for a chain, so
//! nothing else changes with them.

use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use types::Timestamp;

use crate::counters;
use crate::query::{sql, tx};
use crate::row::Columns;
use crate::writer::Change;
use crate::{Error, Event, Store};

/// A transfer of the built-in ledger.
#[derive(Clone, Debug)]
pub struct WalletTransfer {
    /// Wallet that pays.
    pub from: String,
    /// Wallet that is paid.
    pub to: String,
    /// Amount in micro-USDC.
    pub amount: i64,
    /// Nonce that is used.
    pub nonce: String,
    /// Name of the transaction.
    pub transaction: String,
    /// Time of the transfer.
    pub now: Timestamp,
}

/// End of a nonce on the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WalletSpent {
    /// It was used by this transaction.
    Used(String),
    /// It was cancelled.
    Cancelled,
}

/// Outcome of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WalletMoved {
    /// The transfer was made.
    Done,
    /// The nonce was used or cancelled before.
    Spent(WalletSpent),
    /// The balance does not cover it.
    Short,
}

/// Test USDC for a wallet, out of nothing.
#[derive(Clone, Debug)]
pub struct WalletGift {
    /// Wallet that gets it.
    pub wallet: String,
    /// Amount in micro-USDC.
    pub amount: i64,
    /// Limits that the gift counts for, each with the greatest count of its window. Gifts that share limits name them
    /// in the same order, so that no two transactions deadlock.
    pub counted: Vec<(Event, u32)>,
}

/// Outcome of [`Wallets::gift`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum WalletGiven {
    /// The wallet has it.
    Given {
        /// Balance after it, in micro-USDC.
        balance: i64,
    },
    /// A limit would be passed: nothing was given, and nothing counted.
    Refused {
        /// Name of that limit.
        rule: &'static str,
        /// Test USDC that the limit still allows.
        left: u32,
    },
}

/// The part of the database that stands for a chain.
#[derive(Clone, Copy, Debug)]
pub struct Wallets<'s>(pub(crate) &'s Store);

impl Store {
    /// Returns the part of the database that stands for a chain.
    pub const fn wallets(&self) -> Wallets<'_> {
        Wallets(self)
    }
}

impl Wallets<'_> {
    /// Returns the balance of a wallet; 0 for one that is not known.
    pub async fn balance(&self, wallet: &str) -> Result<i64, Error> {
        self.0
            .read(async {
                let balance: Option<i64> = sql!("SELECT balance FROM test_wallets WHERE address = $1", wallet)
                    .scalar_if_any(&mut self.0.readers())
                    .await?;
                Ok(balance.unwrap_or(0))
            })
            .await
    }

    /// Returns what became of a nonce; `None` if nothing did.
    pub async fn spent(&self, wallet: &str, nonce: &str) -> Result<Option<WalletSpent>, Error> {
        self.0
            .read(async {
                let row = sql!(
                    "SELECT kind, transaction_hash FROM test_authorizations WHERE address = $1 AND nonce = $2",
                    wallet,
                    nonce
                )
                .row_if_any(&mut self.0.readers())
                .await?;
                row.as_ref().map(spent).transpose()
            })
            .await
    }

    /// Adds test money to a wallet.
    pub async fn give(&self, wallet: &str, amount: i64) -> Result<(), Error> {
        let wallet = wallet.to_owned();
        self.0
            .write_aside(tx!(async move |cx| {
                add(cx, &wallet, amount).await?;
                Ok(Change::Keep(()))
            }))
            .await
    }

    /// Gives an amount to a wallet within all of its counts, or nothing.
    pub async fn gift(&self, gift: WalletGift) -> Result<WalletGiven, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                // The counts and the amount change together, so that a crash neither gives beyond a count nor takes
                // of one without giving.
                for (event, most) in &gift.counted {
                    let left = most.saturating_sub(counters::counted(cx, event).await?.used);
                    if event.count > left {
                        let rule = event.rule;
                        return Ok(Change::Undo(WalletGiven::Refused { rule, left }));
                    }
                    counters::count(cx, event).await?;
                }
                add(cx, &gift.wallet, gift.amount).await?;
                let balance: i64 = sql!(
                    "SELECT balance FROM test_wallets WHERE address = $1",
                    gift.wallet.clone()
                )
                .scalar(cx)
                .await?;
                Ok(Change::Keep(WalletGiven::Given { balance }))
            }))
            .await
    }

    /// Uses a nonce and moves an amount.
    pub async fn transfer(&self, transfer: WalletTransfer) -> Result<WalletMoved, Error> {
        self.0
            .write_aside(tx!(async move |cx| { move_once(cx, &transfer).await }))
            .await
    }

    /// Cancels a nonce. Returns false if it was used or cancelled before.
    pub async fn cancel(&self, wallet: &str, nonce: &str, now: Timestamp) -> Result<bool, Error> {
        let (wallet, nonce) = (wallet.to_owned(), nonce.to_owned());
        self.0
            .write_aside(tx!(async move |cx| {
                // The nonce is used first. Its key is the lock between two settlements of one
                // authorization, as the nonce is on a chain.
                let inserted = sql!(
                    "INSERT INTO test_authorizations (address, nonce, kind, transaction_hash, at)
                     VALUES ($1, $2, 'cancelled', NULL, $3) ON CONFLICT DO NOTHING",
                    wallet,
                    nonce,
                    now
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(inserted > 0))
            }))
            .await
    }
}

async fn move_once(cx: &mut AnyConnection, transfer: &WalletTransfer) -> Result<Change<WalletMoved>, Error> {
    let inserted = sql!(
        "INSERT INTO test_authorizations (address, nonce, kind, transaction_hash, at) VALUES ($1, $2, 'used', $3, $4)
         ON CONFLICT DO NOTHING",
        transfer.from.clone(),
        transfer.nonce.clone(),
        transfer.transaction.clone(),
        transfer.now
    )
    .run(cx)
    .await?;
    if inserted == 0 {
        let row = sql!(
            "SELECT kind, transaction_hash FROM test_authorizations WHERE address = $1 AND nonce = $2",
            transfer.from.clone(),
            transfer.nonce.clone()
        )
        .row(cx)
        .await?;
        return Ok(Change::Undo(WalletMoved::Spent(spent(&row)?)));
    }
    // The condition keeps the balance from falling below zero, also if two transfers read the same
    // balance.
    let taken = sql!(
        "UPDATE test_wallets SET balance = balance - $2 WHERE address = $1 AND balance >= $2",
        transfer.from.clone(),
        transfer.amount
    )
    .run(cx)
    .await?;
    if taken == 0 {
        return Ok(Change::Undo(WalletMoved::Short));
    }
    add(cx, &transfer.to, transfer.amount).await?;
    Ok(Change::Keep(WalletMoved::Done))
}

async fn add(cx: &mut AnyConnection, wallet: &str, amount: i64) -> Result<(), Error> {
    sql!(
        "INSERT INTO test_wallets (address, balance) VALUES ($1, $2)
         ON CONFLICT (address) DO UPDATE SET balance = test_wallets.balance + excluded.balance",
        wallet,
        amount
    )
    .run(cx)
    .await?;
    Ok(())
}

fn spent(row: &AnyRow) -> Result<WalletSpent, Error> {
    let transaction: Option<String> = row.get("transaction_hash")?;
    Ok(transaction.map_or(WalletSpent::Cancelled, WalletSpent::Used))
}
