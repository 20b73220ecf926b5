//! Reviews and questions of verified buyers, with their replies.
//!
//! Invariant: an agent reviews an item once, also if the review was withdrawn or hidden.

use sqlx::any::AnyRow;
use types::vocabulary::{CommentKind, ItemKind};
use types::{AgentId, OperatorId, Timestamp};

use super::{COMMENT, Comment, Comments, NewRow, insert};
use crate::Error;
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, texts};
use crate::search::places;
use crate::writer::Change;

/// The condition on a review that lists show: its item is visible to everybody.
const SHOWN: &str = "comments.kind IN ('review', 'question') AND comments.removed_at IS NULL
       AND (comments.item_kind = 'unit' AND chains.latest_unit IS NOT NULL AND chains.taken_down_at IS NULL
                AND chains.erased_at IS NULL
            OR comments.item_kind = 'dataset' AND projects.visibility = 'public' AND projects.taken_down_at IS NULL)";
/// The tables that a review is read from.
const TABLES: &str = "comments JOIN agents ON agents.id = comments.agent_id
       LEFT JOIN chains ON comments.item_kind = 'unit' AND chains.id = comments.item_id
       LEFT JOIN units ON units.id = chains.latest_unit
       LEFT JOIN projects ON comments.item_kind = 'dataset' AND projects.id = comments.item_id";

/// Expression that is 1 if the operator of a comment bought its item in a trial sale only: with given credits, and neither
/// with bought ones nor from its wallet.
const IS_TRIAL: &str = "CAST(CASE WHEN EXISTS (
               SELECT 1 FROM sales
               WHERE sales.buyer_operator = comments.operator_id AND sales.item_kind = comments.item_kind
                 AND sales.item_id = comments.item_id AND sales.paid_with = 'given')
           AND NOT EXISTS (
               SELECT 1 FROM sales
               WHERE sales.buyer_operator = comments.operator_id AND sales.item_kind = comments.item_kind
                 AND sales.item_id = comments.item_id AND sales.paid_with <> 'given' AND sales.state <> 'refunded')
           AND NOT EXISTS (
               SELECT 1 FROM entitlements JOIN sales ON sales.id = entitlements.sale_id
               WHERE entitlements.owner = 'op:' || comments.operator_id
                 AND entitlements.item_kind = comments.item_kind AND entitlements.item_id = comments.item_id
                 AND sales.paid_with <> 'given')
       THEN 1 ELSE 0 END AS BIGINT) AS is_trial";

/// A review or a question to add. The caller has found that the operator bought the item.
#[derive(Clone, Debug)]
pub struct NewReview {
    /// True for a question.
    pub is_question: bool,
    /// Kind of the item.
    pub kind: ItemKind,
    /// The chain of a unit, or the id of a dataset.
    pub item: String,
    /// Version of the unit that was named.
    pub version: Option<String>,
    /// Agent that writes the review or question.
    pub agent: AgentId,
    /// Operator of the agent.
    pub operator: OperatorId,
    /// Text of the review or question.
    pub body: String,
    /// Time of the review.
    pub now: Timestamp,
}

/// Outcome of an attempt to add a review with [`Comments::review`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Reviewed {
    /// It was added under this number.
    Added(i64),
    /// The agent reviewed the item before.
    Before,
}

/// A review or a question, with the name of its item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    /// Comment that is the review or question.
    pub comment: Comment,
    /// Latest version of the unit, or slug of the dataset.
    pub name: String,
    /// Title of the item.
    pub title: String,
    /// Operator of the item.
    pub owner: OperatorId,
    /// True if its operator bought the item in a trial sale only.
    pub is_trial: bool,
}

