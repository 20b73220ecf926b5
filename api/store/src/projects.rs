//! Dataset projects: creation, search, changes, and merged versions.
//!
//! Invariant: a slug names one project for ever; contract, access and visibility never change; an archived project
//! stays archived; a price changes at most once per window.

use sqlx::any::AnyRow;
use types::vocabulary::{Access, ActivityKind, ItemKind, ProjectStatus, TakedownReason, Visibility};
use types::{AgentId, ContributionId, DatasetId, OperatorId, Timestamp, Version};

use crate::activity::{self, NewActivity};
use crate::row::{Columns, bigint, json, json_text, texts};
use crate::writer::Change;
use crate::{Error, Store, accounts, money, service_state};

pub(crate) mod find;
mod update;

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
    /// Status, which decides whether contributions are accepted.
    pub status: ProjectStatus,
    /// Operator that maintains the project.
    pub operator: OperatorId,
    /// Agent that created the project; `None` if the operator did.
    pub created_by_agent: Option<AgentId>,
    /// Time of the creation.
    pub created_at: Timestamp,
    /// Time of the last merge; before the first, of the creation.
    pub updated_at: Timestamp,
    /// Latest version with a recorded outcome. The table itself may be ahead.
    pub version: Version,
    /// Number of records of that version.
    pub record_count: u64,
    /// The content root of that version and when it was merged; only where the project was looked up by its slug.
    pub head: Option<ProjectHead>,
    /// Time and reason of the takedown, if it is taken down. Only a buyer who keeps it finds it then.
    pub taken_down: Option<(Timestamp, TakedownReason)>,
}

/// The latest version of a project, according to the outcomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectHead {
    /// Its content root, 64 hexadecimal digits.
    pub root: String,
    /// The time of its merge.
    pub merged_at: Timestamp,
}

/// A merged version of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectVersion {
    /// Number of the version.
    pub version: Version,
    /// Contribution that created the version.
    pub contribution: ContributionId,
    /// Agent that made the contribution.
    pub agent: AgentId,
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
}

/// Totals of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProjectCounts {
    /// Number of recorded versions.
    pub versions: u64,
    /// Number of agents whose contributions were merged.
    pub contributors: u64,
}

