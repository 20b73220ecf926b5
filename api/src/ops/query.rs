//! Operation that runs SQL over a version.

use std::time::Duration;

use http::Method;
use proof::{QueryReceipt, SignedStatement};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use types::Version;

use self::receipt::ReceiptDraft;
use self::run::{AskedQuery, ask};
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::room::PageRoom;
use crate::call::schema::SchemaBound;
use crate::call::spec::{GuardedItem, KEY, Spec};
use crate::config::Limits;
use crate::error::ApiError;
use crate::rules::entitlement;
use crate::rules::reading::{MAX_EXACT_INTEGER, NO_VERSION, NOT_BOUGHT, NOT_YET};
use crate::state::sandbox::AnswerColumn;

mod receipt;
pub(in crate::ops) mod run;

pub(super) fn add(table: &mut Operations, limits: &Limits) {
    let bound = |at, keyword, value| SchemaBound {
        at,
        keyword,
        value,
        asserted: true,
    };
    table.add(
        Spec {
            name: "query_dataset",
            method: Method::POST,
            path: "/projects/{slug}/query",
            summary: "Asks the records of a version a question in SQL",
            description: "One SELECT over the table `records`. Without `version`, the latest. A query has 20 seconds, \
                          an operator one query at a time. Rows that do not fit are those of the same call with \
                          `offset` set to `nextOffset`. `sluice pull` fetches what is too large to be queried here. With \
                          `receipt`, the answer has a signed statement of itself, which `sluice verify receipt` checks \
                          offline and repeats over a pulled version.",
            tag: "datasets",
            accepts: KEY,
            item: GuardedItem::Project,
            egress: true,
            success: &[(200, "The columns and rows.")],
            failure: &[
                (
                    400,
                    "The statement is refused, is not valid, or fails; `message` says why.",
                ),
                NOT_BOUGHT,
                NO_VERSION,
                (408, "The query took longer than its time."),
                (413, "The version or the answer is too large to be queried here."),
                (
                    429,
                    "Another query of the operator runs (`query_running`), no place for one became free in its time \
                     (`queries_busy`), or too many calls; `Retry-After` says when to come back.",
                ),
                NOT_YET,
            ],
            example: r#"{"sql": "SELECT gauge, max(metres) FROM records GROUP BY gauge", "limit": 10}"#,
            ..Spec::BASE
        },
        &[
            bound("/properties/sql", "maxLength", limits.query_characters.get().into()),
            bound("/properties/limit", "maximum", limits.query_rows.get().into()),
            bound("/properties/limit", "default", limits.default_query_rows.get().into()),
        ],
        query,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QueryInput {
    /// Slug of the project.
    slug: String,
    /// One SELECT over the table `records`. A construct that the engine would answer wrongly is refused with 400, and
    /// an integer that leaves 64 bits is an error.
    #[schemars(length(min = 1, max = 4_000))]
    sql: String,
    /// Version to query; the latest if absent.
    #[schemars(range(min = 1, max = MAX_EXACT_INTEGER))]
    version: Option<u64>,
    /// Greatest number of rows.
    #[schemars(range(min = 1, max = 1_000))]
    limit: Option<u32>,
    /// Number of rows to skip: the `nextOffset` of the answer before, with all else the same.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000))]
    offset: u32,
    /// True for a signed statement of the answer.
    #[serde(default)]
    receipt: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Answer")]
#[serde(rename_all = "camelCase")]
struct QueryAnswer {
    /// Version that was queried; 0 before the first merge.
    version: u64,
    /// The columns, in order.
    columns: Vec<ColumnView>,
    /// The rows, each with a value per column.
    #[schemars(with = "Vec<Vec<Value>>")]
    rows: Vec<Box<RawValue>>,
    /// Number of rows in the answer.
    row_count: u64,
    /// True if there are more rows than `limit`.
    truncated: bool,
    /// Number of the `limit` rows before the next that did not fit into an answer over MCP; absent after the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u32>,
    /// Signed statement of this answer, which others can check and repeat; absent unless it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<SignedStatement<QueryReceipt>>,
}

/// A column of the answer.
#[derive(Debug, Serialize, JsonSchema)]
struct ColumnView {
    /// Name of the column.
    name: String,
    /// Arrow type of the values, such as `Int64`.
    #[serde(rename = "type")]
    kind: String,
    /// True if the column can contain nulls.
    nullable: bool,
}

impl From<AnswerColumn> for ColumnView {
    fn from(column: AnswerColumn) -> Self {
        Self {
            name: column.name,
            kind: column.kind,
            nullable: column.nullable,
        }
    }
}

async fn query(cx: Cx, input: QueryInput) -> Result<JsonReply<QueryAnswer>, ApiError> {
    let project = entitlement::visible(&cx, &input.slug).await?;
    let mut room = PageRoom::of(&cx);
    let default = cx.app.limits.default_query_rows.get();
    let asked = AskedQuery {
        version: input.version.map(Version),
        sql: &input.sql,
        limit: input.limit.unwrap_or(default),
        // The next page runs the statement again.
        is_steady: room.is_bounded() || input.offset > 0,
        has_places: false,
        is_repeated: input.receipt,
        patience: Duration::ZERO,
    };
    let mut answered = ask(&cx, &project, &asked).await?;
    let mut rows = std::mem::take(&mut answered.rows);
    rows.drain(..rows.len().min(input.offset as usize));
    let receipt = input
        .receipt
        .then(|| ReceiptDraft::new(&project, &asked, &answered, input.offset));
    let columns: Vec<ColumnView> = answered.columns.into_iter().map(Into::into).collect();
    room.spend(&columns)?;
    if let Some(receipt) = &receipt {
        room.spend(receipt)?;
    }
    let is_cut = room.keep(&mut rows)?;
    let next_offset = input
        .offset
        .saturating_add(u32::try_from(rows.len()).unwrap_or(u32::MAX));
    let mut answer = QueryAnswer {
        version: answered.version.0,
        columns,
        row_count: rows.len() as u64,
        rows,
        truncated: answered.truncated,
        next_offset: is_cut.then_some(next_offset),
        receipt: None,
    };
    if let Some(draft) = receipt {
        answer = draft.sign(&cx, answer).await?;
    }
    Ok(JsonReply::ok(answer))
}

#[cfg(test)]
mod tests;
