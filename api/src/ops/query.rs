//! Operation that runs SQL over a version.
//!
//! Invariant: one query of an operator runs at a time, on whichever replica. A lease in the database enforces it. The
//! lease ends with the query, when its client disconnects, or when it expires.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use store::{LeaseTaken, Store};
use tokio::time::Instant;
use types::{ContributionId, OperatorId, Version};

use super::contribute::contract;
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::room::PageRoom;
use crate::call::schema::SchemaBound;
use crate::call::spec::{GuardedItem, KEY, Spec};
use crate::codes::ErrorCode;
use crate::config::Limits;
use crate::error::ApiError;
use crate::rules::entitlement;
use crate::rules::reading::{self, MAX_EXACT_INTEGER, NO_VERSION, NOT_BOUGHT, NOT_YET};
use crate::state::sandbox::{AnswerColumn, SandboxFailure, SandboxQuery};

/// Time by which a lease outlasts the limit of its query. Taking the lease may use as much.
const LEASE_MARGIN: Duration = Duration::from_secs(5);
/// `Retry-After` while another query of the operator runs, in seconds. Most end sooner.
const RUNNING_RETRY_SECONDS: u64 = 1;
/// `Retry-After` while queries of others use every slot, in seconds.
const BUSY_SECONDS: u64 = 5;

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
                          `offset` set to `nextOffset`. `sluice pull` fetches what is too large to be queried here.",
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
    let operator = cx.the_operator()?;
    let project = entitlement::visible(&cx, &input.slug).await?;
    let version = input.version.map(Version);
    let snapshot = reading::entitled(&cx, &project, version).await?;
    let (bytes, most) = (snapshot.bytes(), cx.app.limits.query_version.0);
    if bytes > most {
        let message = format!(
            "version {} of `{slug}` has {bytes} bytes, more than the {most} that can be queried here; pull it with \
             `sluice pull {slug}` and query its Parquet files where they are",
            snapshot.version(),
            slug = project.slug
        );
        return Err(ApiError::new(ErrorCode::VersionTooLarge, message).field("limitBytes", most));
    }
    let sandbox = &cx.app.sandbox;
    // The statement is checked before the lease is taken, so that a typing error never blocks another query.
    let checked = sandbox.check(&input.sql).await;
    checked.map_err(|failure| api_error(&cx, failure))?;

    // A snapshot without merges has no contract of its own, so the project's is used.
    let contract = match snapshot.contract() {
        Some(contract) => Arc::clone(contract),
        None => Arc::new(contract(&project)?),
    };
    let lease = QueryLease::take(&cx, operator).await?;
    let default = cx.app.limits.default_query_rows.get();
    let limit = input.limit.unwrap_or(default);
    let mut room = PageRoom::of(&cx);
    let asked = SandboxQuery {
        sql: &input.sql,
        limit,
        // The next page runs the statement again.
        is_steady: room.is_bounded() || input.offset > 0,
    };
    let answered = sandbox.query(&contract, &snapshot, &asked).await;
    // The lease ends before the answer is sent, since a client may send its next query as soon as it has the answer.
    lease.end().await;
    let answered = answered.map_err(|failure| api_error(&cx, failure))?;
    let columns: Vec<ColumnView> = answered.columns.into_iter().map(Into::into).collect();
    let mut rows = answered.rows;
    rows.drain(..rows.len().min(input.offset as usize));
    room.spend(&columns)?;
    let is_cut = room.keep(&mut rows)?;
    let next_offset = input
        .offset
        .saturating_add(u32::try_from(rows.len()).unwrap_or(u32::MAX));
    Ok(JsonReply::ok(QueryAnswer {
        version: snapshot.version().0,
        columns,
        row_count: rows.len() as u64,
        rows,
        truncated: answered.truncated,
        next_offset: is_cut.then_some(next_offset),
    }))
}

fn api_error(cx: &Cx, failure: SandboxFailure) -> ApiError {
    let invalid = |code, problem: String| ApiError::invalid("/sql", problem).with_code(code);
    // The code tells the caller to change the statement (`query_refused`, `query_failed`) or to try again.
    match failure {
        SandboxFailure::Refused { reason } => invalid(ErrorCode::QueryRefused, format!("is refused: {reason}")),
        SandboxFailure::Failed { message } => invalid(ErrorCode::QueryFailed, format!("failed: {message}")),
        SandboxFailure::TimedOut => {
            let message = format!(
                "the query took longer than {} seconds",
                cx.app.limits.query_timeout.seconds()
            );
            ApiError::new(ErrorCode::QueryTimeout, message)
        }
        // The query never began, so a repeated call is as good as the first and `Retry-After` is short.
        SandboxFailure::Busy => {
            let seconds = cx.app.limits.query_timeout.seconds();
            let message = format!("every place for a query was taken for {seconds} seconds; it did not begin");
            ApiError::limited(ErrorCode::QueriesBusy, message, BUSY_SECONDS)
        }
        SandboxFailure::TooLarge { message } => ApiError::new(ErrorCode::QueryTooLarge, message),
        SandboxFailure::Damaged { context } => ApiError::damaged(context),
        SandboxFailure::Unavailable { context } => ApiError::unavailable(context),
    }
}

/// Lease that permits the one query of an operator.
struct QueryLease {
    store: Store,
    operator: OperatorId,
    /// Random id of the holder; `None` once the lease was ended.
    holder: Option<String>,
}

impl QueryLease {
    async fn take(cx: &Cx, operator: OperatorId) -> Result<Self, ApiError> {
        let holder = ContributionId::new(cx.now).to_string();
        let lasting = cx.app.limits.query_timeout.0 + LEASE_MARGIN;
        let (now, begun) = (cx.app.clock.now(), Instant::now());
        // The guard exists before the lease is taken, so that a caller that disconnects meanwhile does not leave the
        // lease behind.
        let mut lease = Self {
            store: cx.app.store.clone(),
            operator,
            holder: Some(holder.clone()),
        };
        let taken = cx
            .app
            .store
            .query_lease_take(operator, holder, now.plus(lasting), now)
            .await;
        match taken? {
            LeaseTaken::Taken if begun.elapsed() < LEASE_MARGIN => Ok(lease),
            LeaseTaken::Taken => {
                // Most of the lease's margin has passed, so the lease could expire while the query runs.
                lease.end().await;
                Err(ApiError::unavailable("the lease of a query came too late"))
            }
            LeaseTaken::Held { .. } => {
                // Another holder has it, so this guard must not end it.
                lease.holder = None;
                let message = "another query of the operator runs; one at a time";
                Err(ApiError::limited(
                    ErrorCode::QueryRunning,
                    message,
                    RUNNING_RETRY_SECONDS,
                ))
            }
        }
    }

    async fn end(mut self) {
        if let Some(holder) = self.holder.take() {
            ended(&self.store, self.operator, holder).await;
        }
    }
}

/// Ends the lease in the background if the client disconnected.
impl Drop for QueryLease {
    fn drop(&mut self) {
        if let Some(holder) = self.holder.take() {
            let (store, operator) = (self.store.clone(), self.operator);
            tokio::spawn(async move { ended(&store, operator, holder).await });
        }
    }
}

async fn ended(store: &Store, operator: OperatorId, holder: String) {
    if let Err(error) = store.query_lease_end(operator, holder).await {
        tracing::warn!(%operator, %error, "cannot release the lease of a query; it expires by itself");
    }
}

#[cfg(test)]
mod tests;
