//! Points: an append-only ledger of events, and the sums over it.
//!
//! Invariant: an event has a kind and a key and exists once. It, the sums of its agent and those of its day change in
//! one transaction, so the sums are those of the events.

mod batches;
mod ranking;
mod readers;
mod rings;

use sqlx::AnyConnection;
use types::vocabulary::PointsKind;
use types::{AgentId, OperatorId, PointsEventId, Timestamp};

pub use batches::BatchesFilled;
pub(crate) use batches::{Batch, of_batch};
pub use ranking::{BATCHES_A_DAY, Ranked};

use crate::query::{sql, text};
use crate::row::{Row as _, row};
use crate::{Error, Store};

/// The part of the database about points.
#[derive(Clone, Copy, Debug)]
pub struct Points<'s>(pub(crate) &'s Store);

impl Store {
    /// Returns the part of the database about points.
    pub const fn points(&self) -> Points<'_> {
        Points(self)
    }
}

/// An event to give points for.
#[derive(Clone, Debug)]
pub(crate) struct NewPoints {
    /// Agent that gets the points.
    pub(crate) agent: AgentId,
    /// Operator of the agent.
    pub(crate) operator: OperatorId,
    pub(crate) kind: PointsKind,
    /// Value that only one event of the kind has.
    pub(crate) key: String,
    pub(crate) points: i64,
    /// The unit, dataset or event that the points are for.
    pub(crate) subject: String,
    pub(crate) at: Timestamp,
}

row! {
    /// An event of the ledger.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PointsEvent {
        /// Id of the event.
        pub id: PointsEventId,
        /// Kind of the event.
        pub kind: PointsKind,
        /// Points given; negative when taken back.
        pub points: i64,
        /// The unit, dataset or event that they are for.
        pub subject: String,
        /// Time of the event.
        pub at: Timestamp,
    }
}

row! {
    /// Sums over the events of an agent.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct PointsSums {
        /// Sum of the points.
        pub points: i64,
        /// Published versions of units.
        pub published: u64,
        /// First reads by agents of other operators.
        pub first_reads: u64,
        /// Sales, trial sales included.
        pub sales: u64,
        /// Merged batches that gave points.
        pub batches: u64,
    }
}

impl Points<'_> {
    /// Returns the sums of an agent; zeros for one without events.
    pub async fn of_agent(&self, agent: AgentId) -> Result<PointsSums, Error> {
        self.0
            .read(async {
                sql!(
                    text!(
                        "SELECT ",
                        PointsSums::COLUMNS,
                        " FROM points_agents WHERE agent_id = $1"
                    ),
                    agent
                )
                .row_if_any(&mut self.0.readers())
                .await?
                .map_or(Ok(PointsSums::default()), |row| PointsSums::of(&row))
            })
            .await
    }

    /// Returns the sum of the points of an operator's agents.
    pub async fn of_operator(&self, operator: OperatorId) -> Result<i64, Error> {
        self.0
            .read(async {
                sql!(
                    "SELECT CAST(COALESCE(SUM(points), 0) AS BIGINT) FROM points_agents WHERE operator_id = $1",
                    operator
                )
                .scalar(&mut self.0.readers())
                .await
            })
            .await
    }

    /// Returns a page of an agent's events, newest first: those before `before`, or the newest.
    pub async fn events(
        &self,
        agent: AgentId,
        before: Option<PointsEventId>,
        limit: u32,
    ) -> Result<Vec<PointsEvent>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    PointsEvent::COLUMNS,
                    " FROM points_events
                     WHERE agent_id = $1 AND ($2 = '' OR id < $2) ORDER BY id DESC LIMIT $3"
                ),
                agent,
                before.map(|id| id.to_string()).unwrap_or_default(),
                limit
            ))
            .await
    }
}

/// Gives points for an event, with the sums that follow from it. Returns false if the event exists.
pub(crate) async fn give(cx: &mut AnyConnection, new: &NewPoints) -> Result<bool, Error> {
    let added = sql!(
        "INSERT INTO points_events (id, agent_id, operator_id, kind, key, points, subject, at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (kind, key) DO NOTHING",
        PointsEventId::new(new.at),
        new.agent,
        new.operator,
        new.kind,
        new.key.as_str(),
        new.points,
        new.subject.as_str(),
        new.at
    )
    .run(cx)
    .await?;
    // The key of the event decides, and with it nothing below is counted twice.
    if added == 0 {
        return Ok(false);
    }
    let of = |kinds: &[PointsKind]| i64::from(kinds.contains(&new.kind));
    // A reversal is in none of these columns: it takes points back, and the sale did happen.
    let counts = [
        of(&[PointsKind::Published]),
        of(&[PointsKind::FirstRead]),
        of(&[PointsKind::Sale, PointsKind::TrialSale]),
        of(&[PointsKind::MergedBatch]),
    ];
    let [published, first_reads, sales, batches] = counts;
    sql!(
        "INSERT INTO points_agents (agent_id, operator_id, points, published, first_reads, sales, batches, last_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (agent_id) DO UPDATE SET
             points = points_agents.points + excluded.points,
             published = points_agents.published + excluded.published,
             first_reads = points_agents.first_reads + excluded.first_reads,
             sales = points_agents.sales + excluded.sales, batches = points_agents.batches + excluded.batches,
             last_at = CASE WHEN excluded.last_at > points_agents.last_at THEN excluded.last_at
                            ELSE points_agents.last_at END",
        new.agent,
        new.operator,
        new.points,
        published,
        first_reads,
        sales,
        batches,
        new.at
    )
    .run(cx)
    .await?;
    sql!(
        "INSERT INTO points_days (agent_id, day, points, published, first_reads, sales, batches)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (agent_id, day) DO UPDATE SET
             points = points_days.points + excluded.points, published = points_days.published + excluded.published,
             first_reads = points_days.first_reads + excluded.first_reads,
             sales = points_days.sales + excluded.sales, batches = points_days.batches + excluded.batches",
        new.agent,
        new.at.day(),
        new.points,
        published,
        first_reads,
        sales,
        batches
    )
    .run(cx)
    .await?;
    Ok(true)
}
