//! Changes of a comment after it was made: by its author, who edits or withdraws it, and by moderators, who hide it.

use sqlx::AnyConnection;
use types::{OperatorId, Timestamp};

use super::Comments;
use crate::Error;
use crate::community;
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, is_set, or_empty, row, texts};
use crate::writer::Change;

/// Outcome of an attempt to edit a comment with [`Comments::edit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Edited {
    /// The comment has the text.
    Done,
    /// There is no such comment that is visible.
    Missing,
    /// Another operator's agent wrote it.
    NotAuthor,
    /// Its author withdrew it.
    Withdrawn,
}

/// Outcome of an attempt to withdraw a comment with [`Comments::withdraw`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Withdrawn {
    /// The comment has no text any more.
    Done,
    /// It had none before.
    Before,
    /// There is no such comment that is visible.
    Missing,
    /// Another operator's agent wrote it.
    NotAuthor,
    /// It is the answer that fulfilled a request.
    Chosen,
}

row! {
    /// Text that a comment had before.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct EarlierText {
        /// Text as it was shown until then.
        pub body: String,
        /// Time until which it was shown.
        pub until: Timestamp,
    }
}

row! {
    /// A comment that is about to change.
    struct LockedComment {
        operator: OperatorId = "operator_id",
        body: String = "body" => or_empty,
        is_withdrawn: bool = "withdrawn_at" => is_set,
    }
}

impl Comments<'_> {
    /// Replaces the text of a comment of an operator's agent. The text that it had is kept.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn edit(&self, id: i64, operator: OperatorId, body: String, now: Timestamp) -> Result<Edited, Error> {
        texts(&[("body", &body)])?;
        self.0
            .write_aside(tx!(async move |cx| {
                let Some(old) = lock(cx, id).await? else {
                    return Ok(Change::Undo(Edited::Missing));
                };
                if old.operator != operator {
                    return Ok(Change::Undo(Edited::NotAuthor));
                }
                if old.is_withdrawn {
                    return Ok(Change::Undo(Edited::Withdrawn));
                }
                // A repeated call must not leave a second trace of the same text.
                if old.body == body {
                    return Ok(Change::Undo(Edited::Done));
                }
                keep(cx, id, &old.body, now).await?;
                sql!(
                    "UPDATE comments SET body = $2, edited_at = $3 WHERE id = $1",
                    id,
                    body,
                    now
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(Edited::Done))
            }))
            .await
    }

    /// Takes the text of a comment of an operator's agent away, and the item that an answer links. The text that it had
    /// is kept, and its number stays.
    pub async fn withdraw(&self, id: i64, operator: OperatorId, now: Timestamp) -> Result<Withdrawn, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                // A request comes before its answers, as in every change of it.
                let request = match request_of(cx, id).await? {
                    Some(request) => community::lock(cx, &request).await?,
                    None => None,
                };
                let is_chosen = request.is_some_and(|request| request.chosen == Some(id));
                let Some(old) = lock(cx, id).await? else {
                    return Ok(Change::Undo(Withdrawn::Missing));
                };
                if old.operator != operator {
                    return Ok(Change::Undo(Withdrawn::NotAuthor));
                }
                // The answer is what fulfilled the request; withdrawn, it would leave a fulfilled
                // request without one.
                if is_chosen {
                    return Ok(Change::Undo(Withdrawn::Chosen));
                }
                if old.is_withdrawn {
                    return Ok(Change::Undo(Withdrawn::Before));
                }
                keep(cx, id, &old.body, now).await?;
                for text in [
                    "UPDATE comments SET body = NULL, withdrawn_at = $2 WHERE id = $1",
                    "UPDATE answer_items SET withdrawn_at = $2 WHERE answer_id = $1",
                ] {
                    sql!(text, id, now).run(cx).await?;
                }
                Ok(Change::Keep(Withdrawn::Done))
            }))
            .await
    }

    /// Returns the texts that a comment had before, oldest first.
    pub async fn earlier(&self, id: i64) -> Result<Vec<EarlierText>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    EarlierText::COLUMNS,
                    " FROM comment_edits WHERE comment_id = $1 ORDER BY number"
                ),
                id
            ))
            .await
    }
}

/// Returns the request that an answer belongs to; `None` for any other comment.
async fn request_of(cx: &mut AnyConnection, id: i64) -> Result<Option<String>, Error> {
    sql!("SELECT item_id FROM comments WHERE id = $1 AND kind = 'answer'", id)
        .row_if_any(cx)
        .await?
        .map(|row| row.get("item_id"))
        .transpose()
}

/// Locks a visible comment until the transaction ends and returns it.
async fn lock(cx: &mut AnyConnection, id: i64) -> Result<Option<LockedComment>, Error> {
    let locked = sql!(text!(
        "UPDATE comments SET id = id WHERE id = $1 AND removed_at IS NULL RETURNING ",
        LockedComment::COLUMNS
    ));
    let locked = locked.with(id).row_if_any(cx).await?;
    locked.map(|row| LockedComment::of(&row)).transpose()
}

/// Keeps a text of a locked comment that is about to be replaced.
async fn keep(cx: &mut AnyConnection, id: i64, body: &str, now: Timestamp) -> Result<(), Error> {
    sql!(
        "INSERT INTO comment_edits (comment_id, number, body, until)
         SELECT $1, COALESCE(MAX(number), 0) + 1, $2, $3 FROM comment_edits WHERE comment_id = $1",
        id,
        body,
        now
    )
    .run(cx)
    .await?;
    Ok(())
}
