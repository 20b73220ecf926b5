//! Profiles of versions: their figures and preview rows as JSON, and the work of making them.
//!
//! Invariants:
//! - A profile is found only while its version is in the history with its content root.
//! - What anybody sees of a paid dataset is of *milestones*: between two of them are [`MILESTONE_ROWS`] rows and a tenth of
//!   the rows of the first, and rows of others than its operator's agents count only where they are [`OTHERS_ROWS`].
//! - One process at a time builds the profiles of a dataset, and what it writes after its time is dropped.
//! - Everything here can be deleted, and is made again. Milestones then begin anew.

use types::{DatasetId, OperatorId, Timestamp, Version};

use crate::query::{sql, text};
use crate::row::{Row as _, bigint, row};
use crate::{Error, Store};

mod kept;
mod work;

pub(crate) use kept::{begin_again, forget_lost};
pub use work::{NewProfile, ProfileAsked, ProfileLease, ProfileLimits, ProfileTurn};

/// Rows between two milestones, and of the first.
const MILESTONE_ROWS: u64 = 100;
/// The part of the rows of a milestone by which the next one has more, as a divisor.
const MILESTONE_GROWTH: u64 = 10;
/// Number of rows of others since a milestone from which they count toward the next.
const OTHERS_ROWS: u64 = 1_000;
/// Versions of a dataset that are kept because somebody asked for them, beside the newest and the milestones. No more
/// of them wait to be built.
pub const MAX_ASKED_PROFILES: u32 = 16;

/// The part of the database about profiles.
#[derive(Clone, Copy, Debug)]
pub struct Profiles<'s>(&'s Store);

/// Kind of a document of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileKind {
    /// All figures, for who may read the records.
    Full,
    /// What anybody sees of a version of a paid dataset.
    Public,
}

row! {
    /// A document of a version.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct StoredProfile {
        /// Number of the version.
        pub version: Version = "profiles.version AS version",
        /// Content root of the version.
        pub root: String = "profiles.root AS root",
        /// Number of records of the version.
        pub records: u64 = "profiles.records AS records",
        /// Time at which it was made.
        pub made_at: Timestamp = "profiles.made_at AS made_at",
        /// Time at which somebody asked for the version.
        pub asked_at: Option<Timestamp> = "profiles.asked_at AS asked_at",
        /// The figures, as JSON.
        pub figures: String,
        /// The preview rows with their ranks, as JSON.
        pub preview: String,
    }
}

row! {
    /// Numbers of profiles that are missing, and of those that nobody sees.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ProfileCoverage {
        /// Datasets with records whose newest version has no profile.
        pub missing: usize,
        /// Documents of versions that the database does not have, or has with another content root.
        pub stale: usize,
    }
}

impl ProfileKind {
    /// Returns the statement that reads the documents of this kind of a dataset, without further conditions.
    const fn statement(self) -> &'static str {
        const FULL: &str = text!("SELECT ", StoredProfile::COLUMNS, " FROM profiles", CURRENT);
        const PUBLIC: &str = text!(
            "SELECT profiles.version AS version, profiles.root AS root, profiles.records AS records,
                    profiles.made_at AS made_at, profiles.asked_at AS asked_at, profiles.public_figures AS figures,
                    profiles.public_preview AS preview
             FROM profiles",
            CURRENT,
            " AND profiles.public_figures IS NOT NULL"
        );
        match self {
            Self::Full => FULL,
            Self::Public => PUBLIC,
        }
    }
}

/// Condition on the documents that are built and of the history as it is.
const CURRENT: &str =
    " JOIN versions ON versions.project_id = profiles.project_id AND versions.version = profiles.version
                             AND versions.root = profiles.root
                        WHERE profiles.project_id = $1 AND profiles.figures IS NOT NULL";

impl Store {
    /// Returns the part of the database about profiles.
    pub const fn profiles(&self) -> Profiles<'_> {
        Profiles(self)
    }
}

impl Profiles<'_> {
    /// Returns the document of the newest version that has one of this kind, among those up to `upto`.
    pub async fn newest(
        &self,
        project: DatasetId,
        upto: Version,
        kind: ProfileKind,
    ) -> Result<Option<StoredProfile>, Error> {
        let upto = bigint("version", upto.0)?;
        let text = match kind {
            ProfileKind::Full => text!(
                ProfileKind::Full.statement(),
                " AND profiles.version <= $2 ORDER BY profiles.version DESC LIMIT 1"
            ),
            ProfileKind::Public => text!(
                ProfileKind::Public.statement(),
                " AND profiles.version <= $2 ORDER BY profiles.version DESC LIMIT 1"
            ),
        };
        self.found(text, project, upto).await
    }

    /// Returns the full document of a version.
    pub async fn of(&self, project: DatasetId, version: Version) -> Result<Option<StoredProfile>, Error> {
        let text = text!(ProfileKind::Full.statement(), " AND profiles.version = $2");
        self.found(text, project, bigint("version", version.0)?).await
    }

    async fn found(
        &self,
        text: &'static str,
        project: DatasetId,
        version: i64,
    ) -> Result<Option<StoredProfile>, Error> {
        self.0
            .read(async {
                let row = sql!(text, project, version).row_if_any(&mut self.0.readers()).await?;
                row.map(|row| StoredProfile::of(&row)).transpose()
            })
            .await
    }

    /// Returns why the last build of a dataset failed, as the word of an error of the interface.
    pub async fn problem(&self, project: DatasetId) -> Result<Option<String>, Error> {
        self.0
            .read(async {
                let found: Option<Option<String>> =
                    sql!("SELECT problem FROM profile_work WHERE project_id = $1", project)
                        .scalar_if_any(&mut self.0.readers())
                        .await?;
                Ok(found.flatten())
            })
            .await
    }

    /// Returns the size in bytes of the sketches of all datasets of an operator.
    pub async fn sketch_bytes(&self, operator: OperatorId) -> Result<u64, Error> {
        self.0
            .read(async {
                let bytes: i64 = sql!(
                    "SELECT CAST(COALESCE(SUM(profile_work.sketch_bytes), 0) AS BIGINT)
                     FROM projects JOIN profile_work ON profile_work.project_id = projects.id
                     WHERE projects.operator_id = $1 AND projects.deleted_at IS NULL",
                    operator
                )
                .scalar(&mut self.0.readers())
                .await?;
                Ok(u64::try_from(bytes).unwrap_or(0))
            })
            .await
    }

    /// Returns how far the datasets have profiles.
    pub async fn coverage(&self) -> Result<ProfileCoverage, Error> {
        self.0
            .one(sql!(
                "SELECT (SELECT COUNT(*) FROM projects
                         JOIN versions ON versions.project_id = projects.id AND versions.version = projects.version
                         LEFT JOIN profiles ON profiles.project_id = projects.id
                              AND profiles.version = projects.version AND profiles.root = versions.root
                         WHERE projects.deleted_at IS NULL AND profiles.figures IS NULL) AS missing,
                        (SELECT COUNT(*) FROM profiles
                         LEFT JOIN versions ON versions.project_id = profiles.project_id
                              AND versions.version = profiles.version AND versions.root = profiles.root
                         WHERE versions.root IS NULL) AS stale"
            ))
            .await
    }
}
