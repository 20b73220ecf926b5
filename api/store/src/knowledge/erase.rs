//! Erasure of a unit's texts, and the job that erases the prints beside the platform's table.
//!
//! Invariant: prints that were put before a unit was erased, or that a worker puts later because it had the text already,
//! are followed by a job.

use std::collections::HashSet;

use sqlx::AnyConnection;
use types::vocabulary::ItemKind;
use types::{Timestamp, UnitId};

use super::changes::close_open;
use super::{Knowledge, lock};
use crate::query::{sql, tx};
use crate::row::Columns;
use crate::service_state;
use crate::writer::Change;
use crate::{Error, NewJob, jobs, scrub};

/// Kind of the job that erases the prints of all erased units.
pub const FORGET_PRINTS: &str = "forget_prints";

impl Knowledge<'_> {
    /// Blanks every text of a unit: titles, bodies, sources, submissions, words of ratings and marks; and deletes what was derived
    /// from them; the prints beside the platform's table, and what free pages of the database still hold, by a job. A
    /// version in work is rejected. Returns false if the unit
    /// was erased before or does not exist.
    ///
    /// The unit must be hidden, because it has nothing left to show.
    pub async fn erase(&self, chain: UnitId, now: Timestamp) -> Result<bool, Error> {
        let engine = self.0.engine();
        self.0
            .write(tx!(async move |cx| {
                let Some(old) = lock(cx, chain).await? else {
                    return Ok(Change::Undo(false));
                };
                if old.erased_at.is_some() {
                    return Ok(Change::Undo(false));
                }
                scrub::overwrite(cx, engine, true).await?;
                let blanked = blank(cx, chain, now).await;
                // Also after a failure, or every later change of this connection would write more.
                scrub::overwrite(cx, engine, false).await?;
                blanked?;
                Ok(Change::Keep(true))
            }))
            .await
    }

    /// Returns every version of every erased unit.
    pub async fn erased_versions(&self) -> Result<HashSet<UnitId>, Error> {
        self.0
            .read(async {
                sql!(
                    "SELECT units.id AS id FROM units JOIN chains ON chains.id = units.chain_id
                     WHERE chains.erased_at IS NOT NULL"
                )
                .rows(&mut self.0.readers())
                .await?
                .iter()
                .map(|row| row.get("id"))
                .collect()
            })
            .await
    }
}

/// Blanks the texts of a unit, and deletes what was derived from them.
async fn blank(cx: &mut AnyConnection, chain: UnitId, now: Timestamp) -> Result<(), Error> {
    // Ends the open version and deletes its row of the outbox, which holds the text
    // once more.
    close_open(
        cx,
        chain,
        "erased",
        "The text was erased while it was being judged.",
        now,
    )
    .await?;
    // Every place that holds words of the text or about it. Prices, sales and hashes
    // stay, because they are facts about trades and tell nothing of what was written.
    for text in [
        "UPDATE units SET title = '', body = '', source_declaration = '' WHERE chain_id = $1",
        "UPDATE unit_ratings SET comment = '' WHERE chain_id = $1 AND comment IS NOT NULL",
        "UPDATE unit_marks SET ran = '' WHERE chain_id = $1",
        "UPDATE unit_appeals SET message = '', verdict = '' WHERE decided_at IS NOT NULL AND unit_id IN
         (SELECT id FROM units WHERE chain_id = $1)",
        "UPDATE unit_validations SET detail = '' WHERE unit_id IN
         (SELECT id FROM units WHERE chain_id = $1)",
        "DELETE FROM unit_vectors WHERE version_id IN (SELECT id FROM units WHERE chain_id = $1)",
    ] {
        sql!(text, chain).run(cx).await?;
    }
    sql!(
        "UPDATE chains SET erased_at = $2, taken_down_at = COALESCE(taken_down_at, $2),
                taken_down_reason = COALESCE(taken_down_reason, 'other')
         WHERE id = $1",
        chain,
        now
    )
    .run(cx)
    .await?;
    forget_prints(cx, chain.to_string(), now).await?;
    service_state::search_changed(cx, ItemKind::Unit, &chain.to_string(), now).await?;
    Ok(())
}

/// Adds the job after an outcome that changed nothing, if the unit was erased: its worker may have put prints after the
/// first job looked.
pub(super) async fn forget_late_prints(cx: &mut AnyConnection, version: UnitId, at: Timestamp) -> Result<(), Error> {
    let erased = sql!(
        "SELECT units.id FROM units JOIN chains ON chains.id = units.chain_id
         WHERE units.id = $1 AND chains.erased_at IS NOT NULL",
        version
    )
    .row_if_any(cx)
    .await?;
    if erased.is_some() {
        // Each such outcome has a job of its own: one that runs already may have looked too early.
        forget_prints(cx, format!("{version}-{}", at.micros()), at).await?;
    }
    Ok(())
}

async fn forget_prints(cx: &mut AnyConnection, cause: String, now: Timestamp) -> Result<(), Error> {
    let id = format!("{FORGET_PRINTS}-{cause}");
    let job = NewJob {
        id: id.clone(),
        kind: FORGET_PRINTS.to_owned(),
        dedupe: Some(id),
        operator: None,
        // It takes all erased units, whichever one it was added for.
        payload: "{}".to_owned(),
        due_at: now,
        now,
    };
    jobs::insert(cx, &job).await.map(drop)
}
