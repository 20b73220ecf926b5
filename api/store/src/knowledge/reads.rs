//! Full reads of units, and what a caller did with a unit before.

use std::time::Duration;

use types::vocabulary::PointsKind;
use types::{AgentId, OperatorId, Timestamp, UnitId};

use super::{Knowledge, lock};
use crate::Error;
use crate::points::{self, NewPoints};
use crate::projects::find::pattern_or_empty;
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, row, texts};
use crate::writer::Change;

/// Units that agents of an operator read, of those that it may read now without a purchase.
// Own rows only, found by the operator. A read does not outlive a price that was set after it, but for a retired unit.
const READ_BY: &str = r" FROM (SELECT chain_id AS read_chain, MIN(first_at) AS read_at FROM unit_reads
           WHERE operator_id = $1 GROUP BY chain_id) AS reads
     JOIN chains ON chains.id = reads.read_chain
     JOIN units ON units.id = chains.latest_unit
     JOIN agents ON agents.id = units.agent_id
     LEFT JOIN entitlements ON entitlements.owner = $2 AND entitlements.item_kind = 'unit'
         AND entitlements.item_id = chains.id
     WHERE entitlements.owner IS NULL AND chains.taken_down_at IS NULL AND chains.erased_at IS NULL
       AND (chains.price_micro IS NULL OR chains.price_micro = 0 OR chains.retired_at IS NOT NULL)
       AND ($3 = '' OR LOWER(units.title) LIKE $3 ESCAPE '\' OR LOWER(units.body) LIKE $3 ESCAPE '\')";

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

row! {
    /// A unit that agents of an operator read without buying it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ReadUnit {
        /// Id of the unit, which is that of its first version.
        pub chain: UnitId = "reads.read_chain AS read_chain",
        /// Id of the newest version of the unit.
        pub latest: UnitId = "units.id AS latest",
        /// Title of that version.
        pub title: String = "units.title AS title",
        /// Number of that version.
        pub number: Option<u32> = "units.number AS number",
        /// Name of its agent.
        pub agent_name: String =
            "CASE WHEN agents.taken_down_at IS NULL THEN agents.name ELSE '[removed]' END AS agent_name",
        /// Time of the first read.
        pub read_at: Timestamp = "reads.read_at AS read_at",
    }
}

impl Knowledge<'_> {
    /// Returns true if a full read of an agent of an operator is recorded.
    pub async fn is_read_by(&self, operator: OperatorId, chain: UnitId) -> Result<bool, Error> {
        self.0
            .read(async {
                let reads: u64 = sql!(
                    "SELECT COUNT(*) AS reads FROM unit_reads WHERE operator_id = $1 AND chain_id = $2",
                    operator,
                    chain
                )
                .row(&mut self.0.readers())
                .await?
                .get("reads")?;
                Ok(reads > 0)
            })
            .await
    }

    /// Returns a page of the units that agents of an operator read, bought by nobody of it, and that they may read now: the
    /// latest read first, or by title. `q` is what a title or a text contains.
    pub async fn read_by(
        &self,
        operator: OperatorId,
        (q, by_title): (&str, bool),
        (offset, limit): (u32, u32),
    ) -> Result<Vec<ReadUnit>, Error> {
        if texts(&[("q", q)]).is_err() {
            return Ok(Vec::new());
        }
        let statement = if by_title {
            text!(
                "SELECT ",
                ReadUnit::COLUMNS,
                READ_BY,
                " ORDER BY LOWER(units.title), units.id LIMIT $4 OFFSET $5"
            )
        } else {
            text!(
                "SELECT ",
                ReadUnit::COLUMNS,
                READ_BY,
                " ORDER BY reads.read_at DESC, units.id DESC LIMIT $4 OFFSET $5"
            )
        };
        let buyer = format!("op:{operator}");
        self.0
            .all(sql!(statement, operator, buyer, pattern_or_empty(q), limit, offset))
            .await
    }

    /// Counts the units on all pages of such a list.
    pub async fn read_by_count(&self, operator: OperatorId, q: &str) -> Result<u64, Error> {
        if texts(&[("q", q)]).is_err() {
            return Ok(0);
        }
        self.0
            .read(async {
                sql!(
                    text!("SELECT COUNT(*) AS listed", READ_BY),
                    operator,
                    format!("op:{operator}"),
                    pattern_or_empty(q)
                )
                .row(&mut self.0.readers())
                .await?
                .get("listed")
            })
            .await
    }

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
