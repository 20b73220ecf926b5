//! Accepted losses of versions: a table lacks versions that it was known to have, and an administrator accepts that.
//!
//! Invariants:
//! - A loss is accepted in one transaction. Afterwards the project has the versions of the table, the lost versions are
//!   kept in a table of their own, and their contributions are marked.
//! - A contribution stays merged, as in its outcome. The mark means that its version is lost.

use std::collections::HashMap;
use std::sync::Arc;

use sqlx::AnyConnection;
use types::vocabulary::ItemKind;
use types::{AgentId, ContributionId, DatasetId, Timestamp, Version};

use crate::collectors;
use crate::contributions::outbox;
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, bigint, row, texts};
use crate::writer::Change;
use crate::{Error, Store, profiles, service_state};

/// A loss to accept.
#[derive(Clone, Debug)]
pub struct NewLoss {
    /// The project whose table lacks versions.
    pub project: DatasetId,
    /// The project's version before the table was read.
    pub expected: Version,
    /// The content roots of the table's versions, from version 1 on: 64 hexadecimal digits each.
    pub roots: Arc<[String]>,
    /// The reason of the administrator.
    pub reason: String,
    /// The time of the acceptance.
    pub now: Timestamp,
}

row! {
    /// A loss that was accepted.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Loss {
        /// The number of the loss within the project, from 1.
        pub number: u64,
        /// The last version that the table still had.
        pub kept: Version,
        /// The latest version that the table was known to have.
        pub version: Version,
        /// The reason of the administrator.
        pub reason: String,
        /// The time at which it was accepted.
        pub accepted_at: Timestamp,
    }
}

/// The result of [`Store::loss_accept`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum LossAccepted {
    /// The loss was accepted.
    Accepted {
        /// The loss as stored.
        loss: Loss,
        /// The number of contributions whose version was lost.
        contributions: u64,
    },
    /// The table has every version that it is known to have; nothing changed.
    NothingLost,
    /// The project got another version while the table was read; nothing changed.
    Stale,
}

row! {
    /// A lost version.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct LostVersion {
        /// The number, which a later version may have again.
        pub version: Version,
        /// The content root, 64 hexadecimal digits.
        pub root: String,
    }
}

/// A merged contribution whose version is in the table after the last version that both agree about.
struct Present {
    contribution: ContributionId,
    agent: AgentId,
    version: i64,
    accepted: i64,
    record_count: i64,
    root: String,
    at: i64,
}

impl Store {
    /// Accepts that a table lacks versions. All versions after the last one that the database and the table agree about
    /// are removed, their contributions are marked as lost, the project goes back to its latest remaining version, and
    /// open submissions are due at once.
    ///
    /// # Errors
    /// [`Error::Missing`] if the project does not exist; [`Error::Text`].
    pub async fn loss_accept(&self, new: NewLoss) -> Result<LossAccepted, Error> {
        texts(&[("reason", &new.reason)])?;
        self.write(tx!(async move |cx| { accept(cx, new).await })).await
    }

    /// Returns the accepted losses of a project, oldest first.
    pub async fn losses(&self, project: DatasetId) -> Result<Vec<Loss>, Error> {
        self.all(sql!(
            text!(
                "SELECT ",
                Loss::COLUMNS,
                " FROM losses
                 WHERE project_id = $1 ORDER BY number"
            ),
            project
        ))
        .await
    }

    /// Returns every lost version of a project, by loss and version.
    pub async fn lost_versions(&self, project: DatasetId) -> Result<Vec<LostVersion>, Error> {
        self.all(sql!(
            text!(
                "SELECT ",
                LostVersion::COLUMNS,
                " FROM lost_versions WHERE project_id = $1 ORDER BY loss, version"
            ),
            project
        ))
        .await
    }
}

async fn accept(cx: &mut AnyConnection, new: NewLoss) -> Result<Change<LossAccepted>, Error> {
    let project = new.project.to_string();
    // Writing the row locks it, so outcomes that are applied meanwhile wait.
    let known = sql!(
        "UPDATE projects SET version = version WHERE id = $1 AND deleted_at IS NULL RETURNING version",
        project.as_str()
    )
    .row_if_any(cx)
    .await?
    .ok_or_else(|| Error::Missing {
        what: "project",
        id: project.clone(),
    })?
    .get::<i64>("version")?;
    // A version that was merged after the table was read is not in the roots, and must not be taken for lost.
    if known != bigint("expected", new.expected.0)? {
        return Ok(Change::Undo(LossAccepted::Stale));
    }
    let kept = kept(cx, &project, &new.roots).await?;
    // An earlier call may have accepted the loss already.
    if known <= kept {
        return Ok(Change::Undo(LossAccepted::NothingLost));
    }
    let number: i64 = sql!(
        "SELECT CAST(COALESCE(MAX(number), 0) + 1 AS BIGINT) FROM losses WHERE project_id = $1",
        project.as_str()
    )
    .scalar(cx)
    .await?;
    sql!(
        "INSERT INTO losses (project_id, number, kept, version, reason, accepted_at) VALUES ($1, $2, $3, $4, $5, $6)",
        project.as_str(),
        number,
        kept,
        known,
        new.reason.as_str(),
        new.now
    )
    .run(cx)
    .await?;
    // Contributions that the table has are read before their versions are removed.
    let present = present(cx, &project, kept, &new.roots).await?;
    let contributions = take_away(cx, &project, kept, number).await? - present.len() as u64;
    for present in &present {
        bring_back(cx, &project, present).await?;
    }
    sql!(
        "UPDATE projects
         SET version = (SELECT CAST(COALESCE(MAX(versions.version), 0) AS BIGINT) FROM versions
                        WHERE versions.project_id = projects.id),
             record_count = (SELECT CAST(COALESCE(MAX(versions.record_count), 0) AS BIGINT) FROM versions
                             WHERE versions.project_id = projects.id),
             updated_at = COALESCE((SELECT MAX(versions.created_at) FROM versions
                                    WHERE versions.project_id = projects.id), created_at)
         WHERE id = $1",
        project.as_str()
    )
    .run(cx)
    .await?;
    // Workers may have waited for this decision, so open submissions do not wait for the next sweep.
    outbox::hurry(cx, new.project, new.now).await?;
    // A source that did not change since would not be read, and its rows would stay lost.
    collectors::forget_places(cx, &project).await?;
    // The search orders by the last merge, which is an earlier one now. Last, as it locks the counter of the search.
    service_state::search_changed(cx, ItemKind::Dataset, &project, new.now).await?;
    let loss = Loss {
        number: u64::try_from(number).unwrap_or(0),
        kept: Version(u64::try_from(kept).unwrap_or(0)),
        version: Version(u64::try_from(known).unwrap_or(0)),
        reason: new.reason,
        accepted_at: new.now,
    };
    Ok(Change::Keep(LossAccepted::Accepted { loss, contributions }))
}

