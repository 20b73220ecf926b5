//! Decisions: taking an item down, showing it again, the answer of its owner, and the log.
//!
//! Invariant: the row of a report or takedown is locked before it is judged, so each is decided once.

use std::time::Duration;

use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use types::vocabulary::{ReportKind, ReportStatus};
use types::{OperatorId, ReportId, TakedownId, Timestamp};

use super::reports::{digest, find};
use super::{Decided, DecisionLetters, Digest, Moderation, Takedown, Uphold, items};
use crate::query::{sql, text, tx};
use crate::row::{Columns, texts};
use crate::writer::Change;
use crate::{Error, NewJob, jobs};

pub(super) const TAKEDOWN: &str =
    "SELECT id, kind, item_id, named, reason, note, operator_id, at, decided_by, answer, answered_at, restored_at,
            restored_by, restored_note
     FROM takedowns";

/// Letter to the owner of what was taken down.
pub(super) const DOWN: &str = "down";
/// Letter to the owner of what is shown again.
const BACK: &str = "back";

impl Moderation<'_> {
    /// Takes the item of a report down: it is hidden, the owner and the buyers get letters, and every open report on the
    /// item is upheld with it.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn uphold(&self, new: Uphold) -> Result<Decided, Error> {
        texts(&[("note", new.note.as_deref().unwrap_or_default())])?;
        self.0
            .write(tx!(async move |cx| {
                // Locked before it is read: of two moderators the second finds the decision of the
                // first.
                lock_report(cx, new.report).await?;
                let Some(report) = find(cx, new.report).await? else {
                    return Ok(Change::Undo(Decided::Unknown));
                };
                if report.status != ReportStatus::Open {
                    return Ok(Change::Undo(Decided::Before));
                }
                // The item may be gone since it was reported, and then there is nothing to hide and
                // nobody to tell.
                let Some(owner) = items::owner(cx, report.kind, &report.item).await? else {
                    return Ok(Change::Undo(Decided::Gone));
                };
                let takedown = Takedown {
                    id: new.takedown,
                    kind: report.kind,
                    item: report.item,
                    named: report.named,
                    reason: report.reason,
                    note: new.note.clone(),
                    owner,
                    at: new.now,
                    decided_by: new.by,
                    answer: None,
                    restored_at: None,
                    restored_by: None,
                    restored_note: None,
                };
                // The unique index allows one takedown in force for an item, so two reports of it
                // end in one.
                if !insert(cx, &takedown).await? {
                    return Ok(Change::Undo(Decided::Before));
                }
                sql!(
                    "UPDATE reports SET status = 'upheld', decided_at = $3, takedown_id = $4
                     WHERE kind = $1 AND item_id = $2 AND status = 'open'",
                    takedown.kind,
                    takedown.item.as_str(),
                    new.now,
                    takedown.id
                )
                .run(cx)
                .await?;
                tell_owner(
                    cx,
                    &takedown,
                    DOWN,
                    (&new.letters.kind, &new.letters.owner),
                    new.now,
                    new.letters.wait,
                )
                .await?;
                if matches!(takedown.kind, ReportKind::Unit | ReportKind::Dataset) {
                    tell_buyers(cx, &takedown, &new.letters).await?;
                }
                // Last, because it may take the counter of the search, for which every other change
                // of an item waits.
                items::hide(cx, takedown.kind, &takedown.item, Some(takedown.reason), new.now).await?;
                Ok(Change::Keep(Decided::Done(Box::new(takedown))))
            }))
            .await
    }

    /// Closes a report without a change of its item, by an operator or, with `None`, at the command line. Returns `None` if
    /// there is no such report, false if it was decided before.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn dismiss(
        &self,
        report: ReportId,
        by: Option<OperatorId>,
        note: Option<String>,
        now: Timestamp,
    ) -> Result<Option<bool>, Error> {
        texts(&[("note", note.as_deref().unwrap_or_default())])?;
        self.0
            .write_aside(tx!(async move |cx| {
                lock_report(cx, report).await?;
                let Some(found) = find(cx, report).await? else {
                    return Ok(Change::Undo(None));
                };
                if found.status != ReportStatus::Open {
                    return Ok(Change::Undo(Some(false)));
                }
                sql!(
                    "UPDATE reports SET status = 'dismissed', decided_at = $2, note = $3, decided_by = $4 WHERE id = $1",
                    report,
                    now,
                    note,
                    by
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(Some(true)))
            }))
            .await
    }

    /// Shows an item again for a reason, and tells its owner by a letter with the input `payload`.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn restore(
        &self,
        takedown: TakedownId,
        by: Option<OperatorId>,
        note: Option<String>,
        (kind, payload): (String, String),
        now: Timestamp,
    ) -> Result<Decided, Error> {
        texts(&[("note", note.as_deref().unwrap_or_default())])?;
        self.0
            .write(tx!(async move |cx| {
                let row = sql!(
                    "UPDATE takedowns SET kind = kind WHERE id = $1 RETURNING restored_at",
                    takedown
                )
                .row_if_any(cx)
                .await?;
                let Some(row) = row else {
                    return Ok(Change::Undo(Decided::Unknown));
                };
                if row.get::<Option<Timestamp>>("restored_at")?.is_some() {
                    return Ok(Change::Undo(Decided::Before));
                }
                sql!(
                    "UPDATE takedowns SET restored_at = $2, restored_by = $3, restored_note = $4 WHERE id = $1",
                    takedown,
                    now,
                    by,
                    note
                )
                .run(cx)
                .await?;
                let row = sql!(text!(TAKEDOWN, " WHERE id = $1"), takedown).row(cx).await?;
                let restored = read(&row)?;
                tell_owner(cx, &restored, BACK, (&kind, &payload), now, Duration::ZERO).await?;
                items::hide(cx, restored.kind, &restored.item, None, now).await?;
                Ok(Change::Keep(Decided::Done(Box::new(restored))))
            }))
            .await
    }

    /// Keeps the answer of the owner to a takedown in force; a later answer takes the place of an earlier one. The
    /// moderators get a letter. Returns false if the operator has no such takedown.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn answer(
        &self,
        owner: OperatorId,
        takedown: TakedownId,
        answer: String,
        letter: Digest,
        now: Timestamp,
    ) -> Result<bool, Error> {
        texts(&[("answer", &answer)])?;
        self.0
            .write_aside(tx!(async move |cx| {
                // The operator is part of the condition, so nobody answers for another; an item
                // that is shown again needs no answer.
                let kept = sql!(
                    "UPDATE takedowns SET answer = $3, answered_at = $4
                     WHERE id = $1 AND operator_id = $2 AND restored_at IS NULL",
                    takedown,
                    owner.to_string(),
                    answer,
                    now
                )
                .run(cx)
                .await?;
                if kept == 0 {
                    return Ok(Change::Undo(false));
                }
                digest(cx, &letter, now).await?;
                Ok(Change::Keep(true))
            }))
            .await
    }

    /// Returns the takedown with this id.
    pub async fn takedown(&self, id: TakedownId) -> Result<Option<Takedown>, Error> {
        self.0
            .read(async {
                sql!(text!(TAKEDOWN, " WHERE id = $1"), id)
                    .row_if_any(&mut self.0.readers())
                    .await?
                    .map(|row| read(&row))
                    .transpose()
            })
            .await
    }

    /// Returns takedowns, newest first, up to `limit`: of an owner or of all, those before `before` only.
    pub async fn takedowns(
        &self,
        owner: Option<OperatorId>,
        before: Option<TakedownId>,
        limit: u32,
    ) -> Result<Vec<Takedown>, Error> {
        self.0
            .read(async {
                sql!(
                    text!(
                        TAKEDOWN,
                        " WHERE ($1 = '' OR operator_id = $1) AND ($2 = '' OR id < $2) ORDER BY id DESC LIMIT $3"
                    ),
                    owner.map(|owner| owner.to_string()).unwrap_or_default(),
                    before.map(|id| id.to_string()).unwrap_or_default(),
                    limit
                )
                .rows(&mut self.0.readers())
                .await?
                .iter()
                .map(read)
                .collect()
            })
            .await
    }

    /// Counts the answers of owners of a time to takedowns in force.
    pub async fn answers_between(&self, from: Timestamp, to: Timestamp) -> Result<u64, Error> {
        self.0
            .read(async {
                sql!(
                    "SELECT COUNT(*) AS used FROM takedowns
                     WHERE answered_at >= $1 AND answered_at < $2 AND restored_at IS NULL",
                    from,
                    to
                )
                .row(&mut self.0.readers())
                .await?
                .get("used")
            })
            .await
    }
}

