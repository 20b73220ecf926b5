//! Data for the checker, which compares the database with the tables and the log.
//!
//! Invariant: read only. The entries of one project are from one instant, also while the service runs.

use sqlx::Connection;
use types::vocabulary::ContributionStatus;
use types::{AgentId, ContributionId, DatasetId, Timestamp, Version};

use crate::query::{sql, text};
use crate::row::{Row as _, is_set, row};
use crate::{Error, Store};

row! {
    /// Project as the checker sees it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ProjectEntry {
        /// Id of the project.
        pub id: DatasetId,
        /// Slug of the project, its name in URLs.
        pub slug: String,
        /// Latest version according to the database.
        pub version: Version,
        /// Number of records of that version according to the database.
        pub record_count: u64,
        /// Time of the deletion, if the project was deleted.
        pub deleted_at: Option<Timestamp>,
    }
}

/// The contributions and versions of a project according to the database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectEntries {
    /// Contributions, ordered by id.
    pub contributions: Vec<ContributionEntry>,
    /// Versions, ordered by number.
    pub versions: Vec<VersionEntry>,
}

row! {
    /// Contribution as the checker sees it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ContributionEntry {
        /// Id of the contribution.
        pub id: ContributionId,
        /// Agent that made the contribution.
        pub agent: AgentId = "agent_id",
        /// Status of the contribution.
        pub status: ContributionStatus,
        /// Number of replays so far.
        pub generation: u32,
        /// Number of submitted records.
        pub rows: u32 = "row_count",
        /// Time of the acknowledgement.
        pub submitted_at: Timestamp,
        /// Time of the decision.
        pub decided_at: Option<Timestamp>,
        /// Version with its new records.
        pub version: Option<Version>,
        /// Number of its records in that version.
        pub accepted: Option<u64>,
        /// Total number of records of that version.
        pub record_count: Option<u64>,
        /// Content root of that version.
        pub root: Option<String>,
        /// Machine-readable reason of the rejection.
        pub reject_code: Option<String>,
        /// Says that the version of the contribution was lost and that the loss was accepted.
        pub lost: bool = "loss" => is_set,
        /// True if its submission is in the outbox, which must hold exactly while the status is not terminal.
        pub in_outbox: bool = "in_outbox" => is_set,
    }
}

row! {
    /// Version as the checker sees it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct VersionEntry {
        /// Number of the version.
        pub version: Version,
        /// Contribution that created the version.
        pub contribution: ContributionId = "contribution_id",
        /// Agent that made the contribution.
        pub agent: AgentId = "agent_id",
        /// Number of records that it added.
        pub accepted: u64,
        /// Total number of records of the version.
        pub record_count: u64,
        /// Content root of the version.
        pub root: String,
    }
}

impl Store {
    /// Returns every project, ordered by slug.
    pub async fn check_projects(&self) -> Result<Vec<ProjectEntry>, Error> {
        self.all(sql!(text!(
            "SELECT ",
            ProjectEntry::COLUMNS,
            " FROM projects ORDER BY slug"
        )))
        .await
    }

    /// Returns true if the database has a project or a knowledge unit, either of which may have rows in a table.
    pub async fn has_items(&self) -> Result<bool, Error> {
        self.read(async {
            for query in ["SELECT id FROM projects LIMIT 1", "SELECT id FROM units LIMIT 1"] {
                let one: Option<String> = sql!(query).scalar_if_any(&mut self.readers()).await?;
                if one.is_some() {
                    return Ok(true);
                }
            }
            Ok(false)
        })
        .await
    }

    /// The contributions and versions of a project, as they were at one instant.
    pub async fn check_project(&self, id: DatasetId) -> Result<ProjectEntries, Error> {
        self.read(async {
            let mut connection = self.readers().borrow().await?;
            // Both queries see one snapshot, so a merge between them cannot look like an
            // inconsistency.
            let mut snapshot = connection.begin_with(self.engine().begin_snapshot()).await?;
            let contributions = sql!(
                "SELECT contributions.id AS id, agent_id, status, generation, row_count, submitted_at, decided_at,
                        version, accepted, record_count, root, reject_code, loss, outbox.contribution_id AS in_outbox
                 FROM contributions LEFT JOIN outbox ON outbox.contribution_id = contributions.id
                 WHERE contributions.project_id = $1 ORDER BY contributions.id",
                id
            )
            .all(&mut *snapshot)
            .await?;
            let versions = sql!(
                text!(
                    "SELECT ",
                    VersionEntry::COLUMNS,
                    " FROM versions WHERE project_id = $1 ORDER BY version"
                ),
                id
            )
            .all(&mut *snapshot)
            .await?;
            // Nothing was written; the commit only ends the snapshot.
            snapshot.commit().await?;
            connection.done();
            Ok(ProjectEntries {
                contributions,
                versions,
            })
        })
        .await
    }
}