impl Comments<'_> {
    /// Adds a review or a question.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn review(&self, new: NewReview) -> Result<Reviewed, Error> {
        texts(&[("body", &new.body)])?;
        let made = |reviewed: &Reviewed| match reviewed {
            Reviewed::Added(id) => id.to_string(),
            Reviewed::Before => String::new(),
        };
        self.0
            .make_aside(
                made,
                tx!(async move |cx| {
                    let row = NewRow {
                        kind: if new.is_question {
                            CommentKind::Question
                        } else {
                            CommentKind::Review
                        },
                        about: new.kind.into(),
                        item: &new.item,
                        version: new.version.as_deref(),
                        agent: new.agent,
                        operator: new.operator,
                        parent: None,
                        thread: None,
                        body: &new.body,
                        now: new.now,
                    };
                    // The unique key of agent and item decides, also between two calls at the same
                    // time.
                    Ok(match insert(cx, row).await? {
                        Some(id) => Change::Keep(Reviewed::Added(id)),
                        None => Change::Undo(Reviewed::Before),
                    })
                }),
            )
            .await
    }

    /// Returns true if the operator of a review or a question bought the item in a trial sale only.
    pub async fn is_trial(&self, id: i64) -> Result<bool, Error> {
        self.0
            .read(async {
                let row = sql!(text!("SELECT ", IS_TRIAL, " FROM comments WHERE comments.id = $1"), id)
                    .row_if_any(&mut self.0.readers())
                    .await?;
                Ok(row.map(|row| row.get("is_trial")).transpose()?.unwrap_or(false))
            })
            .await
    }

    /// Returns a page of the reviews and questions of an item, or of all items that everybody sees, newest first.
    pub async fn reviews(&self, item: Option<(ItemKind, &str)>, offset: u64, limit: u32) -> Result<Vec<Review>, Error> {
        let of_item = condition(item);
        let text = format!(
            "SELECT {COMMENT}, chains.latest_unit AS latest_unit, units.title AS unit_title, projects.slug AS slug,
                    projects.title AS dataset_title, COALESCE(chains.operator_id, projects.operator_id) AS owner_id,
                    {IS_TRIAL}
             FROM {TABLES} WHERE {SHOWN} {of_item} ORDER BY comments.id DESC LIMIT $3 OFFSET $4"
        );
        let (kind, id) = named(item);
        self.0
            .read(async {
                sql!(
                    sqlx::AssertSqlSafe(text),
                    kind,
                    id,
                    limit,
                    i64::try_from(offset).unwrap_or(i64::MAX)
                )
                .rows(&mut self.0.readers())
                .await?
                .iter()
                .map(review)
                .collect()
            })
            .await
    }

    /// Returns the number of reviews and questions on all pages.
    pub async fn review_count(&self, item: Option<(ItemKind, &str)>) -> Result<u64, Error> {
        let of_item = condition(item);
        let text = format!("SELECT COUNT(*) AS used FROM {TABLES} WHERE {SHOWN} {of_item}");
        let (kind, id) = named(item);
        self.0
            .read(async {
                sql!(sqlx::AssertSqlSafe(text), kind, id)
                    .row(&mut self.0.readers())
                    .await?
                    .get("used")
            })
            .await
    }

    /// Returns the visible replies to reviews and questions, oldest first, at most `limit`.
    pub async fn replies(&self, threads: &[i64], limit: u32) -> Result<Vec<Comment>, Error> {
        if threads.is_empty() {
            return Ok(Vec::new());
        }
        let text = format!(
            "SELECT {COMMENT} FROM comments JOIN agents ON agents.id = comments.agent_id
             WHERE comments.thread_id IN ({}) AND comments.removed_at IS NULL ORDER BY comments.id LIMIT ${}",
            places(threads.len()),
            threads.len() + 1
        );
        self.0
            .read(async {
                let mut query = sql!(sqlx::AssertSqlSafe(text));
                for thread in threads {
                    query = query.with(*thread);
                }
                let query = query.with(limit);
                query.all(&mut self.0.readers()).await
            })
            .await
    }
}

/// Returns the condition on an item. Both statements bind its kind and id, whether or not they name one.
const fn condition(item: Option<(ItemKind, &str)>) -> &'static str {
    if item.is_some() {
        "AND comments.item_kind = $1 AND comments.item_id = $2"
    } else {
        // Both parameters are empty texts then. They stand in the statement because PostgreSQL cannot
        // type a parameter that is bound and never used.
        "AND $1 = $2"
    }
}

fn named(item: Option<(ItemKind, &str)>) -> (&'static str, String) {
    item.map_or_else(Default::default, |(kind, id)| (kind.as_str(), id.to_owned()))
}

fn review(row: &AnyRow) -> Result<Review, Error> {
    let comment = Comment::of(row)?;
    // The joins give the columns of the item's kind only.
    let of_unit = row.get::<Option<String>>("latest_unit")?.zip(row.get("unit_title")?);
    let (name, title) = match of_unit {
        Some(unit) => unit,
        None => (row.get("slug")?, row.get("dataset_title")?),
    };
    Ok(Review {
        comment,
        name,
        title,
        owner: row.get("owner_id")?,
        is_trial: row.get("is_trial")?,
    })
}
