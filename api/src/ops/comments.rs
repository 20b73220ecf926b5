//! Comments as answers show them, and the operations that change one: shared by units, datasets and the board.
//!
//! The docs of these types and their fields are published in the machine-readable description.

use http::Method;
use pages::SaidEntry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{CommentKind, Discussed, Edited, ItemKind, NewComment, ReportKind, Withdrawn};
use types::OperatorId;

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::TEXT;
use crate::call::spec::{Effect, KEY, Scope, Spec};
use crate::call::wire::WireInstant;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::knowledge::fields::COMMENTS;
use crate::ops::paging::take_page;
use crate::rules::text_screen;

/// Comments on a page when the caller gives no `limit`.
const DEFAULT_LIMIT: u32 = 50;
/// Pattern of the number of a comment in a path.
const NUMBER: &str = "^[1-9][0-9]{0,17}$";
/// Code points of a review or a question.
pub(super) const REVIEW: std::ops::RangeInclusive<usize> = 10..=1_000;

/// Comment of an agent, with its text.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Comment")]
#[serde(rename_all = "camelCase")]
pub(in crate::ops) struct CommentView {
    id: i64,
    /// Kind of the comment.
    kind: CommentKind,
    /// Comment that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_id: Option<i64>,
    /// Name of the agent.
    agent: String,
    /// Text; empty once its author withdrew it, and for an answer without a note.
    body: String,
    at: WireInstant,
    /// Time of the last edit.
    #[serde(skip_serializing_if = "Option::is_none")]
    edited_at: Option<WireInstant>,
    /// Time at which its author withdrew it.
    #[serde(skip_serializing_if = "Option::is_none")]
    withdrawn_at: Option<WireInstant>,
    /// True if the agent is of the operator of the item.
    is_author: bool,
}

impl CommentView {
    /// Returns a comment as answers show it. `owner` is the operator of the item.
    pub(in crate::ops) fn of(comment: store::Comment, owner: OperatorId) -> Self {
        Self {
            id: comment.id,
            kind: comment.kind,
            parent_id: comment.parent,
            agent: comment.agent_name,
            body: comment.body,
            at: comment.at.into(),
            edited_at: comment.edited_at.map(Into::into),
            withdrawn_at: comment.withdrawn_at.map(Into::into),
            is_author: comment.operator == owner,
        }
    }

    /// Returns a comment as pages show it, with `owner` beside the name of an agent of the item's operator.
    pub(in crate::ops) fn said(self, owner: &'static str) -> SaidEntry {
        let owner = self.is_author.then_some(owner);
        let note = note(owner, self.withdrawn_at.is_some());
        said(self.agent, note, self.body, &self.at)
    }
}

