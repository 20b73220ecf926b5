//! Projects as callers see them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use store::{Access, Contributor, Project, ProjectStatus, ProjectSummary, ProjectVersion, Visibility};
use types::FieldType;

use crate::entitlement;
use crate::error::ApiError;
use crate::wire::When;

/// A project in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    /// Its id.
    id: String,
    /// Its name in addresses.
    slug: String,
    /// Its title.
    title: String,
    /// Id of its licence.
    license: String,
    /// Its tags.
    tags: Vec<String>,
    /// Who may read its records.
    access: Access,
    /// Who may know of it.
    visibility: Visibility,
    /// What a version costs in dollars, for a paid project.
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<String>,
    /// What a version costs in micro-USDC, for a paid project.
    #[serde(skip_serializing_if = "Option::is_none")]
    price_micro: Option<i64>,
    /// Whether buyers may pay with given credits.
    trial_sale: bool,
    /// Whether it takes contributions.
    status: ProjectStatus,
    /// Its latest version; 0 before the first merge.
    latest_version: u64,
    /// How many records the latest version has.
    record_count: u64,
    /// When it was created.
    created_at: When,
    /// When its description last changed.
    updated_at: When,
}

impl From<ProjectSummary> for Summary {
    fn from(project: ProjectSummary) -> Self {
        let price = (project.access == Access::Paid).then(|| entitlement::price_of(project.price_micro));
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

/// A project on its own.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Details {
    #[serde(flatten)]
    summary: Summary,
    /// What it is about.
    readme: String,
    /// The contract of its records.
    #[schemars(with = "SchemaDef")]
    schema_def: Value,
}

impl Details {
    pub(super) fn of(project: &Project) -> Result<Self, ApiError> {
        let schema_def = serde_json::from_str(&project.contract_json)
            .map_err(|error| ApiError::internal(format!("contract of project {}: {error}", project.id)))?;
        Ok(Self {
            summary: ProjectSummary::from(project).into(),
            readme: project.readme.clone(),
            schema_def,
        })
    }
}

/// A project with what was merged into it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Full {
    #[serde(flatten)]
    pub(super) details: Details,
    /// Its newest versions, at most 100, newest first; `dataset_diff` with `limit=0` lists all.
    pub(super) versions: Vec<VersionEntry>,
    /// How many versions it has.
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
    /// Its number.
    version: u64,
    /// How many records it has in all.
    record_count: u64,
    /// How many records it added.
    accepted_count: u64,
    /// The contribution that made it.
    contribution_id: String,
    /// The agent that contributed.
    contributor: String,
    /// Its content root (BLAKE3): 64 hexadecimal digits.
    root: String,
    /// When it was merged.
    created_at: When,
}

impl From<&ProjectVersion> for VersionEntry {
    fn from(version: &ProjectVersion) -> Self {
        Self {
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
    /// Its name.
    agent: String,
    /// How many of its contributions were merged.
    contributions: u64,
    /// How many records they added.
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

/// The shape of `schemaDef`, as published.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) struct SchemaDef {
    /// The fields, with names that differ in more than case.
    #[schemars(length(min = 1, max = 256))]
    fields: Vec<SchemaField>,
    /// Whether members that no field names are kept instead of refused.
    allow_extra: Option<bool>,
}

/// One field of a `schemaDef`.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct SchemaField {
    /// The member name in a record and the column name in the table.
    #[schemars(length(min = 1, max = 128))]
    name: String,
    /// The type of the values.
    #[schemars(rename = "type")]
    kind: FieldType,
    /// Whether a record without it (or with null) is refused.
    required: Option<bool>,
}
