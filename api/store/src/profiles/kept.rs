//! The documents of profiles that are kept, and the rule of milestones.
//!
//! Invariants:
//! - The rule is decided under the lock of the dataset's work, so two processes that build at the same time cannot publish
//!   two documents that are too near to each other.
//! - Only a version that was the newest when its build began becomes a milestone: nobody chooses one by asking for it.

use sqlx::AnyConnection;
use types::vocabulary::Access;
use types::{DatasetId, OperatorId, Timestamp, Version};

use super::{MAX_ASKED_PROFILES, MILESTONE_GROWTH, MILESTONE_ROWS, NewProfile, OTHERS_ROWS};
use crate::Error;
use crate::query::sql;
use crate::row::{Columns as _, bigint};

/// Keeps the documents of a version, and deletes those that nobody needs. Returns false if the dataset was deleted, or
/// its owner offers rows since the build began, so that the public document of its newest version is missing.
pub(super) async fn keep(
    cx: &mut AnyConnection,
    profile: &NewProfile,
    is_newest: bool,
    now: Timestamp,
) -> Result<bool, Error> {
    let (project, number) = (profile.project, bigint("version", profile.version.0)?);
    let dataset = sql!(
        "SELECT operator_id, access, preview_rows FROM projects WHERE id = $1 AND deleted_at IS NULL",
        project
    )
    .row_if_any(cx)
    .await?;
    let Some(dataset) = dataset else {
        return Ok(false);
    };
    let is_offered =
        dataset.get::<Access>("access")? == Access::Paid && dataset.get::<Option<u32>>("preview_rows")?.is_some();
    if is_newest && is_offered && profile.public.is_none() {
        return Ok(false);
    }
    // A document that exists is not replaced, so it keeps the time at which it was made.
    sql!(
        "INSERT INTO profiles (project_id, version, root, made_at, records, figures, preview)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (project_id, version, root) DO UPDATE
         SET made_at = excluded.made_at, records = excluded.records, figures = excluded.figures,
             preview = excluded.preview
         WHERE profiles.figures IS NULL",
        project,
        number,
        profile.root.clone(),
        now,
        bigint("records", profile.records)?,
        profile.figures.clone(),
        profile.preview.clone()
    )
    .run(cx)
    .await?;
    if let Some((figures, preview)) = &profile.public
        && is_newest
        && is_milestone(cx, profile, dataset.get("operator_id")?).await?
    {
        sql!(
            "UPDATE profiles SET public_figures = $4, public_preview = $5
             WHERE project_id = $1 AND version = $2 AND root = $3 AND figures IS NOT NULL AND public_figures IS NULL",
            project,
            number,
            profile.root.clone(),
            figures.clone(),
            preview.clone()
        )
        .run(cx)
        .await?;
    }
    sql!(
        "DELETE FROM profiles
         WHERE project_id = $1 AND figures IS NOT NULL AND public_figures IS NULL
           AND version <> (SELECT MAX(built.version) FROM profiles AS built
                           JOIN versions ON versions.project_id = built.project_id
                                AND versions.version = built.version AND versions.root = built.root
                           WHERE built.project_id = $1 AND built.figures IS NOT NULL)
           AND (version, root) NOT IN (SELECT version, root FROM profiles
                                       WHERE project_id = $1 AND figures IS NOT NULL AND asked_at IS NOT NULL
                                       ORDER BY asked_at DESC, version DESC, root LIMIT $2)
           AND version <> $3",
        project,
        MAX_ASKED_PROFILES,
        number
    )
    .run(cx)
    .await?;
    Ok(true)
}

/// Returns true if the version becomes a milestone. It never does where an earlier document of as many rows was public,
/// be it of a version that was lost.
async fn is_milestone(cx: &mut AnyConnection, profile: &NewProfile, operator: OperatorId) -> Result<bool, Error> {
    let before = sql!(
        "SELECT version, root, records FROM profiles
         WHERE project_id = $1 AND public_figures IS NOT NULL ORDER BY records DESC, version DESC LIMIT 1",
        profile.project
    )
    .row_if_any(cx)
    .await?;
    let (version, records) = match before {
        Some(row) => (row.get::<Version>("version")?, row.get::<u64>("records")?),
        None => (Version::EMPTY, 0),
    };
    if profile.version <= version {
        return Ok(false);
    }
    let own: i64 = sql!(
        "SELECT CAST(COALESCE(SUM(versions.accepted), 0) AS BIGINT)
         FROM versions JOIN agents ON agents.id = versions.agent_id
         WHERE versions.project_id = $1 AND versions.version > $2 AND versions.version <= $3
           AND agents.operator_id = $4",
        profile.project,
        bigint("version", version.0)?,
        bigint("version", profile.version.0)?,
        operator
    )
    .scalar(cx)
    .await?;
    let grown = profile.records.saturating_sub(records);
    let own = u64::try_from(own).unwrap_or(0).min(grown);
    let others = grown - own;
    let counted = own + if others >= OTHERS_ROWS { others } else { 0 };
    Ok(counted >= MILESTONE_ROWS && counted.saturating_mul(MILESTONE_GROWTH) >= records)
}

/// Makes the newest version of a dataset due when its time has come, as if it had no profile. Milestones stay, and so
/// does the wait after the last build, so that no change of mind has anything built sooner. A build that is under way
/// and does not know of the change is not kept.
pub(crate) async fn begin_again(cx: &mut AnyConnection, project: DatasetId) -> Result<(), Error> {
    sql!(
        "DELETE FROM profiles
         WHERE project_id = $1 AND public_figures IS NULL
           AND version = (SELECT projects.version FROM projects WHERE projects.id = $1)",
        project
    )
    .run(cx)
    .await?;
    Ok(())
}

/// Deletes what is of versions after `kept`, which are lost. What was public stays, since it was seen.
pub(crate) async fn forget_lost(cx: &mut AnyConnection, project: &str, kept: i64) -> Result<(), Error> {
    sql!(
        "DELETE FROM profiles WHERE project_id = $1 AND version > $2 AND public_figures IS NULL",
        project,
        kept
    )
    .run(cx)
    .await?;
    Ok(())
}