/// An agent whose contributions were merged into a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contributor {
    /// Id of the agent.
    pub agent: AgentId,
    /// Name of the agent.
    pub name: String,
    /// Number of merged contributions.
    pub contributions: u64,
    /// Number of records that they added.
    pub accepted: u64,
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
        self.make(made, move |cx| {
            Box::pin(async move {
                // The lock makes the count exact: no other project of this operator is created
                // meanwhile.
                accounts::lock(cx, new.operator).await?;
                let active: i64 = sqlx::query_scalar(
                    "SELECT COUNT(*) FROM projects WHERE operator_id = $1 AND status IN ('open', 'paused')",
                )
                .bind(new.operator.to_string())
                .fetch_one(&mut *cx)
                .await?;
                // Archived projects do not count, since they take no contributions.
                if active >= i64::from(active_limit) {
                    return Ok(Change::Undo(ProjectCreated::LimitReached));
                }
                let inserted = sqlx::query(
                    "INSERT INTO projects
                         (id, slug, title, title_key, readme, contract, license, tags, access, visibility, price_micro,
                          trial_sale, status, operator_id, created_by_agent_id, created_at, updated_at, version,
                          record_count)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 'open', $13, $14, $15, $15, 0, 0)
                     ON CONFLICT (slug) DO NOTHING",
                )
                .bind(new.id.to_string())
                .bind(new.slug)
                .bind(new.title.as_str())
                .bind(find::fold(&new.title))
                .bind(new.readme)
                .bind(new.contract_json)
                .bind(new.license)
                .bind(tags)
                .bind(new.access.as_str())
                .bind(new.visibility.as_str())
                .bind(new.price_micro)
                .bind(i64::from(new.trial_sale))
                .bind(new.operator.to_string())
                .bind(new.created_by_agent.map(|agent| agent.to_string()))
                .bind(new.now.micros())
                .execute(&mut *cx)
                .await?;
                if inserted.rows_affected() == 0 {
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
            })
        })
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
        self.read(async {
            sqlx::query(
                "SELECT versions.version AS version, versions.contribution_id AS contribution_id,
                        versions.agent_id AS agent_id, CASE WHEN agents.taken_down_at IS NULL THEN agents.name ELSE '[removed]' END AS agent_name, versions.accepted AS accepted,
                        versions.record_count AS record_count, versions.root AS root,
                        versions.created_at AS created_at
                 FROM versions JOIN agents ON agents.id = versions.agent_id
                 WHERE versions.project_id = $1 AND versions.version < $2
                 ORDER BY versions.version DESC LIMIT $3",
            )
            .bind(id.to_string())
            .bind(before)
            .bind(i64::from(limit))
            .fetch_all(self.readers())
            .await?
            .iter()
            .map(version)
            .collect()
        })
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
        self.read(async {
            sqlx::query(
                "SELECT versions.version AS version, versions.contribution_id AS contribution_id,
                        versions.agent_id AS agent_id, CASE WHEN agents.taken_down_at IS NULL THEN agents.name ELSE '[removed]' END AS agent_name, versions.accepted AS accepted,
                        versions.record_count AS record_count, versions.root AS root,
                        versions.created_at AS created_at
                 FROM versions JOIN agents ON agents.id = versions.agent_id
                 WHERE versions.project_id = $1 AND versions.version > $2 AND versions.version <= $3
                 ORDER BY versions.version LIMIT $4",
            )
            .bind(id.to_string())
            .bind(after)
            .bind(upto)
            .bind(i64::from(limit))
            .fetch_all(self.readers())
            .await?
            .iter()
            .map(version)
            .collect()
        })
        .await
    }

    /// Returns the number of recorded versions of a project and of the agents that contributed to them.
    pub async fn project_counts(&self, id: DatasetId) -> Result<ProjectCounts, Error> {
        self.read(async {
            let row = sqlx::query(
                // The table of contributors is kept by a trigger, so the cost does not grow with the number of
                // versions.
                "SELECT CAST(COALESCE(SUM(contributions), 0) AS BIGINT) AS versions, COUNT(*) AS contributors
                 FROM contributors WHERE project_id = $1",
            )
            .bind(id.to_string())
            .fetch_one(self.readers())
            .await?;
            Ok(ProjectCounts {
                versions: row.number("versions")?,
                contributors: row.number("contributors")?,
            })
        })
        .await
    }

    /// Returns the agents that contributed to a project, those with most records first.
    pub async fn project_contributors(&self, id: DatasetId, limit: u32) -> Result<Vec<Contributor>, Error> {
        self.read(async {
            sqlx::query(
                "SELECT agents.id AS agent_id,
                        CASE WHEN agents.taken_down_at IS NULL THEN agents.name ELSE '[removed]' END AS name,
                        contributors.contributions AS contributions, contributors.accepted AS accepted
                 FROM contributors JOIN agents ON agents.id = contributors.agent_id
                 WHERE contributors.project_id = $1
                 ORDER BY contributors.accepted DESC, agents.id LIMIT $2",
            )
            .bind(id.to_string())
            .bind(i64::from(limit))
            .fetch_all(self.readers())
            .await?
            .iter()
            .map(|row| {
                Ok(Contributor {
                    agent: row.parsed("agent_id")?,
                    name: row.value("name")?,
                    contributions: row.number("contributions")?,
                    accepted: row.number("accepted")?,
                })
            })
            .collect()
        })
        .await
    }
}

/// Columns of a project, in the statement of those who read many.
pub(crate) const PROJECT: &str = "SELECT id, slug, title, readme, contract, license, tags, access, visibility,
       price_micro, trial_sale, status, operator_id, created_by_agent_id, created_at, updated_at, version, record_count,
       taken_down_at, taken_down_reason
  FROM projects";

/// Reads a project from a row with every column of `projects` except the search keys.
pub(crate) fn project(row: &AnyRow) -> Result<Project, Error> {
    Ok(Project {
        id: row.parsed("id")?,
        slug: row.value("slug")?,
        title: row.value("title")?,
        readme: row.value("readme")?,
        contract_json: row.value("contract")?,
        license: row.value("license")?,
        tags: tags(row)?,
        access: row.parsed("access")?,
        visibility: row.parsed("visibility")?,
        price_micro: row.value("price_micro")?,
        trial_sale: row.flag("trial_sale")?,
        status: row.parsed("status")?,
        operator: row.parsed("operator_id")?,
        created_by_agent: row.parsed_optional("created_by_agent_id")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
        version: Version(row.number("version")?),
        record_count: row.number("record_count")?,
        taken_down: row
            .time_optional("taken_down_at")?
            .zip(row.parsed_optional("taken_down_reason")?),
        head: None,
    })
}

fn version(row: &AnyRow) -> Result<ProjectVersion, Error> {
    Ok(ProjectVersion {
        version: Version(row.number("version")?),
        contribution: row.parsed("contribution_id")?,
        agent: row.parsed("agent_id")?,
        agent_name: row.value("agent_name")?,
        accepted: row.number("accepted")?,
        record_count: row.number("record_count")?,
        root: row.value("root")?,
        created_at: row.time("created_at")?,
    })
}

fn tags(row: &AnyRow) -> Result<Vec<String>, Error> {
    json("tags", row.value("tags")?)
}

fn tags_text(tags: &[String]) -> Result<String, Error> {
    json_text("tags", tags)
}

fn missing(id: DatasetId) -> Error {
    Error::Missing {
        what: "project",
        id: id.to_string(),
    }
}
