//! Operation that changes a project.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use store::{Project, ProjectChanges, ProjectStatus, ProjectUpdated};

use super::view::ProjectDetails;
use super::{PreviewRows, TAG_PATTERN, can_have_price, checked_preview_rows, present};
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::schema::{LINE, TEXT};
use crate::codes::ErrorCode;
use crate::error::{ApiError, whole_seconds};
use crate::price::PriceInput;
use crate::rules::entitlement;

/// Slug of a project, and at least one property to change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("minProperties" = 2))]
pub(super) struct UpdateProjectInput {
    /// Slug of the project.
    slug: String,
    /// Title of the project.
    #[schemars(length(min = 4, max = 140), regex(pattern = LINE))]
    title: Option<String>,
    /// Description of the dataset for people.
    #[schemars(length(min = 20, max = 20_000), regex(pattern = TEXT))]
    readme: Option<String>,
    /// Tags for searching.
    #[schemars(length(max = 8), inner(regex(pattern = TAG_PATTERN)))]
    tags: Option<Vec<String>>,
    /// Status: only an `open` project takes contributions; `archived` is final.
    status: Option<ProjectStatus>,
    /// Price of a version in dollars, for a paid project; null is the platform's default.
    #[serde(default, deserialize_with = "present")]
    price: Option<PriceInput>,
    /// True if buyers may pay with credits that they were given.
    trial_sale: Option<bool>,
    /// Rows that anybody sees; of a paid one at most 20, or null for nothing.
    #[serde(default, deserialize_with = "present")]
    preview_rows: Option<PreviewRows>,
}

pub(super) async fn update(cx: Cx, input: UpdateProjectInput) -> Result<JsonReply<ProjectDetails>, ApiError> {
    let project = entitlement::own(&cx, &input.slug).await?;
    let price = input.price.map(|price| price.amount()).transpose()?;
    // Null sets no price of its own, so it fits every project.
    if price.flatten().is_some() && !can_have_price(project.access, project.visibility) {
        return Err(ApiError::invalid("/price", "is for paid projects only"));
    }
    let preview_rows = input.preview_rows;
    let preview_rows = preview_rows
        .map(|given| checked_preview_rows(given.0, project.access))
        .transpose()?;
    let changes = ProjectChanges {
        title: input.title,
        readme: input.readme,
        tags: input.tags,
        status: input.status,
        price: price.map(|price| price.map(|price| price.0)),
        trial_sale: input.trial_sale,
        preview_rows,
        seen: None,
    };
    let (ProjectEdit::Done(project) | ProjectEdit::Edited(project)) = change(&cx, &project, changes).await?;
    Ok(JsonReply::ok(ProjectDetails::of(&project)?.fitting(&cx)?))
}

/// Outcome of a change of a project, which is made only if the edition that the person saw, if any, is the newest.
pub(in crate::ops) enum ProjectEdit {
    /// The project as it is now.
    Done(Project),
    /// It was changed meanwhile, here as it is; nothing changed.
    Edited(Project),
}

/// Changes a project of the caller's operator by the form of a page, whose texts are checked as those of a call. `seen` is
/// the edition that the form was made from.
pub(in crate::ops) async fn edit(
    cx: &Cx,
    project: &Project,
    members: Map<String, Value>,
    seen: String,
) -> Result<ProjectEdit, ApiError> {
    let operation = cx.operations.get("update_dataset");
    let operation = operation.ok_or_else(|| ApiError::internal("there is no operation that changes a dataset"))?;
    let members = Value::Object(members);
    operation.input.check(&members, operation.spec.immutable)?;
    let input: UpdateProjectInput = serde_json::from_value(members).map_err(ApiError::internal)?;
    let price = input.price.map(|price| price.amount()).transpose()?;
    let changes = ProjectChanges {
        title: input.title,
        readme: input.readme,
        tags: input.tags,
        status: input.status,
        // A form of a project without price has none.
        price: price
            .filter(|_| can_have_price(project.access, project.visibility))
            .map(|price| price.map(|price| price.0)),
        trial_sale: input.trial_sale,
        preview_rows: None,
        seen: Some(seen),
    };
    change(cx, project, changes).await
}

/// Archives a project of the caller's operator, which is final. One that is archived stays so.
pub(in crate::ops) async fn archive(cx: &Cx, project: &Project) -> Result<(), ApiError> {
    let changes = ProjectChanges {
        status: Some(ProjectStatus::Archived),
        ..ProjectChanges::default()
    };
    change(cx, project, changes).await.map(drop)
}

async fn change(cx: &Cx, project: &Project, changes: ProjectChanges) -> Result<ProjectEdit, ApiError> {
    // The database checks the time of the last change in the same transaction as it changes the price.
    let window = cx.app.limits.price_change_window.0;
    match cx.app.store.project_update(project.id, changes, cx.now, window).await? {
        ProjectUpdated::Updated(project) => Ok(ProjectEdit::Done(project)),
        ProjectUpdated::Edited(project) => Ok(ProjectEdit::Edited(project)),
        ProjectUpdated::PriceTooSoon { retry_after } => {
            let seconds = whole_seconds(retry_after);
            Err(ApiError::limited(
                ErrorCode::PriceChanged,
                "the price of a project changes once a day",
                seconds,
            ))
        }
        ProjectUpdated::StatusConflict { from, to } => {
            let message = format!("the project is {from} and cannot become {to}");
            Err(ApiError::new(ErrorCode::StatusConflict, message).field("status", from.as_str()))
        }
    }
}

/// Sets the number of rows that anybody sees of a project of the caller's operator.
pub(in crate::ops) async fn set_preview_rows(cx: &Cx, project: &Project, rows: Option<u32>) -> Result<(), ApiError> {
    let changes = ProjectChanges {
        preview_rows: Some(checked_preview_rows(rows, project.access)?),
        ..ProjectChanges::default()
    };
    let window = cx.app.limits.price_change_window.0;
    let _updated = cx.app.store.project_update(project.id, changes, cx.now, window).await?;
    Ok(())
}
