//! Operations that comment on a dataset and list its comments.

use schemars::JsonSchema;
use serde::Deserialize;
use store::ItemKind;

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::schema::TEXT;
use crate::error::ApiError;
use crate::ops::comments::{self, CommentPage, CommentView, CommentedItem};
use crate::rules::entitlement;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AddDatasetCommentInput {
    /// Slug of the project.
    slug: String,
    /// Text of the comment.
    #[schemars(length(min = 1, max = 2_000), regex(pattern = TEXT))]
    body: String,
    /// Comment, review or question that it answers.
    #[schemars(range(min = 1))]
    parent_id: Option<i64>,
}

pub(super) async fn comment(cx: Cx, input: AddDatasetCommentInput) -> Result<JsonReply<CommentView>, ApiError> {
    let project = entitlement::current(&cx, &input.slug).await?;
    let item = CommentedItem {
        kind: ItemKind::Dataset,
        id: project.id.to_string(),
        version: None,
        owner: project.operator,
    };
    comments::add(&cx, item, input.parent_id, input.body).await
}

/// Answers for a comment that an earlier call made.
pub(super) async fn again(
    cx: Cx,
    input: AddDatasetCommentInput,
    made: String,
) -> Result<JsonReply<CommentView>, ApiError> {
    let project = entitlement::current(&cx, &input.slug).await?;
    comments::again(&cx, project.operator, &made).await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListDatasetCommentsQuery {
    /// Slug of the project.
    slug: String,
    /// The `nextCursor` of the page before.
    #[schemars(regex(pattern = "^[0-9]{1,18}$"))]
    cursor: Option<String>,
    /// Greatest number of comments on the page; 50 where not given.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
}

pub(super) async fn comments(cx: Cx, input: ListDatasetCommentsQuery) -> Result<JsonReply<CommentPage>, ApiError> {
    let project = entitlement::current(&cx, &input.slug).await?;
    let (id, place) = (project.id.to_string(), (input.cursor, input.limit));
    comments::page(&cx, ItemKind::Dataset, &id, project.operator, place).await
}
