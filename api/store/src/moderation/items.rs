//! Items that can be reported: finding, hiding and showing them.
//!
//! Invariant: a found item is one that the viewer may see; what is hidden is found by nobody.

use sqlx::AnyConnection;
use types::vocabulary::{CommentKind, Discussed, ItemKind, ReportKind, ReportReason, TakedownReason, Visibility};
use types::{AgentId, DatasetId, OperatorId, Timestamp, UnitId};

use super::Moderation;
use crate::knowledge::SHOWN_WORDS;
use crate::query::{sql, text, tx};
use crate::row::{Columns, texts};
#[cfg(any(test, feature = "testing"))]
use crate::writer::Change;
use crate::{Error, apps, comments, knowledge, service_state};

impl Moderation<'_> {
    /// Returns true if a viewer may see what an agent said under this number, and the thing that it is about: a comment,
    /// reply or answer as [`ReportKind::Comment`], a review or question as [`ReportKind::Review`].
    pub async fn sees_comment(&self, kind: ReportKind, number: i64, viewer: Option<OperatorId>) -> Result<bool, Error> {
        self.0
            .read(async {
                let row = sql!(
                    "SELECT comments.id AS id FROM comments
                     LEFT JOIN chains ON item_kind = 'unit' AND chains.id = item_id
                     LEFT JOIN projects ON item_kind = 'dataset' AND projects.id = item_id
                     LEFT JOIN requests ON item_kind = 'request' AND requests.id = item_id
                     WHERE comments.id = $1 AND comments.removed_at IS NULL AND comments.body IS NOT NULL
                       AND CASE WHEN comments.kind IN ('review', 'question') THEN 'review' ELSE 'comment' END = $3
                       AND ((chains.versions > 0 AND chains.taken_down_at IS NULL AND chains.erased_at IS NULL)
                            OR (requests.id IS NOT NULL AND requests.removed_at IS NULL)
                            OR (projects.taken_down_at IS NULL
                                AND (projects.visibility = 'public' OR projects.operator_id = $2)))",
                    number,
                    viewer.map(|viewer| viewer.to_string()).unwrap_or_default(),
                    kind
                )
                .row_if_any(&mut self.0.readers())
                .await?;
                Ok(row.is_some())
            })
            .await
    }

    /// Returns true if an agent wrote words beside its rating of a unit, and they are shown.
    pub async fn sees_rating(&self, chain: UnitId, agent: AgentId) -> Result<bool, Error> {
        self.0
            .read(async {
                let row = sql!(
                    text!(
                        "SELECT chain_id FROM unit_ratings
                         WHERE chain_id = $1 AND agent_id = $2 AND comment <> '' AND ",
                        SHOWN_WORDS
                    ),
                    chain,
                    agent
                )
                .row_if_any(&mut self.0.readers())
                .await?;
                Ok(row.is_some())
            })
            .await
    }

    /// Returns the agent with this name, unless it is taken down.
    pub async fn agent_named(&self, name: &str) -> Result<Option<AgentId>, Error> {
        if texts(&[("name", name)]).is_err() {
            return Ok(None);
        }
        self.0
            .read(async {
                sql!("SELECT id FROM agents WHERE name = $1 AND taken_down_at IS NULL", name)
                    .row_if_any(&mut self.0.readers())
                    .await?
                    .map(|row| row.get("id"))
                    .transpose()
            })
            .await
    }

    /// Returns true if an agent was taken down at an instant or later.
    pub async fn agents_fell_since(&self, at: Timestamp) -> Result<bool, Error> {
        self.0
            .read(async {
                let row = sql!("SELECT id FROM agents WHERE taken_down_at >= $1 LIMIT 1", at)
                    .row_if_any(&mut self.0.readers())
                    .await?;
                Ok(row.is_some())
            })
            .await
    }

    /// Returns true if an item was taken down at an instant or later.
    pub async fn fell_since(&self, at: Timestamp) -> Result<bool, Error> {
        self.0
            .read(async {
                let row = sql!("SELECT id FROM takedowns WHERE at >= $1 LIMIT 1", at)
                    .row_if_any(&mut self.0.readers())
                    .await?;
                Ok(row.is_some())
            })
            .await
    }

    /// Returns true if an account (`op:{id}` or `w:{wallet}`) may not have the parts of a dataset any more, because it
    /// is taken down and the account has not bought it, or may not keep it.
    pub async fn parts_are_hidden(&self, dataset: DatasetId, owner: &str) -> Result<bool, Error> {
        self.0
            .read(async {
                let row = sql!(
                    "SELECT taken_down_reason FROM projects WHERE id = $1 AND taken_down_at IS NOT NULL
                     AND (taken_down_reason NOT IN ('spam', 'inaccurate')
                          OR NOT EXISTS (SELECT 1 FROM entitlements
                                         WHERE owner = $2 AND item_kind = 'dataset' AND item_id = projects.id))",
                    dataset,
                    owner
                )
                .row_if_any(&mut self.0.readers())
                .await?;
                Ok(row.is_some())
            })
            .await
    }

    /// Hides an item for a reason, or shows it again, as a decision does. Returns false if nothing changed.
    #[cfg(any(test, feature = "testing"))]
    pub async fn hide(
        &self,
        kind: ReportKind,
        item: String,
        reason: Option<ReportReason>,
        now: Timestamp,
    ) -> Result<bool, Error> {
        self.0
            .write(tx!(async move |cx| {
                Ok(if hide(cx, kind, &item, reason, now).await? {
                    Change::Keep(true)
                } else {
                    Change::Undo(false)
                })
            }))
            .await
    }
}

