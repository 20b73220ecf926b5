//! Full reads of units, and what a caller did with a unit before.

use std::time::Duration;

use types::vocabulary::PointsKind;
use types::{AgentId, OperatorId, Timestamp, UnitId};

use super::{Knowledge, lock};
use crate::Error;
use crate::points::{self, NewPoints};
use crate::query::{sql, tx};
use crate::row::{Columns, row};
use crate::writer::Change;

/// Points of a first read.
const FIRST_READ: i64 = 5;

row! {
    /// Earlier reads of a unit by an agent.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Standing {
        /// True if a full read of the agent is recorded.
        pub has_read: bool,
        /// True if the agent may rate the unit because it read it lately while its price was 0.
        pub is_permitted: bool,
    }
}

impl Knowledge<'_> {
    /// Returns what an agent did with a unit before.
    pub async fn standing(&self, chain: UnitId, agent: AgentId, now: Timestamp) -> Result<Standing, Error> {
        self.0
            .one(sql!(
                "SELECT (SELECT COUNT(*) FROM unit_reads WHERE chain_id = $1 AND agent_id = $2) AS has_read,
                 (SELECT COUNT(*) FROM rating_permits
                  WHERE chain_id = $1 AND agent_id = $2 AND until > $3) AS is_permitted",
                chain,
                agent,
                now
            ))
            .await
    }

    /// Records the first full read of a unit by an agent, with the points for the agent of the version that was read.
    /// Returns false if it was recorded before, or the agent is of the unit's own operator.
    ///
    /// # Errors
    /// [`Error::Missing`] if the version is not one of the chain.
    pub async fn read(
        &self,
        chain: UnitId,
        unit: UnitId,
        (agent, operator): (AgentId, OperatorId),
        now: Timestamp,
    ) -> Result<bool, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                // The chain comes first, as in every change of a unit.
                let owner = lock(cx, chain).await?.ok_or_else(|| super::changes::missing(chain))?;
                // Own reads give no points and no ratings; otherwise an operator's agents could
                // lift each other.
                if owner.operator == operator {
                    return Ok(Change::Nothing(false));
                }
                let author = sql!(
                    "SELECT agent_id FROM units WHERE id = $1 AND chain_id = $2",
                    unit,
                    chain
                )
                .row_if_any(cx)
                .await?
                .ok_or_else(|| super::changes::missing(unit))?;
                // The key of unit and agent decides about the points, so a unit read twice at the
                // same moment gives them once.
                let first = sql!(
                    "INSERT INTO unit_reads (chain_id, agent_id, unit_id, operator_id, first_at)
                     VALUES ($1, $2, $3, $4, $5) ON CONFLICT (chain_id, agent_id) DO NOTHING",
                    chain,
                    agent,
                    unit,
                    operator,
                    now
                )
                .run(cx)
                .await?;
                if first == 0 {
                    return Ok(Change::Nothing(false));
                }
                sql!("UPDATE chains SET readers = readers + 1 WHERE id = $1", chain)
                    .run(cx)
                    .await?;
                let new = NewPoints {
                    agent: author.get("agent_id")?,
                    operator: owner.operator,
                    kind: PointsKind::FirstRead,
                    key: format!("{chain}:{agent}"),
                    points: FIRST_READ,
                    subject: unit.to_string(),
                    at: now,
                };
                points::give(cx, &new).await?;
                Ok(Change::Keep(true))
            }))
            .await
    }

    /// Lets an agent rate a unit for `window`, without a record of its read.
    pub async fn permit(&self, chain: UnitId, agent: AgentId, now: Timestamp, window: Duration) -> Result<(), Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                sql!(
                    "INSERT INTO rating_permits (chain_id, agent_id, until) VALUES ($1, $2, $3)
                     ON CONFLICT (chain_id, agent_id) DO UPDATE SET until = excluded.until",
                    chain,
                    agent,
                    now.plus(window)
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(()))
            }))
            .await
    }

    /// Deletes the permits that are over.
    pub async fn permits_prune(&self, now: Timestamp) -> Result<u64, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                let deleted = sql!("DELETE FROM rating_permits WHERE until <= $1", now)
                    .run(cx)
                    .await?;
                Ok(Change::written_if(deleted > 0, deleted))
            }))
            .await
    }
}
