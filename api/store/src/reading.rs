//! Reads by operators: the lease of the one query that an operator may run at a time, and the bytes sent.
//!
//! Invariant: a lease that is never ended is free again after its time, so a dead query blocks its operator for a
//! limited time only.

use types::{OperatorId, Timestamp};

use crate::money::SpendOwner;
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, bigint, row};
use crate::writer::Change;
use crate::{Error, Store};

/// The result of [`Store::query_lease_take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum LeaseTaken {
    /// The caller has the lease.
    Taken,
    /// Another query of the operator has it.
    Held {
        /// Latest end of the lease.
        until: Timestamp,
    },
}

/// The time in microseconds for which the ids of added sums are remembered.
const SUMS_REMEMBERED: i64 = 24 * 3_600 * 1_000_000;

/// Bytes sent to a reader of an operator in a month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Egress {
    /// Id of the operator.
    pub operator: OperatorId,
    /// The UTC month, counted from January 1970.
    pub month: i64,
    /// Agent or app that read; `None` for a person, and for an address that was handed out.
    pub reader: Option<SpendOwner>,
    /// Number of bytes sent.
    pub bytes: u64,
}

impl Egress {
    /// Returns the reader as it is stored.
    fn reader_text(&self) -> String {
        self.reader.map(|reader| reader.to_string()).unwrap_or_default()
    }
}

row! {
    /// Bytes that a reader was sent in a month.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct EgressOfReader {
        /// Agent or app, as [`SpendOwner`] is written; empty for a person, and for an address that was handed out.
        pub reader: String,
        /// Number of bytes sent.
        pub bytes: u64 = "byte_count",
    }
}

row! {
    /// Bytes that an operator was sent in a month.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct EgressOfMonth {
        /// The UTC month, counted from January 1970.
        pub month: i64,
        /// Number of bytes sent.
        pub bytes: u64 = "byte_count",
    }
}

impl Store {
    /// Takes the operator's lease for `holder` until `until`, if it is free at `now`.
    pub async fn query_lease_take(
        &self,
        operator: OperatorId,
        holder: String,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<LeaseTaken, Error> {
        self.write_aside(tx!(async move |cx| {
            let taken = sql!(
                "INSERT INTO query_leases (operator_id, holder, ends_at) VALUES ($1, $2, $3)
                 ON CONFLICT (operator_id) DO UPDATE SET holder = excluded.holder, ends_at = excluded.ends_at
                 WHERE query_leases.ends_at <= $4",
                operator,
                holder,
                until,
                now
            )
            .run(cx)
            .await?;
            // The lease was free, or its time was over.
            if taken > 0 {
                return Ok(Change::Keep(LeaseTaken::Taken));
            }
            // The statement above has locked the row, so it is still there.
            let row = sql!("SELECT ends_at FROM query_leases WHERE operator_id = $1", operator)
                .row(cx)
                .await?;
            let until = row.get("ends_at")?;
            Ok(Change::Undo(LeaseTaken::Held { until }))
        }))
        .await
    }

    /// Ends the operator's lease if `holder` still has it.
    pub async fn query_lease_end(&self, operator: OperatorId, holder: String) -> Result<(), Error> {
        self.write_aside(tx!(async move |cx| {
            // The condition on the holder protects a lease that another query took after
            // this one's time.
            sql!(
                "DELETE FROM query_leases WHERE operator_id = $1 AND holder = $2",
                operator,
                holder
            )
            .run(cx)
            .await?;
            Ok(Change::Keep(()))
        }))
        .await
    }

    /// Adds sent bytes, all of them or none, and only once per id within a day: after an error the call can be
    /// repeated.
    pub async fn egress_add(&self, id: String, mut sent: Vec<Egress>, now: Timestamp) -> Result<(), Error> {
        // Concurrent calls lock the rows in the same order, so they cannot dead-lock.
        sent.sort_by_cached_key(|egress| (egress.operator, egress.month, egress.reader_text()));
        self.write_aside(tx!(async move |cx| {
            let before = now.micros().saturating_sub(SUMS_REMEMBERED);
            // Old ids are removed here, so the table stays small without a job of its own.
            sql!("DELETE FROM egress_sums WHERE added_at < $1", before)
                .run(cx)
                .await?;
            let new = sql!(
                "INSERT INTO egress_sums (id, added_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING",
                id,
                now
            )
            .run(cx)
            .await?;
            // An earlier call added this sum, and its answer was lost.
            if new == 0 {
                return Ok(Change::Keep(()));
            }
            for egress in sent {
                let Egress { operator, month, .. } = egress;
                let bytes = bigint("byte_count", egress.bytes)?;
                sql!(
                    "INSERT INTO egress (operator_id, month, byte_count) VALUES ($1, $2, $3)
                     ON CONFLICT (operator_id, month)
                     DO UPDATE SET byte_count = egress.byte_count + excluded.byte_count",
                    operator,
                    month,
                    bytes
                )
                .run(cx)
                .await?;
                sql!(
                    "INSERT INTO egress_readers (operator_id, month, reader, byte_count) VALUES ($1, $2, $3, $4)
                     ON CONFLICT (operator_id, month, reader)
                     DO UPDATE SET byte_count = egress_readers.byte_count + excluded.byte_count",
                    operator,
                    month,
                    egress.reader_text(),
                    bytes
                )
                .run(cx)
                .await?;
            }
            Ok(Change::Keep(()))
        }))
        .await
    }

    /// Returns the bytes sent to an operator in a month, counted from January 1970.
    pub async fn egress(&self, operator: OperatorId, month: i64) -> Result<u64, Error> {
        self.read(async {
            sql!(
                "SELECT byte_count FROM egress WHERE operator_id = $1 AND month = $2",
                operator,
                month
            )
            .row_if_any(&mut self.readers())
            .await?
            .map_or(Ok(0), |row| row.get("byte_count"))
        })
        .await
    }

    /// Returns who read the bytes sent to an operator in a month, those with the most bytes first, up to `limit`.
    pub async fn egress_readers(
        &self,
        operator: OperatorId,
        month: i64,
        limit: u32,
    ) -> Result<Vec<EgressOfReader>, Error> {
        self.all(sql!(
            text!(
                "SELECT ",
                EgressOfReader::COLUMNS,
                " FROM egress_readers WHERE operator_id = $1 AND month = $2
                 ORDER BY byte_count DESC, reader LIMIT $3"
            ),
            operator,
            month,
            limit
        ))
        .await
    }

    /// Returns the bytes sent to an operator in its latest months, newest first, up to `limit`. Months without bytes are
    /// left out.
    pub async fn egress_months(&self, operator: OperatorId, limit: u32) -> Result<Vec<EgressOfMonth>, Error> {
        self.all(sql!(
            text!(
                "SELECT ",
                EgressOfMonth::COLUMNS,
                " FROM egress WHERE operator_id = $1 ORDER BY month DESC LIMIT $2"
            ),
            operator,
            limit
        ))
        .await
    }
}
