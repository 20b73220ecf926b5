//! Proof of the journal in one reading: the seals of days, the movements of events, the steps of accounts.
//!
//! Invariant: everything is read in one snapshot of the database, so what is posted meanwhile breaks no rule.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{AnyConnection, Connection as _};
use types::Timestamp;

use super::MoneyFault;
use crate::Error;
use crate::money::Money;
use crate::money::archive::days;
use crate::money::seals::{ClosedDay, DAY, DayHash, Seal, day_text, values};
use crate::money::steps::{LedgerSteps, MovementStep};
use crate::query::{sql, text};
use crate::row::{Columns as _, Row as _, row};

row! {
    /// Account with its opening.
    #[derive(Debug)]
    struct OpenedAccount {
        id: String,
        moves: i64,
        balance: i64 = "ledger_accounts.balance AS balance",
        opened: i64 = "COALESCE(opening.seq, 0) AS opened",
        opened_balance: i64 = "COALESCE(opening.balance, 0) AS opened_balance",
    }
}

impl Money<'_> {
    /// Proves the journal that is in the database.
    pub(super) async fn journal_holds(&self, faults: &mut Vec<MoneyFault>, limit: u32) -> Result<(), Error> {
        let reading = self.0.read(async {
            let mut connection = self.0.readers().borrow().await?;
            let mut snapshot = connection.begin_with(self.0.engine().begin_snapshot()).await?;
            let mut proof = JournalProof::begin(&mut snapshot).await?;
            proof.walk(&mut snapshot, limit as usize).await?;
            // Nothing was written; the commit only ends the snapshot.
            snapshot.commit().await?;
            connection.done();
            Ok(proof.end(limit as usize))
        });
        faults.extend(reading.await?);
        Ok(())
    }
}

struct JournalProof {
    accounts: Vec<OpenedAccount>,
    seals: BTreeMap<i64, ClosedDay>,
    /// Months whose movements are in files.
    archived: BTreeSet<i64>,
    steps: LedgerSteps,
    faults: Vec<MoneyFault>,
}

impl JournalProof {
    async fn begin(cx: &mut AnyConnection) -> Result<Self, Error> {
        let text = text!(
            "SELECT ",
            OpenedAccount::COLUMNS,
            " FROM ledger_accounts
             LEFT JOIN (SELECT account, MAX(month) AS month FROM ledger_openings GROUP BY account) AS newest
                  ON newest.account = ledger_accounts.id
             LEFT JOIN ledger_openings AS opening
                  ON opening.account = newest.account AND opening.month = newest.month"
        );
        let accounts: Vec<OpenedAccount> = sql!(text).all(cx).await?;
        let mut steps = LedgerSteps::default();
        for account in &accounts {
            steps.begin(account.id.clone(), account.opened);
        }
        let text = text!("SELECT ", Seal::COLUMNS, " FROM ledger_seals WHERE hash IS NOT NULL");
        let seals: Vec<Seal> = sql!(text).all(cx).await?;
        let rows = sql!("SELECT DISTINCT month FROM ledger_openings").rows(cx).await?;
        let archived = rows.iter().map(|row| row.get("month"));
        Ok(Self {
            accounts,
            seals: seals.into_iter().map(|seal| (seal.closed.day, seal.closed)).collect(),
            archived: archived.collect::<Result<_, Error>>()?,
            steps,
            faults: Vec::new(),
        })
    }

    async fn walk(&mut self, cx: &mut AnyConnection, limit: usize) -> Result<(), Error> {
        let next =
            format!("SELECT at / {DAY} AS day FROM ledger_events WHERE at / {DAY} >= $1 ORDER BY at / {DAY} LIMIT 1");
        let mut from = i64::MIN;
        loop {
            let found = sql!(sqlx::AssertSqlSafe(next.clone()), from).row_if_any(cx).await?;
            let Some(found) = found else { break };
            let day: i64 = found.get("day")?;
            let month = Timestamp::of_day(day).month();
            if self.archived.contains(&month) {
                from = days(month).end;
                self.seals.retain(|day, _| Timestamp::of_day(*day).month() != month);
                continue;
            }
            let sealed = self.seals.remove(&day);
            let mut hash = sealed.map(|sealed| DayHash::new(day, &sealed.before));
            self.day(cx, day, hash.as_mut(), limit).await?;
            if sealed.map(|sealed| sealed.hash) != hash.map(|hash| hash.finish()) {
                self.faults.push(MoneyFault::of_day(day, ALTERED));
            }
            from = day.saturating_add(1);
        }
        // Days without an event.
        for (day, sealed) in std::mem::take(&mut self.seals) {
            if DayHash::new(day, &sealed.before).finish() != sealed.hash {
                self.faults.push(MoneyFault::of_day(day, ALTERED));
            }
        }
        Ok(())
    }

    /// Reads a day. A page of its events is in memory at a time.
    async fn day(
        &mut self,
        cx: &mut AnyConnection,
        day: i64,
        mut hash: Option<&mut DayHash>,
        limit: usize,
    ) -> Result<(), Error> {
        let text = day_text();
        let mut last = String::new();
        loop {
            let rows = sql!(sqlx::AssertSqlSafe(text.clone()), day, last).rows(cx).await?;
            let Some(end) = rows.last() else { return Ok(()) };
            last = end.get("id")?;
            for row in &rows {
                let (texts, numbers) = values(row)?;
                if let Some(hash) = &mut hash {
                    hash.add(texts, numbers);
                }
                let [id, _, kind, _, _, _, debit, credit] = texts;
                let [_, line, amount, debit_seq, debit_after, credit_seq, credit_after] = numbers;
                if line >= 0 {
                    self.steps.add(&MovementStep {
                        kind,
                        amount,
                        debit: (debit, debit_seq, debit_after),
                        credit: (credit, credit_seq, credit_after),
                    });
                } else if self.faults.len() < limit {
                    self.faults.push(MoneyFault {
                        rule: "M1",
                        subject: id.to_owned(),
                        problem: "the event has no movement",
                    });
                }
            }
        }
    }

    fn end(mut self, limit: usize) -> Vec<MoneyFault> {
        let broken = self.accounts.iter().filter(|account| {
            let from = (account.opened, account.opened_balance);
            !self.steps.lead(&account.id, from, (account.moves, account.balance))
        });
        let broken = broken.take(limit).map(|account| MoneyFault {
            rule: "M2",
            subject: account.id.clone(),
            problem: "the movements of the account do not lead to its balance step by step",
        });
        self.faults.extend(broken);
        self.faults.extend(self.steps.take_odd_shapes());
        self.faults
    }
}

/// Fault of a sealed day.
const ALTERED: &str = "the movements of the day are not those that were sealed";
