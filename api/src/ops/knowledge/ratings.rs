//! Operations that rate a unit and list its ratings.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{NewRating, Rated, Rating, RatingCursor};
use types::Timestamp;

use super::view::UnitRatings;
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::schema::TEXT;
use crate::call::wire::WireInstant;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::paging::take_page;
use crate::rules::entitlement::units;
use crate::rules::text_screen;

/// Ratings on a page when the caller gives no `limit`.
const DEFAULT_LIMIT: u32 = 50;
/// Form of a cursor: time in microseconds and agent of the last rating of a page.
pub(super) const CURSOR_PATTERN: &str = "^[0-9]{1,18}[.][0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RateUnitInput {
    /// Id of any version of the unit.
    #[schemars(extend("format" = "uuid"))]
    id: String,
    /// 1 is worst, 5 is best.
    #[schemars(range(min = 1, max = 5))]
    rating: u32,
    /// Sentence to show beside the rating.
    #[schemars(length(max = 500), regex(pattern = TEXT))]
    comment: Option<String>,
}

/// A rating that was added.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Added")]
#[serde(rename_all = "camelCase")]
pub(super) struct AddedRating {
    unit_id: String,
    chain_id: String,
    rating: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
    at: WireInstant,
    /// Ratings of the unit, this one included.
    ratings: UnitRatings,
}

pub(super) async fn rate(cx: Cx, input: RateUnitInput) -> Result<JsonReply<AddedRating>, ApiError> {
    let unit = units::find(&cx.app, &input.id).await?;
    let relation = units::relation(&cx, &unit).await?;
    if !units::may_rate(&unit, relation) {
        return Err(ApiError::no_unit());
    }
    let own = || ApiError::new(ErrorCode::OwnUnit, "an operator does not rate its own units");
    // Here already, so that an own rating is refused before its comment is judged. The transaction asks
    // again.
    if relation.owns {
        return Err(own());
    }
    if let Some(comment) = &input.comment {
        text_screen::check("comment", comment).await?;
    }
    let new = NewRating {
        chain: unit.chain.id,
        unit: unit.id,
        agent: cx.the_agent()?,
        operator: cx.the_operator()?,
        rating: input.rating,
        comment: input.comment.clone(),
        now: cx.now,
    };
    match cx.app.store.knowledge().rate(new).await? {
        Rated::Added { count, sum } => Ok(JsonReply::ok(AddedRating {
            unit_id: unit.id.to_string(),
            chain_id: unit.chain.id.to_string(),
            rating: input.rating,
            comment: input.comment,
            at: cx.now.into(),
            ratings: UnitRatings::of(sum, count),
        })),
        Rated::Own => Err(own()),
        Rated::NotRead => {
            let message = "a unit is rated after reading it in full with the same key";
            Err(ApiError::new(ErrorCode::NotRead, message))
        }
        Rated::Before => Err(ApiError::new(
            ErrorCode::AlreadyReviewed,
            "the agent rated the unit before",
        )),
    }
}

/// Answers for a rating that an earlier call added at this time, in microseconds.
pub(super) async fn again(cx: Cx, input: RateUnitInput, at: String) -> Result<JsonReply<AddedRating>, ApiError> {
    let unit = units::find(&cx.app, &input.id).await?;
    let at = at
        .parse()
        .map_err(|_error| ApiError::internal(format!("`{at}` is not the time of a rating")))?;
    Ok(JsonReply::ok(AddedRating {
        unit_id: unit.id.to_string(),
        chain_id: unit.chain.id.to_string(),
        rating: input.rating,
        comment: input.comment,
        at: Timestamp::from_micros(at).into(),
        ratings: UnitRatings::of(unit.chain.rating_sum, unit.chain.rating_count),
    }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListRatingsQuery {
    /// Id of any version of the unit.
    #[schemars(extend("format" = "uuid"))]
    id: String,
    /// The `nextCursor` of the page before.
    #[schemars(regex(pattern = CURSOR_PATTERN))]
    cursor: Option<String>,
    /// Greatest number of ratings on the page; 50 where not given.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
}

/// Ratings of a unit.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Page")]
#[serde(rename_all = "camelCase")]
pub(super) struct RatingsPage {
    items: Vec<UnitRating>,
    /// 1 to 5; null without a rating.
    average: Option<f64>,
    count: u64,
    /// Number of ratings of each value from 1 to 5.
    histogram: BTreeMap<String, u64>,
    /// Cursor of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Rating that an agent gave.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Item")]
struct UnitRating {
    /// Name of the agent.
    agent: String,
    rating: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
    /// Number of the version that was rated.
    version: u32,
    at: WireInstant,
    /// True if the agent's operator bought the unit.
    bought: bool,
}

pub(super) async fn list(cx: Cx, input: ListRatingsQuery) -> Result<JsonReply<RatingsPage>, ApiError> {
    let unit = units::find(&cx.app, &input.id).await?;
    if !units::is_discussed(&unit) {
        return Err(ApiError::no_unit());
    }
    let after = input.cursor.as_deref().map(cursor).transpose()?;
    let limit = input.limit.unwrap_or(DEFAULT_LIMIT);
    let (knowledge, chain) = (cx.app.store.knowledge(), unit.chain.id);
    // One more than the page has, to know if there is a next page.
    let mut found = knowledge.ratings(chain, after, limit + 1).await?;
    let next = take_page(&mut found.items, limit).map(cursor_of);
    let (count, sum) = (1_u64..)
        .zip(found.histogram)
        .fold((0, 0), |(count, sum), (value, used)| (count + used, sum + value * used));
    Ok(JsonReply::ok(RatingsPage {
        items: found.items.into_iter().map(item).collect(),
        average: UnitRatings::of(sum, count).average,
        count,
        histogram: (1..)
            .zip(found.histogram)
            .map(|(value, used): (u32, _)| (value.to_string(), used))
            .collect(),
        next_cursor: next,
    }))
}

fn item(rating: Rating) -> UnitRating {
    UnitRating {
        agent: rating.agent_name,
        rating: rating.stars,
        comment: rating.comment,
        version: rating.version.unwrap_or(1),
        at: rating.at.into(),
        bought: rating.bought,
    }
}

/// Returns the cursor of the page behind a rating.
pub(super) fn cursor_of(last: &Rating) -> String {
    // The time alone would skip one of two ratings of the same microsecond.
    format!("{}.{}", last.at.micros(), last.agent)
}

/// Reads a cursor.
pub(super) fn cursor(text: &str) -> Result<RatingCursor, ApiError> {
    let parsed = text.split_once('.').and_then(|(at, agent)| {
        Some(RatingCursor {
            at: Timestamp::from_micros(at.parse().ok()?),
            agent: agent.parse().ok()?,
        })
    });
    parsed.ok_or_else(|| ApiError::invalid("/cursor", "must be the `nextCursor` of a page before"))
}
