//! Deletion of a private dataset: the one transaction that ends it, and what its job clears from the database afterwards.
//!
//! Invariants:
//! - A public dataset is never deleted, and no dataset that anybody bought or an answer links.
//! - After the transaction no look-up finds the project, and nothing of it is submitted again. Its slug stays taken, and
//!   ids and counts of its contributions stay, because points, the ledger and the audit name them.
//! - What a change that began before it adds later is cleared by the second job.

use std::time::Duration;

use sqlx::AnyConnection;
use types::vocabulary::{ItemKind, ProjectStatus, Visibility};
use types::{ContributionId, DatasetId, OperatorId, Timestamp, fault};

use crate::query::{sql, tx};
use crate::row::Columns;
use crate::stamps::Touched;
use crate::writer::Change;
use crate::{Error, NewJob, Store, jobs, scrub};

/// Kind of the job that deletes the table of a dataset and clears its rows.
pub const DELETE_TABLE: &str = "delete_table";
/// Reject code of contributions that were undecided when their dataset was deleted.
const DELETED: &str = "deleted";
/// Time from the deletion to the second job. A writer that died before its commit has left its parts by then.
const SECOND_LOOK: Duration = Duration::from_hours(1);

/// The result of [`Store::project_delete`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ProjectDeleted {
    /// The project is deleted now.
    Deleted,
    /// The operator has no such project; it may have been deleted before. Nothing changed.
    Missing,
    /// The project is public; nothing changed.
    NotPrivate,
    /// Somebody bought a version, or an answer links the project; nothing changed.
    WasRead,
}

impl Store {
    /// Deletes a private project of an operator. Its texts are blank and its place is free afterwards, its open uploads are
    /// expired, its undecided contributions are rejected. Two jobs delete the rest: one now, one an hour later.
    pub async fn project_delete(
        &self,
        id: DatasetId,
        operator: OperatorId,
        now: Timestamp,
    ) -> Result<ProjectDeleted, Error> {
        let engine = self.engine();
        let touched = move |_: &ProjectDeleted| Touched::Projects(vec![id]);
        let deleted = self
            .write_touching(
                touched,
                tx!(async move |cx| {
                    scrub::overwrite(cx, engine, true).await?;
                    let deleted = delete(cx, id, operator, now).await;
                    // Also after a failure, or every later change of this connection would write more.
                    scrub::overwrite(cx, engine, false).await?;
                    let deleted = deleted?;
                    Ok(match deleted {
                        ProjectDeleted::Deleted => Change::Keep(deleted),
                        _ => Change::Undo(deleted),
                    })
                }),
            )
            .await?;
        if deleted == ProjectDeleted::Deleted {
            fault::point("delete.commit");
        }
        Ok(deleted)
    }

    /// Returns the projects that were deleted at `since` or later.
    pub async fn projects_deleted(&self, since: Timestamp) -> Result<Vec<DatasetId>, Error> {
        self.read(async {
            sql!("SELECT id FROM projects WHERE deleted_at >= $1", since)
                .rows(&mut self.readers())
                .await?
                .iter()
                .map(|row| row.get("id"))
                .collect()
        })
        .await
    }

    /// Deletes up to `limit` rows of each kind that a deleted project left. Returns true if there were none. Does nothing
    /// to a project that is not deleted.
    pub async fn project_clear(&self, id: DatasetId, limit: u32, now: Timestamp) -> Result<bool, Error> {
        let engine = self.engine();
        self.write_aside(tx!(async move |cx| {
            scrub::overwrite(cx, engine, true).await?;
            let cleared = clear(cx, id, limit, now).await;
            scrub::overwrite(cx, engine, false).await?;
            let cleared = cleared?;
            Ok(Change::written_if(cleared > 0, cleared == 0))
        }))
        .await
    }

    /// Blanks what up to `limit` contributions to a deleted project tell of its records: those after `after`, or the
    /// first. Returns the last of them, or `None` if there are no more.
    pub async fn project_clear_contributions(
        &self,
        id: DatasetId,
        after: Option<ContributionId>,
        limit: u32,
    ) -> Result<Option<ContributionId>, Error> {
        let engine = self.engine();
        let after = after.map(|id| id.to_string()).unwrap_or_default();
        self.write_aside(tx!(async move |cx| {
            scrub::overwrite(cx, engine, true).await?;
            let last = clear_contributions(cx, id, &after, limit).await;
            scrub::overwrite(cx, engine, false).await?;
            let last = last?;
            Ok(Change::written_if(last.is_some(), last))
        }))
        .await
    }
}

