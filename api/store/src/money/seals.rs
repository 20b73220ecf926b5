//! Seals of the ledger: the movements of a UTC day as a hash that covers the day before, with a signature.
//!
//! Invariant: a day is closed before it is hashed. [`post`](super::post) gives no event a time in a closed day, so a hash
//! that was computed once stays the hash of its day. Days are closed one after the other, without a gap.

use serde::Serialize;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Executor};
use types::Timestamp;

use super::{Money, MoneyFault};
use crate::Error;
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, nested, row};
use crate::writer::Change;

/// Events that are read at once.
pub(super) const EVENTS: i64 = 500;
/// Seals that are read at once.
const SEALS: u32 = 500;
/// First bytes of what is hashed of a day.
const FORMAT: &[u8] = b"sluice-ledger-day-1\n";
/// Microseconds of a day, by which the index of the events divides.
pub(super) const DAY: i64 = Timestamp::of_day(1).micros();

row! {
    /// Day that waits for its seal.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ClosedDay {
        /// UTC day, counted from 1970-01-01.
        pub day: i64,
        /// Hash of the day before; zeros for the first day.
        pub before: [u8; 32],
        /// Hash of the movements of the day and of `before`.
        pub hash: [u8; 32],
    }
}

row! {
    /// Newest day with a row.
    #[derive(Clone, Copy, Debug)]
    struct LatestSeal {
        day: i64,
        before: [u8; 32],
        /// Hash of the day; `None` if it is closed and has no seal.
        hash: Option<[u8; 32]>,
    }
}

row! {
    /// Seal of a day.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Seal {
        /// Day with its hashes.
        pub closed: ClosedDay = ClosedDay::COLUMNS => nested,
        /// Name of the service key that signed.
        pub key_id: String,
        /// Signature by that key.
        pub signature: [u8; 64],
        /// Time of the signature.
        pub sealed_at: Timestamp,
    }
}

row! {
    /// Movement of a day, as its seal covers it. An event without a movement has the line -1 and nothing else.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "camelCase")]
    pub struct SealedMovement {
        /// Id of the event.
        pub id: String,
        /// Asset that was moved.
        pub asset: String,
        /// Kind of the event.
        pub kind: String,
        /// Key of the event, which happens once.
        pub key: String,
        /// Item, sale or reference of the event.
        pub subject: String,
        /// Agent that acted; empty if none did.
        pub actor: String,
        /// Account that was debited.
        pub debit_account: String,
        /// Account that was credited.
        pub credit_account: String,
        /// Time of the event, in microseconds since 1970.
        pub at: i64,
        /// Number of the movement within its event.
        pub line: i64,
        /// Amount in micro-USDC.
        pub amount: i64,
        /// Number of the movement within the debited account.
        pub debit_seq: i64,
        /// Balance of the debited account after it.
        pub debit_after: i64,
        /// Number of the movement within the credited account.
        pub credit_seq: i64,
        /// Balance of the credited account after it.
        pub credit_after: i64,
    }
}

