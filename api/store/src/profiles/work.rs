//! The work of making profiles: what is due, who has it, and what is kept.
//!
//! Invariant: the rule of milestones is decided under the lock of the dataset's work, so two processes that build at the
//! same time cannot publish two documents that are too near to each other.

use std::time::Duration;

use sqlx::AnyConnection;
use types::vocabulary::{Access, Visibility};
use types::{DatasetId, OperatorId, Timestamp, Version, fault};

use super::{ASKED_KEPT, MILESTONE_GROWTH, MILESTONE_ROWS, OTHERS_ROWS, Profiles};
use crate::Error;
use crate::query::{sql, tx};
use crate::row::{Columns as _, bigint, texts};
use crate::writer::Change;

/// The longest wait after failures.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// Bounds of the work.
#[derive(Clone, Copy, Debug)]
pub struct ProfileLimits {
    /// Time for which a process has a dataset to itself.
    pub lease: Duration,
    /// The least time between two builds of a dataset.
    pub every: Duration,
    /// The least time between them as a multiple of the time that the first took.
    pub pace: u32,
}

/// A version that a process has in work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileLease {
    /// The dataset.
    pub project: DatasetId,
    /// The version.
    pub version: Version,
    /// Its content root, 64 hexadecimal digits.
    pub root: String,
    /// Access to the records of the dataset.
    pub access: Access,
    /// Visibility of the dataset.
    pub visibility: Visibility,
    /// Number of rows of the dataset that anybody sees; `None` shows nothing of a paid one.
    pub preview_rows: Option<u32>,
    /// The end of the time for which nobody else begins with the dataset.
    pub until: Timestamp,
}

/// Documents of a version that were built.
#[derive(Clone, Debug)]
pub struct NewProfile {
    /// The dataset.
    pub project: DatasetId,
    /// The version.
    pub version: Version,
    /// Its content root, 64 hexadecimal digits.
    pub root: String,
    /// Number of its records.
    pub records: u64,
    /// Figures of the full document, as JSON.
    pub figures: String,
    /// Preview rows of the full document with their ranks, as JSON.
    pub preview: String,
    /// Figures and preview rows of the public document, if the version may become a milestone.
    pub public: Option<(String, String)>,
    /// Size of the sketches of its parts in bytes.
    pub sketch_bytes: u64,
}

/// The result of [`Profiles::ask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ProfileAsked {
    /// The version is waiting to be built, or was built meanwhile.
    Asked,
    /// As many versions wait as may; nothing changed.
    Full,
}

