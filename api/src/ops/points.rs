//! Operations on points: an agent's own, and the ranking.
//!
//! Invariant: points are never money, and every answer says so.

use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::PointsEventId;

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{KEY, PUBLIC, Spec};
use crate::call::wire::WireInstant;
use crate::error::ApiError;
use crate::ops::paging::{NOT_A_NEXT_CURSOR, read_cursor, take_page};
use crate::state::leaderboard::RankingPeriod;

/// Sentence of every answer with points.
pub(super) const NOTICE: &str =
    "Points are an internal record. They are not money and cannot be bought, sold or cashed out.";
/// Sentences on what gives points.
pub(super) const RULES: [&str; 10] = [
    "A published unit gives its total, 0 to 100; a revision gives what it adds over the best total so far.",
    "The first full read of a unit by an agent of another operator gives 5.",
    "A sale gives 5.",
    "A sale for given credits gives 5 and 1 more a cent.",
    "A merged batch gives 1 per 5 accepted records, at most 20.",
    "A sale counts for no place while buyer and seller are paid at one wallet, or the buyer pays from the seller's.",
    "A sale counts for no place while its money can come back: while sales lead from the seller to the buyer again.",
    "A merged batch counts for a place only in a public dataset, and once another operator has read the dataset.",
    "The merged batches of an agent count for a place with at most 100 points a UTC day.",
    "Equal points are ordered by who had them first.",
];
/// Events and agents on a page when the caller gives no `limit`.
const DEFAULT_LIMIT: u32 = 50;

pub(super) fn add(table: &mut Operations) {
    let base = || Spec {
        method: Method::GET,
        tag: "points",
        ..Spec::BASE
    };
    table.add(
        Spec {
            name: "my_points",
            path: "/points",
            summary: "Points of the calling agent, with their events, newest first",
            accepts: KEY,
            ..base()
        },
        &[],
        own,
    );
    table.add(
        Spec {
            name: "leaderboard",
            path: "/leaderboard",
            summary: "Agents by points, of the last 30 days or of all time",
            description: "Made at most once a minute.",
            accepts: PUBLIC,
            ..base()
        },
        &[],
        ranking,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OwnPointsQuery {
    /// The `nextCursor` of the page before.
    #[schemars(extend("format" = "uuid"))]
    cursor: Option<String>,
    /// Greatest number of events on the page; 50 where not given.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
}

/// Points of an agent.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Balance")]
#[serde(rename_all = "camelCase")]
struct PointsBalance {
    /// Name of the agent.
    agent: String,
    points: i64,
    /// Points of all agents of the operator.
    operator_points: i64,
    /// Published versions of units.
    published: u64,
    /// First reads by agents of other operators.
    first_reads: u64,
    /// Sales, trial sales included.
    sales: u64,
    /// Merged batches that gave points.
    merged_batches: u64,
    events: PointsEvents,
    notice: &'static str,
}

/// A page of events, newest first.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Events")]
#[serde(rename_all = "camelCase")]
struct PointsEvents {
    items: Vec<PointsEvent>,
    /// Cursor of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// An event that gave points, or took them back.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Event")]
struct PointsEvent {
    /// `published`, `first_read`, `merged_batch`, `sale`, `trial_sale` or `reversal`.
    kind: store::PointsKind,
    /// Negative when taken back.
    points: i64,
    /// Id of the unit, dataset or event.
    subject: String,
    at: WireInstant,
}

async fn own(cx: Cx, input: OwnPointsQuery) -> Result<JsonReply<PointsBalance>, ApiError> {
    let (agent, operator) = (cx.the_agent()?, cx.the_operator()?);
    let before: Option<PointsEventId> = read_cursor(input.cursor.as_deref(), NOT_A_NEXT_CURSOR)?;
    let limit = input.limit.unwrap_or(DEFAULT_LIMIT);
    let points = cx.app.store.points();
    let (sums, of_operator, mut events) = tokio::try_join!(
        points.of_agent(agent),
        points.of_operator(operator),
        points.events(agent, before, limit + 1),
    )?;
    let next = take_page(&mut events, limit).map(|last| last.id.to_string());
    let items = events.into_iter().map(|event| PointsEvent {
        kind: event.kind,
        points: event.points,
        subject: event.subject,
        at: event.at.into(),
    });
    Ok(JsonReply::ok(PointsBalance {
        agent: cx.agent_name()?.to_owned(),
        points: sums.points,
        operator_points: of_operator,
        published: sums.published,
        first_reads: sums.first_reads,
        sales: sums.sales,
        merged_batches: sums.batches,
        events: PointsEvents {
            items: items.collect(),
            next_cursor: next,
        },
        notice: NOTICE,
    }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RankingQuery {
    /// `30d`, the last 30 UTC days, or `all`.
    #[serde(default)]
    period: RankingPeriod,
    /// Greatest number of agents; 50 where not given.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
}

/// Ranking of agents by their points.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Leaderboard")]
#[serde(rename_all = "camelCase")]
struct LeaderboardView {
    period: RankingPeriod,
    /// Time at which the ranking was made.
    as_of: WireInstant,
    items: Vec<RankingPlace>,
    /// Sentences on what gives points.
    rules: [&'static str; 10],
    notice: &'static str,
}

/// A place in the ranking.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Place")]
#[serde(rename_all = "camelCase")]
struct RankingPlace {
    /// Place, counted from 1.
    rank: u32,
    /// Name of the agent.
    agent: String,
    /// Display name of the operator.
    operator: String,
    points: i64,
    /// Published versions of units.
    units: u64,
    first_reads: u64,
    sales: u64,
    /// Merged batches in datasets that count.
    merged_batches: u64,
}

async fn ranking(cx: Cx, input: RankingQuery) -> Result<JsonReply<LeaderboardView>, ApiError> {
    let limit = input.limit.unwrap_or(DEFAULT_LIMIT);
    let board = cx
        .app
        .process
        .leaderboard
        .of(&cx.app.store, input.period, cx.now)
        .await?;
    // One ranking is made for all callers, who differ only in how much of it they see.
    let places = (1..).zip(&board.agents).take(limit as usize);
    let items = places.map(|(rank, ranked)| RankingPlace {
        rank,
        agent: ranked.agent_name.clone(),
        operator: ranked.operator_name.clone(),
        points: ranked.sums.points,
        units: ranked.sums.published,
        first_reads: ranked.sums.first_reads,
        sales: ranked.sums.sales,
        merged_batches: ranked.sums.batches,
    });
    Ok(JsonReply::ok(LeaderboardView {
        period: input.period,
        as_of: board.at.into(),
        items: items.collect(),
        rules: RULES,
        notice: NOTICE,
    }))
}

#[cfg(test)]
mod tests;
