//! Purchases that wait for a person's yes: those above the line of an agent or an app, and those that a person makes on
//! a page.
//!
//! Invariants:
//! - A row holds nothing: no money, no cap and no price. It becomes `bought` in the transaction of its sale, and then has
//!   that sale; the first end of a row stays.
//! - An agent has at most one row that waits for an item and a version. A row whose time is over waits no more, also
//!   before it says so.
//! - Whoever changes rows of an operator but by a no holds the operator's lock first, so rows are counted exactly.

mod ask;
mod decide;

use std::time::Duration;

use oauth::ConnectionId;
use types::money::MicroUsdc;
use types::vocabulary::{ApprovalState, AskedBy, ItemKind, StaleReason};
use types::{AgentId, ApprovalId, OperatorId, SaleId, Timestamp};

use super::Money;
use crate::Error;
use crate::query::{Session, Statement, sql, text, tx};
use crate::row::{Columns, Row as _, bigint, row};
use crate::writer::Change;

pub use ask::{ApprovalLetter, NewPersonAsk, NewPurchaseAsk, PersonAsked};
pub use decide::{Approved, DeniedApproval, NewNo, NewYes};

pub(super) use ask::{AgentAsk, AskedBefore, ask};

/// Time for which a row waits, and for which its end answers the agent's repeats.
pub const APPROVAL_LASTS: Duration = Duration::from_hours(24);
/// Number of rows of an agent that wait at once, of those that it asked for, and of those that its person did.
pub const MAX_WAITING_APPROVALS: u32 = 20;
/// Letters about rows that an operator gets on a UTC day.
pub const APPROVAL_LETTERS_A_DAY: u32 = 10;

row! {
    /// A purchase that waits for a person's yes, or did.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PurchaseApproval {
        /// Id of the row.
        pub id: ApprovalId = "approvals.id AS id",
        /// Operator whose person decides.
        pub operator: OperatorId = "approvals.operator_id AS operator_id",
        /// Agent that buys.
        pub agent: AgentId = "approvals.agent_id AS agent_id",
        /// Name of the agent.
        pub agent_name: String = "agents.name AS agent_name",
        /// Connection of the app that asked, if one did.
        pub app: Option<ConnectionId> = "approvals.connection_id AS connection_id",
        /// Agent or person.
        pub asked_by: AskedBy = "approvals.asked_by AS asked_by",
        /// Kind of the item.
        pub kind: ItemKind = "approvals.item_kind AS item_kind",
        /// Id of the unit or the dataset.
        pub item: String = "approvals.item_id AS item_id",
        /// Slug of the dataset, for one.
        pub slug: Option<String> = "projects.slug AS slug",
        /// Title of the item as it is now.
        pub title: Option<String> = "COALESCE(projects.title, units.title) AS title",
        /// Version of a dataset; for a unit 1, which means every version.
        pub version: u64 = "approvals.version AS version",
        /// Price as it is shown, in micro-USDC. A yes pays at most this.
        pub price: MicroUsdc = "approvals.price AS price",
        /// Words of the agent for the person.
        pub reason: Option<String> = "approvals.reason AS reason",
        /// State at the time of reading.
        pub state: ApprovalState = "approvals.state AS state",
        /// Change that the person's yes met, for a stale one.
        pub why: Option<StaleReason> = "approvals.why AS why",
        /// Sale of one that was bought.
        pub sale: Option<SaleId> = "approvals.sale_id AS sale_id",
        /// Time of the asking.
        pub asked_at: Timestamp = "approvals.asked_at AS asked_at",
        /// Instant from which it waits no more.
        pub expires_at: Timestamp = "approvals.expires_at AS expires_at",
        /// Time of the decision.
        pub decided_at: Option<Timestamp> = "approvals.decided_at AS decided_at",
    }
}

/// Beginning of a statement that reads rows, up to its `WHERE`.
const SELECT: &str = text!(
    "SELECT ",
    PurchaseApproval::COLUMNS,
    " FROM approvals
      JOIN agents ON agents.id = approvals.agent_id
      LEFT JOIN projects ON approvals.item_kind = 'dataset' AND projects.id = approvals.item_id
      LEFT JOIN chains ON approvals.item_kind = 'unit' AND chains.id = approvals.item_id
      LEFT JOIN units ON units.id = chains.latest_unit
      WHERE "
);

impl PurchaseApproval {
    /// Returns the row with its state at `now`: one whose time is over is expired, also before it says so.
    fn at(self, now: Timestamp) -> Self {
        let is_over = self.state == ApprovalState::Waiting && self.expires_at <= now;
        Self {
            state: if is_over { ApprovalState::Expired } else { self.state },
            ..self
        }
    }
}

