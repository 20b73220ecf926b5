//! Allowances: what an operator may submit on a UTC day, by kind.
//!
//! Invariant: an allowance is counted in the transaction of what it allows, under the lock of its row, so it is exact
//! under contention.

use sqlx::AnyConnection;
use types::OperatorId;
use types::vocabulary::AllowanceKind;

use crate::query::sql;
use crate::row::Columns;
use crate::{Error, Store};

/// The limit of a kind on a day.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// Number per day.
    pub limit: u32,
    /// The day, counted from 1970-01-01.
    pub day: i64,
}

impl Store {
    /// Returns the use of an operator's allowance on a UTC day counted from 1970-01-01.
    pub async fn allowance_used(&self, operator: OperatorId, kind: AllowanceKind, day: i64) -> Result<u32, Error> {
        self.read(async {
            sql!(
                "SELECT used FROM allowances WHERE operator_id = $1 AND kind = $2 AND day = $3",
                operator,
                kind,
                day
            )
            .row_if_any(&mut self.readers())
            .await?
            .map_or(Ok(0), |row| row.get("used"))
        })
        .await
    }
}

/// Uses one of the day's allowance. Returns the number used with it, or `None` if the allowance was used up.
pub(crate) async fn spend(
    cx: &mut AnyConnection,
    operator: OperatorId,
    kind: AllowanceKind,
    allowance: Allowance,
) -> Result<Option<u32>, Error> {
    // The insertion below would let the first use of the day pass.
    if allowance.limit == 0 {
        return Ok(None);
    }
    // Count and limit are one statement on the locked row: read first, two calls would both find room
    // for one.
    let used = sql!(
        "INSERT INTO allowances (operator_id, kind, day, used) VALUES ($1, $2, $3, 1)
         ON CONFLICT (operator_id, kind, day) DO UPDATE SET used = allowances.used + 1 WHERE allowances.used < $4
         RETURNING used",
        operator,
        kind,
        allowance.day,
        allowance.limit
    )
    .row_if_any(cx)
    .await?;
    used.map(|row| row.get("used")).transpose()
}

/// Locks the row of a day until the transaction ends.
pub(crate) async fn lock(
    cx: &mut AnyConnection,
    operator: OperatorId,
    kind: AllowanceKind,
    day: i64,
) -> Result<(), Error> {
    sql!(
        "INSERT INTO allowances (operator_id, kind, day, used) VALUES ($1, $2, $3, 0)
         ON CONFLICT (operator_id, kind, day) DO UPDATE SET used = allowances.used",
        operator,
        kind,
        day
    )
    .run(cx)
    .await?;
    Ok(())
}

/// Gives back one of a day's allowance.
pub(crate) async fn give_back(
    cx: &mut AnyConnection,
    operator: &str,
    kind: AllowanceKind,
    day: i64,
) -> Result<(), Error> {
    // To the day of the submission and not to today's, whose limit the call never used.
    sql!(
        "UPDATE allowances SET used = used - 1 WHERE operator_id = $1 AND kind = $2 AND day = $3 AND used > 0",
        operator,
        kind,
        day
    )
    .run(cx)
    .await?;
    Ok(())
}

/// Uses one of a day's allowance again that was given back, whatever the limit.
pub(crate) async fn take_back(
    cx: &mut AnyConnection,
    operator: &str,
    kind: AllowanceKind,
    day: i64,
) -> Result<(), Error> {
    sql!(
        "INSERT INTO allowances (operator_id, kind, day, used) VALUES ($1, $2, $3, 1)
         ON CONFLICT (operator_id, kind, day) DO UPDATE SET used = allowances.used + 1",
        operator,
        kind,
        day
    )
    .run(cx)
    .await?;
    Ok(())
}