/// Returns the last version whose root is the same in the database and in the table; 0 if there is none.
async fn kept(cx: &mut AnyConnection, project: &str, roots: &[String]) -> Result<i64, Error> {
    let rows = sql!(
        "SELECT version, root FROM versions WHERE project_id = $1 ORDER BY version DESC",
        project
    )
    .rows(cx)
    .await?;
    // Versions are compared from the latest down, so the first match is the longest common history.
    for row in &rows {
        let version: i64 = row.get("version")?;
        if root_at(roots, version) == Some(row.value::<&str>("root")?) {
            return Ok(version);
        }
    }
    Ok(0)
}

/// Returns the table's root of a version.
fn root_at(roots: &[String], version: i64) -> Option<&str> {
    let index = usize::try_from(version).ok()?.checked_sub(1)?;
    roots.get(index).map(String::as_str)
}

/// Returns the merged contributions whose versions after `kept` are in the table.
async fn present(cx: &mut AnyConnection, project: &str, kept: i64, roots: &[String]) -> Result<Vec<Present>, Error> {
    let rows = sql!(
        "SELECT id, agent_id, version, accepted, record_count, root, decided_at FROM contributions
         WHERE project_id = $1 AND status = 'merged' AND version > $2 AND loss IS NULL ORDER BY version",
        project,
        kept
    )
    .rows(cx)
    .await?;
    let mut by_version: HashMap<i64, Present> = HashMap::new();
    for row in &rows {
        let version = row.get("version")?;
        let root: &str = row.value("root")?;
        // Equal roots mean the same records in the same order, so the table has the contribution's version.
        if root_at(roots, version) == Some(root) {
            let present = Present {
                contribution: row.get("id")?,
                agent: row.get("agent_id")?,
                version,
                accepted: row.get("accepted")?,
                record_count: row.get("record_count")?,
                root: root.to_owned(),
                at: row.get("decided_at")?,
            };
            by_version.insert(version, present);
        }
    }
    Ok(by_version.into_values().collect())
}

/// Moves every version after `kept` to the lost ones and marks their contributions. Returns the number of marked
/// contributions.
async fn take_away(cx: &mut AnyConnection, project: &str, kept: i64, number: i64) -> Result<u64, Error> {
    sql!(
        "INSERT INTO lost_versions
             (project_id, loss, version, contribution_id, agent_id, accepted, record_count, root, created_at)
         SELECT project_id, $3, version, contribution_id, agent_id, accepted, record_count, root, created_at
         FROM versions WHERE project_id = $1 AND version > $2",
        project,
        kept,
        number
    )
    .run(cx)
    .await?;
    let marked = sql!(
        "UPDATE contributions SET loss = $3
         WHERE project_id = $1 AND status = 'merged' AND version > $2 AND loss IS NULL",
        project,
        kept,
        number
    )
    .run(cx)
    .await?;
    sql!(
        "DELETE FROM versions WHERE project_id = $1 AND version > $2",
        project,
        kept
    )
    .run(cx)
    .await?;
    // Their numbers are used again.
    sql!(
        "DELETE FROM summaries WHERE project_id = $1 AND version > $2",
        project,
        kept
    )
    .run(cx)
    .await?;
    profiles::forget_lost(cx, project, kept).await?;
    // The sums are computed again, because a removed version does not say what else its agent contributed.
    sql!("DELETE FROM contributors WHERE project_id = $1", project)
        .run(cx)
        .await?;
    sql!(
        "INSERT INTO contributors (project_id, agent_id, contributions, accepted)
         SELECT project_id, agent_id, COUNT(*), CAST(SUM(accepted) AS BIGINT) FROM versions
         WHERE project_id = $1 GROUP BY project_id, agent_id",
        project
    )
    .run(cx)
    .await?;
    Ok(marked)
}

/// Restores the version of a contribution that the table has.
async fn bring_back(cx: &mut AnyConnection, project: &str, present: &Present) -> Result<(), Error> {
    sql!(
        "UPDATE contributions SET loss = NULL WHERE id = $1",
        present.contribution
    )
    .run(cx)
    .await?;
    // A trigger on `versions` adds the contribution to the sums of its agent.
    sql!(
        "INSERT INTO versions
             (project_id, version, contribution_id, agent_id, accepted, record_count, root, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        project,
        present.version,
        present.contribution,
        present.agent,
        present.accepted,
        present.record_count,
        present.root.as_str(),
        present.at
    )
    .run(cx)
    .await?;
    Ok(())
}
