//! Checks of the ledger and of everything that follows from it.
//!
//! Invariant: read only. Each rule has a number that never changes, and names what breaks it.

mod journal;
mod statements;

use std::collections::BTreeMap;
use std::time::Duration;

use pay::{AccountKind, AccountSide, BLOCK_BYTES, Brackets, DEFAULT_DATASET_PRICE, UNIT_DEFAULT};
use types::Timestamp;
use types::money::MicroUsdc;

use self::statements::{BALANCES, STATEMENTS, TIMED};
use super::Money;
use crate::Error;
use crate::query::sql;
use crate::row::{Columns, bigint};

/// Broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoneyFault {
    /// Number of the rule, such as `M3`.
    pub rule: &'static str,
    /// Account, sale, event or other thing that breaks it.
    pub subject: String,
    /// Description of the fault.
    pub problem: &'static str,
}

impl MoneyFault {
    /// Creates a fault of the seal of a UTC day, counted from 1970-01-01.
    pub fn of_day(day: i64, problem: &'static str) -> Self {
        let text = Timestamp::of_day(day).to_string();
        Self {
            rule: "M4",
            subject: text.split('T').next().unwrap_or(&text).to_owned(),
            problem,
        }
    }
}

/// Facts that the rules need beside the database.
#[derive(Clone, Copy, Debug)]
pub struct CheckTerms {
    /// Number of free bytes of egress of an operator in a month.
    pub free_egress: u64,
    /// Time for which a price that has changed is still taken.
    pub quote_window: Duration,
    /// Time of the check.
    pub now: Timestamp,
}

impl CheckTerms {
    /// Returns a statement of [`TIMED`] with its values.
    fn fill(&self, text: &str) -> String {
        let micros = |span: Duration| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        [
            (":now", self.now.micros()),
            (":forgotten", micros(FORGOTTEN)),
            (":quoted", micros(self.quote_window)),
            (":skew", micros(SKEW)),
            (":unit", UNIT_DEFAULT.0),
            (":dataset", DEFAULT_DATASET_PRICE.0),
        ]
        .into_iter()
        .fold(text.to_owned(), |text, (name, value)| {
            text.replace(name, &value.to_string())
        })
    }
}

/// Time after which a payment that nobody looks at is forgotten.
const FORGOTTEN: Duration = Duration::from_hours(1);
/// Time by which the clocks of two replicas may differ.
const SKEW: Duration = Duration::from_mins(1);

