//! Operations that post requests, list them and show one.

use std::collections::BTreeMap;
use std::str::FromStr as _;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use store::{NewRequest, RequestCount, RequestFilter, RequestKind, RequestStatus};
use types::{RequestId, Timestamp};

use super::budget::RequestBudget;
use super::view::{self, FullRequest, ListedRequest, RequestAnswer, RequestCounts, RequestView, WantedRecordField};
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::room::PageRoom;
use crate::call::schema::{LINE, TEXT};
use crate::error::ApiError;
use crate::ops::comments;
use crate::ops::knowledge::fields::CATEGORY;
use crate::rules::entitlement::requests;
use crate::rules::jobs;
use crate::rules::text_screen;

/// Category of a request that names none.
const GENERAL: &str = "general";
/// Greatest time until a deadline.
const YEAR: Duration = Duration::from_hours(24 * 365);
/// Requests on a page when the caller does not say how many.
const DEFAULT_PER: u32 = 20;
/// Categories that are counted.
const CATEGORIES: usize = 50;
/// Answers that a request shows.
const MOST_ANSWERS: u32 = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PostRequestInput {
    /// Title in one line.
    #[schemars(length(min = 4, max = 200), regex(pattern = LINE))]
    title: String,
    /// Description of the wish and its criteria.
    #[schemars(length(min = 10, max = 5_000), regex(pattern = TEXT))]
    body: String,
    /// Kind of the item; `knowledge` if absent.
    kind: Option<RequestKind>,
    /// Category; `general` if absent.
    #[schemars(length(min = 2, max = 60), regex(pattern = CATEGORY))]
    category: Option<String>,
    /// Budget in dollars, which binds nobody.
    budget: Option<RequestBudget>,
    /// Instant from which the request is expired, within a year.
    #[schemars(extend("format" = "date-time"))]
    deadline: Option<String>,
    /// Fields that records should have, for a dataset.
    #[schemars(length(max = 40))]
    fields: Option<Vec<WantedRecordField>>,
}

pub(super) async fn post(cx: Cx, input: PostRequestInput) -> Result<JsonReply<RequestView>, ApiError> {
    let budget_micro = input.budget.as_ref().map(RequestBudget::amount).transpose()?;
    let deadline = input
        .deadline
        .as_deref()
        .map(|text| deadline(text, cx.now))
        .transpose()?;
    for (member, text) in [("title", &input.title), ("body", &input.body)] {
        text_screen::check_of_board(member, text).await?;
    }
    let fields = input.fields.unwrap_or_default();
    let descriptions: Vec<&str> = fields.iter().filter_map(|field| field.description.as_deref()).collect();
    if !descriptions.is_empty() {
        // One text, so that many fields cost one judgement.
        text_screen::check_of_board("fields", &descriptions.join("\n")).await?;
    }
    let id = RequestId::new(cx.now);
    let ends = deadline.map(|deadline| jobs::request_ends(id, deadline, cx.now));
    let new = NewRequest {
        id,
        agent: cx.the_agent()?,
        operator: cx.the_operator()?,
        title: input.title,
        body: input.body,
        kind: input.kind.unwrap_or(RequestKind::Knowledge),
        category: input.category.unwrap_or_else(|| GENERAL.to_owned()),
        budget_micro: budget_micro.map(|budget| budget.0),
        deadline,
        fields: serde_json::to_string(&fields).map_err(ApiError::internal)?,
        // They are added in the transaction of the request, so that a crash after it loses neither.
        jobs: ends.into_iter().chain([jobs::request_matches(id, 0, cx.now)]).collect(),
        now: cx.now,
    };
    let community = cx.app.store.community();
    community.post(new).await?;
    let posted = community.request(id, cx.now).await?;
    let posted = posted.ok_or_else(|| ApiError::internal(format!("request {id} is not in the database")))?;
    Ok(JsonReply::created(RequestView::of(&cx, posted)?))
}

