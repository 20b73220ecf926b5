//! Operations that answer a request and decide it.

use schemars::JsonSchema;
use serde::Deserialize;
use store::{
    Answered, BoardRequest, Chosen, Closed, ItemKind, NewAnswer, NewItemLink, RequestKind, RequestStatus, Visibility,
};

use super::requests::RequestPath;
use super::view::{FulfilledRequest, RequestAnswer, RequestView};
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::schema::TEXT;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::comments;
use crate::ops::projects::SLUG;
use crate::rules::entitlement::requests;
use crate::rules::entitlement::units::{self, ShownStatus};
use crate::rules::reading::MAX_EXACT_INTEGER;
use crate::rules::text_screen;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PostAnswerInput {
    /// Id of the request.
    #[schemars(extend("format" = "uuid"))]
    id: String,
    /// Published unit of the operator, for a knowledge request.
    #[schemars(extend("format" = "uuid"))]
    unit_id: Option<String>,
    /// Slug of a public project of the operator, for a dataset request.
    #[schemars(regex(pattern = SLUG))]
    dataset: Option<String>,
    /// Version of the dataset; the latest if absent.
    #[schemars(range(min = 1, max = MAX_EXACT_INTEGER))]
    version: Option<u64>,
    /// Text beside the item, or alone.
    #[schemars(length(max = 2_000), regex(pattern = TEXT))]
    note: Option<String>,
}

pub(super) async fn answer(cx: Cx, input: PostAnswerInput) -> Result<JsonReply<RequestAnswer>, ApiError> {
    let request = requests::find(&cx, &input.id).await?;
    let operator = cx.the_operator()?;
    if request.operator == operator {
        return Err(own());
    }
    let note = input.note.clone().unwrap_or_default();
    if input.unit_id.is_none() && input.dataset.is_none() && note.is_empty() {
        return Err(ApiError::invalid("", "must have `unitId`, `dataset` or `note`"));
    }
    let link = link(&cx, &request, &input).await?;
    text_screen::check_of_board("note", &note).await?;
    // The state comes last, so that a client mends its input once and not after the request is open again.
    if !matches!(request.status, RequestStatus::Open | RequestStatus::Answered) {
        return Err(over(request.status));
    }
    let new = NewAnswer {
        request: request.id,
        agent: cx.the_agent()?,
        operator,
        link,
        note,
        now: cx.now,
    };
    match cx.app.store.community().answer(new).await? {
        Answered::Added(id) => Ok(JsonReply::created(find(&cx, &request, id, None).await?)),
        Answered::Missing => Err(ApiError::no_request()),
        Answered::Own => Err(own()),
        Answered::Over(status) => Err(over(status)),
        Answered::Repeated => Err(ApiError::new(
            ErrorCode::AlreadyAnswered,
            "the item answers the request already",
        )),
    }
}

/// Answers for an answer that an earlier call made.
pub(super) async fn again(cx: Cx, input: PostAnswerInput, made: String) -> Result<JsonReply<RequestAnswer>, ApiError> {
    let request = requests::find(&cx, &input.id).await?;
    // Moderators may have hidden it meanwhile.
    let id = comments::made(&cx, &made).await?.id;
    Ok(JsonReply::ok(find(&cx, &request, id, request.chosen).await?))
}

/// Returns the item that an answer names, if the caller's operator sells it and the request asks for its kind.
async fn link(cx: &Cx, request: &BoardRequest, input: &PostAnswerInput) -> Result<Option<NewItemLink>, ApiError> {
    let misplaced = |path: &str, problem: &str| Err(ApiError::invalid(path, problem));
    match (&input.unit_id, &input.dataset, request.kind) {
        (Some(_), Some(_), _) => misplaced("/dataset", "must not come with `unitId`"),
        (Some(_), None, RequestKind::Dataset) => misplaced("/unitId", "must not answer a request for a dataset"),
        (None, Some(_), RequestKind::Knowledge) => misplaced("/dataset", "must not answer a request for knowledge"),
        (_, None, _) if input.version.is_some() => misplaced("/version", "must come with `dataset`"),
        (Some(id), None, RequestKind::Knowledge) => unit(cx, id).await.map(Some),
        (None, Some(slug), RequestKind::Dataset) => dataset(cx, slug, input.version).await.map(Some),
        (None, None, _) => Ok(None),
    }
}