impl Money<'_> {
    /// Returns what breaks a rule, up to `limit` subjects of each. The treasury is compared with the chain by
    /// [`Treasury::fault`](super::Treasury::fault).
    pub async fn faults(&self, terms: CheckTerms, limit: u32) -> Result<Vec<MoneyFault>, Error> {
        let mut faults = Vec::new();
        for (rule, problem, text) in STATEMENTS {
            // The limit is a number of the program; everything else is constant text, so the statement
            // is safe.
            self.collect(&mut faults, rule, problem, &format!("{text} LIMIT {limit}"))
                .await?;
        }
        for (rule, problem, text) in TIMED {
            let text = terms.fill(text);
            self.collect(&mut faults, rule, problem, &format!("{text} LIMIT {limit}"))
                .await?;
        }
        self.journal_holds(&mut faults, limit).await?;
        self.sums(&mut faults).await?;
        self.chain_of_seals(&mut faults, limit).await?;
        self.fees(&mut faults, limit).await?;
        for (rule, kind, balance) in BALANCES {
            let text = format!(
                "SELECT id AS subject FROM ledger_accounts
                 WHERE kind = '{kind}' AND balance <> {balance} LIMIT {limit}"
            );
            let problem = "the balance is not the sum of the sales and payouts that it is for";
            self.collect(&mut faults, rule, problem, &text).await?;
        }
        let free = bigint("leased", terms.free_egress)?;
        let text = format!(
            "SELECT account AS subject FROM egress_months
             WHERE account LIKE 'op:%' AND leased > {free} + paid_blocks * {BLOCK_BYTES} LIMIT {limit}"
        );
        self.collect(
            &mut faults,
            "M16",
            "more bytes are leased than are free and paid",
            &text,
        )
        .await?;
        Ok(faults)
    }

    pub(super) async fn collect(
        &self,
        faults: &mut Vec<MoneyFault>,
        rule: &'static str,
        problem: &'static str,
        text: &str,
    ) -> Result<(), Error> {
        let text = sqlx::AssertSqlSafe(text.to_owned());
        let found = self.0.read(async {
            let rows = sql!(text).rows(&mut self.0.readers()).await?;
            rows.iter()
                .map(|row| {
                    Ok(MoneyFault {
                        rule,
                        subject: row.get("subject")?,
                        problem,
                    })
                })
                .collect::<Result<Vec<_>, Error>>()
        });
        faults.extend(found.await?);
        Ok(())
    }

    /// Checks that what the platform has is what it owes and has earned, in each asset.
    async fn sums(&self, faults: &mut Vec<MoneyFault>) -> Result<(), Error> {
        let balances: Vec<(String, String, i64)> = self
            .0
            .read(async {
                let rows = sql!(
                    "SELECT asset, kind, CAST(SUM(balance) AS BIGINT) AS balance FROM ledger_accounts
                     GROUP BY asset, kind"
                )
                .rows(&mut self.0.readers())
                .await?;
                rows.iter()
                    .map(|row| Ok((row.get("asset")?, row.get("kind")?, row.get("balance")?)))
                    .collect::<Result<Vec<_>, Error>>()
            })
            .await?;
        // In 128 bits, since the sum over all operators may exceed what one account can hold.
        let mut sums: BTreeMap<String, (i128, i128)> = BTreeMap::new();
        for (asset, word, balance) in balances {
            let (money, given) = sums.entry(asset).or_default();
            match AccountKind::parse(&word) {
                // Given credits have a circle of their own. Counted together, an error in them could
                // hide one of money.
                Some(AccountKind::GivenSource) => *given += i128::from(balance),
                Some(AccountKind::Given) => *given -= i128::from(balance),
                Some(kind) if kind.side() == AccountSide::Debit => *money += i128::from(balance),
                _ => *money -= i128::from(balance),
            }
        }
        for (asset, (money, given)) in sums {
            if money != 0 || given != 0 {
                faults.push(MoneyFault {
                    rule: "M3",
                    subject: asset,
                    problem: "what the platform has is not what it owes and has earned",
                });
            }
        }
        Ok(())
    }

    /// Computes fee and share of every sale again.
    async fn fees(&self, faults: &mut Vec<MoneyFault>, limit: u32) -> Result<(), Error> {
        let prices: Vec<(i64, i64, i64, String)> = self
            .0
            .read(async {
                let rows =
                    sql!("SELECT DISTINCT price, fee, share, fee_brackets FROM sales WHERE paid_with <> 'given'")
                        .rows(&mut self.0.readers())
                        .await?;
                rows.iter()
                    .map(|row| {
                        Ok((
                            row.get("price")?,
                            row.get("fee")?,
                            row.get("share")?,
                            row.get("fee_brackets")?,
                        ))
                    })
                    .collect::<Result<Vec<_>, Error>>()
            })
            .await?;
        // By the brackets that were stored with the sale: the fee of the configuration may have changed
        // since.
        let wrong = prices.into_iter().filter(|(price, fee, share, brackets)| {
            let split = brackets.parse::<Brackets>().map(|set| set.split(MicroUsdc(*price)));
            !split.is_ok_and(|split| (split.fee.0, split.share.0) == (*fee, *share))
        });
        faults.extend(wrong.take(limit as usize).map(|(price, fee, _, _)| MoneyFault {
            rule: "M5",
            subject: format!("price {price}, fee {fee}"),
            problem: "the fee is not the one of the brackets",
        }));
        Ok(())
    }
}