impl Profiles<'_> {
    /// Takes a version into work: one that was asked for, or else the newest of a dataset. Returns `None` if there is none
    /// to begin with now, or another process was faster.
    pub async fn take(&self, now: Timestamp, limits: ProfileLimits) -> Result<Option<ProfileLease>, Error> {
        let until = now.plus(limits.lease);
        let Some(lease) = self.due(now, until).await? else {
            return Ok(None);
        };
        self.0
            .write_aside(tx!(async move |cx| {
                // The condition is evaluated again on the locked row: another process may have been faster.
                let taken = sql!(
                    "INSERT INTO profile_work (project_id, lease_until, due_at, failures, sketch_bytes)
                     VALUES ($1, $2, 0, 0, 0)
                     ON CONFLICT (project_id) DO UPDATE SET lease_until = excluded.lease_until
                     WHERE profile_work.lease_until <= $3",
                    lease.project,
                    until,
                    now
                )
                .run(cx)
                .await?;
                Ok(Change::written_if(taken > 0, (taken > 0).then_some(lease)))
            }))
            .await
    }

    async fn due(&self, now: Timestamp, until: Timestamp) -> Result<Option<ProfileLease>, Error> {
        // A dataset whose builds fail waits, also with what was asked for of it.
        let asked = sql!(
            "SELECT projects.id AS id, profiles.version AS version, profiles.root AS root, access, visibility, preview_rows
             FROM profiles
             JOIN versions ON versions.project_id = profiles.project_id AND versions.version = profiles.version
                  AND versions.root = profiles.root
             JOIN projects ON projects.id = profiles.project_id
             LEFT JOIN profile_work ON profile_work.project_id = profiles.project_id
             WHERE profiles.figures IS NULL AND projects.deleted_at IS NULL
               AND (profile_work.project_id IS NULL
                    OR (profile_work.lease_until <= $1 AND (profile_work.failures = 0 OR profile_work.due_at <= $1)))
             ORDER BY profiles.asked_at, profiles.project_id LIMIT 1",
            now
        );
        let newest = sql!(
            "SELECT projects.id AS id, projects.version AS version, versions.root AS root, access, visibility, preview_rows
             FROM projects
             JOIN versions ON versions.project_id = projects.id AND versions.version = projects.version
             LEFT JOIN profiles ON profiles.project_id = projects.id AND profiles.version = projects.version
                  AND profiles.root = versions.root
             LEFT JOIN profile_work ON profile_work.project_id = projects.id
             WHERE projects.version > 0 AND projects.deleted_at IS NULL AND profiles.figures IS NULL
               AND (profile_work.project_id IS NULL
                    OR (profile_work.lease_until <= $1 AND profile_work.due_at <= $1))
             ORDER BY COALESCE(profile_work.due_at, 0), projects.id LIMIT 1",
            now
        );
        self.0
            .read(async {
                let mut row = asked.row_if_any(&mut self.0.readers()).await?;
                if row.is_none() {
                    row = newest.row_if_any(&mut self.0.readers()).await?;
                }
                let Some(row) = row else {
                    return Ok(None);
                };
                Ok(Some(ProfileLease {
                    project: row.get("id")?,
                    version: row.get("version")?,
                    root: row.get("root")?,
                    access: row.get("access")?,
                    visibility: row.get("visibility")?,
                    preview_rows: row.get("preview_rows")?,
                    until,
                }))
            })
            .await
    }

    /// Writes what was built under a lease that began at `begun`. Returns false if the time for it is over, or the dataset
    /// was deleted.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn write(
        &self,
        lease: &ProfileLease,
        profile: NewProfile,
        begun: Timestamp,
        now: Timestamp,
        limits: ProfileLimits,
    ) -> Result<bool, Error> {
        check(&profile)?;
        let due_at = now.plus(limits.every.max(now.since(begun).saturating_mul(limits.pace)));
        let (until, sketch_bytes) = (lease.until, bigint("sketch_bytes", profile.sketch_bytes)?);
        let written = self
            .0
            .write_aside(tx!(async move |cx| {
                let held = sql!(
                    "UPDATE profile_work
                     SET lease_until = 0, due_at = $3, failures = 0, problem = NULL, sketch_bytes = $4
                     WHERE project_id = $1 AND lease_until = $2",
                    profile.project,
                    until,
                    due_at,
                    sketch_bytes
                )
                .run(cx)
                .await?;
                let is_kept = held > 0 && keep(cx, &profile, now).await?;
                fault::point("profile.rows");
                Ok(Change::written_if(is_kept, is_kept))
            }))
            .await?;
        fault::point("profile.commit");
        Ok(written)
    }

    /// Writes what was built for a caller, without a lease. Only the newest version can become a milestone by it.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn add(&self, profile: NewProfile, now: Timestamp) -> Result<(), Error> {
        check(&profile)?;
        self.0
            .write_aside(tx!(async move |cx| {
                // The lock of the work, under which milestones are decided.
                sql!(
                    "INSERT INTO profile_work (project_id, lease_until, due_at, failures, sketch_bytes)
                     SELECT projects.id, 0, 0, 0, 0 FROM projects WHERE projects.id = $1
                     ON CONFLICT (project_id) DO UPDATE SET failures = profile_work.failures",
                    profile.project
                )
                .run(cx)
                .await?;
                let newest: Option<i64> = sql!("SELECT version FROM projects WHERE id = $1", profile.project)
                    .scalar_if_any(cx)
                    .await?;
                let is_newest = newest == Some(bigint("version", profile.version.0)?);
                let profile = NewProfile {
                    public: profile.public.filter(|_| is_newest),
                    ..profile
                };
                let is_kept = keep(cx, &profile, now).await?;
                if is_kept {
                    asked(cx, profile.project, profile.version, &profile.root, now).await?;
                }
                Ok(Change::written_if(is_kept, ()))
            }))
            .await
    }

    /// Ends a lease without a profile. The dataset is due again after a wait that begins with `wait` and doubles.
    pub async fn fail(
        &self,
        lease: &ProfileLease,
        problem: &'static str,
        wait: Duration,
        now: Timestamp,
    ) -> Result<(), Error> {
        let (project, until) = (lease.project, lease.until);
        self.0
            .write_aside(tx!(async move |cx| {
                let failures = sql!(
                    "UPDATE profile_work SET lease_until = 0, failures = failures + 1, problem = $3
                     WHERE project_id = $1 AND lease_until = $2 RETURNING failures",
                    project,
                    until,
                    problem
                )
                .row_if_any(cx)
                .await?;
                let Some(failures) = failures else {
                    return Ok(Change::Undo(()));
                };
                let failures: u32 = failures.get("failures")?;
                let waits = wait.saturating_mul(1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX));
                sql!(
                    "UPDATE profile_work SET due_at = $2 WHERE project_id = $1",
                    project,
                    now.plus(waits.min(LONGEST_WAIT))
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(()))
            }))
            .await
    }

    /// Gives a lease back that nothing was tried with, because this process does not see the version yet.
    pub async fn give_back(&self, lease: &ProfileLease, next: Timestamp) -> Result<(), Error> {
        let (project, until) = (lease.project, lease.until);
        self.0
            .write_aside(tx!(async move |cx| {
                sql!(
                    "UPDATE profile_work SET lease_until = $3 WHERE project_id = $1 AND lease_until = $2",
                    project,
                    until,
                    next
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(()))
            }))
            .await
    }

    /// Has a version built that somebody asked for, unless `most` wait already.
    pub async fn ask(
        &self,
        project: DatasetId,
        version: Version,
        root: &str,
        most: u32,
        now: Timestamp,
    ) -> Result<ProfileAsked, Error> {
        let (number, root) = (bigint("version", version.0)?, root.to_owned());
        self.0
            .write_aside(tx!(async move |cx| {
                let known: i64 = sql!(
                    "SELECT COUNT(*) FROM profiles WHERE project_id = $1 AND version = $2 AND root = $3",
                    project,
                    number,
                    root.as_str()
                )
                .scalar(cx)
                .await?;
                let waiting: i64 = sql!("SELECT COUNT(*) FROM profiles WHERE figures IS NULL")
                    .scalar(cx)
                    .await?;
                if known == 0 && waiting >= i64::from(most) {
                    return Ok(Change::Undo(ProfileAsked::Full));
                }
                sql!(
                    "INSERT INTO profiles (project_id, version, root, asked_at)
                     SELECT projects.id, $2, $3, $4 FROM projects WHERE projects.id = $1 AND projects.deleted_at IS NULL
                     ON CONFLICT (project_id, version, root) DO UPDATE SET asked_at = excluded.asked_at",
                    project,
                    number,
                    root,
                    now
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(ProfileAsked::Asked))
            }))
            .await
    }

    /// Notes that somebody asked for a version that has a document.
    pub async fn note_asked(
        &self,
        project: DatasetId,
        version: Version,
        root: &str,
        now: Timestamp,
    ) -> Result<(), Error> {
        let root = root.to_owned();
        self.0
            .write_aside(tx!(async move |cx| {
                asked(cx, project, version, &root, now).await?;
                Ok(Change::Keep(()))
            }))
            .await
    }
}

