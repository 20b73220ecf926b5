//! The board: requests, their answers, and the operators that were told of them.
//!
//! Invariants:
//! - A request whose deadline passed is over from that instant on, whether or not its row says so yet.
//! - Every change of a request and of its answers locks the row of the request first.
//! - An item answers a request once.

mod answers;
mod check;
mod lists;
mod matches;

use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use types::vocabulary::{ActivityKind, RequestKind, RequestStatus};
use types::{AgentId, OperatorId, RequestId, Timestamp};

pub use answers::{Answer, Answered, Chosen, Closed, Link, NewAnswer, NewItemLink};
pub use lists::{RequestCount, RequestFilter};
pub use matches::RequestMatch;

use crate::activity::{self, NewActivity};
use crate::jobs::{self, NewJob};
use crate::projects::find::fold;
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, row, texts};
use crate::writer::Change;
use crate::{Error, Store};

/// The part of the database about the board of requests.
#[derive(Clone, Copy, Debug)]
pub struct Community<'s>(&'s Store);

impl Store {
    /// Returns the part of the database about the board of requests.
    pub const fn community(&self) -> Community<'_> {
        Community(self)
    }
}

/// A request to add.
#[derive(Clone, Debug)]
pub struct NewRequest {
    /// Id of the request.
    pub id: RequestId,
    /// Agent that makes the request.
    pub agent: AgentId,
    /// Operator of the agent.
    pub operator: OperatorId,
    /// Title in one line, as the API checks.
    pub title: String,
    /// Text that describes the item that is asked for.
    pub body: String,
    /// Kind of the item that is asked for.
    pub kind: RequestKind,
    /// Category of the item, such as `general`.
    pub category: String,
    /// Budget in micro-USDC, which binds nobody.
    pub budget_micro: Option<i64>,
    /// Instant at which the request expires.
    pub deadline: Option<Timestamp>,
    /// Fields that records should have, as JSON.
    pub fields: String,
    /// Work that follows: its expiry, and telling sellers.
    pub jobs: Vec<NewJob>,
    /// Time of the request.
    pub now: Timestamp,
}

/// A request on the board as it is at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardRequest {
    /// Id of the request.
    pub id: RequestId,
    /// Agent that made the request.
    pub agent: AgentId,
    /// Name of the agent.
    pub agent_name: String,
    /// Operator of the agent.
    pub operator: OperatorId,
    /// Display name of the operator, unless the agent is taken down.
    pub operator_name: Option<String>,
    /// Title in one line, as the API checks.
    pub title: String,
    /// Text that describes the item that is asked for.
    pub body: String,
    /// Kind of the item that is asked for.
    pub kind: RequestKind,
    /// Category of the item, such as `general`.
    pub category: String,
    /// Budget in micro-USDC, which binds nobody; `None` if not given.
    pub budget_micro: Option<i64>,
    /// Instant at which the request expires.
    pub deadline: Option<Timestamp>,
    /// Fields that records should have, as JSON.
    pub fields: String,
    /// Status at the instant.
    pub status: RequestStatus,
    /// Number of answers that everybody sees, withdrawn ones too.
    pub answer_count: u64,
    /// Time of the request.
    pub created_at: Timestamp,
    /// Time at which it was fulfilled, closed or expired.
    pub decided_at: Option<Timestamp>,
    /// Answer that was chosen.
    pub chosen: Option<i64>,
}

/// Columns of a request with its agent, in every statement that returns one.
const REQUEST: &str = "requests.id AS id, requests.agent_id AS agent_id,
       CASE WHEN agents.taken_down_at IS NULL THEN agents.name ELSE '[removed]' END AS agent_name,
       requests.operator_id AS operator_id,
       CASE WHEN agents.taken_down_at IS NULL
            THEN (SELECT display_name FROM operators
                  WHERE operators.id = requests.operator_id AND operators.profile_hidden = 0) END AS operator_name,
       title, body, kind, category, budget_micro, deadline, fields, status,
       answer_count - (SELECT COUNT(*) FROM comments WHERE comments.item_kind = 'request'
                       AND comments.item_id = requests.id AND comments.removed_at IS NOT NULL) AS answer_count,
       requests.created_at AS created_at, decided_at, chosen_answer";

row! {
    /// A request whose row is locked.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct LockedRequest {
        pub(crate) operator: OperatorId = "operator_id",
        pub(crate) status: RequestStatus,
        pub(crate) deadline: Option<Timestamp>,
        pub(crate) chosen: Option<i64> = "chosen_answer",
    }
}

impl LockedRequest {
    /// Returns the status at an instant.
    const fn status_at(&self, now: Timestamp) -> RequestStatus {
        shown(self.status, self.deadline, now)
    }
}

