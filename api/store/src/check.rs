//! Data for the checker, which compares the database with the tables and the log.
//!
//! Invariant: read only. The entries of one project are from one instant, also while the service runs.

use sqlx::Connection;
use types::vocabulary::ContributionStatus;
use types::{AgentId, ContributionId, DatasetId, Timestamp, Version};

use crate::row::Columns;
use crate::{Error, Store};

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
}

/// The contributions and versions of a project according to the database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectEntries {
    /// Contributions, ordered by id.
    pub contributions: Vec<ContributionEntry>,
    /// Versions, ordered by number.
    pub versions: Vec<VersionEntry>,
}

/// Contribution as the checker sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContributionEntry {
    /// Id of the contribution.
    pub id: ContributionId,
    /// Agent that made the contribution.
    pub agent: AgentId,
    /// Status of the contribution.
    pub status: ContributionStatus,
    /// Number of replays so far.
    pub generation: u32,
    /// Number of submitted records.
    pub rows: u32,
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
    pub lost: bool,
    /// True if its submission is in the outbox, which must hold exactly while the status is not terminal.
    pub in_outbox: bool,
}

/// Version as the checker sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionEntry {
    /// Number of the version.
    pub version: Version,
    /// Contribution that created the version.
    pub contribution: ContributionId,
    /// Agent that made the contribution.
    pub agent: AgentId,
    /// Number of records that it added.
    pub accepted: u64,
    /// Total number of records of the version.
    pub record_count: u64,
    /// Content root of the version.
    pub root: String,
}

impl Store {
    /// Returns every project, ordered by slug.
    pub async fn check_projects(&self) -> Result<Vec<ProjectEntry>, Error> {
        self.read(async {
            sqlx::query("SELECT id, slug, version, record_count FROM projects ORDER BY slug")
                .fetch_all(self.readers())
                .await?
                .iter()
                .map(|row| {
                    Ok(ProjectEntry {
                        id: row.parsed("id")?,
                        slug: row.value("slug")?,
                        version: Version(row.number("version")?),
                        record_count: row.number("record_count")?,
                    })
                })
                .collect()
        })
        .await
    }

    /// Returns true if the database has a project or a knowledge unit, either of which may have rows in a table.
    pub async fn has_items(&self) -> Result<bool, Error> {
        self.read(async {
            for query in ["SELECT id FROM projects LIMIT 1", "SELECT id FROM units LIMIT 1"] {
                let one: Option<String> = sqlx::query_scalar(query).fetch_optional(self.readers()).await?;
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
            let contributions = sqlx::query(
                "SELECT contributions.id AS id, agent_id, status, generation, row_count, submitted_at, decided_at,
                        version, accepted, record_count, root, reject_code, loss, outbox.contribution_id AS in_outbox
                 FROM contributions LEFT JOIN outbox ON outbox.contribution_id = contributions.id
                 WHERE contributions.project_id = $1 ORDER BY contributions.id",
            )
            .bind(id.to_string())
            .fetch_all(&mut *snapshot)
            .await?;
            let versions = sqlx::query(
                "SELECT version, contribution_id, agent_id, accepted, record_count, root
                 FROM versions WHERE project_id = $1 ORDER BY version",
            )
            .bind(id.to_string())
            .fetch_all(&mut *snapshot)
            .await?;
            // Nothing was written; the commit only ends the snapshot.
            snapshot.commit().await?;
            connection.done();
            Ok(ProjectEntries {
                contributions: contributions
                    .iter()
                    .map(contribution_entry)
                    .collect::<Result<_, Error>>()?,
                versions: versions.iter().map(version_entry).collect::<Result<_, Error>>()?,
            })
        })
        .await
    }
}

fn contribution_entry(row: &sqlx::any::AnyRow) -> Result<ContributionEntry, Error> {
    Ok(ContributionEntry {
        id: row.parsed("id")?,
        agent: row.parsed("agent_id")?,
        status: row.parsed("status")?,
        generation: row.number("generation")?,
        rows: row.number("row_count")?,
        submitted_at: row.time("submitted_at")?,
        decided_at: row.time_optional("decided_at")?,
        version: row.number_optional("version")?.map(Version),
        accepted: row.number_optional("accepted")?,
        record_count: row.number_optional("record_count")?,
        root: row.value("root")?,
        reject_code: row.value("reject_code")?,
        lost: row.number_optional::<u64>("loss")?.is_some(),
        in_outbox: row.value::<Option<&str>>("in_outbox")?.is_some(),
    })
}

fn version_entry(row: &sqlx::any::AnyRow) -> Result<VersionEntry, Error> {
    Ok(VersionEntry {
        version: Version(row.number("version")?),
        contribution: row.parsed("contribution_id")?,
        agent: row.parsed("agent_id")?,
        accepted: row.number("accepted")?,
        record_count: row.number("record_count")?,
        root: row.value("root")?,
    })
}