fn check(profile: &NewProfile) -> Result<(), Error> {
    texts(&[("figures", &profile.figures), ("preview", &profile.preview)])?;
    match &profile.public {
        Some((figures, preview)) => texts(&[("public_figures", figures), ("public_preview", preview)]),
        None => Ok(()),
    }
}

async fn asked(
    cx: &mut AnyConnection,
    project: DatasetId,
    version: Version,
    root: &str,
    now: Timestamp,
) -> Result<(), Error> {
    sql!(
        "UPDATE profiles SET asked_at = $4 WHERE project_id = $1 AND version = $2 AND root = $3",
        project,
        bigint("version", version.0)?,
        root.to_owned(),
        now
    )
    .run(cx)
    .await?;
    Ok(())
}

/// Keeps the documents of a version, and deletes those that nobody needs. Returns false if the dataset was deleted, or its
/// owner offers rows since the build began, so that a public document is missing.
async fn keep(cx: &mut AnyConnection, profile: &NewProfile, now: Timestamp) -> Result<bool, Error> {
    let (project, number) = (profile.project, bigint("version", profile.version.0)?);
    let dataset = sql!(
        "SELECT operator_id, access, preview_rows, version FROM projects WHERE id = $1 AND deleted_at IS NULL",
        project
    )
    .row_if_any(cx)
    .await?;
    let Some(dataset) = dataset else {
        return Ok(false);
    };
    let is_offered = dataset.get::<Access>("access")? == Access::Paid
        && dataset.get::<Option<u32>>("preview_rows")?.is_some()
        && dataset.get::<Version>("version")? == profile.version;
    if is_offered && profile.public.is_none() {
        return Ok(false);
    }
    // What is there already stays, so that a document keeps its time.
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
           AND version <> (SELECT MAX(version) FROM profiles WHERE project_id = $1 AND figures IS NOT NULL)
           AND (version, root) NOT IN (SELECT version, root FROM profiles
                                       WHERE project_id = $1 AND figures IS NOT NULL AND asked_at IS NOT NULL
                                       ORDER BY asked_at DESC, version DESC, root LIMIT $2)
           AND version <> $3",
        project,
        ASKED_KEPT,
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

/// Makes the newest version of a dataset due, as if it had no profile. Milestones stay.
pub(crate) async fn begin_again(cx: &mut AnyConnection, project: DatasetId) -> Result<(), Error> {
    sql!(
        "DELETE FROM profiles WHERE project_id = $1 AND public_figures IS NULL",
        project
    )
    .run(cx)
    .await?;
    // A build that is under way does not know of the change, so its lease ends.
    sql!(
        "UPDATE profile_work SET due_at = 0, lease_until = 0 WHERE project_id = $1",
        project
    )
    .run(cx)
    .await?;
    Ok(())
}
