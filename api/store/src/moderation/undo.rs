//! Decisions that are taken back before anybody outside was told.
//!
//! Invariant: a decision is undone only while each of its letters is a job that nobody has begun; the letters go with it.

use std::time::Duration;

use types::vocabulary::ReportStatus;
use types::{ReportId, TakedownId, Timestamp};

use super::reports::find;
use super::takedowns::{DOWN, TAKEDOWN, letter_id, lock_report, read};
use super::{Moderation, Takedown, items};
use crate::Error;
use crate::query::{sql, text, tx};
use crate::writer::Change;

/// Time for which a decision in the console can be taken back.
pub const UNDO_LASTS: Duration = Duration::from_mins(10);

/// The result of [`Moderation::undo`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Undone {
    /// Takedown that is taken back: the item is shown, the reports that it upheld are open, and no letter leaves.
    Done(Box<Takedown>),
    /// There is no such takedown.
    Unknown,
    /// Its letters have left, or the item is shown again already.
    Late,
}

impl Moderation<'_> {
    /// Takes a takedown back as if it had not been made: the item is shown, the reports that it upheld are open, and no letter
    /// leaves.
    pub async fn undo(&self, takedown: TakedownId, now: Timestamp) -> Result<Undone, Error> {
        self.0
            .write(tx!(async move |cx| {
                let locked = sql!("UPDATE takedowns SET kind = kind WHERE id = $1", takedown)
                    .run(cx)
                    .await?;
                if locked == 0 {
                    return Ok(Change::Undo(Undone::Unknown));
                }
                let row = sql!(text!(TAKEDOWN, " WHERE id = $1"), takedown).row(cx).await?;
                let found = read(&row)?;
                let is_over = found.at.plus(UNDO_LASTS) <= now;
                // What was decided at the command line was told at once, and an answer of the owner is not lost.
                if found.decided_by.is_none() || found.answer.is_some() || is_over {
                    return Ok(Change::Undo(Undone::Late));
                }
                // The letter to the owner is there and nobody has begun it: the jobs say what was told, whatever the
                // clocks say.
                let unsent = sql!(
                    "DELETE FROM jobs WHERE id = $1 AND attempts = 0 AND leased_until IS NULL",
                    letter_id(takedown, DOWN)
                )
                .run(cx)
                .await?;
                if unsent == 0 || found.restored_at.is_some() {
                    return Ok(Change::Undo(Undone::Late));
                }
                let others = letter_id(takedown, "");
                // The character behind the hyphen is the full stop, so this is every id that begins so.
                let end = format!("{takedown}.");
                sql!(
                    "DELETE FROM jobs WHERE id >= $1 AND id < $2 AND attempts = 0 AND leased_until IS NULL",
                    others.as_str(),
                    end.as_str()
                )
                .run(cx)
                .await?;
                let begun = sql!(
                    "SELECT id FROM jobs WHERE id >= $1 AND id < $2 LIMIT 1",
                    others.as_str(),
                    end.as_str()
                )
                .row_if_any(cx)
                .await?;
                if begun.is_some() {
                    return Ok(Change::Undo(Undone::Late));
                }
                sql!(
                    "UPDATE reports SET status = 'open', decided_at = NULL, takedown_id = NULL
                     WHERE kind = $1 AND item_id = $2 AND status = 'upheld' AND takedown_id = $3",
                    found.kind,
                    found.item.as_str(),
                    takedown
                )
                .run(cx)
                .await?;
                sql!("DELETE FROM takedowns WHERE id = $1", takedown).run(cx).await?;
                items::hide(cx, found.kind, &found.item, None, now).await?;
                Ok(Change::Keep(Undone::Done(Box::new(found))))
            }))
            .await
    }

    /// Opens a report again that was dismissed less than [`UNDO_LASTS`] ago. Returns `None` if there is no such report, false
    /// if it is not dismissed, or was earlier.
    pub async fn reopen(&self, report: ReportId, now: Timestamp) -> Result<Option<bool>, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                lock_report(cx, report).await?;
                let Some(found) = find(cx, report).await? else {
                    return Ok(Change::Undo(None));
                };
                let is_late = found.decided_at.is_none_or(|at| at <= now.minus(UNDO_LASTS));
                if found.status != ReportStatus::Dismissed || is_late {
                    return Ok(Change::Undo(Some(false)));
                }
                sql!(
                    "UPDATE reports SET status = 'open', decided_at = NULL, note = NULL, decided_by = NULL WHERE id = $1",
                    report
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(Some(true)))
            }))
            .await
    }
}
