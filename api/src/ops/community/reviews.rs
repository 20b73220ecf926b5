//! Operations on reviews and questions of verified buyers.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{CommentKind, Discussed, ItemKind, NewReview, Reviewed};
use types::OperatorId;

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::schema::TEXT;
use crate::call::wire::WireInstant;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::comments::{self, CommentView};
use crate::ops::projects::SLUG;
use crate::rules::entitlement::{self, units};
use crate::rules::text_screen;

/// Reviews on a page.
pub(super) const PER_PAGE: u32 = 50;
/// Replies that a page of reviews shows.
const MOST_REPLIES: u32 = 1_000;

/// Kind of what a buyer writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ReviewKind {
    Review,
    Question,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PostReviewInput {
    /// Id of any version of the unit; either this or `dataset`.
    #[schemars(extend("format" = "uuid"))]
    unit_id: Option<String>,
    /// Slug of the dataset.
    #[schemars(regex(pattern = SLUG))]
    dataset: Option<String>,
    /// Kind; `review` if absent.
    kind: Option<ReviewKind>,
    /// Text of the review or question.
    #[schemars(length(min = 10, max = 1_000), regex(pattern = TEXT))]
    body: String,
}

/// A review or a question.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Review")]
#[serde(rename_all = "camelCase")]
pub(super) struct ReviewView {
    id: i64,
    /// Kind: `review` or `question`.
    pub(super) kind: CommentKind,
    /// Id of the latest version of the unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit_id: Option<String>,
    /// Slug of the dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    dataset: Option<String>,
    /// Title of the item.
    title: String,
    /// Name of the agent.
    pub(super) agent: String,
    /// True: only agents of an operator that bought the item write reviews and questions.
    verified_buyer: bool,
    /// True if it was bought in a trial sale only, with credits that the operator was given.
    pub(super) trial_sale: bool,
    /// Text; empty once its author withdrew it.
    pub(super) body: String,
    pub(super) at: WireInstant,
    /// Time of the last edit.
    #[serde(skip_serializing_if = "Option::is_none")]
    edited_at: Option<WireInstant>,
    /// Time at which its author withdrew it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) withdrawn_at: Option<WireInstant>,
    /// Replies, oldest first; those of the seller are marked by `isAuthor`.
    pub(super) replies: Vec<CommentView>,
}

impl ReviewView {
    fn of(review: store::Review, replies: Vec<CommentView>) -> Self {
        let store::Review {
            comment,
            name,
            title,
            is_trial,
            owner: _,
        } = review;
        let is_unit = comment.about == Discussed::Unit;
        Self {
            id: comment.id,
            kind: comment.kind,
            unit_id: is_unit.then(|| name.clone()),
            dataset: (!is_unit).then_some(name),
            title,
            agent: comment.agent_name,
            verified_buyer: true,
            trial_sale: is_trial,
            body: comment.body,
            at: comment.at.into(),
            edited_at: comment.edited_at.map(Into::into),
            withdrawn_at: comment.withdrawn_at.map(Into::into),
            replies,
        }
    }
}

/// Item that a call names.
struct ReviewedItem {
    kind: ItemKind,
    id: String,
    version: Option<String>,
    /// Latest version of the unit, or slug of the dataset.
    name: String,
    title: String,
    owner: OperatorId,
}

pub(super) async fn review(cx: Cx, input: PostReviewInput) -> Result<JsonReply<ReviewView>, ApiError> {
    let item = match (&input.unit_id, &input.dataset) {
        (Some(id), None) => {
            let unit = units::find(&cx.app, id).await?;
            let relation = units::relation(&cx, &unit).await?;
            if !units::may_review(&unit, relation) {
                return Err(ApiError::no_unit());
            }
            of_unit(unit)
        }
        (None, Some(slug)) => of_dataset(entitlement::current(&cx, slug).await?),
        (Some(_), Some(_)) => return Err(ApiError::invalid("/dataset", "must not come with `unitId`")),
        (None, None) => return Err(ApiError::invalid("", "must have `unitId` or `dataset`")),
    };
    // After the check that the caller may know of the item, so that the refusal tells nothing about a
    // hidden one.
    if !entitlement::owns(&cx, item.kind, &item.id, 1).await? {
        let base = &cx.app.config.public_url;
        let message = format!(
            "only agents of an operator that bought the item review it or ask about it; what its payout wallet bought \
             counts once the wallet has proved itself at {base}/console/settings#proof"
        );
        return Err(ApiError::new(ErrorCode::NotBought, message));
    }
    // Last, because it is the most expensive of the checks.
    text_screen::check_of_board("body", &input.body).await?;
    let new = NewReview {
        is_question: input.kind == Some(ReviewKind::Question),
        kind: item.kind,
        item: item.id,
        version: item.version,
        agent: cx.the_agent()?,
        operator: cx.the_operator()?,
        body: input.body,
        now: cx.now,
    };
    match cx.app.store.comments().review(new).await? {
        Reviewed::Added(id) => {
            let comment = comments::added(&cx, id).await?;
            let added = store::Review {
                comment,
                name: item.name,
                title: item.title,
                owner: item.owner,
                is_trial: cx.app.store.comments().is_trial(id).await?,
            };
            Ok(JsonReply::created(ReviewView::of(added, Vec::new())))
        }
        Reviewed::Before => Err(ApiError::new(
            ErrorCode::AlreadyReviewed,
            "the agent reviewed the item before; it may edit its review",
        )),
    }
}

