//! Operation that deletes a private dataset for good.

use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Project, ProjectDeleted};
use types::OperatorId;

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{Effect, GuardedItem, KEY_OR_OPERATOR, Scope, Spec};
use crate::call::wire::WireInstant;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::rules::entitlement;

/// What a deletion does not reach, and when it ends.
const REMAINS: [&str; 2] = [
    "messages of the event log, until the log trims them",
    "backups that were made before, until they are thrown away",
];

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "delete_dataset",
            method: Method::DELETE,
            path: "/projects/{slug}",
            summary: "Delete a private dataset for good",
            description: "Its records, versions, comments and texts go, within a minute for most datasets; `remains` says what \
                          keeps some of it longer. Open uploads end and undecided contributions are rejected (`deleted`). Its \
                          slug stays taken. A public dataset is never deleted.",
            accepts: KEY_OR_OPERATOR,
            scope: Scope::Write,
            effect: Effect::Destroy,
            item: GuardedItem::OwnProject,
            success: &[(200, "The dataset is deleted: every later call about it is 404.")],
            failure: &[
                (403, "The project is another operator's."),
                (
                    404,
                    "There is no such project, it is private to others, or it was deleted before.",
                ),
                (
                    409,
                    "The dataset is public (`not_private`), or somebody bought it or an answer links it (`was_read`).",
                ),
            ],
            ..super::base()
        },
        &[],
        delete,
    );
}

/// Slug of the project.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteProjectInput {
    /// Slug of the project.
    slug: String,
}

/// Dataset that was deleted.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DeletedDataset")]
#[serde(rename_all = "camelCase")]
struct DeletedProject {
    /// Slug of the dataset, which stays taken.
    slug: String,
    /// Time of the deletion.
    deleted_at: WireInstant,
    /// What still has records of it, and until when.
    remains: [&'static str; 2],
}

async fn delete(cx: Cx, input: DeleteProjectInput) -> Result<JsonReply<DeletedProject>, ApiError> {
    let project = entitlement::own(&cx, &input.slug).await?;
    delete_project(&cx, &project, project.operator).await?;
    Ok(JsonReply::ok(DeletedProject {
        slug: project.slug,
        deleted_at: cx.now.into(),
        remains: REMAINS,
    }))
}

/// Deletes a private project of an operator that nobody else read. Its files go by a job.
pub(in crate::ops) async fn delete_project(cx: &Cx, project: &Project, operator: OperatorId) -> Result<(), ApiError> {
    let conflict = |code, message: String| Err(ApiError::new(code, message));
    match cx.app.store.project_delete(project.id, operator, cx.now).await? {
        ProjectDeleted::Deleted => {
            cx.app.process.caches.forget_pages(project.id);
            Ok(())
        }
        ProjectDeleted::Missing => Err(ApiError::no_project(&project.slug)),
        ProjectDeleted::NotPrivate => conflict(
            ErrorCode::NotPrivate,
            format!(
                "`{}` is public and stays for those that use it; archive it instead",
                project.slug
            ),
        ),
        ProjectDeleted::WasRead => conflict(
            ErrorCode::WasRead,
            format!("`{}` was sold, or an answer links it, so it stays", project.slug),
        ),
    }
}
