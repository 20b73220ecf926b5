//! Operations that comment on a unit and list its comments.

use schemars::JsonSchema;
use serde::Deserialize;
use store::ItemKind;

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::schema::TEXT;
use crate::error::ApiError;
use crate::ops::comments::{self, CommentPage, CommentView, CommentedItem};
use crate::rules::entitlement::units;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AddUnitCommentInput {
    /// Id of any version of the unit.
    #[schemars(extend("format" = "uuid"))]
    id: String,
    /// Text of the comment.
    #[schemars(length(min = 1, max = 2_000), regex(pattern = TEXT))]
    body: String,
    /// Comment, review or question that it answers.
    #[schemars(range(min = 1))]
    parent_id: Option<i64>,
}

pub(super) async fn add(cx: Cx, input: AddUnitCommentInput) -> Result<JsonReply<CommentView>, ApiError> {
    let unit = units::find(&cx.app, &input.id).await?;
    let relation = units::relation(&cx, &unit).await?;
    if !units::may_comment(&unit, relation) {
        return Err(ApiError::no_unit());
    }
    let item = CommentedItem {
        kind: ItemKind::Unit,
        // Comments stay with the unit through its versions; the version says which text the author had
        // read.
        id: unit.chain.id.to_string(),
        version: Some(unit.id.to_string()),
        owner: unit.chain.operator,
    };
    comments::add(&cx, item, input.parent_id, input.body).await
}

/// Answers for a comment that an earlier call made.
pub(super) async fn again(
    cx: Cx,
    input: AddUnitCommentInput,
    made: String,
) -> Result<JsonReply<CommentView>, ApiError> {
    let unit = units::find(&cx.app, &input.id).await?;
    comments::again(&cx, unit.chain.operator, &made).await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListUnitCommentsQuery {
    /// Id of any version of the unit.
    #[schemars(extend("format" = "uuid"))]
    id: String,
    /// The `nextCursor` of the page before.
    #[schemars(regex(pattern = "^[0-9]{1,18}$"))]
    cursor: Option<String>,
    /// Greatest number of comments on the page; 50 where not given.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
}

pub(super) async fn list(cx: Cx, input: ListUnitCommentsQuery) -> Result<JsonReply<CommentPage>, ApiError> {
    let unit = units::find(&cx.app, &input.id).await?;
    if !units::is_discussed(&unit) {
        return Err(ApiError::no_unit());
    }
    let (item, owner) = (unit.chain.id.to_string(), unit.chain.operator);
    comments::page(&cx, ItemKind::Unit, &item, owner, (input.cursor, input.limit)).await
}