/// Locks a report until the transaction ends.
pub(super) async fn lock_report(cx: &mut AnyConnection, id: ReportId) -> Result<(), Error> {
    sql!("UPDATE reports SET kind = kind WHERE id = $1", id).run(cx).await?;
    Ok(())
}

/// Adds a takedown. Returns false if the item has one in force.
async fn insert(cx: &mut AnyConnection, new: &Takedown) -> Result<bool, Error> {
    let inserted = sql!(
        "INSERT INTO takedowns (id, kind, item_id, named, reason, note, operator_id, at, decided_by)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING",
        new.id,
        new.kind,
        new.item.as_str(),
        new.named.as_str(),
        new.reason,
        new.note.as_deref(),
        new.owner,
        new.at,
        new.decided_by
    )
    .run(cx)
    .await?;
    Ok(inserted > 0)
}

/// Adds the letter to the owner of an item.
async fn tell_owner(
    cx: &mut AnyConnection,
    takedown: &Takedown,
    what: &str,
    (kind, payload): (&str, &str),
    now: Timestamp,
    wait: Duration,
) -> Result<(), Error> {
    let job = NewJob {
        // A fixed id: the job is one, however often the transaction is tried.
        id: letter_id(takedown.id, what),
        kind: kind.to_owned(),
        dedupe: None,
        operator: Some(takedown.owner),
        payload: payload.to_owned(),
        due_at: now.plus(wait),
        now,
    };
    jobs::insert(cx, &job).await?;
    Ok(())
}

