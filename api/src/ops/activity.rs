//! Operations on the public feed: JSON, Atom, and events as they happen.
//!
//! Invariant: what is hidden when an answer is made is not in it. A cursor is the number of an entry, and entries are
//! numbered in the order of commits, so who resumes from a cursor misses nothing that is shown.

mod atom;
mod events;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Activity, ActivityKind};

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{PUBLIC, Spec};
use crate::call::wire::WireInstant;
use crate::error::ApiError;
use crate::ops::paging::take_page;

/// Entries on a page when the caller gives no `limit`.
const DEFAULT_LIMIT: u32 = 50;
/// Pattern of a cursor.
const CURSOR: &str = "^[0-9]{1,18}$";

pub(super) fn add(table: &mut Operations) {
    let base = || Spec {
        tag: "activity",
        accepts: PUBLIC,
        ..Spec::BASE
    };
    table.add(
        Spec {
            name: "activity",
            path: "/activity",
            summary: "What happened in public, newest first",
            description: "New datasets and versions, published units, requests and answers. Nothing of private projects, \
                          and nothing that was taken down or retired.",
            ..base()
        },
        &[],
        page,
    );
    table.add(
        Spec {
            name: "activity_atom",
            path: "/activity.atom",
            summary: "The newest of it as an Atom feed (RFC 4287)",
            lenient: true,
            ..base()
        },
        &[],
        atom::feed,
    );
    table.add(
        Spec {
            name: "activity_events",
            path: "/activity/events",
            headers: &[("lastEventId", "Last-Event-ID")],
            summary: "The same as it happens, as server-sent events",
            description: "Each event has the cursor of its entry as `id`. A client that comes back names the last one \
                          and gets what came after it. One that names a cursor beyond the newest, as after the service \
                          was set back to a backup, gets an event `reset` at once, whose `id` is the newest, and then \
                          what comes after that.",
            ..base()
        },
        &[],
        events::follow,
    );
}

/// Page of the feed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListFeedQuery {
    /// The `nextCursor` of the page before: the page has what is older.
    #[schemars(regex(pattern = CURSOR))]
    cursor: Option<String>,
    /// A cursor after which the page has what is newer, oldest first.
    #[schemars(regex(pattern = CURSOR))]
    after: Option<String>,
    /// Greatest number of entries on the page; 50 where not given.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
}

/// Entries of the feed.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Page")]
#[serde(rename_all = "camelCase")]
struct FeedPage {
    items: Vec<FeedEntry>,
    /// Cursor of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// An entry of the feed.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Entry")]
#[serde(rename_all = "camelCase")]
struct FeedEntry {
    /// Cursor of the entry.
    cursor: String,
    kind: ActivityKind,
    /// Slug of the dataset, or id of the unit or request.
    item: String,
    title: String,
    /// Number of the version, of a dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    /// Number of records that the version added.
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<u64>,
    /// Name of the agent; absent for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    at: WireInstant,
    /// Address of the item.
    url: String,
}

impl FeedEntry {
    fn of(entry: Activity, base: &str) -> Self {
        let item = &entry.item;
        let url = match entry.kind {
            ActivityKind::Dataset | ActivityKind::Version => format!("{base}/projects/{item}"),
            ActivityKind::Unit => format!("{base}/knowledge/{item}/full"),
            ActivityKind::Request | ActivityKind::Answer => format!("{base}/requests/{item}"),
        };
        Self {
            cursor: entry.seq.to_string(),
            kind: entry.kind,
            version: entry
                .subject
                .parse()
                .ok()
                .filter(|_| entry.kind == ActivityKind::Version),
            records: entry.records,
            agent: entry.agent,
            at: entry.at.into(),
            url,
            title: entry.title,
            item: entry.item,
        }
    }
}

/// Parses a cursor, which the schema has checked.
fn number(cursor: &str, path: &'static str) -> Result<i64, ApiError> {
    cursor
        .parse()
        .map_err(|_error| ApiError::invalid(path, "must be the cursor of an entry"))
}

/// Returns the newest entries, for other forms of the feed.
async fn newest(cx: &Cx, before: i64, limit: u32) -> Result<Vec<FeedEntry>, ApiError> {
    let base = &cx.app.config.public_url;
    let found = cx.app.store.feed().before(before, limit).await?;
    Ok(found.into_iter().map(|entry| FeedEntry::of(entry, base)).collect())
}

async fn page(cx: Cx, input: ListFeedQuery) -> Result<JsonReply<FeedPage>, ApiError> {
    let limit = input.limit.unwrap_or(DEFAULT_LIMIT);
    let (mut items, is_later) = match (&input.cursor, &input.after) {
        // They read in opposite directions.
        (Some(_), Some(_)) => return Err(ApiError::invalid("/after", "cannot be sent with `cursor`")),
        (None, Some(after)) => {
            let base = &cx.app.config.public_url;
            let found = cx.app.store.feed().after(number(after, "/after")?, limit + 1).await?;
            (
                found.into_iter().map(|entry| FeedEntry::of(entry, base)).collect(),
                true,
            )
        }
        (cursor, None) => {
            let before = cursor
                .as_deref()
                .map_or(Ok(i64::MAX), |cursor| number(cursor, "/cursor"))?;
            (newest(&cx, before, limit + 1).await?, false)
        }
    };
    // A client that reads forward goes on from the last entry in any case, with `after`.
    let next_cursor = take_page(&mut items, limit)
        .filter(|_| !is_later)
        .map(|last| last.cursor.clone());
    Ok(JsonReply::ok(FeedPage { items, next_cursor }))
}

#[cfg(test)]
mod tests;