async fn unit(cx: &Cx, id: &str) -> Result<NewItemLink, ApiError> {
    let unit = units::find(&cx.app, id).await?;
    // Answers look among published units: any other is missing, also for its owner.
    if ShownStatus::of(&unit) != ShownStatus::Published {
        return Err(ApiError::no_unit());
    }
    if cx.operator() != Some(unit.chain.operator) {
        return Err(not_owner("the unit is another operator's"));
    }
    Ok(NewItemLink {
        kind: ItemKind::Unit,
        item: unit.chain.id.to_string(),
        version: None,
    })
}

async fn dataset(cx: &Cx, slug: &str, version: Option<u64>) -> Result<NewItemLink, ApiError> {
    let project = cx.app.store.project_by_slug(slug, None).await?;
    // Answers look among public projects: a private one is missing, also for its operator.
    let project = project
        .filter(|project| project.visibility == Visibility::Public)
        .ok_or_else(|| ApiError::no_project(slug))?;
    if cx.operator() != Some(project.operator) {
        return Err(not_owner("the project is another operator's"));
    }
    let latest = project.version.0;
    if let Some(version) = version
        && version > latest
    {
        return Err(ApiError::not_found(format!(
            "the project `{slug}` has no version {version}; the latest is {latest}"
        )));
    }
    Ok(NewItemLink {
        kind: ItemKind::Dataset,
        item: project.id.to_string(),
        // A buyer pins a version. A dataset that has none yet is offered as a whole.
        version: version.or_else(|| Some(latest).filter(|latest| *latest > 0)),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ChooseAnswerInput {
    /// Id of the request.
    #[schemars(extend("format" = "uuid"))]
    id: String,
    /// Answer that links an item.
    #[schemars(range(min = 1))]
    answer_id: i64,
}

pub(super) async fn choose(cx: Cx, input: ChooseAnswerInput) -> Result<JsonReply<FulfilledRequest>, ApiError> {
    let request = requests::own(&cx, &input.id).await?;
    let (community, operator) = (cx.app.store.community(), cx.the_operator()?);
    match community.choose(request.id, input.answer_id, operator, cx.now).await? {
        Chosen::Done => {}
        Chosen::Missing => return Err(ApiError::no_request()),
        Chosen::NotRequester => return Err(requests::not_requester()),
        Chosen::Over(status) => return Err(over(status)),
        Chosen::NoAnswer => return Err(ApiError::not_found("the request has no such answer")),
        Chosen::NoItem => {
            let message = "the answer links no item that is shown and for sale, so it cannot be chosen";
            return Err(ApiError::new(ErrorCode::AnswerWithoutItem, message));
        }
    }
    let request = requests::find(&cx, &input.id).await?;
    let answer = find(&cx, &request, input.answer_id, request.chosen).await?;
    Ok(JsonReply::ok(FulfilledRequest {
        bought: answer.bought,
        answer,
        request: RequestView::of(&cx, request)?,
    }))
}

pub(super) async fn close(cx: Cx, input: RequestPath) -> Result<JsonReply<RequestView>, ApiError> {
    let request = requests::own(&cx, &input.id).await?;
    let (community, operator) = (cx.app.store.community(), cx.the_operator()?);
    match community.close(request.id, operator, cx.now).await? {
        Closed::Done => {}
        Closed::Missing => return Err(ApiError::no_request()),
        Closed::NotRequester => return Err(requests::not_requester()),
        Closed::Over(status) => return Err(over(status)),
    }
    let request = requests::find(&cx, &input.id).await?;
    Ok(JsonReply::ok(RequestView::of(&cx, request)?))
}

/// Returns an answer of a request.
async fn find(cx: &Cx, request: &BoardRequest, id: i64, chosen: Option<i64>) -> Result<RequestAnswer, ApiError> {
    let community = cx.app.store.community();
    // By the list's own statement, so that an answer looks the same alone and in the list.
    let answers = community.answers_from(request.id, request.operator, id - 1, 1).await?;
    let answer = answers.into_iter().find(|answer| answer.comment.id == id);
    let answer = answer.ok_or_else(|| ApiError::internal(format!("answer {id} is not in the database")))?;
    Ok(RequestAnswer::of(answer, chosen))
}

fn own() -> ApiError {
    let message = "an operator does not answer its own request";
    ApiError::new(ErrorCode::OwnRequest, message)
}

fn not_owner(message: &str) -> ApiError {
    ApiError::new(ErrorCode::NotOwner, message)
}

/// Returns the 409 for a request that is decided or over.
fn over(status: RequestStatus) -> ApiError {
    ApiError::new(ErrorCode::RequestOver, format!("the request is {status}")).field("status", status.as_str())
}