async fn delete(
    cx: &mut AnyConnection,
    id: DatasetId,
    operator: OperatorId,
    now: Timestamp,
) -> Result<ProjectDeleted, Error> {
    // Writing the row locks it, so contributions, outcomes and other deletions that touch it wait.
    let row = sql!(
        "UPDATE projects SET slug = slug WHERE id = $1 AND operator_id = $2 AND deleted_at IS NULL
         RETURNING slug, visibility",
        id,
        operator
    )
    .row_if_any(cx)
    .await?;
    let Some(row) = row else {
        return Ok(ProjectDeleted::Missing);
    };
    if row.get::<Visibility>("visibility")? != Visibility::Private {
        return Ok(ProjectDeleted::NotPrivate);
    }
    if was_read(cx, id).await? {
        return Ok(ProjectDeleted::WasRead);
    }
    sql!(
        "UPDATE projects
         SET deleted_at = $2, status = $3, title = '', title_key = '', readme = '', tags = '[]', contract = '{}'
         WHERE id = $1",
        id,
        now,
        ProjectStatus::Archived
    )
    .run(cx)
    .await?;
    end_open(cx, id, now).await?;
    // The keys of calls name the slug, and a repeated call would find nothing.
    let slug = row.get::<String>("slug")?;
    sql!(
        "DELETE FROM call_keys
         WHERE (operation = 'create_dataset' AND made = $1)
            OR operation = 'comment_on_dataset ' || CAST($1 AS TEXT)",
        slug
    )
    .run(cx)
    .await?;
    for (number, due_at) in [now, now.plus(SECOND_LOOK)].into_iter().enumerate() {
        let name = format!("{DELETE_TABLE}-{id}-{number}");
        let job = NewJob {
            id: name.clone(),
            kind: DELETE_TABLE.to_owned(),
            dedupe: Some(name),
            operator: None,
            payload: format!(r#"{{"dataset":"{id}"}}"#),
            due_at,
            now,
        };
        jobs::insert(cx, &job).await?;
    }
    fault::point("delete.rows");
    Ok(ProjectDeleted::Deleted)
}

/// Returns true if somebody bought a version of the project, or an answer links it.
async fn was_read(cx: &mut AnyConnection, id: DatasetId) -> Result<bool, Error> {
    let found: i64 = sql!(
        "SELECT COUNT(*) FROM (
             SELECT item_id FROM sales WHERE item_kind = $2 AND item_id = $1
             UNION ALL SELECT item_id FROM entitlements WHERE item_kind = $2 AND item_id = $1
             UNION ALL SELECT item_id FROM answer_items WHERE item_kind = $2 AND item_id = $1) AS readers",
        id,
        ItemKind::Dataset
    )
    .scalar(cx)
    .await?;
    Ok(found > 0)
}

/// Expires the open uploads of a project, rejects its undecided contributions, and empties its outbox. Returns the number
/// of rows that were changed.
async fn end_open(cx: &mut AnyConnection, id: DatasetId, now: Timestamp) -> Result<u64, Error> {
    // Uploads to private projects use no allowance, so none is given back.
    let expired = sql!(
        "UPDATE uploads SET status = 'expired' WHERE project_id = $1 AND status = 'open'",
        id
    )
    .run(cx)
    .await?;
    let rejected = sql!(
        "UPDATE contributions
         SET status = 'rejected', decided_at = $2, reject_code = $3, reject_message = 'the dataset was deleted',
             waiting_reason = NULL, resumes_after = NULL
         WHERE project_id = $1 AND status IN ('submitted', 'waiting')",
        id,
        now,
        DELETED
    )
    .run(cx)
    .await?;
    let closed = sql!("DELETE FROM outbox WHERE project_id = $1", id).run(cx).await?;
    Ok(expired + rejected + closed)
}

