//! Projects as they appear in answers.
//!
//! The docs of these types and their fields are published in the machine-readable description.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use store::{Access, Contributor, Project, ProjectStatus, ProjectSummary, ProjectVersion, Visibility};
use types::contract::FieldTypeName;

use crate::call::cx::Cx;
use crate::call::room::PageRoom;
use crate::call::schema::LINE;
use crate::call::wire::WireInstant;
use crate::error::ApiError;
use crate::price::dataset_price;

/// A project in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Summary")]
#[serde(rename_all = "camelCase")]
pub(super) struct ProjectListing {
    /// Id of the project.
    id: String,
    /// Name of the project in addresses.
    slug: String,
    /// Title of the project.
    title: String,
    /// Id of its licence.
    license: String,
    /// Tags of the project.
    tags: Vec<String>,
    /// Access to its records: `public`, or `paid` per version.
    access: Access,
    /// Visibility: a `private` project is shown to its operator only.
    visibility: Visibility,
    /// Price of a version in dollars, for a paid project.
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<String>,
    /// Price of a version in micro-USDC, for a paid project.
    #[serde(skip_serializing_if = "Option::is_none")]
    price_micro: Option<i64>,
    /// True if buyers may pay with credits that they were given.
    trial_sale: bool,
    /// Status: only an `open` project takes contributions.
    status: ProjectStatus,
    /// Its latest version; 0 before the first merge.
    latest_version: u64,
    /// Number of records in the latest version.
    record_count: u64,
    /// Time of creation.
    created_at: WireInstant,
    /// Time of the last merge; before the first, of the creation.
    updated_at: WireInstant,
}

impl From<ProjectSummary> for ProjectListing {
    fn from(project: ProjectSummary) -> Self {
        // A public project has no price, even if the database has one.
        let price = (project.access == Access::Paid).then(|| dataset_price(project.price_micro));
        Self {
            id: project.id.to_string(),
            slug: project.slug,
            title: project.title,
            license: project.license,
            tags: project.tags,
            access: project.access,
            visibility: project.visibility,
            price: price.map(|price| price.to_string()),
            price_micro: price.map(|price| price.0),
            trial_sale: project.trial_sale,
            status: project.status,
            latest_version: project.version.0,
            record_count: project.record_count,
            created_at: project.created_at.into(),
            updated_at: project.updated_at.into(),
        }
    }
}

/// A project with its readme and contract.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Details")]
#[serde(rename_all = "camelCase")]
pub(super) struct ProjectDetails {
    #[serde(flatten)]
    summary: ProjectListing,
    /// Description of the dataset for people.
    readme: String,
    /// The contract of its records.
    #[schemars(with = "SchemaDef")]
    schema_def: Value,
    /// Number of rows that anybody sees; null for a paid project that shows neither rows nor figures.
    preview_rows: Option<u32>,
    /// Characters of the readme before the rest of it, which did not fit into an answer over MCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
}

impl ProjectDetails {
    pub(super) fn of(project: &Project) -> Result<Self, store::Error> {
        // The contract is stored as text, and answered as the object that it was.
        let schema_def = serde_json::from_str(&project.contract_json).map_err(|error| store::Error::Malformed {
            column: "contract",
            problem: format!("of project {}: {error}", project.id),
        })?;
        Ok(Self {
            summary: ProjectSummary::from(project).into(),
            readme: project.readme.clone(),
            schema_def,
            preview_rows: project.preview_rows,
            next_offset: None,
        })
    }

    /// Leaves out of the readme what does not fit.
    pub(super) fn fitting(mut self, cx: &Cx) -> Result<Self, ApiError> {
        let (mut room, readme) = (PageRoom::of(cx), std::mem::take(&mut self.readme));
        room.spend(&self)?;
        let part = room.part(readme, 0);
        (self.readme, self.next_offset) = (part.text, part.next_offset);
        Ok(self)
    }
}

