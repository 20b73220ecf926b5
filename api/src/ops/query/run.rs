//! The way of a statement: entitlement, check, lease, sandbox.
//!
//! Invariant: one query of an operator runs at a time, on whichever replica. A lease in the database enforces it. The
//! lease ends with the query, when its client disconnects, or when it expires.

use std::sync::Arc;
use std::time::Duration;

use catalog::Root;
use serde_json::value::RawValue;
use store::{LeaseTaken, Project, Store};
use tokio::time::{Instant, sleep};
use types::{ContributionId, OperatorId, Version};

use crate::call::cx::Cx;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::contribute::contract;
use crate::rules::reading;
use crate::state::sandbox::{AnswerColumn, AnswerRepetition, SandboxFailure, SandboxQuery};

/// Time by which a lease outlasts the limit of its query. Taking the lease may use as much.
const LEASE_MARGIN: Duration = Duration::from_secs(5);
/// Time that a page waits for another query of the operator to end.
pub(in crate::ops) const PAGE_PATIENCE: Duration = Duration::from_secs(3);
/// Time between two tries for the lease. Another replica may hold it, so nothing here tells of its end.
const LEASE_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// `Retry-After` while another query of the operator runs, in seconds. Most end sooner.
const RUNNING_RETRY_SECONDS: u64 = 1;
/// `Retry-After` while queries of others use every slot, in seconds.
const BUSY_SECONDS: u64 = 5;

/// Statement that a caller asks.
#[derive(Clone, Copy, Debug)]
pub(in crate::ops) struct AskedQuery<'a> {
    /// Version to query; the latest if `None`.
    pub(in crate::ops) version: Option<Version>,
    /// One SELECT over the table `records`.
    pub(in crate::ops) sql: &'a str,
    /// Greatest number of rows.
    pub(in crate::ops) limit: u32,
    /// True if each run must give the rows in the same order, where the statement leaves it open.
    pub(in crate::ops) is_steady: bool,
    /// True if the statement may name the places of records: one that this service wrote.
    pub(in crate::ops) has_places: bool,
    /// True if others repeat the answer, so that it needs [`QueryAnswered::repetition`].
    pub(in crate::ops) is_repeated: bool,
    /// Time to wait for another query of the operator to end.
    pub(in crate::ops) patience: Duration,
}

/// Answer to a statement, with the version that it is about.
#[derive(Debug)]
pub(in crate::ops) struct QueryAnswered {
    /// Version that was queried; 0 before the first merge.
    pub(in crate::ops) version: Version,
    /// Content root of the version; that of no records for version 0.
    pub(in crate::ops) root: Option<Root>,
    /// The columns, in order.
    pub(in crate::ops) columns: Vec<AnswerColumn>,
    /// The rows: each is a JSON array with a value per column.
    pub(in crate::ops) rows: Vec<Box<RawValue>>,
    /// True if there are more rows than the limit.
    pub(in crate::ops) truncated: bool,
    /// Facts that others need to repeat the answer; `None` unless it was asked for.
    pub(in crate::ops) repetition: Option<AnswerRepetition>,
}

/// Runs a statement for a page: waits a little for another query of the operator, and gives the same rows each time.
///
/// # Errors
/// As [`ask`].
pub(in crate::ops) async fn run(
    cx: &Cx,
    project: &Project,
    version: Option<Version>,
    sql: &str,
    limit: u32,
) -> Result<QueryAnswered, ApiError> {
    let asked = AskedQuery {
        version,
        sql,
        limit,
        is_steady: true,
        has_places: false,
        is_repeated: false,
        patience: PAGE_PATIENCE,
    };
    ask(cx, project, &asked).await
}

/// Runs a statement over a version, for a caller who may read it.
///
/// # Errors
/// 404 and 402 if the caller may not read the version, 400 if the statement is refused or fails, 408 if it takes too
/// long, 413 if the version or the answer is too large, 429 if another query of the operator runs or every place is taken.
pub(in crate::ops) async fn ask(cx: &Cx, project: &Project, asked: &AskedQuery<'_>) -> Result<QueryAnswered, ApiError> {
    let operator = cx.the_operator()?;
    let snapshot = reading::entitled(cx, project, asked.version).await?;
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
    let checked = sandbox.check(asked.sql).await;
    checked.map_err(|failure| api_error(cx, failure))?;

    // A snapshot without merges has no contract of its own, so the project's is used.
    let contract = match snapshot.contract() {
        Some(contract) => Arc::clone(contract),
        None => Arc::new(contract(project)?),
    };
    let lease = QueryLease::wait(cx, operator, asked.patience).await?;
    let query = SandboxQuery {
        sql: asked.sql,
        limit: asked.limit,
        is_steady: asked.is_steady,
        has_places: asked.has_places,
        now: asked.is_repeated.then(|| cx.app.clock.now()),
    };
    let answered = sandbox.query(&contract, &snapshot, &query).await;
    // The lease ends before the answer is sent, since a client may send its next query as soon as it has the answer.
    lease.end().await;
    // It waited for the lease, for a place and for the answer. An error of a statement can name values, so it is held
    // back, too.
    reading::still_entitled(cx, project, snapshot.version(), asked.version).await?;
    let answered = answered.map_err(|failure| api_error(cx, failure))?;
    Ok(QueryAnswered {
        version: snapshot.version(),
        root: snapshot.root_at(snapshot.version()),
        columns: answered.columns,
        rows: answered.rows,
        truncated: answered.truncated,
        repetition: answered.repetition,
    })
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
    /// Takes the lease, and tries again for `patience` while another query of the operator has it.
    async fn wait(cx: &Cx, operator: OperatorId, patience: Duration) -> Result<Self, ApiError> {
        let begun = Instant::now();
        loop {
            let taken = Self::take(cx, operator).await;
            let is_held = matches!(&taken, Err(error) if error.code() == ErrorCode::QueryRunning);
            if !is_held || begun.elapsed() >= patience {
                return taken;
            }
            sleep(LEASE_RETRY_INTERVAL).await;
        }
    }

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
