//! Erasure of a unit's texts.

use types::vocabulary::ItemKind;
use types::{Timestamp, UnitId};

use super::changes::close_open;
use super::{Knowledge, lock};
use crate::Error;
use crate::service_state;
use crate::writer::Change;

impl Knowledge<'_> {
    /// Blanks every text of a unit: titles, bodies, sources, submissions, words of ratings; and deletes what was derived
    /// from them. A version in work is rejected. Returns false if the unit was erased before or does not exist.
    ///
    /// The unit must be hidden, because it has nothing left to show.
    pub async fn erase(&self, chain: UnitId, now: Timestamp) -> Result<bool, Error> {
        self.0
            .write(move |cx| {
                Box::pin(async move {
                    let Some(old) = lock(cx, chain).await? else {
                        return Ok(Change::Undo(false));
                    };
                    if old.erased_at.is_some() {
                        return Ok(Change::Undo(false));
                    }
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
                        "UPDATE unit_validations SET detail = '' WHERE unit_id IN
                             (SELECT id FROM units WHERE chain_id = $1)",
                        "DELETE FROM unit_vectors WHERE version_id IN (SELECT id FROM units WHERE chain_id = $1)",
                    ] {
                        sqlx::query(text).bind(chain.to_string()).execute(&mut *cx).await?;
                    }
                    sqlx::query(
                        "UPDATE chains SET erased_at = $2, taken_down_at = COALESCE(taken_down_at, $2),
                                taken_down_reason = COALESCE(taken_down_reason, 'other')
                         WHERE id = $1",
                    )
                    .bind(chain.to_string())
                    .bind(now.micros())
                    .execute(&mut *cx)
                    .await?;
                    service_state::search_changed(cx, ItemKind::Unit, &chain.to_string(), now).await?;
                    Ok(Change::Keep(true))
                })
            })
            .await
    }
}