impl Money<'_> {
    /// Closes the day after the newest seal, if it is not after `due`, and returns it with its hash. The first day is
    /// that of the oldest event. A day that was closed and never sealed comes again.
    ///
    /// # Errors
    /// A database that does not answer. What was closed before stays closed.
    pub async fn seal_next(&self, due: i64) -> Result<Option<ClosedDay>, Error> {
        let (day, before) = match self.newest().await? {
            Some(LatestSeal {
                day,
                before,
                hash: None,
            }) => (day, before),
            Some(LatestSeal {
                day, hash: Some(hash), ..
            }) if day < due => self.close(day + 1, hash).await?,
            Some(_) => return Ok(None),
            None => match self.first_day().await? {
                Some(day) if day <= due => self.close(day, [0; 32]).await?,
                _ => return Ok(None),
            },
        };
        let hash = self.day_hash(day, before).await?;
        Ok(Some(ClosedDay { day, before, hash }))
    }

    /// Writes the seal of a closed day. Returns false if the day has one; nothing was written then.
    pub async fn seal_put(&self, seal: Seal) -> Result<bool, Error> {
        let put = self.0.write_aside(tx!(async move |cx| {
            // Two processes computed the same hash, and the first of them signs.
            let put = sql!(
                "UPDATE ledger_seals SET hash = $2, key_id = $3, signature = $4, sealed_at = $5
                 WHERE day = $1 AND hash IS NULL",
                seal.closed.day,
                seal.closed.hash,
                seal.key_id,
                seal.signature,
                seal.sealed_at
            )
            .run(cx)
            .await?;
            Ok(Change::Keep(put == 1))
        }));
        put.await
    }

    /// Returns up to `limit` seals of the days after `day`, oldest first.
    pub async fn seals(&self, day: i64, limit: u32) -> Result<Vec<Seal>, Error> {
        let reading = self.0.read(async {
            let rows = sql!(
                text!(
                    "SELECT ",
                    Seal::COLUMNS,
                    " FROM ledger_seals
                     WHERE day > $1 AND hash IS NOT NULL ORDER BY day LIMIT $2"
                ),
                day,
                limit
            )
            .rows(&mut self.0.readers())
            .await?;
            rows.iter().map(Seal::of).collect::<Result<Vec<_>, Error>>()
        });
        reading.await
    }

    /// Checks that the seals follow each other. What they are of is proven with the journal.
    pub(super) async fn chain_of_seals(&self, faults: &mut Vec<MoneyFault>, limit: u32) -> Result<(), Error> {
        let mut broken = Vec::new();
        let mut last: Option<ClosedDay> = None;
        loop {
            let seals = self.seals(last.map_or(i64::MIN, |last| last.day), SEALS).await?;
            if seals.is_empty() {
                break;
            }
            for Seal { closed, .. } in seals {
                let follows = if let Some(last) = last {
                    closed.day == last.day + 1 && closed.before == last.hash
                } else {
                    broken.extend(self.older(closed.day, limit).await?);
                    closed.before == [0; 32]
                };
                if !follows {
                    let problem = "the seal does not follow that of the day before";
                    broken.push(MoneyFault::of_day(closed.day, problem));
                }
                last = Some(closed);
            }
        }
        faults.extend(broken.into_iter().take(limit as usize));
        Ok(())
    }

    /// Returns the events of the days before the first sealed one.
    async fn older(&self, first: i64, limit: u32) -> Result<Vec<MoneyFault>, Error> {
        let mut faults = Vec::new();
        let text = format!("SELECT id AS subject FROM ledger_events WHERE at / {DAY} < {first} LIMIT {limit}");
        self.collect(&mut faults, "M4", "the event is older than the first seal", &text)
            .await?;
        Ok(faults)
    }

    /// Returns the newest day that takes no event any more, counted from 1970-01-01. It is ahead of the clock only after a
    /// clock that ran ahead.
    ///
    /// # Errors
    /// A database that does not answer.
    pub async fn newest_closed_day(&self) -> Result<Option<i64>, Error> {
        Ok(self.newest().await?.map(|newest| newest.day))
    }

    async fn newest(&self) -> Result<Option<LatestSeal>, Error> {
        self.0
            .optional(sql!(text!(
                "SELECT ",
                LatestSeal::COLUMNS,
                " FROM ledger_seals ORDER BY day DESC LIMIT 1"
            )))
            .await
    }

    async fn first_day(&self) -> Result<Option<i64>, Error> {
        let reading = self.0.read(async {
            let text = format!("SELECT at / {DAY} AS day FROM ledger_events ORDER BY at / {DAY} LIMIT 1");
            let row = sql!(sqlx::AssertSqlSafe(text))
                .row_if_any(&mut self.0.readers())
                .await?;
            row.map(|row| row.get("day")).transpose()
        });
        reading.await
    }

    /// Closes a day. Every event of it is committed then, and none follows.
    async fn close(&self, day: i64, before: [u8; 32]) -> Result<(i64, [u8; 32]), Error> {
        let lock = self.0.engine().lock_out_writers("ledger_seals");
        let closing = self.0.write_aside(tx!(async move |cx| {
            if let Some(lock) = lock {
                cx.execute(sqlx::AssertSqlSafe(lock)).await?;
            }
            sql!(
                "INSERT INTO ledger_seals (day, before) VALUES ($1, $2) ON CONFLICT (day) DO NOTHING",
                day,
                before
            )
            .run(cx)
            .await?;
            Ok(Change::Keep(()))
        }));
        closing.await?;
        Ok((day, before))
    }

    /// Returns the movements of the events of a UTC day after the event `after`, in the order in which they are hashed: those
    /// of at most 500 events. An event of an archived month has none here.
    ///
    /// # Errors
    /// A database that does not answer.
    pub async fn movements(&self, day: i64, after: &str) -> Result<Vec<SealedMovement>, Error> {
        self.0
            .all(sql!(sqlx::AssertSqlSafe(day_text()), day, after.to_owned()))
            .await
    }

    /// Hashes the movements of a day in the order of (event, line). A page of them is in memory at a time.
    async fn day_hash(&self, day: i64, before: [u8; 32]) -> Result<[u8; 32], Error> {
        let text = day_text();
        let mut hash = DayHash::new(day, &before);
        let mut last = String::new();
        loop {
            let from = last.clone();
            let page = self.0.read(async {
                let rows = sql!(sqlx::AssertSqlSafe(text.clone()), day, from)
                    .rows(&mut self.0.readers())
                    .await?;
                for row in &rows {
                    let (texts, numbers) = values(row)?;
                    hash.add(texts, numbers);
                }
                rows.last().map(|row| row.get("id")).transpose()
            });
            match page.await? {
                Some(id) => last = id,
                None => return Ok(hash.finish()),
            }
        }
    }
}

