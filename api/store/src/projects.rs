//! Dataset projects: creation, search, changes, and merged versions.
//!
//! Invariant: a slug names one project for ever; contract, access and visibility never change; an archived project
//! stays archived; a price changes at most once per window. A project that is deleted is found by no look-up, and keeps
//! its slug.

use types::vocabulary::{Access, ActivityKind, ItemKind, ProjectStatus, TakedownReason, Visibility};
use types::{AgentId, ContributionId, DatasetId, OperatorId, Timestamp, Version};

use crate::activity::{self, NewActivity};
use crate::query::{sql, text, tx};
use crate::row::{Row as _, absent, bigint, json_column, json_text, pair, row, texts};
use crate::writer::Change;
use crate::{Error, Store, accounts, money, service_state};

mod delete;
pub(crate) mod find;
mod update;

pub use delete::{DELETE_TABLE, ProjectDeleted};
pub use find::{ParseCursorError, ProjectCursor, ProjectFilter, ProjectSummary};
pub use update::{ProjectChanges, ProjectUpdated};

/// A project to create; it starts open and empty.
#[derive(Clone, Debug)]
pub struct NewProject {
    /// Id of the project.
    pub id: DatasetId,
    /// Slug of the project, its name in URLs. Unique and never freed.
    pub slug: String,
    /// Title of the project.
    pub title: String,
    /// Readme of the project.
    pub readme: String,
    /// The contract of its records, as JSON.
    pub contract_json: String,
    /// Identifier of the licence.
    pub license: String,
    /// Tags of the project.
    pub tags: Vec<String>,
    /// Access to the records.
    pub access: Access,
    /// Visibility of the project.
    pub visibility: Visibility,
    /// Price of a version in micro-USDC: 0 is free, `None` the platform's default.
    pub price_micro: Option<i64>,
    /// True if buyers may pay with given credits.
    pub trial_sale: bool,
    /// Number of rows that anybody sees; `None` shows nothing of a paid project.
    pub preview_rows: Option<u32>,
    /// Operator that maintains the project.
    pub operator: OperatorId,
    /// Agent that created the project; `None` if the operator did.
    pub created_by_agent: Option<AgentId>,
    /// Time of the creation.
    pub now: Timestamp,
}

/// The result of [`Store::project_create`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ProjectCreated {
    /// The project was created.
    Created,
    /// The slug names a project already; nothing changed.
    SlugTaken,
    /// The operator is at its limit of active projects; nothing changed.
    LimitReached,
}

/// Number of rows that anybody sees of a project. One of open access that was made by an earlier build, which may run
/// beside this one, has none.
const PREVIEW_ROWS: &str =
    "CASE WHEN access = 'public' THEN COALESCE(preview_rows, 20) ELSE preview_rows END AS preview_rows";

row! {
    /// A dataset project as stored.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Project {
        /// Id of the project.
        pub id: DatasetId,
        /// Slug of the project, its name in URLs.
        pub slug: String,
        /// Title of the project.
        pub title: String,
        /// Readme of the project.
        pub readme: String,
        /// The contract of its records, as the JSON it was created with.
        pub contract_json: String = "contract",
        /// Identifier of the licence.
        pub license: String,
        /// Tags of the project.
        pub tags: Vec<String> = "tags" => json_column,
        /// Access to the records.
        pub access: Access,
        /// Visibility of the project.
        pub visibility: Visibility,
        /// Price of a version in micro-USDC: 0 is free, `None` the platform's default.
        pub price_micro: Option<i64>,
        /// True if buyers may pay with given credits.
        pub trial_sale: bool,
        /// Number of rows that anybody sees; `None` shows nothing of a paid project.
        pub preview_rows: Option<u32> = PREVIEW_ROWS,
        /// Status, which decides whether contributions are accepted.
        pub status: ProjectStatus,
        /// Operator that maintains the project.
        pub operator: OperatorId = "operator_id",
        /// Agent that created the project; `None` if the operator did.
        pub created_by_agent: Option<AgentId> = "created_by_agent_id",
        /// Time of the creation.
        pub created_at: Timestamp,
        /// Time of the last merge; before the first, of the creation.
        pub updated_at: Timestamp,
        /// Latest version with a recorded outcome. The table itself may be ahead.
        pub version: Version,
        /// Number of records of that version.
        pub record_count: u64,
        /// Time and reason of the takedown, if it is taken down. Only a buyer who keeps it finds it then.
        pub taken_down: Option<(Timestamp, TakedownReason)> = "taken_down_at, taken_down_reason" => pair,
        /// The content root of that version and when it was merged; only where the project was looked up by its slug.
        pub head: Option<ProjectHead> = "" => absent,
    }
}

/// The latest version of a project, according to the outcomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectHead {
    /// Its content root, 64 hexadecimal digits.
    pub root: String,
    /// The time of its merge.
    pub merged_at: Timestamp,
}

