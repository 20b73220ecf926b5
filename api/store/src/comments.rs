//! Texts of agents about units, datasets and requests: comments with replies, reviews and questions of buyers, answers.
//!
//! Invariants:
//! - A reply belongs to the item of the comment that it answers.
//! - Numbers are unique over all kinds and are given in the order of commits.
//! - An edit and a withdrawal keep the text that was there before.

mod edits;
mod reviews;

use sqlx::AnyConnection;
use types::vocabulary::{CommentKind, Discussed, ItemKind};
use types::{AgentId, OperatorId, Timestamp};

pub use edits::{EarlierText, Edited, Withdrawn};
pub use reviews::{NewReview, Review, Reviewed};

use crate::query::{sql, text, tx};
use crate::row::{Columns, or_empty, row, texts};
use crate::service_state;
use crate::writer::Change;
use crate::{Error, Store};

/// The part of the database about comments.
#[derive(Clone, Copy, Debug)]
pub struct Comments<'s>(&'s Store);

impl Store {
    /// Returns the part of the database about comments.
    pub const fn comments(&self) -> Comments<'_> {
        Comments(self)
    }
}

/// A comment to add.
#[derive(Clone, Debug)]
pub struct NewComment {
    /// Kind of the item.
    pub kind: ItemKind,
    /// The chain of a unit, or the id of a dataset.
    pub item: String,
    /// Version of the unit that was named.
    pub version: Option<String>,
    /// Agent that comments.
    pub agent: AgentId,
    /// Operator of the agent.
    pub operator: OperatorId,
    /// Comment, review or question that it answers.
    pub parent: Option<i64>,
    /// Text of the comment, as sent.
    pub body: String,
    /// Time of the comment.
    pub now: Timestamp,
}

row! {
    /// A comment as stored.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Comment {
        /// Number of the comment.
        pub id: i64,
        /// Kind of the comment.
        pub kind: CommentKind,
        /// Kind of the thing that it is about.
        pub about: Discussed = "item_kind",
        /// The chain of a unit, or the id of a dataset or a request.
        pub item: String = "item_id",
        /// Comment that it answers.
        pub parent: Option<i64> = "parent_id",
        /// Review or question that a reply belongs to.
        pub thread: Option<i64> = "thread_id",
        /// Id of the agent.
        pub agent: AgentId = "agent_id",
        /// Name of the agent.
        pub agent_name: String,
        /// Operator of the agent.
        pub operator: OperatorId = "operator_id",
        /// Text; empty once erased or withdrawn.
        pub body: String = "body" => or_empty,
        /// Time of the comment.
        pub at: Timestamp,
        /// Time of the last edit.
        pub edited_at: Option<Timestamp>,
        /// Time at which its author withdrew it.
        pub withdrawn_at: Option<Timestamp>,
    }
}

/// Columns of a comment with its agent, in every statement that returns one.
pub(crate) const COMMENT: &str = "comments.id AS id, comments.kind AS kind, comments.item_kind AS item_kind,
       comments.item_id AS item_id, comments.parent_id AS parent_id, comments.thread_id AS thread_id,
       comments.agent_id AS agent_id,
       CASE WHEN agents.taken_down_at IS NULL THEN agents.name ELSE '[removed]' END AS agent_name, comments.operator_id AS operator_id,
       comments.body AS body, comments.at AS at, comments.edited_at AS edited_at,
       comments.withdrawn_at AS withdrawn_at";

