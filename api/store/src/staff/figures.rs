//! Figures of the service by UTC day.
//!
//! Invariant: a row is what the tables said when the day was counted, never a sum of increments, so counting a day again
//! is harmless and a count that was missed loses nothing.

use types::Timestamp;
use types::money::MicroUsdc;

use super::Staff;
use crate::Error;
use crate::query::{sql, text, tx};
use crate::row::{Columns as _, Row as _, bigint, row};
use crate::writer::Change;

row! {
    /// Figures of a UTC day.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct FigureDay {
        /// Number of the day since 1970.
        pub day: i64,
        /// Accounts of all days when it was counted.
        pub accounts: u64,
        /// Accounts that were made on the day. One whose address nobody confirms is deleted, and counted no more.
        pub sign_ups: u64,
        /// Number of these whose address is confirmed.
        pub confirmed: u64,
        /// Sales for money.
        pub sales: u64,
        /// Prices of the sales that credits paid.
        pub credit: MicroUsdc = "credit_micro",
        /// Prices of the sales that wallets paid.
        pub wallet: MicroUsdc = "wallet_micro",
        /// Fees of these sales.
        pub fee: MicroUsdc = "fee_micro",
        /// Sales for given credits.
        pub trials: u64,
        /// Versions of datasets that were merged.
        pub versions: u64,
        /// Rows that these versions added.
        pub rows: u64 = "rows_merged",
        /// Versions of units that were published.
        pub units: u64,
        /// Time at which the day was counted last.
        pub counted_at: Timestamp,
    }
}

impl Staff<'_> {
    /// Keeps the figures of days in one transaction, each unless a later count of its day is kept.
    pub async fn figures_keep(&self, days: Vec<FigureDay>) -> Result<(), Error> {
        // A count that changed nothing is no transaction.
        if days.is_empty() {
            return Ok(());
        }
        let rows: Vec<[i64; 13]> = days.iter().map(row_of).collect::<Result<_, Error>>()?;
        self.0
            .write_aside(tx!(async move |cx| {
                for row in rows {
                    let mut statement = sql!(
                        "INSERT INTO figures_days (day, accounts, sign_ups, confirmed, sales, credit_micro, wallet_micro,
                                                   fee_micro, trials, versions, rows_merged, units, counted_at)
                         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
                         ON CONFLICT (day) DO UPDATE SET
                             accounts = excluded.accounts, sign_ups = excluded.sign_ups,
                             confirmed = excluded.confirmed, sales = excluded.sales,
                             credit_micro = excluded.credit_micro, wallet_micro = excluded.wallet_micro,
                             fee_micro = excluded.fee_micro, trials = excluded.trials,
                             versions = excluded.versions, rows_merged = excluded.rows_merged,
                             units = excluded.units, counted_at = excluded.counted_at
                         WHERE figures_days.counted_at <= excluded.counted_at"
                    );
                    for value in row {
                        statement = statement.with(value);
                    }
                    statement.run(cx).await?;
                }
                Ok(Change::Keep(()))
            }))
            .await
    }

    /// Counts a day by the indexes of its times.
    pub async fn figures_counted(&self, day: i64, now: Timestamp) -> Result<FigureDay, Error> {
        let (from, to) = (Timestamp::of_day(day), Timestamp::of_day(day + 1));
        self.0
            .read(async {
                let all = sql!("SELECT COUNT(*) AS used FROM operators")
                    .row(&mut self.0.readers())
                    .await?;
                let people = sql!(
                    "SELECT COUNT(*) AS made, COUNT(verified_at) AS confirmed FROM operators
                     WHERE created_at >= $1 AND created_at < $2",
                    from,
                    to
                )
                .row(&mut self.0.readers())
                .await?;
                let money = sql!(
                    "SELECT CAST(COALESCE(SUM(CASE WHEN paid_with <> 'given' THEN 1 ELSE 0 END), 0) AS BIGINT) AS sales,
                            CAST(COALESCE(SUM(CASE WHEN paid_with = 'credits' THEN price ELSE 0 END), 0) AS BIGINT)
                                AS credit,
                            CAST(COALESCE(SUM(CASE WHEN paid_with = 'x402' THEN price ELSE 0 END), 0) AS BIGINT)
                                AS wallet,
                            CAST(COALESCE(SUM(CASE WHEN paid_with <> 'given' THEN fee ELSE 0 END), 0) AS BIGINT) AS fee,
                            CAST(COALESCE(SUM(CASE WHEN paid_with = 'given' THEN 1 ELSE 0 END), 0) AS BIGINT) AS trials
                     FROM sales
                     WHERE sold_at >= $1 AND sold_at < $2 AND state NOT IN ('refunded', 'trial_refunded')",
                    from,
                    to
                )
                .row(&mut self.0.readers())
                .await?;
                let data = sql!(
                    "SELECT COUNT(*) AS versions, CAST(COALESCE(SUM(accepted), 0) AS BIGINT) AS added FROM versions
                     WHERE created_at >= $1 AND created_at < $2",
                    from,
                    to
                )
                .row(&mut self.0.readers())
                .await?;
                let units = sql!(
                    "SELECT CAST(COALESCE(SUM(published), 0) AS BIGINT) AS used FROM points_days WHERE day = $1",
                    day
                )
                .row(&mut self.0.readers())
                .await?;
                Ok(FigureDay {
                    day,
                    accounts: all.get("used")?,
                    sign_ups: people.get("made")?,
                    confirmed: people.get("confirmed")?,
                    sales: money.get("sales")?,
                    credit: money.get("credit")?,
                    wallet: money.get("wallet")?,
                    fee: money.get("fee")?,
                    trials: money.get("trials")?,
                    versions: data.get("versions")?,
                    rows: data.get("added")?,
                    units: units.get("used")?,
                    counted_at: now,
                })
            })
            .await
    }

    /// Returns the figures of the days from `first` on that were counted, oldest first, at most a hundred.
    pub async fn figures(&self, first: i64) -> Result<Vec<FigureDay>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    FigureDay::COLUMNS,
                    " FROM figures_days WHERE day >= $1 ORDER BY day LIMIT 100"
                ),
                first
            ))
            .await
    }
}

/// Returns the values of a row, in the order of its columns.
fn row_of(figures: &FigureDay) -> Result<[i64; 13], Error> {
    Ok([
        figures.day,
        bigint("accounts", figures.accounts)?,
        bigint("sign_ups", figures.sign_ups)?,
        bigint("confirmed", figures.confirmed)?,
        bigint("sales", figures.sales)?,
        figures.credit.0,
        figures.wallet.0,
        figures.fee.0,
        bigint("trials", figures.trials)?,
        bigint("versions", figures.versions)?,
        bigint("rows_merged", figures.rows)?,
        bigint("units", figures.units)?,
        figures.counted_at.micros(),
    ])
}