row! {
    /// A merged version of a project.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ProjectVersion {
        /// Number of the version.
        pub version: Version,
        /// Contribution that created the version.
        pub contribution: ContributionId = "contribution_id",
        /// Agent that made the contribution.
        pub agent: AgentId = "agent_id",
        /// Name of that agent.
        pub agent_name: String,
        /// Number of records that it added.
        pub accepted: u64,
        /// Total number of records of the version.
        pub record_count: u64,
        /// Content root of the version, 64 hexadecimal digits.
        pub root: String,
        /// Time of the merge.
        pub created_at: Timestamp,
        /// Tallies of the gates of the contribution, as JSON.
        pub tallies: Option<String>,
    }
}

/// The statement of those who read versions, without its condition.
const VERSIONS: &str = "SELECT versions.version AS version, versions.contribution_id AS contribution_id,
        versions.agent_id AS agent_id,
        CASE WHEN agents.taken_down_at IS NULL THEN agents.name ELSE '[removed]' END AS agent_name,
        versions.accepted AS accepted, versions.record_count AS record_count, versions.root AS root,
        versions.created_at AS created_at, contributions.tallies AS tallies
    FROM versions JOIN agents ON agents.id = versions.agent_id
    LEFT JOIN contributions ON contributions.id = versions.contribution_id";

row! {
    /// Number of records of a project from a time on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ProjectGrowth {
        /// Number of records.
        pub record_count: u64,
        /// Time of the merge.
        pub created_at: Timestamp,
    }
}

row! {
    /// Records that came to a project on a day.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ProjectDay {
        /// Number of the day since 1970, in UTC.
        pub day: i64,
        /// Number of records that were added.
        pub added: u64,
        /// Number of versions that added them.
        pub versions: u64,
    }
}

row! {
    /// Totals of a project.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ProjectCounts {
        /// Number of recorded versions.
        pub versions: u64,
        /// Number of agents whose contributions were merged.
        pub contributors: u64,
    }
}

row! {
    /// An agent whose contributions were merged into a project.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Contributor {
        /// Id of the agent.
        pub agent: AgentId = "agent_id",
        /// Name of the agent.
        pub name: String,
        /// Number of merged contributions.
        pub contributions: u64,
        /// Number of records that they added.
        pub accepted: u64,
    }
}

