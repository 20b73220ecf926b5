//! What a checker compares with the tables and the log.
//!
//! Invariant: read only; the entries of one project are of one instant, also while the service runs.

use sqlx::Connection;
use types::{AgentId, ContributionId, DatasetId, Timestamp, Version};

use crate::row::Columns;
use crate::words::ContributionStatus;
use crate::{Error, Store};

/// A project to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectEntry {
    /// Its id.
    pub id: DatasetId,
    /// Its name in addresses.
    pub slug: String,
    /// The latest version it is said to have.
    pub version: Version,
    /// How many records that version is said to have.
    pub record_count: u64,
}

/// Everything a project is said to have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectEntries {
    /// Its contributions, by id.
    pub contributions: Vec<ContributionEntry>,
    /// Its versions, by number.
    pub versions: Vec<VersionEntry>,
}

/// A contribution to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContributionEntry {
    /// Its id.
    pub id: ContributionId,
    /// The agent that contributed.
    pub agent: AgentId,
    /// Where it stands.
    pub status: ContributionStatus,
    /// How often it was replayed.
    pub generation: u32,
    /// How many records were submitted.
    pub rows: u32,
    /// When it was acknowledged.
    pub submitted_at: Timestamp,
    /// When it was decided.
    pub decided_at: Option<Timestamp>,
    /// The version it became.
    pub version: Option<Version>,
    /// How many of its records are in that version.
    pub accepted: Option<u64>,
    /// How many records that version has in all.
    pub record_count: Option<u64>,
    /// Content root of that version.
    pub root: Option<String>,
    /// Why it was rejected.
    pub reject_code: Option<String>,
    /// Whether its submission is in the outbox: so exactly while it has no terminal status.
    pub in_outbox: bool,
}

/// A version to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionEntry {
    /// Its number.
    pub version: Version,
    /// The contribution that made it.
    pub contribution: ContributionId,
    /// The agent that contributed.
    pub agent: AgentId,
    /// How many records it added.
    pub accepted: u64,
    /// How many records it has in all.
    pub record_count: u64,
    /// Its content root.
    pub root: String,
}

impl Store {
    /// Every project, by slug.
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

    /// The contributions and versions of a project, as they were at one instant.
    pub async fn check_project(&self, id: DatasetId) -> Result<ProjectEntries, Error> {
        self.read(async {
            let mut connection = self.readers().borrow().await?;
            let mut snapshot = connection.begin_with(self.engine().begin_snapshot()).await?;
            let contributions = sqlx::query(
                "SELECT contributions.id AS id, agent_id, status, generation, row_count, submitted_at, decided_at,
                        version, accepted, record_count, root, reject_code, outbox.contribution_id AS in_outbox
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
