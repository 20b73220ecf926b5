//! Archive of the ledger: movements of whole months leave the database for files.
//!
//! Invariants:
//! - The movements of a month are deleted in the transaction that stores the opening of each of their accounts, and only
//!   if the month is sealed to its last day. Months are archived one after the other, the oldest first.
//! - The rows of events stay, because their keys make events unique. With the movements of a file they give the hashes that
//!   were sealed.

use std::collections::{BTreeMap, HashMap};
use std::iter::Peekable;
use std::ops::Range;

use pay::AccountSide;
use sqlx::Executor as _;
use types::Timestamp;

use super::seals::{DAY, DayHash, EVENTS, Seal};
use super::steps::{LedgerSteps, MovementStep};
use super::{Money, MoneyFault};
use crate::Error;
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, row};
use crate::writer::Change;

/// Days of the longest month.
const MONTH_DAYS: u32 = 31;

row! {
    /// Movement of the ledger as it is archived.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct LedgerMovement {
        /// Id of its event.
        pub event: String = "ledger_transfers.event_id AS event",
        /// Number of the movement in its event, from 0.
        pub line: i64,
        /// Amount in micro-USDC.
        pub amount: i64,
        /// Account that is debited.
        pub debit_account: String,
        /// Number of the movement in that account.
        pub debit_seq: i64,
        /// Balance of that account after it.
        pub debit_after: i64,
        /// Account that is credited.
        pub credit_account: String,
        /// Number of the movement in that account.
        pub credit_seq: i64,
        /// Balance of that account after it.
        pub credit_after: i64,
    }
}

row! {
    /// Event of an archived month.
    #[derive(Debug)]
    struct ArchivedEvent {
        id: String,
        asset: String,
        kind: String,
        key: String,
        at: i64,
        subject: String,
        actor: String,
        /// Price of its sale, if it is of one.
        price: Option<i64> = "CASE WHEN kind IN ('sale', 'trial_sale')
                                   THEN (SELECT price FROM sales WHERE sales.id = ledger_events.key) END AS price",
    }
}

row! {
    /// Opening of an account.
    #[derive(Debug)]
    struct Opening {
        account: String,
        seq: i64,
        balance: i64,
    }
}

row! {
    /// Movement with a lower number than the last archived one of its account.
    #[derive(Debug)]
    struct EarlyMovement {
        account: String,
        seq: i64,
        after: i64,
        amount: i64,
    }
}

/// Newest opening of each account.
const NEWEST: &str = "(SELECT ledger_openings.account AS account, MAX(ledger_openings.seq) AS top
                       FROM ledger_openings GROUP BY ledger_openings.account) AS opening";

/// Debits with a lower number than the last archived movement of their account.
const EARLY_DEBITS: &str = text!(
    "SELECT opening.account AS account, debit_seq AS seq, debit_after AS after, amount FROM ",
    NEWEST,
    " CROSS JOIN ledger_transfers WHERE debit_account = opening.account AND debit_seq <= opening.top"
);

/// Credits with a lower number than the last archived movement of their account.
const EARLY_CREDITS: &str = text!(
    "SELECT opening.account AS account, credit_seq AS seq, credit_after AS after, amount FROM ",
    NEWEST,
    " CROSS JOIN ledger_transfers WHERE credit_account = opening.account AND credit_seq <= opening.top"
);

/// Result of [`Money::archive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MonthArchived {
    /// So many movements were deleted.
    Archived(u64),
    /// The month was archived before.
    Before,
    /// The month is not sealed to its last day.
    Unsealed,
}

/// Steps of the archived months, account by account.
#[derive(Debug, Default)]
pub struct ArchiveProof {
    steps: LedgerSteps,
    lasts: HashMap<String, ArchivedLast>,
}

/// Last archived movement of an account.
#[derive(Clone, Copy, Debug, Default)]
struct ArchivedLast {
    seq: i64,
    /// Balance after it.
    balance: i64,
    /// Newest month with a movement of the account.
    month: i64,
}

impl ArchiveProof {
    fn add(&mut self, kind: &str, movement: &LedgerMovement, month: i64) {
        let debit = (
            movement.debit_account.as_str(),
            movement.debit_seq,
            movement.debit_after,
        );
        let credit = (
            movement.credit_account.as_str(),
            movement.credit_seq,
            movement.credit_after,
        );
        self.steps.add(&MovementStep {
            kind,
            amount: movement.amount,
            debit,
            credit,
        });
        for (account, seq, balance) in [debit, credit] {
            let last = self.lasts.entry(account.to_owned()).or_default();
            if seq > last.seq {
                (last.seq, last.balance) = (seq, balance);
            }
            last.month = month;
        }
    }
}

