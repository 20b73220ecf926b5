//! Rows of an operator in the order of their ids, for a copy of all its data.
//!
//! Invariant: a page has a bound on its rows and is found by an index of the operator.

use types::{DatasetId, OperatorId};

use super::Console;
use crate::comments::COMMENT;
use crate::query::{sql, text};
use crate::row::Row as _;
use crate::{Comment, Error, Project};

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
}