/// Statements that delete what tells of a dataset, up to `$2` rows each. Replies go before what they answer.
const CLEARING: [&str; 12] = [
    "DELETE FROM versions WHERE project_id = $1 AND version IN
         (SELECT version FROM versions WHERE project_id = $1 ORDER BY version DESC LIMIT $2)",
    "DELETE FROM lost_versions WHERE project_id = $1 AND (loss, version) IN
         (SELECT loss, version FROM lost_versions WHERE project_id = $1 LIMIT $2)",
    "DELETE FROM losses WHERE project_id = $1 AND number IN
         (SELECT number FROM losses WHERE project_id = $1 LIMIT $2)",
    "DELETE FROM contributors WHERE project_id = $1 AND agent_id IN
         (SELECT agent_id FROM contributors WHERE project_id = $1 LIMIT $2)",
    "DELETE FROM summaries WHERE project_id = $1 AND version IN
         (SELECT version FROM summaries WHERE project_id = $1 LIMIT $2)",
    "DELETE FROM profiles WHERE project_id = $1 AND (version, root) IN
         (SELECT version, root FROM profiles WHERE project_id = $1 LIMIT $2)",
    "DELETE FROM profile_work WHERE project_id = $1 AND project_id IN
         (SELECT project_id FROM profile_work WHERE project_id = $1 LIMIT $2)",
    "DELETE FROM idempotency_keys WHERE (agent_id, project_id, idempotency_key) IN
         (SELECT agent_id, project_id, idempotency_key FROM idempotency_keys WHERE project_id = $1 LIMIT $2)",
    "DELETE FROM dead_letters WHERE id IN
         (SELECT dead_letters.id FROM dead_letters JOIN contributions ON contributions.id = dead_letters.contribution_id
          WHERE contributions.project_id = $1 LIMIT $2)",
    // A completed upload has tags, even if they are none.
    "UPDATE uploads SET source_declaration = NULL, etags = CASE WHEN etags IS NULL THEN NULL ELSE '[]' END WHERE id IN
         (SELECT id FROM uploads WHERE project_id = $1 AND (source_declaration IS NOT NULL OR etags <> '[]') LIMIT $2)",
    "DELETE FROM comment_edits WHERE comment_id IN
         (SELECT id FROM comments WHERE item_kind = 'dataset' AND item_id = $1 ORDER BY id DESC LIMIT $2)",
    "DELETE FROM comments WHERE id IN
         (SELECT id FROM comments WHERE item_kind = 'dataset' AND item_id = $1 ORDER BY id DESC LIMIT $2)",
];

async fn clear(cx: &mut AnyConnection, id: DatasetId, limit: u32, now: Timestamp) -> Result<u64, Error> {
    if !is_deleted(cx, id).await? {
        return Ok(0);
    }
    // Again: a contribution that began before the deletion may have been committed after it.
    let mut cleared = end_open(cx, id, now).await?;
    for statement in CLEARING {
        cleared += sql!(statement, id, limit).run(cx).await?;
    }
    Ok(cleared)
}

async fn clear_contributions(
    cx: &mut AnyConnection,
    id: DatasetId,
    after: &str,
    limit: u32,
) -> Result<Option<ContributionId>, Error> {
    if !is_deleted(cx, id).await? {
        return Ok(None);
    }
    let page = sql!(
        "SELECT id FROM contributions WHERE project_id = $1 AND id > $2 ORDER BY id LIMIT $3",
        id,
        after,
        limit
    )
    .rows(cx)
    .await?;
    let Some(last) = page.last() else { return Ok(None) };
    let last: ContributionId = last.get("id")?;
    // Ids, times and counts stay. A root is a hash of the records.
    sql!(
        "UPDATE contributions
         SET source_declaration = NULL, verdicts = NULL, root = NULL,
             reject_message = CASE WHEN reject_message IS NULL THEN NULL ELSE '' END
         WHERE project_id = $1 AND id > $2 AND id <= $3",
        id,
        after,
        last
    )
    .run(cx)
    .await?;
    Ok(Some(last))
}

async fn is_deleted(cx: &mut AnyConnection, id: DatasetId) -> Result<bool, Error> {
    let deleted: Option<Option<i64>> = sql!("SELECT deleted_at FROM projects WHERE id = $1", id)
        .scalar_if_any(cx)
        .await?;
    Ok(deleted.flatten().is_some())
}