/// Returns the UTC days of a month.
pub(super) fn days(month: i64) -> Range<i64> {
    let begin = Timestamp::of_month(month);
    begin.day()..begin.next_month().day()
}

impl Money<'_> {
    /// Returns the oldest month that has events and is not archived.
    ///
    /// # Errors
    /// A database that does not answer.
    pub async fn next_to_archive(&self) -> Result<Option<i64>, Error> {
        let archived = self.archived_months().await?.last().copied();
        let from = archived.map_or(i64::MIN, |month| days(month).end);
        let reading = self.0.read(async {
            let text = format!(
                "SELECT at / {DAY} AS day FROM ledger_events WHERE at / {DAY} >= $1 ORDER BY at / {DAY} LIMIT 1"
            );
            let row = sql!(sqlx::AssertSqlSafe(text), from)
                .row_if_any(&mut self.0.readers())
                .await?;
            row.map(|row| row.get("day")).transpose()
        });
        let day: Option<i64> = reading.await?;
        Ok(day.map(|day| Timestamp::of_day(day).month()))
    }

    /// Returns the seals of a month, if it is sealed to its last day.
    ///
    /// # Errors
    /// A database that does not answer.
    pub async fn month_seals(&self, month: i64) -> Result<Option<Vec<Seal>>, Error> {
        let days = days(month);
        let mut seals = self.seals(days.start - 1, MONTH_DAYS).await?;
        seals.retain(|seal| seal.closed.day < days.end);
        // Days have no gap, so a month whose last day is sealed is sealed.
        Ok(Some(seals).filter(|seals| seals.last().is_some_and(|last| last.closed.day == days.end - 1)))
    }

    /// Returns movements of a day in the order of (event, line): those of the next events after the event `after`, and the
    /// last of these events. `None` for it at the end of the day.
    ///
    /// # Errors
    /// A database that does not answer.
    pub async fn day_movements(&self, day: i64, after: &str) -> Result<(Vec<LedgerMovement>, Option<String>), Error> {
        let reading = self.0.read(async {
            let text = format!(
                "SELECT paged.id AS id, {} FROM (SELECT id FROM ledger_events
                        WHERE at / {DAY} = $1 AND id > $2 ORDER BY id LIMIT {EVENTS}) AS paged
                 LEFT JOIN ledger_transfers ON ledger_transfers.event_id = paged.id ORDER BY paged.id, line",
                LedgerMovement::COLUMNS
            );
            let rows = sql!(sqlx::AssertSqlSafe(text), day, after.to_owned())
                .rows(&mut self.0.readers())
                .await?;
            let mut movements = Vec::with_capacity(rows.len());
            for row in &rows {
                // An event that lost its movements has a row too, so that the page goes on behind it.
                if row.get::<Option<i64>>("line")?.is_some() {
                    movements.push(LedgerMovement::of(row)?);
                }
            }
            let last = rows.last().map(|row| row.get("id")).transpose()?;
            Ok((movements, last))
        });
        reading.await
    }

    /// Stores the openings of a month and deletes its movements. The file of the month must be durable and checked.
    ///
    /// # Errors
    /// A database that does not answer. Then it is not known if the month is archived, and the call can be repeated.
    pub async fn archive(&self, month: i64) -> Result<MonthArchived, Error> {
        let days = days(month);
        let of_month = format!(
            "event_id IN (SELECT id FROM ledger_events WHERE at / {DAY} >= {} AND at / {DAY} < {})",
            days.start, days.end
        );
        // Near midnight a movement of the next month may have a lower number than one of this month, so the newest
        // opening may be ahead of both.
        let open = format!(
            "INSERT INTO ledger_openings (account, month, seq, balance)
             WITH moved AS (
                 SELECT debit_account AS account, debit_seq AS seq, debit_after AS after
                 FROM ledger_transfers WHERE {of_month}
                 UNION ALL
                 SELECT credit_account, credit_seq, credit_after FROM ledger_transfers WHERE {of_month}),
             touched AS (SELECT DISTINCT account FROM moved),
             known AS (
                 SELECT account, seq, after FROM moved
                 UNION
                 SELECT ledger_openings.account, ledger_openings.seq, ledger_openings.balance
                 FROM ledger_openings JOIN touched ON touched.account = ledger_openings.account),
             tops AS (SELECT account, MAX(seq) AS seq FROM known GROUP BY account)
             SELECT known.account, CAST($1 AS BIGINT), known.seq, known.after
             FROM known JOIN tops ON tops.account = known.account AND tops.seq = known.seq"
        );
        let delete = format!("DELETE FROM ledger_transfers WHERE {of_month}");
        let last = days.end - 1;
        let lock = self.0.engine().lock_out_writers("ledger_openings");
        let archiving = self.0.write_aside(tx!(async move |cx| {
            if let Some(lock) = lock {
                cx.execute(sqlx::AssertSqlSafe(lock)).await?;
            }
            let before = sql!("SELECT month FROM ledger_openings WHERE month >= $1 LIMIT 1", month);
            if before.row_if_any(cx).await?.is_some() {
                return Ok(Change::Nothing(MonthArchived::Before));
            }
            let sealed = sql!("SELECT day FROM ledger_seals WHERE day = $1 AND hash IS NOT NULL", last);
            if sealed.row_if_any(cx).await?.is_none() {
                return Ok(Change::Nothing(MonthArchived::Unsealed));
            }
            sql!(sqlx::AssertSqlSafe(open), month).run(cx).await?;
            let deleted = sql!(sqlx::AssertSqlSafe(delete)).run(cx).await?;
            Ok(Change::Keep(MonthArchived::Archived(deleted)))
        }));
        archiving.await
    }

    /// Returns the archived months that had movements, oldest first.
    ///
    /// # Errors
    /// A database that does not answer.
    pub async fn archived_months(&self) -> Result<Vec<i64>, Error> {
        let reading = self.0.read(async {
            let rows = sql!("SELECT DISTINCT month FROM ledger_openings ORDER BY month")
                .rows(&mut self.0.readers())
                .await?;
            rows.iter()
                .map(|row| row.get("month"))
                .collect::<Result<Vec<_>, Error>>()
        });
        reading.await
    }

    /// Holds the movements of a month against its seals, its events and its sales, and adds them to `proof`. `movements`
    /// has them in the order of day, event and line; `file` is named where they are not those that were sealed.
    ///
    /// # Errors
    /// A database that does not answer.
    pub async fn archived_days(
        &self,
        month: i64,
        file: &str,
        movements: &mut (dyn Iterator<Item = LedgerMovement> + Send),
        proof: &mut ArchiveProof,
    ) -> Result<Vec<MoneyFault>, Error> {
        let mut faults = Vec::new();
        let mut sums = BTreeMap::new();
        let mut movements = movements.peekable();
        let Range { start, end } = days(month);
        for Seal { closed, .. } in self.seals(start - 1, MONTH_DAYS).await? {
            if closed.day >= end {
                break;
            }
            let mut hash = DayHash::new(closed.day, &closed.before);
            let mut from = String::new();
            loop {
                let events = self.archived_events(closed.day, &from).await?;
                let Some(last) = events.last() else { break };
                from.clone_from(&last.id);
                for event in events {
                    let sum = taken(&event, &mut movements, month, &mut hash, proof);
                    let found = MoneyFault::of_event(&event.id, &event.key, sum, event.price);
                    faults.extend(found);
                    if event.kind == "release" {
                        sums.insert(event.id, sum.unwrap_or_default());
                    }
                }
            }
            if hash.finish() != closed.hash {
                faults.push(MoneyFault {
                    rule: "M4",
                    subject: file.to_owned(),
                    problem: "the movements of a day are not those that were sealed",
                });
            }
        }
        if movements.next().is_some() {
            faults.push(MoneyFault {
                rule: "M4",
                subject: file.to_owned(),
                problem: "a movement is of no event of its month",
            });
        }
        self.archived_releases(start..end, &sums, &mut faults).await?;
        faults.extend(proof.steps.take_odd_shapes());
        Ok(faults)
    }

    /// Compares the openings of a month with what is archived up to it.
    ///
    /// # Errors
    /// A database that does not answer.
    pub async fn archived_openings(&self, month: i64, proof: &ArchiveProof) -> Result<Vec<MoneyFault>, Error> {
        let text = text!("SELECT ", Opening::COLUMNS, " FROM ledger_openings WHERE month = $1");
        let openings: Vec<Opening> = self.0.all(sql!(text, month)).await?;
        let mut faults = Vec::new();
        let mut expected: HashMap<&str, (i64, i64)> = proof
            .lasts
            .iter()
            .filter(|(_, last)| last.month == month)
            .map(|(account, last)| (account.as_str(), (last.seq, last.balance)))
            .collect();
        for Opening { account, seq, balance } in openings {
            if expected.remove(account.as_str()) != Some((seq, balance)) {
                faults.push(MoneyFault::of_opening(account));
            }
        }
        faults.extend(expected.into_keys().map(MoneyFault::of_opening));
        Ok(faults)
    }

    /// Proves that the openings follow from everything before them: from what is archived, and from the movements of later
    /// days that have lower numbers. `proof` has every archived month.
    ///
    /// # Errors
    /// A database that does not answer.
    pub async fn archived_sums(&self, mut proof: ArchiveProof) -> Result<Vec<MoneyFault>, Error> {
        for (side, text) in [(AccountSide::Debit, EARLY_DEBITS), (AccountSide::Credit, EARLY_CREDITS)] {
            let early: Vec<EarlyMovement> = self.0.all(sql!(text)).await?;
            for movement in early {
                let EarlyMovement {
                    account,
                    seq,
                    after,
                    amount,
                } = movement;
                proof.steps.add_one(&account, seq, after, amount, side);
            }
        }
        let ArchiveProof { steps, lasts } = proof;
        let broken = lasts
            .iter()
            .filter(|(account, last)| !steps.lead(account, (0, 0), (last.seq, last.balance)));
        Ok(broken.map(|(account, _)| MoneyFault::of_opening(account)).collect())
    }

    async fn archived_events(&self, day: i64, after: &str) -> Result<Vec<ArchivedEvent>, Error> {
        let text = format!(
            "SELECT {} FROM ledger_events WHERE at / {DAY} = $1 AND id > $2 ORDER BY id LIMIT {EVENTS}",
            ArchivedEvent::COLUMNS
        );
        self.0.all(sql!(sqlx::AssertSqlSafe(text), day, after)).await
    }

    /// Compares what was released with the sales that it was of.
    async fn archived_releases(
        &self,
        days: Range<i64>,
        sums: &BTreeMap<String, i128>,
        faults: &mut Vec<MoneyFault>,
    ) -> Result<(), Error> {
        let reading = self.0.read(async {
            let text = format!(
                "SELECT release_event AS event, CAST(SUM(share) AS BIGINT) AS total FROM sales
                 WHERE release_event IN (SELECT id FROM ledger_events
                                         WHERE kind = 'release' AND at / {DAY} >= $1 AND at / {DAY} < $2)
                 GROUP BY release_event"
            );
            let rows = sql!(sqlx::AssertSqlSafe(text), days.start, days.end)
                .rows(&mut self.0.readers())
                .await?;
            rows.iter()
                .map(|row| Ok((row.get("event")?, row.get("total")?)))
                .collect::<Result<HashMap<String, i64>, Error>>()
        });
        let totals = reading.await?;
        let unequal = sums.iter().filter(|(event, sum)| {
            let total = totals.get(*event).copied().unwrap_or_default();
            i128::from(total) != **sum
        });
        faults.extend(unequal.map(|(event, _)| MoneyFault {
            rule: "M12",
            subject: event.clone(),
            problem: "the released sum is not that of the released sales",
        }));
        Ok(())
    }
}

