//! Reads by operators: the lease of the one query that an operator may run at a time, and the bytes sent.
//!
//! Invariant: a lease that is never ended is free again after its time, so a dead query blocks its operator for a
//! limited time only.

use types::{OperatorId, Timestamp};

use crate::query::{sql, tx};
use crate::row::{Columns, bigint};
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

/// Bytes sent to an operator in a month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Egress {
    /// Id of the operator.
    pub operator: OperatorId,
    /// The UTC month, counted from January 1970.
    pub month: i64,
    /// Number of bytes sent.
    pub bytes: u64,
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
        sent.sort_unstable_by_key(|egress| (egress.operator, egress.month));
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
            for Egress { operator, month, bytes } in sent {
                sql!(
                    "INSERT INTO egress (operator_id, month, byte_count) VALUES ($1, $2, $3)
                     ON CONFLICT (operator_id, month)
                     DO UPDATE SET byte_count = egress.byte_count + excluded.byte_count",
                    operator,
                    month,
                    bigint("byte_count", bytes)?
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
}