impl Community<'_> {
    /// Adds a request with the jobs that follow from it.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn post(&self, new: NewRequest) -> Result<(), Error> {
        texts(&[("title", &new.title), ("body", &new.body), ("fields", &new.fields)])?;
        let id = new.id.to_string();
        let made = move |(): &()| id;
        self.0
            .make_aside(
                made,
                tx!(async move |cx| {
                    sql!(
                        "INSERT INTO requests
                             (id, operator_id, agent_id, title, body, folded, kind, category, budget_micro, deadline,
                              fields, status, answer_count, created_at)
                         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'open', 0, $12)",
                        new.id,
                        new.operator,
                        new.agent,
                        new.title.clone(),
                        new.body.clone(),
                        fold(&format!("{}\n{}", new.title, new.body)),
                        new.kind,
                        new.category,
                        new.budget_micro,
                        new.deadline,
                        new.fields,
                        new.now
                    )
                    .run(cx)
                    .await?;
                    // The deadline's job is in the transaction of the request, so no request with a
                    // deadline lacks its end.
                    for job in &new.jobs {
                        jobs::insert(cx, job).await?;
                    }
                    let posted = NewActivity {
                        kind: ActivityKind::Request,
                        item: new.id.to_string(),
                        subject: String::new(),
                        agent: Some(new.agent),
                        at: new.now,
                    };
                    activity::note(cx, &posted).await?;
                    Ok(Change::Keep(()))
                }),
            )
            .await
    }

    /// Returns a request as it is at `now`; `None` if there is none that is visible.
    pub async fn request(&self, id: RequestId, now: Timestamp) -> Result<Option<BoardRequest>, Error> {
        self.0
            .read(async {
                sql!(
                    text!(
                        "SELECT ",
                        REQUEST,
                        " FROM requests JOIN agents ON agents.id = requests.agent_id
                         WHERE requests.id = $1 AND requests.removed_at IS NULL"
                    ),
                    id
                )
                .row_if_any(&mut self.0.readers())
                .await?
                .map(|row| request(&row, now))
                .transpose()
            })
            .await
    }

    /// Writes into the row of a request that its deadline has passed. Returns false if it has not, or the request is
    /// decided.
    pub async fn expire(&self, id: RequestId, now: Timestamp) -> Result<bool, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                // The time of the end is the deadline and not that of the job, which may run late.
                let expired = sql!(
                    "UPDATE requests SET status = 'expired', decided_at = deadline
                     WHERE id = $1 AND status IN ('open', 'answered') AND deadline <= $2",
                    id,
                    now
                )
                .run(cx)
                .await?;
                Ok(if expired > 0 {
                    Change::Keep(true)
                } else {
                    Change::Undo(false)
                })
            }))
            .await
    }
}

/// Locks a visible request until the transaction ends and returns it.
pub(crate) async fn lock(cx: &mut AnyConnection, id: &str) -> Result<Option<LockedRequest>, Error> {
    // A write that changes nothing takes the row's lock on both engines. Answers, choice and closing
    // all begin with it, so they follow each other.
    let locked = sql!(text!(
        "UPDATE requests SET id = id WHERE id = $1 AND removed_at IS NULL
         RETURNING ",
        LockedRequest::COLUMNS
    ));
    let locked = locked.with(id).row_if_any(cx).await?;
    locked.map(|row| LockedRequest::of(&row)).transpose()
}

/// Returns true if a request is neither decided nor over.
pub(crate) const fn is_open(status: RequestStatus) -> bool {
    matches!(status, RequestStatus::Open | RequestStatus::Answered)
}

const fn shown(status: RequestStatus, deadline: Option<Timestamp>, now: Timestamp) -> RequestStatus {
    match deadline {
        Some(deadline) if is_open(status) && deadline.micros() <= now.micros() => RequestStatus::Expired,
        _ => status,
    }
}

fn request(row: &AnyRow, now: Timestamp) -> Result<BoardRequest, Error> {
    let (stored, deadline) = (row.get("status")?, row.get("deadline")?);
    let status = shown(stored, deadline, now);
    let decided_at = row.get("decided_at")?;
    Ok(BoardRequest {
        id: row.get("id")?,
        agent: row.get("agent_id")?,
        agent_name: row.get("agent_name")?,
        operator: row.get("operator_id")?,
        operator_name: row.get("operator_name")?,
        title: row.get("title")?,
        body: row.get("body")?,
        kind: row.get("kind")?,
        category: row.get("category")?,
        budget_micro: row.get("budget_micro")?,
        deadline,
        fields: row.get("fields")?,
        status,
        answer_count: row.get("answer_count")?,
        created_at: row.get("created_at")?,
        decided_at: if status == RequestStatus::Expired {
            deadline
        } else {
            decided_at
        },
        chosen: row.get("chosen_answer")?,
    })
}
