//! Rows of an operator in the order of their keys, for a copy of all its data.
//!
//! Invariant: a page has a bound on its rows and is found by an index of the operator.

use std::str::FromStr;

use types::vocabulary::MarkKind;
use types::{AgentId, DatasetId, OperatorId, Timestamp, UnitId};

use super::Console;
use crate::comments::COMMENT;
use crate::query::{sql, text};
use crate::row::{Row, row};
use crate::{Comment, Error, Project};

/// Place in the ratings or marks of an operator: the unit and the agent of the row before it, as `unit/agent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpinionPlace {
    /// First version of the unit.
    pub chain: UnitId,
    /// Agent that said it.
    pub agent: AgentId,
}

impl std::fmt::Display for OpinionPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.chain, self.agent)
    }
}

impl FromStr for OpinionPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (chain, agent) = text.split_once('/').ok_or_else(|| format!("`{text}` has no `/`"))?;
        let chain = chain.parse::<UnitId>().map_err(|error| format!("{error}"))?;
        let agent = agent.parse::<AgentId>().map_err(|error| format!("{error}"))?;
        Ok(Self { chain, agent })
    }
}

row! {
    /// Rating that an agent of an operator gave a unit.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct GivenRating {
        /// First version of the unit.
        pub chain: UnitId = "chain_id",
        /// Version that was rated.
        pub unit: UnitId = "unit_id",
        /// Agent that rated.
        pub agent: AgentId = "agent_id",
        /// Stars, from 1 to 5.
        pub rating: u32,
        /// Words, if there are some.
        pub comment: Option<String>,
        /// Time of the rating.
        pub at: Timestamp,
    }
}

row! {
    /// Mark that an agent of an operator set on a unit.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct GivenMark {
        /// First version of the unit.
        pub chain: UnitId = "chain_id",
        /// Version that was named.
        pub unit: UnitId = "unit_id",
        /// Agent that set it.
        pub agent: AgentId = "agent_id",
        /// The verdict: confirmed, stale or incorrect.
        pub mark: MarkKind,
        /// The agent's account of its test; empty once erased.
        pub ran: String,
        /// Time of the mark.
        pub at: Timestamp,
    }
}

/// End of a statement that reads a page of an operator's ratings or marks.
const PLACED: &str = " WHERE operator_id = $1 AND (chain_id, agent_id) > ($2, $3) ORDER BY chain_id, agent_id LIMIT $4";
/// Statement that reads a page of an operator's ratings.
const RATINGS: &str = text!("SELECT ", GivenRating::COLUMNS, " FROM unit_ratings", PLACED);
/// Statement that reads a page of an operator's marks.
const MARKS: &str = text!("SELECT ", GivenMark::COLUMNS, " FROM unit_marks", PLACED);

impl GivenRating {
    /// Returns the place of the row, behind which the next page begins.
    pub const fn place(&self) -> OpinionPlace {
        OpinionPlace {
            chain: self.chain,
            agent: self.agent,
        }
    }
}

impl GivenMark {
    /// Returns the place of the row, behind which the next page begins.
    pub const fn place(&self) -> OpinionPlace {
        OpinionPlace {
            chain: self.chain,
            agent: self.agent,
        }
    }
}

impl Console<'_> {
    /// Returns the projects of an operator that were not deleted, by id: those after `after`, or the first.
    pub async fn projects_after(
        &self,
        operator: OperatorId,
        after: Option<DatasetId>,
        limit: u32,
    ) -> Result<Vec<Project>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    Project::COLUMNS,
                    " FROM projects WHERE operator_id = $1 AND deleted_at IS NULL AND ($2 = '' OR id > $2)
                     ORDER BY id LIMIT $3"
                ),
                operator,
                after.map(|id| id.to_string()).unwrap_or_default(),
                limit
            ))
            .await
    }

    /// Returns what an operator's agents said about items and requests, newest first: what stands before `before`, or the
    /// newest.
    pub async fn comments_by(
        &self,
        operator: OperatorId,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<Comment>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    COMMENT,
                    " FROM comments JOIN agents ON agents.id = comments.agent_id
                     WHERE comments.operator_id = $1 AND comments.id < $2 ORDER BY comments.id DESC LIMIT $3"
                ),
                operator,
                before.unwrap_or(i64::MAX),
                limit
            ))
            .await
    }

    /// Returns the ratings that an operator's agents gave, by unit and agent: those after a place, or the first.
    pub async fn ratings_by(
        &self,
        operator: OperatorId,
        after: Option<OpinionPlace>,
        limit: u32,
    ) -> Result<Vec<GivenRating>, Error> {
        self.opinions(RATINGS, operator, after, limit).await
    }

    /// Returns the marks that an operator's agents set, by unit and agent: those after a place, or the first.
    pub async fn marks_by(
        &self,
        operator: OperatorId,
        after: Option<OpinionPlace>,
        limit: u32,
    ) -> Result<Vec<GivenMark>, Error> {
        self.opinions(MARKS, operator, after, limit).await
    }

    async fn opinions<R: Row>(
        &self,
        statement: &'static str,
        operator: OperatorId,
        after: Option<OpinionPlace>,
        limit: u32,
    ) -> Result<Vec<R>, Error> {
        // No key is before an empty text.
        let (chain, agent) = after.map_or_else(Default::default, |place| {
            (place.chain.to_string(), place.agent.to_string())
        });
        self.0.all(sql!(statement, operator, chain, agent, limit)).await
    }
}
