//! Replay of the versions of knowledge units that could not be processed.

use sqlx::AnyConnection;
use types::vocabulary::{AllowanceKind, UnitStatus};
use types::{Timestamp, UnitId};

use super::{Replay, UNPROCESSABLE};
use crate::query::sql;
use crate::row::{Columns, length};
use crate::writer::Change;
use crate::{Error, allowances, knowledge};

/// The result of the replay of a version of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum UnitReplay {
    /// The version is open again and due.
    Reopened {
        /// Id of the version.
        unit: UnitId,
        /// Generation of the new submission.
        generation: u32,
    },
    /// The version is open anyway and due now; the letter can be replayed again.
    Requeued {
        /// Id of the version.
        unit: UnitId,
    },
    /// The version was decided otherwise, or another took its place; nothing changed.
    Decided {
        /// Id of the version.
        unit: UnitId,
        /// Status of the version.
        status: UnitStatus,
    },
}

pub(super) async fn reopen(
    cx: &mut AnyConnection,
    letter: &str,
    unit: UnitId,
    payload: &[u8],
    renew: impl FnOnce(&[u8], u32) -> Option<Vec<u8>> + Send,
    now: Timestamp,
) -> Result<Change<Replay>, Error> {
    let found = sql!("SELECT chain_id FROM units WHERE id = $1", unit)
        .row_if_any(cx)
        .await?;
    let Some(found) = found else {
        return Ok(Change::Undo(Replay::NoContribution));
    };
    // The chain comes first, as in every change of a unit. An outcome that is being applied is waited for.
    knowledge::lock(cx, found.get("chain_id")?).await?;
    let reopened = sql!(
        "UPDATE units
         SET generation = generation + 1, status = 'queued', decided_at = NULL, reject_code = NULL,
             reject_message = NULL, accuracy = NULL, novelty = NULL, reproducibility = NULL, specificity = NULL,
             total = NULL, judge = NULL
         WHERE id = $1 AND status = 'rejected' AND reject_code = $2
           AND NOT EXISTS (SELECT 1 FROM units AS other WHERE other.chain_id = units.chain_id
                           AND other.status IN ('queued', 'waiting'))
           AND NOT EXISTS (SELECT 1 FROM units AS other WHERE other.operator_id = units.operator_id
                           AND other.text_hash = units.text_hash
                           AND other.status IN ('queued', 'waiting', 'published'))
           AND NOT EXISTS (SELECT 1 FROM chains WHERE chains.id = units.chain_id
                           AND (retired_at IS NOT NULL OR erased_at IS NOT NULL))
         RETURNING generation, operator_id, submitted_at",
        unit,
        UNPROCESSABLE
    )
    .row_if_any(cx)
    .await?;
    if let Some(row) = reopened {
        let generation = row.get("generation")?;
        // Undoing the change restores the rejection and the letter.
        let Some(submission) = renew(payload, generation) else {
            return Ok(Change::Undo(Replay::Unreadable));
        };
        // The place in the day's allowance that the rejection freed is taken again, even if others used it up.
        let (operator, day) = (
            row.value::<&str>("operator_id")?,
            row.get::<Timestamp>("submitted_at")?.day(),
        );
        allowances::take_back(cx, operator, AllowanceKind::Knowledge, day).await?;
        sql!(
            "INSERT INTO unit_outbox (unit_id, attempts, next_sweep, byte_count, submission)
             VALUES ($1, 0, $2, $3, $4)",
            unit,
            now,
            length(&submission),
            submission
        )
        .run(cx)
        .await?;
        return Ok(Change::Keep(Replay::Unit(UnitReplay::Reopened { unit, generation })));
    }
    let requeued = sql!(
        "UPDATE unit_outbox SET attempts = 0, next_sweep = $2 WHERE unit_id = $1",
        unit,
        now
    )
    .run(cx)
    .await?;
    if requeued > 0 {
        // Its rejection may still be on its way, and the letter will be needed to reopen it then.
        sql!("UPDATE dead_letters SET replayed_at = NULL WHERE id = $1", letter)
            .run(cx)
            .await?;
        return Ok(Change::Keep(Replay::Unit(UnitReplay::Requeued { unit })));
    }
    let row = sql!("SELECT status FROM units WHERE id = $1", unit).row(cx).await?;
    let status = row.get("status")?;
    Ok(Change::Undo(Replay::Unit(UnitReplay::Decided { unit, status })))
}