/// Returns the statement that reads movements of a day in the order of (event, line): those of a page of events after one.
pub(super) fn day_text() -> String {
    // An event without a movement counts too: removed movements do not make it vanish.
    format!(
        "SELECT paged.id AS id, paged.asset AS asset, paged.kind AS kind, paged.key AS key, paged.at AS at,
                paged.subject AS subject, paged.actor AS actor, COALESCE(line, -1) AS line,
                COALESCE(amount, 0) AS amount, COALESCE(debit_account, '') AS debit_account,
                COALESCE(debit_seq, 0) AS debit_seq, COALESCE(debit_after, 0) AS debit_after,
                COALESCE(credit_account, '') AS credit_account, COALESCE(credit_seq, 0) AS credit_seq,
                COALESCE(credit_after, 0) AS credit_after
         FROM (SELECT id, asset, kind, key, at, subject, actor FROM ledger_events
               WHERE at / {DAY} = $1 AND id > $2 ORDER BY id LIMIT {EVENTS}) AS paged
         LEFT JOIN ledger_transfers ON ledger_transfers.event_id = paged.id
         ORDER BY paged.id, line"
    )
}

/// Texts and numbers of a movement that are hashed.
pub(super) type MovementValues<'r> = ([&'r str; TEXTS.len()], [i64; NUMBERS.len()]);

/// Reads a row of [`day_text`].
pub(super) fn values(row: &AnyRow) -> Result<MovementValues<'_>, Error> {
    let (mut texts, mut numbers) = ([""; TEXTS.len()], [0; NUMBERS.len()]);
    for (text, name) in texts.iter_mut().zip(TEXTS) {
        *text = row.value(name)?;
    }
    for (number, name) in numbers.iter_mut().zip(NUMBERS) {
        *number = row.value(name)?;
    }
    Ok((texts, numbers))
}

/// Hash of a day, over its movements in the order of (event, line).
pub(super) struct DayHash(blake3::Hasher);

impl DayHash {
    pub(super) fn new(day: i64, before: &[u8; 32]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(FORMAT).update(before).update(&day.to_le_bytes());
        Self(hasher)
    }

    /// Adds a movement: [`TEXTS`] and [`NUMBERS`] of it and its event.
    pub(super) fn add(&mut self, texts: [&str; TEXTS.len()], numbers: [i64; NUMBERS.len()]) {
        for text in texts {
            // The length comes first, so two texts cannot run into each other.
            self.0
                .update(&(text.len() as u64).to_le_bytes())
                .update(text.as_bytes());
        }
        for number in numbers {
            self.0.update(&number.to_le_bytes());
        }
    }

    pub(super) fn finish(&self) -> [u8; 32] {
        *self.0.finalize().as_bytes()
    }
}

/// Texts of a movement, in the order in which they are hashed.
const TEXTS: [&str; 8] = [
    "id",
    "asset",
    "kind",
    "key",
    "subject",
    "actor",
    "debit_account",
    "credit_account",
];
/// Numbers of a movement, in the order in which they are hashed.
const NUMBERS: [&str; 7] = [
    "at",
    "line",
    "amount",
    "debit_seq",
    "debit_after",
    "credit_seq",
    "credit_after",
];

/// Returns the time of an event: `now`, or the beginning of the first open day if the day of `now` is closed. Until the
/// transaction ends, that day is not closed.
///
/// A day is closed too early by a clock that ran ahead, and an event has to have a day all the same.
pub(super) async fn open_time(cx: &mut AnyConnection, now: Timestamp) -> Result<Timestamp, Error> {
    // An update that finds no row still locks the table against `close` on PostgreSQL. A query would
    // see no row, and the day could be closed and hashed before its event is committed.
    let closed = sql!(
        "UPDATE ledger_seals SET before = before
         WHERE day = (SELECT MAX(day) FROM ledger_seals) AND day >= $1 RETURNING day",
        now.day()
    )
    .row_if_any(cx)
    .await?;
    let closed: Option<i64> = closed.map(|row| row.get("day")).transpose()?;
    Ok(closed.map_or(now, |day| Timestamp::of_day(day.saturating_add(1))))
}