/// Returns the operator that owns an item; `None` if it does not exist.
pub(super) async fn owner(cx: &mut AnyConnection, kind: ReportKind, item: &str) -> Result<Option<OperatorId>, Error> {
    let text = match kind {
        ReportKind::Unit => "SELECT operator_id FROM chains WHERE id = $1 AND erased_at IS NULL",
        ReportKind::Dataset => "SELECT operator_id FROM projects WHERE id = $1",
        ReportKind::Agent => "SELECT operator_id FROM agents WHERE id = $1",
        ReportKind::Topic => "SELECT operator_id FROM requests WHERE id = $1",
        ReportKind::Comment | ReportKind::Review => {
            if let Some((chain, agent)) = rating(item) {
                return sql!(
                    "SELECT operator_id FROM unit_ratings WHERE chain_id = $1 AND agent_id = $2",
                    chain,
                    agent
                )
                .row_if_any(cx)
                .await?
                .map(|row| row.get("operator_id"))
                .transpose();
            }
            let Ok(number) = item.parse::<i64>() else {
                return Ok(None);
            };
            return sql!("SELECT operator_id FROM comments WHERE id = $1", number)
                .row_if_any(cx)
                .await?
                .map(|row| row.get("operator_id"))
                .transpose();
        }
    };
    sql!(text, item)
        .row_if_any(cx)
        .await?
        .map(|row| row.get("operator_id"))
        .transpose()
}

/// Returns the unit and the agent of a rating, which stands for the words beside it: `{chain}/{agent}`.
fn rating(item: &str) -> Option<(&str, &str)> {
    item.split_once('/')
}

/// Hides an item for a reason, or shows it again. Returns false if a comment or a request was so before.
pub(super) async fn hide(
    cx: &mut AnyConnection,
    kind: ReportKind,
    item: &str,
    reason: Option<ReportReason>,
    now: Timestamp,
) -> Result<bool, Error> {
    let reason = reason.map(TakedownReason::from);
    let malformed = || Error::Missing {
        what: "item",
        id: item.to_owned(),
    };
    match kind {
        ReportKind::Unit => {
            let chain = item.parse().map_err(|_error| malformed())?;
            knowledge::hide(cx, chain, reason, now).await?;
        }
        ReportKind::Dataset => hide_dataset(cx, item, reason, now).await?,
        // The takedown in force hides them by itself.
        ReportKind::Review if rating(item).is_some() => {}
        ReportKind::Comment | ReportKind::Review => {
            let number = item.parse().map_err(|_error| malformed())?;
            return hide_comment(cx, number, reason.is_some(), now).await;
        }
        ReportKind::Agent => {
            sql!(
                "UPDATE agents SET taken_down_at = $2 WHERE id = $1",
                item,
                reason.map(|_| now.micros())
            )
            .run(cx)
            .await?;
            if reason.is_some() {
                let agent = item.parse().map_err(|_error| malformed())?;
                // Its keys are refused by the row of the agent; apps that act as it have tokens of
                // their own.
                apps::end_all(cx, apps::Of::Agent(agent), now).await?;
            }
        }
        ReportKind::Topic => {
            let changed = sql!(
                "UPDATE requests SET removed_at = $2 WHERE id = $1 AND (removed_at IS NULL) = ($2 IS NOT NULL)",
                item,
                reason.map(|_| now.micros())
            )
            .run(cx)
            .await?;
            return Ok(changed > 0);
        }
    }
    Ok(true)
}

async fn hide_dataset(
    cx: &mut AnyConnection,
    item: &str,
    reason: Option<TakedownReason>,
    now: Timestamp,
) -> Result<(), Error> {
    let row = sql!(
        "UPDATE projects SET taken_down_at = $2, taken_down_reason = $3 WHERE id = $1 RETURNING visibility",
        item,
        reason.map(|_| now.micros()),
        reason.map(TakedownReason::as_str)
    )
    .row_if_any(cx)
    .await?;
    let visibility = row.map(|row| row.get::<Visibility>("visibility")).transpose()?;
    // A private dataset is not in the index, so nothing there is to change.
    if visibility == Some(Visibility::Public) {
        service_state::search_changed(cx, ItemKind::Dataset, item, now).await?;
    }
    Ok(())
}

async fn hide_comment(cx: &mut AnyConnection, number: i64, is_hidden: bool, now: Timestamp) -> Result<bool, Error> {
    // Hidden or shown already is no change: counting it again would move the number of comments a
    // second time.
    let row = sql!(
        "SELECT kind, item_kind, item_id, removed_at FROM comments WHERE id = $1",
        number
    )
    .row_if_any(cx)
    .await?;
    let Some(row) = row.filter(|row| {
        row.get::<Option<Timestamp>>("removed_at")
            .is_ok_and(|at| at.is_some() != is_hidden)
    }) else {
        return Ok(false);
    };
    // The chain comes before the comment, as in every change of a unit. It counts comments only, not what buyers say.
    let is_counted = row.get::<CommentKind>("kind")? == CommentKind::Comment;
    if is_counted && row.get::<Discussed>("item_kind")? == Discussed::Unit {
        comments::count(cx, row.value("item_id")?, if is_hidden { -1 } else { 1 }).await?;
    }
    sql!(
        "UPDATE comments SET removed_at = $2 WHERE id = $1",
        number,
        is_hidden.then_some(now.micros())
    )
    .run(cx)
    .await?;
    Ok(true)
}