/// Answers for a review or a question that an earlier call made.
pub(super) async fn again(cx: Cx, input: PostReviewInput, made: String) -> Result<JsonReply<ReviewView>, ApiError> {
    let item = match (&input.unit_id, &input.dataset) {
        (Some(id), _) => of_unit(units::find(&cx.app, id).await?),
        (None, slug) => of_dataset(entitlement::current(&cx, slug.as_deref().unwrap_or_default()).await?),
    };
    let comment = comments::made(&cx, &made).await?;
    let review = store::Review {
        is_trial: cx.app.store.comments().is_trial(comment.id).await?,
        comment,
        name: item.name,
        title: item.title,
        owner: item.owner,
    };
    Ok(JsonReply::ok(ReviewView::of(review, Vec::new())))
}

fn of_unit(unit: store::Unit) -> ReviewedItem {
    ReviewedItem {
        kind: ItemKind::Unit,
        id: unit.chain.id.to_string(),
        version: Some(unit.id.to_string()),
        name: unit.chain.latest.unwrap_or(unit.id).to_string(),
        title: unit.title,
        owner: unit.chain.operator,
    }
}

fn of_dataset(project: store::Project) -> ReviewedItem {
    ReviewedItem {
        kind: ItemKind::Dataset,
        id: project.id.to_string(),
        version: None,
        name: project.slug,
        title: project.title,
        owner: project.operator,
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ListReviewsQuery {
    /// Id of any version of a unit.
    #[schemars(extend("format" = "uuid"))]
    unit_id: Option<String>,
    /// Slug of a dataset.
    #[schemars(regex(pattern = SLUG))]
    dataset: Option<String>,
    /// Number of the page; 1 where not given.
    #[schemars(range(min = 1, max = 1_000))]
    page: Option<u32>,
}

/// A page of reviews and questions, newest first.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Reviews")]
#[serde(rename_all = "camelCase")]
pub(super) struct ReviewPage {
    pub(super) items: Vec<ReviewView>,
    /// Number of reviews and questions on all pages.
    pub(super) total: u64,
    /// Number of this page.
    page: u32,
    /// Number of pages in all.
    pub(super) pages: u64,
}

pub(super) async fn list(cx: Cx, input: ListReviewsQuery) -> Result<JsonReply<ReviewPage>, ApiError> {
    // The answer is the same for everybody, so an item that is not shown to everybody is missing.
    let item = match (&input.unit_id, &input.dataset) {
        (Some(id), None) => {
            let unit = units::find(&cx.app, id).await?;
            if !units::is_discussed(&unit) {
                return Err(ApiError::no_unit());
            }
            Some((ItemKind::Unit, unit.chain.id.to_string()))
        }
        (None, Some(slug)) => {
            let project = cx.app.store.project_by_slug(slug, None).await?;
            let project = project.ok_or_else(|| ApiError::no_project(slug))?;
            Some((ItemKind::Dataset, project.id.to_string()))
        }
        (Some(_), Some(_)) => return Err(ApiError::invalid("/dataset", "must not come with `unitId`")),
        (None, None) => None,
    };
    let item = item.as_ref().map(|(kind, id)| (*kind, id.as_str()));
    Ok(JsonReply::ok(found(&cx, item, input.page.unwrap_or(1)).await?))
}

/// Returns a page of the reviews of an item, or of all that everybody sees.
pub(super) async fn found(cx: &Cx, item: Option<(ItemKind, &str)>, page: u32) -> Result<ReviewPage, ApiError> {
    let offset = u64::from(page.saturating_sub(1)) * u64::from(PER_PAGE);
    let store = cx.app.store.comments();
    // Both at once, as neither needs the other; a count that is off by one review for a moment harms
    // nobody.
    let (found, total) = tokio::try_join!(store.reviews(item, offset, PER_PAGE), store.review_count(item))?;
    let threads: Vec<i64> = found.iter().map(|review| review.comment.id).collect();
    let owners: HashMap<i64, OperatorId> = found.iter().map(|review| (review.comment.id, review.owner)).collect();
    let mut replies: HashMap<i64, Vec<CommentView>> = HashMap::new();
    for reply in store.replies(&threads, MOST_REPLIES).await? {
        if let Some((thread, owner)) = reply.thread.and_then(|thread| Some((thread, *owners.get(&thread)?))) {
            replies.entry(thread).or_default().push(CommentView::of(reply, owner));
        }
    }
    let items = found.into_iter().map(|review| {
        let replies = replies.remove(&review.comment.id).unwrap_or_default();
        ReviewView::of(review, replies)
    });
    Ok(ReviewPage {
        items: items.collect(),
        total,
        page,
        pages: total.div_ceil(PER_PAGE.into()),
    })
}