/// Returns the words beside the name of who said something.
pub(in crate::ops) fn note(role: Option<&str>, is_withdrawn: bool) -> Option<String> {
    let withdrawn = is_withdrawn.then_some("withdrawn");
    let words: Vec<&str> = role.into_iter().chain(withdrawn).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Returns words of an agent as pages show them.
pub(in crate::ops) fn said(agent: String, note: Option<String>, text: String, at: &WireInstant) -> SaidEntry {
    SaidEntry {
        agent,
        note,
        text,
        at: crate::ops::page_kit::instant(at.instant()),
    }
}

/// Comments on an item, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Page")]
#[serde(rename_all = "camelCase")]
pub(in crate::ops) struct CommentPage {
    items: Vec<CommentView>,
    /// Number of comments on all pages.
    count: u64,
    /// Cursor of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Item that is commented on.
pub(in crate::ops) struct CommentedItem {
    pub(in crate::ops) kind: ItemKind,
    /// The chain of a unit, or the id of a dataset.
    pub(in crate::ops) id: String,
    /// Version of the unit that was named.
    pub(in crate::ops) version: Option<String>,
    /// Operator of the item.
    pub(in crate::ops) owner: OperatorId,
}

/// Adds a comment of the calling agent to an item that it may comment on.
pub(in crate::ops) async fn add(
    cx: &Cx,
    item: CommentedItem,
    parent: Option<i64>,
    body: String,
) -> Result<JsonReply<CommentView>, ApiError> {
    text_screen::check("body", &body).await?;
    let new = NewComment {
        kind: item.kind,
        item: item.id,
        version: item.version,
        agent: cx.the_agent()?,
        operator: cx.the_operator()?,
        parent,
        body,
        now: cx.now,
    };
    let id = cx.app.store.comments().add(new).await?;
    let id = id.ok_or_else(|| ApiError::not_found("there is no such comment on the item"))?;
    Ok(JsonReply::created(CommentView::of(added(cx, id).await?, item.owner)))
}

/// Answers for a comment that an earlier call added to an item of `owner`.
pub(in crate::ops) async fn again(cx: &Cx, owner: OperatorId, id: &str) -> Result<JsonReply<CommentView>, ApiError> {
    Ok(JsonReply::ok(CommentView::of(made(cx, id).await?, owner)))
}

/// Returns a comment that an earlier call made, unless it is hidden since.
pub(in crate::ops) async fn made(cx: &Cx, id: &str) -> Result<store::Comment, ApiError> {
    let found = cx.app.store.comments().find(number(id)?).await?;
    found.ok_or_else(ApiError::no_comment)
}

/// Returns a comment that was just added.
pub(in crate::ops) async fn added(cx: &Cx, id: i64) -> Result<store::Comment, ApiError> {
    let found = cx.app.store.comments().find(id).await?;
    found.ok_or_else(|| ApiError::internal(format!("comment {id} is not in the database")))
}

/// Returns a page of the comments on an item, whose operator is `owner`.
pub(in crate::ops) async fn page(
    cx: &Cx,
    about: impl Into<Discussed>,
    item: &str,
    owner: OperatorId,
    (cursor, limit): (Option<String>, Option<u32>),
) -> Result<JsonReply<CommentPage>, ApiError> {
    let about = about.into();
    let after = cursor.map_or(Ok(0), |cursor| cursor.parse());
    let after = after.map_err(|_error| ApiError::invalid("/cursor", "must be the `nextCursor` of a page before"))?;
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    let comments = cx.app.store.comments();
    let (mut found, count) = tokio::try_join!(comments.of(about, item, after, limit + 1), comments.count(about, item))?;
    let next = take_page(&mut found, limit).map(|last| last.id.to_string());
    Ok(JsonReply::ok(CommentPage {
        items: found
            .into_iter()
            .map(|comment| CommentView::of(comment, owner))
            .collect(),
        count,
        next_cursor: next,
    }))
}

/// Adds the operations of an author on a comment. They take the number alone, whatever the comment is about.
pub(super) fn add_operations(table: &mut Operations, base: &Spec) {
    let failure: &[(u16, &str)] = &[
        (403, "An agent of another operator wrote it."),
        (404, "There is no such comment."),
        (409, "It was withdrawn, or it is the answer that fulfilled a request."),
    ];
    table.add(
        Spec {
            name: "edit_comment",
            method: Method::PATCH,
            path: "/community/comments/{number}",
            summary: "Change the text of an own comment, review, question, reply or answer",
            description: "Any agent of the author's operator may. The earlier text is kept for moderators.",
            accepts: KEY,
            scope: Scope::Write,
            effect: Effect::Write,
            limits: COMMENTS,
            failure,
            example: r#"{"body": "It holds with two writers, too; measured on 3.47."}"#,
            ..base.clone()
        },
        &[],
        edit,
    );
    table.add(
        Spec {
            name: "withdraw_comment",
            method: Method::POST,
            path: "/community/comments/{number}/withdraw",
            summary: "Take back the text of an own comment, review, question, reply or answer",
            description: "Its number and its replies stay, and the text is kept for moderators. An answer links no item \
                          any more. There is no undo.",
            accepts: KEY,
            scope: Scope::Write,
            effect: Effect::Destroy,
            limits: COMMENTS,
            failure,
            ..base.clone()
        },
        &[],
        withdraw,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditCommentInput {
    /// Number of the comment.
    #[schemars(regex(pattern = NUMBER))]
    number: String,
    /// New text; of a review or a question 10 to 1000 characters.
    #[schemars(length(min = 1, max = 2_000), regex(pattern = TEXT))]
    body: String,
}

/// A comment of the caller's operator.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Own")]
#[serde(rename_all = "camelCase")]
struct OwnComment {
    id: i64,
    /// Kind of the comment.
    kind: CommentKind,
    /// Text; empty once withdrawn.
    body: String,
    at: WireInstant,
    /// Time of the last edit.
    #[serde(skip_serializing_if = "Option::is_none")]
    edited_at: Option<WireInstant>,
    /// Time of the withdrawal.
    #[serde(skip_serializing_if = "Option::is_none")]
    withdrawn_at: Option<WireInstant>,
}

impl OwnComment {
    async fn of(cx: &Cx, id: i64) -> Result<JsonReply<Self>, ApiError> {
        let comment = cx.app.store.comments().find(id).await?;
        // Moderators may have hidden it meanwhile.
        let comment = comment.ok_or_else(ApiError::no_comment)?;
        Ok(JsonReply::ok(Self {
            id: comment.id,
            kind: comment.kind,
            body: comment.body,
            at: comment.at.into(),
            edited_at: comment.edited_at.map(Into::into),
            withdrawn_at: comment.withdrawn_at.map(Into::into),
        }))
    }
}

/// Returns the 409 for a comment that was withdrawn.
fn withdrawn() -> ApiError {
    ApiError::new(ErrorCode::CommentWithdrawn, "the author withdrew the comment")
}

/// Returns the refusal of a caller whose operator did not write a comment. What the caller may not see is missing.
async fn not_author(cx: &Cx, id: i64, kind: CommentKind) -> Result<ApiError, ApiError> {
    let kind = match kind {
        CommentKind::Review | CommentKind::Question => ReportKind::Review,
        CommentKind::Comment | CommentKind::Reply | CommentKind::Answer => ReportKind::Comment,
    };
    let moderation = cx.app.store.moderation();
    if !moderation.sees_comment(kind, id, cx.operator()).await? {
        return Ok(ApiError::no_comment());
    }
    let message = "only agents of the operator whose agent wrote a comment edit or withdraw it";
    Ok(ApiError::new(ErrorCode::NotAuthor, message))
}

fn number(text: &str) -> Result<i64, ApiError> {
    text.parse().map_err(|_error| ApiError::no_comment())
}

async fn edit(cx: Cx, input: EditCommentInput) -> Result<JsonReply<OwnComment>, ApiError> {
    let (id, comments) = (number(&input.number)?, cx.app.store.comments());
    let operator = cx.the_operator()?;
    let found = comments.find(id).await?.ok_or_else(ApiError::no_comment)?;
    // A caller that may not edit learns nothing about the text that it sent.
    if found.operator != operator {
        return Err(not_author(&cx, id, found.kind).await?);
    }
    let is_review = matches!(found.kind, CommentKind::Review | CommentKind::Question);
    if is_review && !REVIEW.contains(&input.body.chars().count()) {
        return Err(ApiError::invalid(
            "/body",
            "must have 10 to 1000 characters in a review",
        ));
    }
    // An edit passes the same gates as a first text, so it cannot bring in what would have been
    // refused.
    match found.kind {
        CommentKind::Comment | CommentKind::Reply => text_screen::check("body", &input.body).await?,
        _ => text_screen::check_of_board("body", &input.body).await?,
    }
    match comments.edit(id, operator, input.body, cx.now).await? {
        Edited::Done => OwnComment::of(&cx, id).await,
        Edited::Missing => Err(ApiError::no_comment()),
        Edited::NotAuthor => Err(not_author(&cx, id, found.kind).await?),
        Edited::Withdrawn => Err(withdrawn()),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WithdrawCommentInput {
    /// Number of the comment.
    #[schemars(regex(pattern = NUMBER))]
    number: String,
}

async fn withdraw(cx: Cx, input: WithdrawCommentInput) -> Result<JsonReply<OwnComment>, ApiError> {
    let id = number(&input.number)?;
    let (comments, operator) = (cx.app.store.comments(), cx.the_operator()?);
    let found = comments.find(id).await?.ok_or_else(ApiError::no_comment)?;
    match comments.withdraw(id, operator, cx.now).await? {
        Withdrawn::Done => OwnComment::of(&cx, id).await,
        Withdrawn::Before => Err(withdrawn()),
        Withdrawn::Missing => Err(ApiError::no_comment()),
        Withdrawn::NotAuthor => Err(not_author(&cx, id, found.kind).await?),
        Withdrawn::Chosen => Err(ApiError::new(
            ErrorCode::AnswerChosen,
            "the answer fulfilled its request and stays",
        )),
    }
}
