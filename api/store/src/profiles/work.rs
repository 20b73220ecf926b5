//! The work of making profiles: what is due, and who has it.
//!
//! Invariant: a build of the newest version is followed by a wait of its dataset, whatever became of it.

use std::time::Duration;

use sqlx::AnyConnection;
use types::vocabulary::{Access, Visibility};
use types::{DatasetId, Timestamp, Version, fault};

use super::kept::keep;
use super::{MAX_ASKED_PROFILES, Profiles};
use crate::Error;
use crate::query::{sql, text, tx};
use crate::row::{Columns as _, bigint, texts};
use crate::writer::Change;

/// Versions that were asked for and wait to be built. Those that are lost do not.
const WAITING: &str = " FROM profiles
             JOIN versions ON versions.project_id = profiles.project_id AND versions.version = profiles.version
                  AND versions.root = profiles.root
             JOIN projects ON projects.id = profiles.project_id
             WHERE profiles.figures IS NULL AND projects.deleted_at IS NULL";

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

/// Kind of the versions that a builder looks for first. One that takes turns lets neither wait for all of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileTurn {
    /// Versions that somebody asked for.
    Asked,
    /// The newest versions of datasets.
    Newest,
}

impl ProfileTurn {
    /// Returns the other kind.
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            Self::Asked => Self::Newest,
            Self::Newest => Self::Asked,
        }
    }
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
    /// True if it was the newest version when it was taken.
    pub is_newest: bool,
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
    /// Figures and preview rows of the public document, if the dataset may have milestones.
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
    /// [`MAX_ASKED_PROFILES`] versions of the dataset wait, which are as many as are kept; nothing changed.
    DatasetFull,
}