/// Returns the rows of a statement with their states at `now`.
async fn all<S: Session>(
    statement: Statement,
    session: &mut S,
    now: Timestamp,
) -> Result<Vec<PurchaseApproval>, Error> {
    let rows: Vec<PurchaseApproval> = statement.all(session).await?;
    Ok(rows.into_iter().map(|row| row.at(now)).collect())
}

/// Returns the row of a statement with its state at `now`.
async fn optional<S: Session>(
    statement: Statement,
    session: &mut S,
    now: Timestamp,
) -> Result<Option<PurchaseApproval>, Error> {
    let row: Option<PurchaseApproval> = statement.optional(session).await?;
    Ok(row.map(|row| row.at(now)))
}

/// Statement that reads the row with an id.
fn by_id(id: ApprovalId) -> Statement {
    sql!(text!(SELECT, "approvals.id = $1"), id)
}

impl Money<'_> {
    /// Returns a row of an operator with its state at `now`.
    pub async fn approval(
        &self,
        operator: OperatorId,
        id: ApprovalId,
        now: Timestamp,
    ) -> Result<Option<PurchaseApproval>, Error> {
        let found = self
            .0
            .read(async { optional(by_id(id), &mut self.0.readers(), now).await })
            .await?;
        Ok(found.filter(|row| row.operator == operator))
    }

    /// Returns the rows of an operator that its agents asked for and that wait at `now`, oldest first.
    pub async fn approvals_waiting(
        &self,
        operator: OperatorId,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<PurchaseApproval>, Error> {
        let statement = sql!(
            text!(
                SELECT,
                "approvals.operator_id = $1 AND approvals.state = 'waiting' AND approvals.asked_by = 'agent'
                 AND approvals.expires_at > $2
                 ORDER BY approvals.asked_at, approvals.id LIMIT $3"
            ),
            operator,
            now,
            limit
        );
        self.0
            .read(async { all(statement, &mut self.0.readers(), now).await })
            .await
    }

    /// Returns the number of rows of an operator that its agents asked for and that wait at `now`.
    pub async fn approvals_count(&self, operator: OperatorId, now: Timestamp) -> Result<u64, Error> {
        self.0
            .read(async {
                sql!(
                    "SELECT COUNT(*) AS waiting FROM approvals
                     WHERE operator_id = $1 AND state = 'waiting' AND asked_by = 'agent' AND expires_at > $2",
                    operator,
                    now
                )
                .row(&mut self.0.readers())
                .await?
                .get("waiting")
            })
            .await
    }

    /// Returns the rows of an operator that do not wait at `now`, newest first: those before `before`, or the newest.
    /// What a person began and left is not among them.
    pub async fn approvals_ended(
        &self,
        operator: OperatorId,
        before: Option<ApprovalId>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<PurchaseApproval>, Error> {
        let statement = sql!(
            text!(
                SELECT,
                "approvals.operator_id = $1 AND (approvals.state <> 'waiting' OR approvals.expires_at <= $2)
                 AND (approvals.asked_by = 'agent' OR approvals.state IN ('bought', 'denied'))
                 AND ($3 = '' OR approvals.id < $3)
                 ORDER BY approvals.id DESC LIMIT $4"
            ),
            operator,
            now,
            before.map(|id| id.to_string()).unwrap_or_default(),
            limit
        );
        self.0
            .read(async { all(statement, &mut self.0.readers(), now).await })
            .await
    }

    /// Returns the row of an agent that waits at `now` for an item in a version: what follows a row whose price was
    /// stale.
    pub async fn approval_waiting_for(
        &self,
        agent: AgentId,
        kind: ItemKind,
        item: &str,
        version: u64,
        now: Timestamp,
    ) -> Result<Option<PurchaseApproval>, Error> {
        let statement = sql!(
            text!(
                SELECT,
                "approvals.agent_id = $1 AND approvals.item_kind = $2 AND approvals.item_id = $3
                 AND approvals.version = $4 AND approvals.state = 'waiting' AND approvals.expires_at > $5"
            ),
            agent,
            kind,
            item,
            bigint("version", version)?,
            now
        );
        self.0
            .read(async { optional(statement, &mut self.0.readers(), now).await })
            .await
    }

    /// Marks the rows as expired whose time is over at `now`, and returns their number.
    pub async fn approvals_expire(&self, now: Timestamp) -> Result<u64, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                let expired = sql!(
                    "UPDATE approvals SET state = 'expired' WHERE state = 'waiting' AND expires_at <= $1",
                    now
                )
                .run(cx)
                .await?;
                Ok(Change::written_if(expired > 0, expired))
            }))
            .await
    }
}
