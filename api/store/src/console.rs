//! Lists of an operator's own rows, for the console.
//!
//! Invariant: each list has a bound on its rows and is read by an index of the operator or the project, so a page costs
//! the same however much there is.

mod copy;

use std::time::Duration;

use types::vocabulary::{Access, ContributionStatus, ProjectStatus, UploadStatus, Visibility};
use types::{ContributionId, DatasetId, OperatorId, Timestamp, Version};

use crate::query::sql;
use crate::row::{Columns, is_set, row};
use crate::{Error, Store};

pub use copy::{GivenMark, GivenRating, OpinionPlace};

/// Access to the lists of the console, see [`Store::console`].
#[derive(Clone, Copy, Debug)]
pub struct Console<'s>(&'s Store);

/// Selection of contributions by what became of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Filter that takes all contributions.
    All,
    /// Acknowledged and not judged yet.
    Submitted,
    /// Held: cannot be judged now.
    Waiting,
    /// Merged into a version.
    Merged,
    /// Rejected by a gate.
    Rejected,
    /// Rejected because its message could not be processed; an administrator may replay it.
    Dead,
}

row! {
    /// Contribution as a list shows it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ListedContribution {
        /// Id of the contribution.
        pub id: ContributionId,
        /// Slug of the project that receives the records.
        pub slug: String,
        /// Name of the agent that made the contribution.
        pub agent_name: String,
        /// Number of submitted records; 0 for an upload that is not decided.
        pub rows: u32 = "row_count",
        /// Number of its records in the version; set when merged.
        pub accepted: Option<u64>,
        /// Time of the acknowledgement.
        pub submitted_at: Timestamp,
        /// Status of the contribution.
        pub status: ContributionStatus,
        /// Version with its new records; set when merged.
        pub version: Option<Version>,
        /// Machine-readable reason; set when rejected.
        pub reject_code: Option<String>,
        /// Sentence for the contributor; set when rejected.
        pub reject_message: Option<String>,
        /// Reason of the hold; set when waiting.
        pub waiting_reason: Option<String>,
        /// Time of the next judgement; set when waiting and known.
        pub resumes_after: Option<Timestamp>,
        /// Tallies of the gates as JSON; set with a terminal status.
        pub tallies: Option<String>,
    }
}

row! {
    /// Project of an operator as a list shows it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ListedProject {
        /// Id of the project.
        pub id: DatasetId,
        /// Slug of the project.
        pub slug: String,
        /// Title of the project.
        pub title: String,
        /// Status, which decides whether contributions are accepted.
        pub status: ProjectStatus,
        /// Visibility of the project.
        pub visibility: Visibility,
        /// Access to the records.
        pub access: Access,
        /// Latest version with a recorded outcome.
        pub version: Version,
        /// Number of records of that version.
        pub record_count: u64,
        /// Time of that version, if there is one.
        pub merged_at: Option<Timestamp>,
        /// Number of rows that anybody sees; `None` shows nothing of a paid project.
        pub preview_rows: Option<u32>,
        /// Contributions without an outcome, at most 1,000.
        pub open: u64 = "pending",
        /// True while it is taken down.
        pub is_taken_down: bool = "taken_down_at" => is_set,
    }
}

row! {
    /// Upload as a list shows it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ListedUpload {
        /// Id of the upload.
        pub id: ContributionId,
        /// Name of the agent that began it.
        pub agent_name: String,
        /// Total size of the parts in bytes.
        pub bytes: u64 = "byte_count",
        /// Number of parts.
        pub parts: u32 = "part_count",
        /// Status of the upload.
        pub status: UploadStatus,
        /// Time when it was begun.
        pub created_at: Timestamp,
        /// Time until which it may be completed.
        pub expires_at: Timestamp,
    }
}

/// Contributions of one UTC day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Day {
    /// Number of the day since 1970.
    pub number: i64,
    /// Contributions that were merged.
    pub merged: u64,
    /// Contributions that were rejected.
    pub rejected: u64,
    /// Contributions without an outcome.
    pub open: u64,
}

row! {
    /// Contributions with the same status and tallies, added up.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ContributionSum {
        /// Status of each.
        pub status: ContributionStatus,
        /// Tallies of the gates as JSON; set with a terminal status.
        pub tallies: Option<String>,
        /// Number of contributions.
        pub count: u64 = "counted",
        /// Number of their submitted records together; an upload that is not decided has 0.
        pub rows: u64 = "row_count",
    }
}

impl From<&ListedContribution> for ContributionSum {
    fn from(one: &ListedContribution) -> Self {
        Self {
            status: one.status,
            tallies: one.tallies.clone(),
            count: 1,
            rows: u64::from(one.rows),
        }
    }
}