/// Takes the movements of an event, hashes and adds them. Returns their sum; `None` if the event has none.
fn taken(
    event: &ArchivedEvent,
    movements: &mut Peekable<&mut (dyn Iterator<Item = LedgerMovement> + Send)>,
    month: i64,
    hash: &mut DayHash,
    proof: &mut ArchiveProof,
) -> Option<i128> {
    let mut add = |movement: Option<&LedgerMovement>| {
        let (debit, credit) = movement.map_or(("", ""), |movement| {
            (movement.debit_account.as_str(), movement.credit_account.as_str())
        });
        let texts = [
            &event.id,
            &event.asset,
            &event.kind,
            &event.key,
            &event.subject,
            &event.actor,
        ];
        let [id, asset, kind, key, subject, actor] = texts.map(String::as_str);
        let numbers = movement.map_or([event.at, -1, 0, 0, 0, 0, 0], |movement| {
            [
                event.at,
                movement.line,
                movement.amount,
                movement.debit_seq,
                movement.debit_after,
                movement.credit_seq,
                movement.credit_after,
            ]
        });
        hash.add([id, asset, kind, key, subject, actor, debit, credit], numbers);
    };
    let mut sum = None;
    while let Some(movement) = movements.next_if(|movement| movement.event == event.id) {
        add(Some(&movement));
        proof.add(&event.kind, &movement, month);
        *sum.get_or_insert(0) += i128::from(movement.amount);
    }
    if sum.is_none() {
        add(None);
    }
    sum
}

impl MoneyFault {
    /// Returns what is wrong with an archived event: it has movements, and those of a sale have its price.
    fn of_event(id: &str, key: &str, sum: Option<i128>, price: Option<i64>) -> Option<Self> {
        let Some(sum) = sum else {
            return Some(Self {
                rule: "M1",
                subject: id.to_owned(),
                problem: "the event has no movement",
            });
        };
        let differs = price.is_some_and(|price| i128::from(price) != sum);
        differs.then(|| Self {
            rule: "M6",
            subject: key.to_owned(),
            problem: "the sale has no event of its kind, or one of another amount",
        })
    }

    fn of_opening(account: impl Into<String>) -> Self {
        Self {
            rule: "M2",
            subject: account.into(),
            problem: "the opening is not the sum of the archived movements",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_has_its_days() {
        assert_eq!(days(0), 0..31);
        assert_eq!(days(1), 31..59);
    }
}
