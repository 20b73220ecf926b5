//! Operation that lists takedowns for everybody.
//!
//! Invariant: the log names no item and nobody, so it is no way around a takedown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{ReportKind, ReportReason, Takedown};
use types::TakedownId;

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::wire::WireInstant;
use crate::error::ApiError;
use crate::ops::paging::{NOT_A_NEXT_CURSOR, read_cursor, take_page};

/// Takedowns on a page when the caller gives no `limit`.
const DEFAULT_LIMIT: u32 = 50;

/// Page of the log.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListTakedownsQuery {
    /// The `nextCursor` of the page before.
    #[schemars(extend("format" = "uuid"))]
    cursor: Option<String>,
    /// Greatest number of takedowns on the page; 50 where not given.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
}

/// Page of takedowns, newest first.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Page")]
#[serde(rename_all = "camelCase")]
pub(super) struct TakedownPage {
    items: Vec<LoggedTakedown>,
    /// Cursor of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A takedown without the name of its item.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Logged")]
#[serde(rename_all = "camelCase")]
struct LoggedTakedown {
    id: String,
    kind: ReportKind,
    reason: ReportReason,
    at: WireInstant,
    /// True if the owner has answered.
    answered: bool,
    /// Time at which the item was shown again; absent while it is down.
    #[serde(skip_serializing_if = "Option::is_none")]
    restored_at: Option<WireInstant>,
}

impl From<Takedown> for LoggedTakedown {
    fn from(takedown: Takedown) -> Self {
        Self {
            id: takedown.id.to_string(),
            kind: takedown.kind,
            reason: takedown.reason,
            at: takedown.at.into(),
            answered: takedown.answer.is_some(),
            restored_at: takedown.restored_at.map(Into::into),
        }
    }
}

pub(super) async fn log(cx: Cx, input: ListTakedownsQuery) -> Result<JsonReply<TakedownPage>, ApiError> {
    let before: Option<TakedownId> = read_cursor(input.cursor.as_deref(), NOT_A_NEXT_CURSOR)?;
    let limit = input.limit.unwrap_or(DEFAULT_LIMIT);
    // The rows name their items; `LoggedTakedown` is what keeps them out of the answer.
    let mut found = cx.app.store.moderation().takedowns(None, before, limit + 1).await?;
    let next_cursor = take_page(&mut found, limit).map(|last| last.id.to_string());
    Ok(JsonReply::ok(TakedownPage {
        items: found.into_iter().map(LoggedTakedown::from).collect(),
        next_cursor,
    }))
}