impl Profiles<'_> {
    /// Takes a version into work: of the kind whose turn it is, or else of the other. Returns `None` if there is none
    /// to begin with now, or another process was faster.
    pub async fn take(
        &self,
        turn: ProfileTurn,
        now: Timestamp,
        limits: ProfileLimits,
    ) -> Result<Option<ProfileLease>, Error> {
        let until = now.plus(limits.lease);
        let Some(lease) = self.due(turn, now, until).await? else {
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

    async fn due(&self, turn: ProfileTurn, now: Timestamp, until: Timestamp) -> Result<Option<ProfileLease>, Error> {
        // A dataset whose builds fail waits, also with what was asked for of it.
        let asked = sql!(
            text!(
                "SELECT projects.id AS id, profiles.version AS version, profiles.root AS root,
                        projects.version AS newest, access, visibility, preview_rows",
                WAITING,
                " AND NOT EXISTS (SELECT 1 FROM profile_work
                                  WHERE profile_work.project_id = profiles.project_id
                                    AND (profile_work.lease_until > $1
                                         OR (profile_work.failures > 0 AND profile_work.due_at > $1)))
                  ORDER BY profiles.asked_at, profiles.project_id, profiles.version LIMIT 1"
            ),
            now
        );
        let newest = sql!(
            "SELECT projects.id AS id, projects.version AS version, versions.root AS root,
                    projects.version AS newest, access, visibility, preview_rows
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
                let (first, second) = match turn {
                    ProfileTurn::Asked => (asked, newest),
                    ProfileTurn::Newest => (newest, asked),
                };
                let mut row = first.row_if_any(&mut self.0.readers()).await?;
                if row.is_none() {
                    row = second.row_if_any(&mut self.0.readers()).await?;
                }
                let Some(row) = row else {
                    return Ok(None);
                };
                let version: Version = row.get("version")?;
                Ok(Some(ProfileLease {
                    project: row.get("id")?,
                    version,
                    root: row.get("root")?,
                    is_newest: row.get::<Version>("newest")? == version,
                    access: row.get("access")?,
                    visibility: row.get("visibility")?,
                    preview_rows: row.get("preview_rows")?,
                    until,
                }))
            })
            .await
    }

    /// Gives a lease more time, until `until`. Returns false if it is over and another process has the dataset.
    pub async fn renew(&self, lease: &mut ProfileLease, until: Timestamp) -> Result<bool, Error> {
        let (project, held) = (lease.project, lease.until);
        let renewed = self
            .0
            .write_aside(tx!(async move |cx| {
                let renewed = sql!(
                    "UPDATE profile_work SET lease_until = $3 WHERE project_id = $1 AND lease_until = $2",
                    project,
                    held,
                    until
                )
                .run(cx)
                .await?;
                Ok(Change::written_if(renewed > 0, renewed > 0))
            }))
            .await?;
        if renewed {
            lease.until = until;
        }
        Ok(renewed)
    }

    /// Writes what was built under a lease that began at `begun`, and ends the lease. Returns false if nothing was
    /// kept: the time for it is over, the dataset was deleted, or its owner offers rows since the build began.
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
        let (until, is_newest) = (lease.until, lease.is_newest);
        let sketch_bytes = bigint("sketch_bytes", profile.sketch_bytes)?;
        let written = self
            .0
            .write_aside(tx!(async move |cx| {
                let held = sql!(
                    "UPDATE profile_work SET lease_until = 0, failures = 0, problem = NULL
                     WHERE project_id = $1 AND lease_until = $2",
                    profile.project,
                    until
                )
                .run(cx)
                .await?;
                if held == 0 {
                    return Ok(Change::Undo(false));
                }
                if is_newest {
                    sql!(
                        "UPDATE profile_work SET due_at = $2, sketch_bytes = $3 WHERE project_id = $1",
                        profile.project,
                        due_at,
                        sketch_bytes
                    )
                    .run(cx)
                    .await?;
                } else {
                    // The newest version does not wait for what somebody asked for.
                    charge(cx, profile.project, sketch_bytes).await?;
                }
                let is_kept = keep(cx, &profile, is_newest, now).await?;
                fault::point("profile.rows");
                Ok(Change::Keep(is_kept))
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
        let sketch_bytes = bigint("sketch_bytes", profile.sketch_bytes)?;
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
                let is_kept = keep(cx, &profile, is_newest, now).await?;
                if is_kept {
                    charge(cx, profile.project, sketch_bytes).await?;
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

    /// Puts a version into the queue of those to be built, unless `most` versions are in it, or [`MAX_ASKED_PROFILES`] of
    /// this dataset. A version that is in the queue keeps its place.
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
                let waiting = sql!(
                    text!(
                        "SELECT COUNT(*) AS of_all,
                                COUNT(CASE WHEN profiles.project_id = $1 THEN 1 END) AS of_dataset",
                        WAITING
                    ),
                    project
                )
                .row(cx)
                .await?;
                if known == 0 && waiting.get::<i64>("of_dataset")? >= i64::from(MAX_ASKED_PROFILES) {
                    return Ok(Change::Undo(ProfileAsked::DatasetFull));
                }
                if known == 0 && waiting.get::<i64>("of_all")? >= i64::from(most) {
                    return Ok(Change::Undo(ProfileAsked::Full));
                }
                sql!(
                    "INSERT INTO profiles (project_id, version, root, asked_at)
                     SELECT projects.id, versions.version, versions.root, $4
                     FROM projects
                     JOIN versions ON versions.project_id = projects.id AND versions.version = $2 AND versions.root = $3
                     WHERE projects.id = $1 AND projects.deleted_at IS NULL
                     ON CONFLICT (project_id, version, root) DO UPDATE SET asked_at = excluded.asked_at
                     WHERE profiles.figures IS NOT NULL",
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

/// Charges a dataset for sketches of a version that is not known to be the newest, which has more of them.
async fn charge(cx: &mut AnyConnection, project: DatasetId, sketch_bytes: i64) -> Result<(), Error> {
    sql!(
        "UPDATE profile_work SET sketch_bytes = $2 WHERE project_id = $1 AND sketch_bytes < $2",
        project,
        sketch_bytes
    )
    .run(cx)
    .await?;
    Ok(())
}
