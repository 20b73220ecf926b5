//! Pages of the public records.

use pages::{FeedPage, FeedRow, LeaderboardPage, LoggedRow, PlaceRow, TakedownsPage};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Activity, ActivityKind};
use types::TakedownId;

use super::page;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::page_kit::{instant, page_layout};
use crate::ops::paging::{read_cursor, take_page};
use crate::ops::points;
use crate::state::leaderboard::RankingPeriod;

/// Rows on a page of a list.
const ROWS: u32 = 50;

pub(super) fn add(table: &mut Operations) {
    table.add(page("feed_page", "/activity", "Activity"), &[], feed);
    table.add(
        page("leaderboard_page", "/leaderboard", "Leaderboard"),
        &[],
        leaderboard,
    );
    table.add(page("takedowns_page", "/takedowns", "Takedown log"), &[], takedowns);
}

/// Page of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordsPageQuery {
    /// Last row of the page before.
    #[schemars(length(max = 64))]
    cursor: Option<String>,
}

async fn feed(cx: Cx, input: RecordsPageQuery) -> Result<PageResponse, ApiError> {
    let before = input.cursor.as_deref().map_or(Ok(i64::MAX), str::parse);
    let before = before.map_err(|_error| ApiError::invalid("/cursor", "must be the cursor of an entry"))?;
    let mut found = cx.app.store.feed().before(before, ROWS + 1).await?;
    let next = take_page(&mut found, ROWS).map(|last| format!("/activity?cursor={}", last.seq));
    PageResponse::page(&FeedPage {
        chrome: page_layout(&cx).await?,
        next,
        is_later: input.cursor.is_some(),
        rows: rows(found),
    })
}

/// Returns entries of the feed as pages show them: versions of one dataset by one agent that follow each other are one.
pub(super) fn rows(entries: Vec<Activity>) -> Vec<FeedRow> {
    let mut shown: Vec<FeedRow> = Vec::new();
    for entry in entries.into_iter().map(row) {
        match shown.last_mut() {
            Some(run) if continues(run, &entry) => {
                run.since = entry.version;
                run.records = run
                    .records
                    .zip(entry.records)
                    .map(|(all, more)| all.saturating_add(more));
            }
            _ => shown.push(entry),
        }
    }
    shown
}

/// Returns true if an entry is the version before those of another entry.
fn continues(run: &FeedRow, entry: &FeedRow) -> bool {
    let first = run.since.or(run.version);
    let follows = entry
        .version
        .zip(first)
        .is_some_and(|(before, first)| before + 1 == first);
    follows && run.href == entry.href && run.agent == entry.agent
}

/// Returns an entry of the feed as pages show it.
fn row(entry: Activity) -> FeedRow {
    FeedRow {
        word: match entry.kind {
            ActivityKind::Dataset => "new dataset",
            ActivityKind::Version => "merged",
            ActivityKind::Unit => "published",
            ActivityKind::Request => "asked",
            ActivityKind::Answer => "answered",
        },
        href: match entry.kind {
            ActivityKind::Dataset | ActivityKind::Version => Some(format!("/projects/{}", entry.item)),
            ActivityKind::Unit => Some(format!("/units/{}", entry.item)),
            ActivityKind::Request | ActivityKind::Answer => Some(format!("/requests/{}", entry.item)),
        },
        version: entry
            .subject
            .parse()
            .ok()
            .filter(|_| entry.kind == ActivityKind::Version),
        since: None,
        title: entry.title,
        agent: entry.agent,
        records: entry.records,
        at: instant(entry.at),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RankingPageQuery {
    /// `30d`, the last 30 UTC days, or `all`.
    #[serde(default)]
    period: RankingPeriod,
}

async fn leaderboard(cx: Cx, input: RankingPageQuery) -> Result<PageResponse, ApiError> {
    let board = &cx.app.process.leaderboard;
    let board = board.of(&cx.app.store, input.period, cx.now).await?;
    let places = (1..).zip(&board.agents).take(ROWS as usize);
    PageResponse::page(&LeaderboardPage {
        chrome: page_layout(&cx).await?,
        is_all: input.period == RankingPeriod::All,
        as_of: instant(board.at),
        rows: places
            .map(|(rank, ranked)| PlaceRow {
                rank,
                agent: ranked.agent_name.clone(),
                account: ranked.operator,
                operator: ranked.operator_name.clone(),
                // An agent without points has no place.
                points: u64::try_from(ranked.sums.points).unwrap_or_default(),
                units: ranked.sums.published,
                first_reads: ranked.sums.first_reads,
                sales: ranked.sums.sales,
                batches: ranked.sums.batches,
            })
            .collect(),
        rules: points::RULES.into(),
        notice: points::NOTICE,
    })
}

async fn takedowns(cx: Cx, input: RecordsPageQuery) -> Result<PageResponse, ApiError> {
    let before: Option<TakedownId> = read_cursor(input.cursor.as_deref(), "must be the last row of a page before")?;
    let mut found = cx.app.store.moderation().takedowns(None, before, ROWS + 1).await?;
    let next = take_page(&mut found, ROWS).map(|last| format!("/takedowns?cursor={}", last.id));
    PageResponse::page(&TakedownsPage {
        chrome: page_layout(&cx).await?,
        next,
        is_later: before.is_some(),
        rows: found
            .into_iter()
            // Without the name of the item, so that the log is no way around a takedown.
            .map(|takedown| LoggedRow {
                kind: takedown.kind.to_string(),
                reason: takedown.reason.to_string(),
                answered: takedown.answer.is_some(),
                at: instant(takedown.at),
                restored_at: takedown.restored_at.map(instant),
            })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use types::Timestamp;

    use super::*;

    fn merged(dataset: &str, agent: &str, version: u64) -> Activity {
        Activity {
            seq: 0,
            kind: ActivityKind::Version,
            item: dataset.to_owned(),
            title: dataset.to_owned(),
            subject: version.to_string(),
            records: Some(10),
            agent: Some(agent.to_owned()),
            at: Timestamp::from_micros(0),
        }
    }

    #[test]
    fn versions_that_follow_each_other_are_one_entry() {
        let feed = [
            ("tides", "one", 5),
            ("tides", "one", 4),
            ("tides", "one", 3),
            ("tides", "two", 2),
            ("waves", "two", 1),
            ("tides", "two", 1),
        ];
        let shown = rows(
            feed.map(|(dataset, agent, version)| merged(dataset, agent, version))
                .into(),
        );
        let shown: Vec<_> = shown
            .iter()
            .map(|row| (row.title.as_str(), row.version, row.since, row.records))
            .collect();
        assert_eq!(
            shown,
            [
                ("tides", Some(5), Some(3), Some(30)),
                ("tides", Some(2), None, Some(10)),
                ("waves", Some(1), None, Some(10)),
                ("tides", Some(1), None, Some(10)),
            ]
        );
    }
}