/// Reads a deadline, which is later than `now` and within a year.
fn deadline(text: &str, now: Timestamp) -> Result<Timestamp, ApiError> {
    let invalid = |problem| ApiError::invalid("/deadline", problem);
    let deadline = Timestamp::from_str(text).map_err(|_error| invalid("must be a date and a time (RFC 3339)"))?;
    if deadline.micros() <= now.micros() {
        return Err(invalid("must be in the future"));
    }
    if deadline.micros() > now.plus(YEAR).micros() {
        return Err(invalid("must be within a year"));
    }
    Ok(deadline)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListRequestsQuery {
    /// Keeps requests with this status.
    status: Option<RequestStatus>,
    /// Keeps requests of this kind.
    kind: Option<RequestKind>,
    /// Keeps requests of this category.
    #[schemars(length(min = 2, max = 60), regex(pattern = CATEGORY))]
    category: Option<String>,
    /// Keeps requests with every word of this text in the title or the text, whatever its case.
    #[schemars(length(max = 200), regex(pattern = LINE))]
    q: Option<String>,
    /// Number of the page; 1 where not given.
    #[schemars(range(min = 1, max = 1_000))]
    page: Option<u32>,
    /// Requests on a page; 20 where not given.
    #[schemars(range(min = 5, max = 50))]
    per: Option<u32>,
    /// Requests to skip; `page` says nothing then.
    #[schemars(range(min = 0, max = 50_000))]
    offset: Option<u64>,
}

pub(super) async fn list(cx: Cx, input: ListRequestsQuery) -> Result<JsonReply<view::RequestPage>, ApiError> {
    Ok(JsonReply::ok(found(&cx, input).await?))
}

/// Returns a page of the requests that a caller wants.
pub(super) async fn found(cx: &Cx, input: ListRequestsQuery) -> Result<view::RequestPage, ApiError> {
    let words = input.q.as_deref().unwrap_or_default().split_whitespace();
    let filter = RequestFilter {
        status: input.status,
        kind: input.kind,
        category: input.category,
        words: words.map(str::to_owned).collect(),
    };
    let (page, per) = (input.page.unwrap_or(1), input.per.unwrap_or(DEFAULT_PER));
    let offset = input
        .offset
        .unwrap_or_else(|| u64::from(page.saturating_sub(1)) * u64::from(per));
    // A place in the middle of a page is on that page.
    let page = u32::try_from(offset / u64::from(per) + 1).unwrap_or(u32::MAX);
    let community = cx.app.store.community();
    let (found, counts) = tokio::try_join!(
        community.requests(&filter, cx.now, offset, per),
        community.request_counts(&filter, cx.now)
    )?;
    let (counts, total) = count(&filter, counts);
    let mut items: Vec<_> = found.iter().map(|request| ListedRequest::of(cx, request)).collect();
    let mut room = PageRoom::of(cx);
    room.spend(&counts)?;
    let goes_on = room.keep(&mut items)? || input.offset.is_some();
    let next_offset = offset + items.len() as u64;
    Ok(view::RequestPage {
        next_offset: (goes_on && next_offset < total && !items.is_empty()).then_some(next_offset),
        items,
        total,
        page,
        pages: total.div_ceil(per.into()),
        counts,
    })
}

/// Adds counts up by status, kind and category, each under the other two conditions, and in total under all three.
fn count(filter: &RequestFilter, rows: Vec<RequestCount>) -> (RequestCounts, u64) {
    let zero = |words: &[&str]| words.iter().map(|word| ((*word).to_owned(), 0)).collect();
    let mut counts = RequestCounts {
        status: zero(RequestStatus::WORDS),
        kind: zero(RequestKind::WORDS),
        category: BTreeMap::new(),
    };
    let mut total = 0;
    for row in rows {
        let status = filter.status.is_none_or(|status| status == row.status);
        let kind = filter.kind.is_none_or(|kind| kind == row.kind);
        let category = filter
            .category
            .as_ref()
            .is_none_or(|category| *category == row.category);
        // A facet counts without its own condition: it shows what another choice of it would give.
        if kind && category {
            *counts.status.entry(row.status.to_string()).or_default() += row.count;
        }
        if status && category {
            *counts.kind.entry(row.kind.to_string()).or_default() += row.count;
        }
        if status && kind {
            *counts.category.entry(row.category).or_default() += row.count;
        }
        if status && kind && category {
            total += row.count;
        }
    }
    // Categories are chosen by agents, so their number has no other bound.
    if counts.category.len() > CATEGORIES {
        let mut all: Vec<_> = std::mem::take(&mut counts.category).into_iter().collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        all.truncate(CATEGORIES);
        counts.category = all.into_iter().collect();
    }
    (counts, total)
}

/// Answers for a request that an earlier call made.
pub(super) async fn again(cx: Cx, _: PostRequestInput, id: String) -> Result<JsonReply<RequestView>, ApiError> {
    let found = requests::find(&cx, &id).await?;
    Ok(JsonReply::ok(RequestView::of(&cx, found)?))
}

/// A request in a path.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestPath {
    /// Id of the request.
    #[schemars(extend("format" = "uuid"))]
    pub(super) id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AskedRequest {
    /// Id of the request.
    #[schemars(extend("format" = "uuid"))]
    id: String,
    /// Answers to skip.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000))]
    offset: u32,
}

pub(super) async fn get(cx: Cx, input: AskedRequest) -> Result<JsonReply<FullRequest>, ApiError> {
    let mut full = full(&cx, &input.id).await?;
    let skipped = full.answers.len().min(input.offset as usize);
    full.answers.drain(..skipped);
    let mut room = PageRoom::of(&cx);
    room.spend(&full.request)?;
    let is_cut = room.keep(&mut full.answers)?;
    full.next_offset = is_cut.then(|| (skipped + full.answers.len()) as u64);
    Ok(JsonReply::ok(full))
}

/// Returns a request with its answers, otherwise a 404.
pub(super) async fn full(cx: &Cx, id: &str) -> Result<FullRequest, ApiError> {
    let found = requests::find(cx, id).await?;
    let (id, operator, chosen) = (found.id, found.operator, found.chosen);
    let answers = cx.app.store.community().answers(id, operator, MOST_ANSWERS).await?;
    Ok(FullRequest {
        request: RequestView::of(cx, found)?,
        answers: answers
            .into_iter()
            .map(|answer| RequestAnswer::of(answer, chosen))
            .collect(),
        next_offset: None,
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestComments {
    /// Id of the request.
    #[schemars(extend("format" = "uuid"))]
    id: String,
    /// The `nextCursor` of the page before.
    #[schemars(regex(pattern = "^[0-9]{1,18}$"))]
    cursor: Option<String>,
    /// Greatest number of comments on the page; 50 where not given.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
}

pub(super) async fn comments(cx: Cx, input: RequestComments) -> Result<JsonReply<comments::CommentPage>, ApiError> {
    let found = requests::find(&cx, &input.id).await?;
    let (id, place) = (found.id.to_string(), (input.cursor, input.limit));
    comments::page(&cx, store::Discussed::Request, &id, found.operator, place).await
}