/// Columns of a listed contribution.
const LISTED: &str = "SELECT contributions.id AS id, projects.slug AS slug, agents.name AS agent_name,
       contributions.row_count AS row_count, contributions.accepted AS accepted,
       contributions.submitted_at AS submitted_at, contributions.status AS status,
       contributions.version AS version, contributions.reject_code AS reject_code,
       contributions.reject_message AS reject_message, contributions.waiting_reason AS waiting_reason,
       contributions.resumes_after AS resumes_after, contributions.tallies AS tallies
  FROM contributions
  JOIN agents ON agents.id = contributions.agent_id
  JOIN projects ON projects.id = contributions.project_id";

impl Store {
    /// Returns access to the lists of the console.
    pub const fn console(&self) -> Console<'_> {
        Console(self)
    }
}

impl Console<'_> {
    /// Returns the projects of an operator, the latest merge first.
    pub async fn projects_of(&self, operator: OperatorId, limit: u32) -> Result<Vec<ListedProject>, Error> {
        self.projects(operator, "", limit).await
    }

    /// Returns the projects of an operator that are not archived, the latest merge first.
    pub async fn active_projects_of(&self, operator: OperatorId, limit: u32) -> Result<Vec<ListedProject>, Error> {
        self.projects(operator, "AND projects.status IN ('open', 'paused')", limit)
            .await
    }

    async fn projects(
        &self,
        operator: OperatorId,
        clause: &'static str,
        limit: u32,
    ) -> Result<Vec<ListedProject>, Error> {
        // The outbox has the contributions without an outcome. The inner limit bounds a backlog.
        let text = format!(
            "SELECT projects.id AS id, slug, title, status, visibility, access, projects.version AS version,
                    projects.record_count AS record_count, versions.created_at AS merged_at, preview_rows,
                    projects.taken_down_at AS taken_down_at,
                    (SELECT COUNT(*) FROM (SELECT 1 FROM contributions AS pending
                                           WHERE pending.project_id = projects.id
                                             AND pending.status IN ('submitted', 'waiting')
                                           LIMIT 1000) AS bounded) AS pending
             FROM projects
             LEFT JOIN versions ON versions.project_id = projects.id AND versions.version = projects.version
             WHERE projects.operator_id = $1 AND projects.deleted_at IS NULL {clause}
             ORDER BY projects.updated_at DESC, projects.id DESC LIMIT $2"
        );
        self.0.all(sql!(sqlx::AssertSqlSafe(text), operator, limit)).await
    }

    /// Returns contributions of the operator's agents, newest first: those before `before`, or the newest.
    pub async fn contributions_of(
        &self,
        operator: OperatorId,
        selection: Selection,
        before: Option<ContributionId>,
        limit: u32,
    ) -> Result<Vec<ListedContribution>, Error> {
        let clause = match selection {
            Selection::All => "",
            Selection::Submitted => "AND contributions.status = 'submitted'",
            Selection::Waiting => "AND contributions.status = 'waiting'",
            Selection::Merged => "AND contributions.status = 'merged'",
            Selection::Rejected => {
                "AND contributions.status = 'rejected' AND contributions.reject_code <> 'unprocessable'"
            }
            Selection::Dead => "AND contributions.status = 'rejected' AND contributions.reject_code = 'unprocessable'",
        };
        let text = format!(
            "{LISTED} WHERE contributions.operator_id = $1 AND projects.deleted_at IS NULL
                AND ($2 = '' OR contributions.id < $2) {clause}
             ORDER BY contributions.id DESC LIMIT $3"
        );
        self.listed(&text, operator.to_string(), before, limit).await
    }

    /// Returns contributions to a project, whoever made them, newest first.
    pub async fn contributions_to(
        &self,
        project: DatasetId,
        before: Option<ContributionId>,
        limit: u32,
    ) -> Result<Vec<ListedContribution>, Error> {
        let text = format!(
            "{LISTED} WHERE contributions.project_id = $1 AND ($2 = '' OR contributions.id < $2)
             ORDER BY contributions.id DESC LIMIT $3"
        );
        self.listed(&text, project.to_string(), before, limit).await
    }

    /// Returns the newest contributions to public projects, among the newest thousand of all.
    pub async fn contributions_in_public(&self, limit: u32) -> Result<Vec<ListedContribution>, Error> {
        let text = format!(
            "{LISTED} WHERE projects.visibility = $1 AND projects.taken_down_at IS NULL
                AND ($2 = '' OR contributions.id < $2)
                AND contributions.id >= COALESCE((SELECT MIN(id) FROM (SELECT id FROM contributions
                                                                       ORDER BY id DESC LIMIT 1000) AS newest), '')
             ORDER BY contributions.id DESC LIMIT $3"
        );
        self.listed(&text, Visibility::Public.to_string(), None, limit).await
    }

    async fn listed(
        &self,
        text: &str,
        owner: String,
        before: Option<ContributionId>,
        limit: u32,
    ) -> Result<Vec<ListedContribution>, Error> {
        self.0
            .all(sql!(
                sqlx::AssertSqlSafe(text),
                owner,
                before.map(|id| id.to_string()).unwrap_or_default(),
                limit
            ))
            .await
    }

    /// Returns the contributions of the operator's agents in the last `days` UTC days, one entry for each day that has
    /// any, oldest first.
    pub async fn days_of(&self, operator: OperatorId, days: u32, now: Timestamp) -> Result<Vec<Day>, Error> {
        let first = Timestamp::of_day(now.day() + 1 - i64::from(days));
        self.0
            .read(async {
                let rows = sql!(
                    "SELECT submitted_at / 86400000000 AS day, status, COUNT(*) AS counted FROM contributions
                     WHERE operator_id = $1 AND id >= $2 AND submitted_at >= $3
                     GROUP BY submitted_at / 86400000000, status ORDER BY day",
                    operator,
                    // Ids begin with their time, so the index leads to the first of the days.
                    earliest(first).to_string(),
                    first,
                )
                .rows(&mut self.0.readers())
                .await?;
                let mut days: Vec<Day> = Vec::new();
                for row in &rows {
                    let number: i64 = row.get("day")?;
                    if days.last().is_none_or(|day| day.number != number) {
                        days.push(Day {
                            number,
                            merged: 0,
                            rejected: 0,
                            open: 0,
                        });
                    }
                    let Some(day) = days.last_mut() else { continue };
                    let counted: u64 = row.get("counted")?;
                    match row.get("status")? {
                        ContributionStatus::Merged => day.merged += counted,
                        ContributionStatus::Rejected => day.rejected += counted,
                        ContributionStatus::Submitted | ContributionStatus::Waiting => day.open += counted,
                    }
                }
                Ok(days)
            })
            .await
    }

    /// Returns the contributions of the operator's agents from `since` on, added up by status and tallies: the `limit`
    /// most frequent of these.
    pub async fn sums_of(
        &self,
        operator: OperatorId,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<ContributionSum>, Error> {
        self.0
            .read(async {
                // Most batches of an agent are alike, so that thousands of them are a few rows.
                sql!(
                    "SELECT status, tallies, COUNT(*) AS counted, CAST(SUM(row_count) AS BIGINT) AS row_count
                     FROM contributions WHERE operator_id = $1 AND id >= $2 AND submitted_at >= $3
                     GROUP BY status, tallies ORDER BY counted DESC, status, tallies LIMIT $4",
                    operator,
                    earliest(since).to_string(),
                    since,
                    limit
                )
                .all(&mut self.0.readers())
                .await
            })
            .await
    }

    /// Returns the records and the versions of all public projects.
    pub async fn public_totals(&self) -> Result<(u64, u64), Error> {
        self.0
            .read(async {
                let row = sql!(
                    "SELECT CAST(COALESCE(SUM(record_count), 0) AS BIGINT) AS records,
                            CAST(COALESCE(SUM(version), 0) AS BIGINT) AS versions
                     FROM projects WHERE visibility = 'public' AND taken_down_at IS NULL"
                )
                .row(&mut self.0.readers())
                .await?;
                Ok((row.get("records")?, row.get("versions")?))
            })
            .await
    }

    /// Returns uploads to a project, newest first.
    pub async fn uploads_to(&self, project: DatasetId, limit: u32) -> Result<Vec<ListedUpload>, Error> {
        self.0
            .all(sql!(
                "SELECT uploads.id AS id, agents.name AS agent_name, byte_count, part_count, status,
                        uploads.created_at AS created_at, expires_at
                 FROM uploads JOIN agents ON agents.id = uploads.agent_id
                 WHERE uploads.project_id = $1 ORDER BY uploads.id DESC LIMIT $2",
                project,
                limit
            ))
            .await
    }
}

/// Returns the smallest id that a contribution of this time or a later one can have.
fn earliest(at: Timestamp) -> ContributionId {
    // An id's time is whole milliseconds, and the process that made it may have had another clock; a minute is spare.
    let spare = i64::try_from(Duration::from_mins(1).as_micros()).unwrap_or(i64::MAX);
    let millis = u64::try_from(at.micros().saturating_sub(spare) / 1_000).unwrap_or(0);
    let mut bytes = [0; 16];
    // A version 7 id begins with 48 bits of milliseconds (RFC 9562 section 5.7).
    bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    ContributionId::from_bytes(bytes)
}