/// Returns the id of the job of a letter: of the takedown, and of its reader or its kind.
pub(super) fn letter_id(takedown: TakedownId, what: &str) -> String {
    format!("{takedown}-{what}")
}

/// Adds a letter to every operator that bought an item. Wallets without an operator have no address.
async fn tell_buyers(cx: &mut AnyConnection, takedown: &Takedown, letters: &DecisionLetters) -> Result<(), Error> {
    sql!(
        "INSERT INTO jobs (id, kind, operator_id, payload, due_at, attempts, created_at)
         SELECT CAST($1 AS TEXT) || '-' || SUBSTR(owner, 4), CAST($2 AS TEXT), SUBSTR(owner, 4), CAST($3 AS TEXT),
                CAST($4 AS BIGINT), 0, CAST($5 AS BIGINT)
         FROM entitlements WHERE item_kind = $6 AND item_id = $7 AND owner LIKE 'op:%'",
        takedown.id,
        letters.kind.as_str(),
        letters.buyers.as_str(),
        takedown.at.plus(letters.wait),
        takedown.at,
        takedown.kind,
        takedown.item.as_str()
    )
    .run(cx)
    .await?;
    Ok(())
}

pub(super) fn read(row: &AnyRow) -> Result<Takedown, Error> {
    Ok(Takedown {
        id: row.get("id")?,
        kind: row.get("kind")?,
        item: row.get("item_id")?,
        named: row.get("named")?,
        reason: row.get("reason")?,
        note: row.get("note")?,
        owner: row.get("operator_id")?,
        at: row.get("at")?,
        decided_by: row.get("decided_by")?,
        answer: row.get::<Option<Timestamp>>("answered_at")?.zip(row.get("answer")?),
        restored_at: row.get("restored_at")?,
        restored_by: row.get("restored_by")?,
        restored_note: row.get("restored_note")?,
    })
}
