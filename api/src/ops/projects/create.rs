//! Operation that creates a project.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use store::{Access, NewProject, ProjectCreated, ProjectStatus, Visibility};
use types::vocabulary::OnRefused;
use types::{Contract, DatasetId, OperatorId, Version};

use super::view::{ProjectDetails, SchemaDef};
use super::{PreviewRows, SLUG, TAG_PATTERN, can_have_price, checked_preview_rows, present};
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::schema::{LINE, TEXT};
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::licenses::License;
use crate::ops::contribute::check_enabled;
use crate::price::PriceInput;
use crate::rules::entitlement;
use crate::rules::profiles::{FREE_ROWS, PAID_ROWS};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CreateProjectInput {
    /// Name of the project in addresses; unique and never freed.
    #[schemars(length(min = 3, max = 60), regex(pattern = SLUG))]
    slug: String,
    /// Title of the project.
    #[schemars(length(min = 4, max = 140), regex(pattern = LINE))]
    title: String,
    /// Description of the dataset for people.
    #[schemars(length(min = 20, max = 20_000), regex(pattern = TEXT))]
    readme: String,
    /// The contract every record must satisfy.
    #[schemars(with = "SchemaDef")]
    schema_def: Value,
    /// Id of the licence; `platform-standard` if absent.
    license: Option<License>,
    /// Tags for searching.
    #[schemars(length(max = 8), inner(regex(pattern = TAG_PATTERN)))]
    tags: Option<Vec<String>>,
    /// Access to its records; `public` if absent.
    access: Option<Access>,
    /// Visibility of the project; `public` if absent.
    visibility: Option<Visibility>,
    /// Price of a version in dollars, for a paid project; null is the platform's default.
    price: Option<PriceInput>,
    /// True if buyers may pay with credits that they were given.
    trial_sale: Option<bool>,
    /// Rows that anybody sees; of a paid one at most 20, or null for nothing.
    #[serde(default, deserialize_with = "present")]
    preview_rows: Option<PreviewRows>,
}

pub(super) async fn create(cx: Cx, input: CreateProjectInput) -> Result<JsonReply<ProjectDetails>, ApiError> {
    let operator = cx.the_operator()?;
    let contract = contract_of(input.schema_def)?;
    // A contract never changes, so a project that nothing can be contributed to would take its slug for ever.
    check_enabled(&cx, OnRefused::Reject, &contract)?;
    let contract_json =
        serde_json::to_string(&contract).map_err(|error| ApiError::internal(format!("contract: {error}")))?;
    let access = input.access.unwrap_or(Access::Public);
    let visibility = input.visibility.unwrap_or(Visibility::Public);
    // A buyer must be able to find what is for sale.
    if access == Access::Paid && visibility == Visibility::Private {
        return Err(ApiError::invalid(
            "/access",
            "must be `public` for a private project, which cannot be paid",
        ));
    }
    let price = input.price.map(|price| price.amount()).transpose()?.flatten();
    if price.is_some() && !can_have_price(access, visibility) {
        return Err(ApiError::invalid("/price", "is for paid projects only"));
    }
    let preview_rows = match (input.preview_rows, access) {
        (Some(given), _) => checked_preview_rows(given.0, access)?,
        (None, Access::Public) => Some(FREE_ROWS),
        (None, Access::Paid) => Some(PAID_ROWS),
    };
    let new = NewProject {
        id: DatasetId::new(cx.now),
        slug: input.slug,
        title: input.title,
        readme: input.readme,
        contract_json,
        license: input.license.unwrap_or(License::PlatformStandard).id().to_owned(),
        // Absent members get the defaults that the input schema documents.
        tags: input.tags.unwrap_or_default(),
        access,
        visibility,
        price_micro: price.map(|price| price.0),
        trial_sale: input.trial_sale.unwrap_or(false),
        preview_rows,
        operator,
        created_by_agent: cx.agent(),
        now: cx.now,
    };
    // Each collector of the platform has a dataset.
    let limit = match operator {
        OperatorId::PLATFORM => u32::MAX,
        _ => cx.app.limits.active_projects_per_operator,
    };
    let created = as_created(&new);
    match cx.app.store.project_create(new, limit).await? {
        ProjectCreated::Created => Ok(JsonReply::created(ProjectDetails::of(&created)?.fitting(&cx)?)),
        ProjectCreated::SlugTaken => Err(ApiError::new(
            ErrorCode::SlugTaken,
            format!("the slug `{}` is taken", created.slug),
        )),
        ProjectCreated::LimitReached => {
            let message = format!("the operator has {limit} active projects, which is the limit; archive one");
            Err(ApiError::new(ErrorCode::ProjectLimit, message))
        }
    }
}

/// Answers for a project that an earlier call made.
pub(super) async fn again(cx: Cx, _: CreateProjectInput, slug: String) -> Result<JsonReply<ProjectDetails>, ApiError> {
    let project = entitlement::own(&cx, &slug).await?;
    Ok(JsonReply::ok(ProjectDetails::of(&project)?))
}

/// Parses a `schemaDef` into a contract. The input schema has checked its shape, so this checks what it cannot express.
pub(in crate::ops) fn contract_of(schema_def: Value) -> Result<Contract, ApiError> {
    Contract::from_json(schema_def)
        .map_err(|error| ApiError::invalid(format!("/schemaDef{}", error.path), error.problem))
}

/// Returns the project as it is right after its creation, to save reading it back.
fn as_created(new: &NewProject) -> store::Project {
    store::Project {
        id: new.id,
        slug: new.slug.clone(),
        title: new.title.clone(),
        readme: new.readme.clone(),
        contract_json: new.contract_json.clone(),
        license: new.license.clone(),
        tags: new.tags.clone(),
        access: new.access,
        visibility: new.visibility,
        price_micro: new.price_micro,
        trial_sale: new.trial_sale,
        preview_rows: new.preview_rows,
        status: ProjectStatus::Open,
        operator: new.operator,
        created_by_agent: new.created_by_agent,
        created_at: new.now,
        updated_at: new.now,
        version: Version::EMPTY,
        record_count: 0,
        head: None,
        taken_down: None,
    }
}
