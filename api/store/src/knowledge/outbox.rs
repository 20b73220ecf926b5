//! The outbox of versions without a terminal outcome.

use sqlx::AnyConnection;
use types::{Timestamp, UnitId};

use super::Knowledge;
use crate::Error;
use crate::contributions::outbox::Outbox;
use crate::query::{sql, tx};
use crate::row::{Columns, row};
use crate::writer::Change;

row! {
    /// A version to append to the log.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct UnitDue {
        /// Id of the version.
        pub id: UnitId = "unit_id",
        /// The encoded submission.
        pub submission: Vec<u8>,
        /// Number of appends since its last outcome.
        pub attempts: u32,
    }
}

/// A version that was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitSwept {
    /// Id of the version.
    pub id: UnitId,
    /// Time of the next append, if it still has no outcome.
    pub next_sweep: Timestamp,
}

impl Knowledge<'_> {
    /// Returns the versions that are due, the longest overdue first.
    pub async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<UnitDue>, Error> {
        self.0
            .all(sql!(
                "SELECT unit_id, attempts, submission FROM unit_outbox
                 WHERE next_sweep <= $1 ORDER BY next_sweep, unit_id LIMIT $2",
                now,
                limit
            ))
            .await
    }

    /// Makes every version due that an earlier process left open and that waits for nothing. A crash may have lost the
    /// message of any of them.
    pub async fn due_at_start(&self, now: Timestamp) -> Result<u64, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                // Versions that wait for a judge keep their time: brought forward, every restart
                // would ask the provider about all of them at once.
                let updated = sql!(
                    "UPDATE unit_outbox SET next_sweep = $1
                     WHERE next_sweep > $1 AND unit_id IN (SELECT id FROM units WHERE status = 'queued')",
                    now
                )
                .run(cx)
                .await?;
                Ok(Change::written_if(updated > 0, updated))
            }))
            .await
    }

    /// Records that versions were appended. Those that waited are queued again; those that were decided meanwhile are
    /// skipped.
    pub async fn swept(&self, swept: Vec<UnitSwept>) -> Result<(), Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                // Called before the append, since an outcome may arrive before this process goes
                // on. A version whose append fails is due again at the time that is set here.
                for UnitSwept { id, next_sweep } in swept {
                    sql!(
                        "UPDATE unit_outbox SET attempts = attempts + 1, next_sweep = $2 WHERE unit_id = $1",
                        id,
                        next_sweep
                    )
                    .run(cx)
                    .await?;
                    sql!(
                        "UPDATE units SET status = 'queued', waiting_reason = NULL, resumes_after = NULL
                         WHERE id = $1 AND status = 'waiting'",
                        id
                    )
                    .run(cx)
                    .await?;
                }
                Ok(Change::Keep(()))
            }))
            .await
    }

    /// Returns the size of the outbox of versions.
    pub async fn outbox_size(&self) -> Result<Outbox, Error> {
        self.0
            .read(async {
                let row = sql!(
                    "SELECT COUNT(*) AS open_count, CAST(COALESCE(SUM(byte_count), 0) AS BIGINT) AS byte_count
                     FROM unit_outbox"
                )
                .row(&mut self.0.readers())
                .await?;
                Ok(Outbox {
                    open: row.get("open_count")?,
                    bytes: row.get("byte_count")?,
                })
            })
            .await
    }
}

/// Removes a decided version from the outbox.
pub(super) async fn remove(cx: &mut AnyConnection, id: &str) -> Result<(), Error> {
    sql!("DELETE FROM unit_outbox WHERE unit_id = $1", id).run(cx).await?;
    Ok(())
}