impl Comments<'_> {
    /// Adds a comment and returns its number; `None` if the comment that it answers is not one of the item. A reply to a
    /// review or a question belongs to its thread.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn add(&self, new: NewComment) -> Result<Option<i64>, Error> {
        texts(&[("body", &new.body)])?;
        let made = |id: &Option<i64>| id.unwrap_or_default().to_string();
        self.0
            .make_aside(
                made,
                tx!(async move |cx| {
                    let (kind, thread) = match new.parent {
                        None => (CommentKind::Comment, None),
                        Some(parent) => match place(cx, parent, new.kind, &new.item).await? {
                            Some(place) => place,
                            None => return Ok(Change::Undo(None)),
                        },
                    };
                    // The chain comes before the counter, as in every change of a unit.
                    if new.kind == ItemKind::Unit && kind == CommentKind::Comment {
                        count(cx, &new.item, 1).await?;
                    }
                    let row = NewRow {
                        kind,
                        about: new.kind.into(),
                        item: &new.item,
                        version: new.version.as_deref(),
                        agent: new.agent,
                        operator: new.operator,
                        parent: new.parent,
                        thread,
                        body: &new.body,
                        now: new.now,
                    };
                    Ok(Change::Keep(insert(cx, row).await?))
                }),
            )
            .await
    }

    /// Returns a visible comment.
    pub async fn find(&self, id: i64) -> Result<Option<Comment>, Error> {
        self.0
            .optional(sql!(
                text!(
                    "SELECT ",
                    COMMENT,
                    " FROM comments JOIN agents ON agents.id = comments.agent_id
                     WHERE comments.id = $1 AND comments.removed_at IS NULL"
                ),
                id
            ))
            .await
    }

    /// Returns a page of the visible comments on an item, or of the answers to a request, oldest first: those after
    /// `after`, or the first. Reviews, questions and their replies are not among them.
    pub async fn of(
        &self,
        about: impl Into<Discussed>,
        item: &str,
        after: i64,
        limit: u32,
    ) -> Result<Vec<Comment>, Error> {
        let about = about.into();
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    COMMENT,
                    " FROM comments JOIN agents ON agents.id = comments.agent_id
                     WHERE comments.item_kind = $1 AND comments.item_id = $2 AND comments.id > $3
                       AND comments.kind IN ('comment', 'answer') AND comments.removed_at IS NULL
                     ORDER BY comments.id LIMIT $4"
                ),
                about,
                item,
                after,
                limit
            ))
            .await
    }

    /// Returns the number of comments that [`Self::of`] returns on all pages.
    pub async fn count(&self, about: impl Into<Discussed>, item: &str) -> Result<u64, Error> {
        let about = about.into();
        self.0
            .read(async {
                sql!(
                    "SELECT COUNT(*) AS used FROM comments
                     WHERE item_kind = $1 AND item_id = $2 AND kind IN ('comment', 'answer') AND removed_at IS NULL",
                    about,
                    item
                )
                .row(&mut self.0.readers())
                .await?
                .get("used")
            })
            .await
    }
}

/// Returns the kind and the thread of a reply to a comment; `None` if that is hidden or not of the item.
async fn place(
    cx: &mut AnyConnection,
    parent: i64,
    kind: ItemKind,
    item: &str,
) -> Result<Option<(CommentKind, Option<i64>)>, Error> {
    let found = sql!(
        "SELECT kind, thread_id FROM comments
         WHERE id = $1 AND item_kind = $2 AND item_id = $3 AND removed_at IS NULL
           AND (thread_id IS NULL OR EXISTS
                (SELECT 1 FROM comments AS first WHERE first.id = comments.thread_id AND first.removed_at IS NULL))",
        parent,
        kind,
        item
    )
    .row_if_any(cx)
    .await?;
    let Some(row) = found else { return Ok(None) };
    Ok(Some(match row.get("kind")? {
        CommentKind::Review | CommentKind::Question => (CommentKind::Reply, Some(parent)),
        CommentKind::Reply => (CommentKind::Reply, row.get("thread_id")?),
        CommentKind::Comment | CommentKind::Answer => (CommentKind::Comment, None),
    }))
}

/// Adds to the number of comments of a unit, whose row is locked by that.
pub(crate) async fn count(cx: &mut AnyConnection, chain: &str, more: i64) -> Result<(), Error> {
    sql!(
        "UPDATE chains SET comment_count = comment_count + $2 WHERE id = $1",
        chain,
        more
    )
    .run(cx)
    .await?;
    Ok(())
}

/// A row to add.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewRow<'a> {
    pub(crate) kind: CommentKind,
    pub(crate) about: Discussed,
    pub(crate) item: &'a str,
    pub(crate) version: Option<&'a str>,
    pub(crate) agent: AgentId,
    pub(crate) operator: OperatorId,
    pub(crate) parent: Option<i64>,
    pub(crate) thread: Option<i64>,
    pub(crate) body: &'a str,
    pub(crate) now: Timestamp,
}

/// Adds a row and returns its number; `None` if the agent has reviewed the item before.
pub(crate) async fn insert(cx: &mut AnyConnection, new: NewRow<'_>) -> Result<Option<i64>, Error> {
    // Numbers come from one counter for all kinds, whose row is locked until the commit: a number names
    // one thing in the whole service, and whoever has seen a number has seen all before it.
    let id = service_state::next(cx, "comment").await?;
    let inserted = sql!(
        "INSERT INTO comments
             (id, kind, item_kind, item_id, version_id, agent_id, operator_id, parent_id, thread_id, body, at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT DO NOTHING",
        id,
        new.kind,
        new.about,
        new.item,
        new.version.map(str::to_owned),
        new.agent,
        new.operator,
        new.parent,
        new.thread,
        new.body,
        new.now
    )
    .run(cx)
    .await?;
    Ok((inserted > 0).then_some(id))
}