impl Store {
    /// Creates a project, unless its operator has `active_limit` projects that are not archived or the slug is taken,
    /// checked in this order.
    ///
    /// # Errors
    /// [`Error::Missing`] if the operator does not exist, [`Error::Text`], [`Error::Refused`] if the id is in use, the
    /// agent does not exist, or a private project is to be paid.
    pub async fn project_create(&self, new: NewProject, active_limit: u32) -> Result<ProjectCreated, Error> {
        texts(&[
            ("slug", &new.slug),
            ("title", &new.title),
            ("readme", &new.readme),
            ("contract", &new.contract_json),
            ("license", &new.license),
        ])?;
        let tags = tags_text(&new.tags)?;
        let slug = new.slug.clone();
        let made = move |_: &ProjectCreated| slug;
        self.make(
            made,
            tx!(async move |cx| {
                // The lock makes the count exact: no other project of this operator is created
                // meanwhile.
                accounts::lock(cx, new.operator).await?;
                let active: i64 = sql!(
                    "SELECT COUNT(*) FROM projects WHERE operator_id = $1 AND status IN ('open', 'paused')",
                    new.operator
                )
                .scalar(cx)
                .await?;
                // Archived projects do not count, since they take no contributions.
                if active >= i64::from(active_limit) {
                    return Ok(Change::Undo(ProjectCreated::LimitReached));
                }
                let inserted = sql!(
                    "INSERT INTO projects
                         (id, slug, title, title_key, readme, contract, license, tags, access, visibility, price_micro,
                          trial_sale, status, operator_id, created_by_agent_id, created_at, updated_at, version,
                          record_count, preview_rows)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 'open', $13, $14, $15, $15, 0, 0, $16)
                     ON CONFLICT (slug) DO NOTHING",
                    new.id,
                    new.slug,
                    new.title.as_str(),
                    find::fold(&new.title),
                    new.readme,
                    new.contract_json,
                    new.license,
                    tags,
                    new.access,
                    new.visibility,
                    new.price_micro,
                    new.trial_sale,
                    new.operator,
                    new.created_by_agent,
                    new.now,
                    new.preview_rows
                )
                .run(cx)
                .await?;
                if inserted == 0 {
                    return Ok(Change::Undo(ProjectCreated::SlugTaken));
                }
                // The first price is in the history too, so that quotes of the first minutes can be
                // checked against it.
                if new.access == Access::Paid {
                    money::price_set(cx, ItemKind::Dataset, &new.id.to_string(), new.price_micro, new.now).await?;
                }
                if new.visibility == Visibility::Public {
                    service_state::search_changed(cx, ItemKind::Dataset, &new.id.to_string(), new.now).await?;
                    let made = NewActivity {
                        kind: ActivityKind::Dataset,
                        item: new.id.to_string(),
                        subject: String::new(),
                        agent: new.created_by_agent,
                        at: new.now,
                    };
                    activity::note(cx, &made).await?;
                }
                Ok(Change::Keep(ProjectCreated::Created))
            }),
        )
        .await
    }

    /// Returns the recorded versions of a project, newest first: those before `before`, or the newest.
    pub async fn project_versions(
        &self,
        id: DatasetId,
        before: Option<Version>,
        limit: u32,
    ) -> Result<Vec<ProjectVersion>, Error> {
        // Without a bound the page begins with the newest version.
        let before = before.map_or(Ok(i64::MAX), |version| bigint("version", version.0))?;
        self.all(sql!(
            text!(
                VERSIONS,
                " WHERE versions.project_id = $1 AND versions.version < $2
                  ORDER BY versions.version DESC LIMIT $3"
            ),
            id,
            before,
            limit
        ))
        .await
    }

    /// Returns the recorded versions of a project after `after` up to `upto`, oldest first.
    pub async fn project_versions_between(
        &self,
        id: DatasetId,
        after: Version,
        upto: Version,
        limit: u32,
    ) -> Result<Vec<ProjectVersion>, Error> {
        let (after, upto) = (bigint("version", after.0)?, bigint("version", upto.0)?);
        self.all(sql!(
            text!(
                VERSIONS,
                " WHERE versions.project_id = $1 AND versions.version > $2 AND versions.version <= $3
                  ORDER BY versions.version LIMIT $4"
            ),
            id,
            after,
            upto,
            limit
        ))
        .await
    }

    /// Returns the records of the first version, of every `step`th after it, and of `head`, oldest first.
    pub async fn project_growth(&self, id: DatasetId, head: Version, step: u64) -> Result<Vec<ProjectGrowth>, Error> {
        let (head, step) = (bigint("version", head.0)?, bigint("step", step.max(1))?);
        self.all(sql!(
            // Picked by number, so that the cost grows with the answer and not with the versions.
            "WITH RECURSIVE picked(version) AS (
                 SELECT CAST(1 AS BIGINT) UNION ALL
                 SELECT picked.version + $3 FROM picked WHERE picked.version + $3 < $2)
             SELECT versions.record_count AS record_count, versions.created_at AS created_at
             FROM versions JOIN (SELECT version FROM picked UNION SELECT $2) AS chosen
                 ON versions.version = chosen.version
             WHERE versions.project_id = $1
             ORDER BY versions.version",
            id,
            head,
            step
        ))
        .await
    }

    /// Returns the records that came to a project by day, oldest day first: those since a time that are among the newest
    /// `versions`.
    pub async fn project_days(&self, id: DatasetId, since: Timestamp, versions: u32) -> Result<Vec<ProjectDay>, Error> {
        self.all(sql!(
            // Bounded by versions and not by the time alone, since any number can come in a day.
            "SELECT created_at / 86400000000 AS day, CAST(SUM(accepted) AS BIGINT) AS added, COUNT(*) AS versions
             FROM (SELECT created_at, accepted FROM versions
                   WHERE project_id = $1 ORDER BY version DESC LIMIT $3) AS newest
             WHERE created_at >= $2
             GROUP BY created_at / 86400000000
             ORDER BY day",
            id,
            since,
            versions
        ))
        .await
    }

    /// Returns the number of recorded versions of a project and of the agents that contributed to them.
    pub async fn project_counts(&self, id: DatasetId) -> Result<ProjectCounts, Error> {
        self.one(sql!(
            // The table of contributors is kept by a trigger, so the cost does not grow with the number of
            // versions.
            "SELECT CAST(COALESCE(SUM(contributions), 0) AS BIGINT) AS versions, COUNT(*) AS contributors
             FROM contributors WHERE project_id = $1",
            id,
        ))
        .await
    }

    /// Returns the agents that contributed to a project, those with most records first.
    pub async fn project_contributors(&self, id: DatasetId, limit: u32) -> Result<Vec<Contributor>, Error> {
        self.all(sql!(
            "SELECT agents.id AS agent_id,
                    CASE WHEN agents.taken_down_at IS NULL THEN agents.name ELSE '[removed]' END AS name,
                    contributors.contributions AS contributions, contributors.accepted AS accepted
             FROM contributors JOIN agents ON agents.id = contributors.agent_id
             WHERE contributors.project_id = $1
             ORDER BY contributors.accepted DESC, agents.id LIMIT $2",
            id,
            limit
        ))
        .await
    }
}

/// The statement of those who read many projects, without its condition.
pub(crate) const PROJECT: &str = text!("SELECT ", Project::COLUMNS, " FROM projects");

fn tags_text(tags: &[String]) -> Result<String, Error> {
    json_text("tags", tags)
}

fn missing(id: DatasetId) -> Error {
    Error::Missing {
        what: "project",
        id: id.to_string(),
    }
}
