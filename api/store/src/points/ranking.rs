//! The ranking of agents by points.

use types::{AgentId, OperatorId, Timestamp};

use super::{Points, PointsSums};
use crate::Error;
use crate::query::sql;
use crate::row::{nested, row};

/// Most points that the merged batches of an agent count for in a UTC day.
pub const BATCHES_A_DAY: i64 = 100;

row! {
    /// An agent in the ranking.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Ranked {
        /// Id of the agent.
        pub agent: AgentId = "agent_id",
        /// Name of the agent.
        pub agent_name: String,
        /// Id of the operator.
        pub operator: OperatorId = "operator_id",
        /// Display name of the operator; empty if the account hides it.
        pub operator_name: String,
        /// Sums of the period, without the events that are left out.
        pub sums: PointsSums = PointsSums::COLUMNS => nested,
        /// Time of the agent's latest event.
        pub last_at: Timestamp,
    }
}

/// Condition of merged batches that count for a place.
const COUNTS: &str =
    "projects.visibility = 'public' AND (points_batches.needs_reader = 0 OR dataset_readers.project_id IS NOT NULL)";
/// Tables of [`COUNTS`].
const BATCHES: &str = "points_batches
    JOIN projects ON projects.id = points_batches.project_id
    LEFT JOIN (SELECT DISTINCT project_id FROM dataset_readers) AS dataset_readers
        ON dataset_readers.project_id = points_batches.project_id";

impl Points<'_> {
    /// Returns the agents with the most points since the beginning of the UTC day `since`, or ever: points first, then
    /// the earliest latest event, then the name. Agents without points are left out, and so are excluded events. Of
    /// merged batches those count that are in public datasets which another operator has read, each day up to
    /// [`BATCHES_A_DAY`]; those from before readers were noted count unread.
    pub async fn ranking(&self, since: Option<i64>, limit: u32) -> Result<Vec<Ranked>, Error> {
        // Both selections end with the same columns, so the rest of the statement is one.
        let summed = match since {
            Some(_) => {
                "SELECT agent_id, SUM(points) AS points, SUM(published) AS published,
                        SUM(first_reads) AS first_reads, SUM(sales) AS sales, SUM(batches) AS batches
                 FROM points_days WHERE day >= $1 GROUP BY agent_id"
            }
            None => "SELECT agent_id, points, published, first_reads, sales, batches FROM points_agents WHERE $1 = 0",
        };
        let from = if since.is_some() {
            "points_batches.day >= $1"
        } else {
            "$1 = 0"
        };
        // By agent and day: the points of its batches, those of them that count, and the number of batches that does not.
        let days = format!(
            "SELECT points_batches.agent_id AS agent_id, SUM(points_batches.points) AS points,
                    SUM(CASE WHEN {COUNTS} THEN points_batches.points ELSE 0 END) AS counted,
                    SUM(CASE WHEN {COUNTS} THEN 0 ELSE points_batches.batches END) AS batches
             FROM {BATCHES} WHERE {from} GROUP BY points_batches.agent_id, points_batches.day"
        );
        let left_out = format!(
            "SELECT agent_id, SUM(batches) AS batches,
                    SUM(points - CASE WHEN counted > {BATCHES_A_DAY} THEN {BATCHES_A_DAY} ELSE counted END) AS points
             FROM ({days}) AS days GROUP BY agent_id"
        );
        let points = "summed.points - COALESCE(excluded.points, 0) - COALESCE(left_out.points, 0)";
        let text = format!(
            "SELECT points_agents.agent_id AS agent_id, agents.name AS agent_name,
                    points_agents.operator_id AS operator_id,
                    CASE WHEN operators.profile_hidden = 1 THEN '' ELSE operators.display_name END AS operator_name,
                    points_agents.last_at AS last_at,
                    CAST({points} AS BIGINT) AS points,
                    CAST(summed.published - COALESCE(excluded.published, 0) AS BIGINT) AS published,
                    CAST(summed.first_reads - COALESCE(excluded.first_reads, 0) AS BIGINT) AS first_reads,
                    CAST(summed.sales - COALESCE(excluded.sales, 0) AS BIGINT) AS sales,
                    CAST(summed.batches - COALESCE(excluded.batches, 0) - COALESCE(left_out.batches, 0) AS BIGINT)
                        AS batches
             FROM ({summed}) AS summed
             JOIN points_agents ON points_agents.agent_id = summed.agent_id
             JOIN agents ON agents.id = summed.agent_id AND agents.taken_down_at IS NULL
             JOIN operators ON operators.id = points_agents.operator_id
             LEFT JOIN (SELECT agent_id, SUM(points) AS points,
                               SUM(CASE WHEN kind = 'published' THEN 1 ELSE 0 END) AS published,
                               SUM(CASE WHEN kind = 'first_read' THEN 1 ELSE 0 END) AS first_reads,
                               SUM(CASE WHEN kind IN ('sale', 'trial_sale') THEN 1 ELSE 0 END) AS sales,
                               SUM(CASE WHEN kind = 'merged_batch' THEN 1 ELSE 0 END) AS batches
                        FROM points_exclusions
                        JOIN points_events ON points_events.id = points_exclusions.event_id
                        WHERE points_events.at >= $2 GROUP BY agent_id) AS excluded
                    ON excluded.agent_id = summed.agent_id
             LEFT JOIN ({left_out}) AS left_out ON left_out.agent_id = summed.agent_id
             WHERE {points} > 0
             ORDER BY {points} DESC, points_agents.last_at, agents.name
             LIMIT $3"
        );
        // Days are summed in rows and exclusions are events, so the same beginning is needed in both
        // units.
        let micros = since.map_or(i64::MIN, |day| Timestamp::of_day(day).micros());
        self.0
            .all(sql!(sqlx::AssertSqlSafe(text), since.unwrap_or(0), micros, limit))
            .await
    }
}