/// A project with its versions and contributors.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Full")]
#[serde(rename_all = "camelCase")]
pub(super) struct FullProject {
    #[serde(flatten)]
    pub(super) details: ProjectDetails,
    /// The newest versions, at most 100 and over MCP as many as fit, newest first; `dataset_diff` with `limit=0` lists
    /// all.
    pub(super) versions: Vec<VersionEntry>,
    /// Number of versions.
    pub(super) version_count: u64,
    /// Number of agents that contributed.
    pub(super) contributor_count: u64,
    /// The agents that contributed most records, at most 100.
    pub(super) contributors: Vec<ContributorEntry>,
}

/// An immutable numbered snapshot.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct VersionEntry {
    /// Number of the version, from 1.
    version: u64,
    /// Number of records in the version.
    record_count: u64,
    /// Number of records that it added to the version before.
    accepted_count: u64,
    /// Id of the contribution that was merged.
    contribution_id: String,
    /// Name of the agent that contributed.
    contributor: String,
    /// Content root (BLAKE3): 64 hexadecimal digits.
    root: String,
    /// Time of the merge.
    created_at: WireInstant,
    /// Summary of a public version by a model; absent until there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<SummaryEntry>,
}

/// Summary of a version by a model. No person has checked it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SummaryEntry {
    /// Text of the summary, on one line.
    text: String,
    /// Name of the model that wrote it.
    model: String,
    /// Time of the writing.
    written_at: WireInstant,
}

impl VersionEntry {
    /// Returns a version with its summary among those of the project.
    pub(super) fn of(version: &ProjectVersion, summaries: &[store::Summary]) -> Self {
        let summary = summaries.iter().find(|summary| summary.version == version.version);
        Self {
            summary: summary.map(|summary| SummaryEntry {
                text: summary.text.clone(),
                model: summary.model.clone(),
                written_at: summary.at.into(),
            }),
            version: version.version.0,
            record_count: version.record_count,
            accepted_count: version.accepted,
            contribution_id: version.contribution.to_string(),
            contributor: version.agent_name.clone(),
            root: version.root.clone(),
            created_at: version.created_at.into(),
        }
    }
}

/// An agent whose contributions were merged.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContributorEntry {
    /// Name of the agent.
    agent: String,
    /// Number of its contributions that were merged.
    contributions: u64,
    /// Number of records that they added.
    accepted_count: u64,
}

impl From<&Contributor> for ContributorEntry {
    fn from(contributor: &Contributor) -> Self {
        Self {
            agent: contributor.name.clone(),
            contributions: contributor.contributions,
            accepted_count: contributor.accepted,
        }
    }
}

/// Shape of `schemaDef`, as published.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
pub(in crate::ops) struct SchemaDef {
    /// The fields, with names that differ in more than case.
    #[schemars(length(min = 1, max = 256))]
    fields: Vec<SchemaField>,
    /// True to keep members that no field names; otherwise a record with one is refused.
    allow_extra: Option<bool>,
}

/// One field of a `schemaDef`.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct SchemaField {
    /// Name of the member in a record, and of the column in the table.
    #[schemars(length(min = 1, max = 128))]
    name: String,
    /// Type of the values.
    #[schemars(rename = "type")]
    kind: FieldTypeName,
    /// Digits after the point of a `decimal`, which must have it.
    #[schemars(skip_serializing_if = "Option::is_none", range(min = 0, max = 18))]
    scale: Option<u8>,
    /// True to refuse a record without it, or with null.
    required: Option<bool>,
    /// Name for people, such as the heading of the column in the file that it came from.
    #[schemars(skip_serializing_if = "Option::is_none", length(min = 1, max = 100), regex(pattern = LINE))]
    title: Option<String>,
    /// Meaning of the values.
    #[schemars(skip_serializing_if = "Option::is_none", length(min = 1, max = 200), regex(pattern = LINE))]
    description: Option<String>,
    /// Unit of the values, such as `m/s`.
    #[schemars(skip_serializing_if = "Option::is_none", length(min = 1, max = 40), regex(pattern = LINE))]
    unit: Option<String>,
}
