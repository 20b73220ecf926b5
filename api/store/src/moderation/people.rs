//! People who decide about reports.
//!
//! Invariant: nobody becomes a moderator but by an administrator at the command line.

use types::OperatorId;

use super::Moderation;
use crate::Error;
use crate::query::{sql, tx};
use crate::writer::Change;

/// Role of an operator that decides about reports.
const MODERATOR: &str = "moderator";

impl Moderation<'_> {
    /// Makes an operator a moderator, or ends that. Returns false if there is no such operator.
    pub async fn moderator_set(&self, operator: OperatorId, is_moderator: bool) -> Result<bool, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                let set = sql!(
                    "UPDATE operators SET role = $2 WHERE id = $1",
                    operator,
                    is_moderator.then_some(MODERATOR)
                )
                .run(cx)
                .await?;
                Ok(if set == 0 {
                    Change::Undo(false)
                } else {
                    Change::Keep(true)
                })
            }))
            .await
    }

    /// Returns true if there is a moderator who is not suspended.
    pub async fn has_moderator(&self) -> Result<bool, Error> {
        self.0
            .read(async {
                let row = sql!(
                    "SELECT id FROM operators WHERE role = $1 AND suspended_at IS NULL LIMIT 1",
                    MODERATOR
                )
                .row_if_any(&mut self.0.readers())
                .await?;
                Ok(row.is_some())
            })
            .await
    }

    /// Returns true if an operator is a moderator and not suspended.
    pub async fn is_moderator(&self, operator: OperatorId) -> Result<bool, Error> {
        self.0
            .read(async {
                // Asked each time and remembered nowhere, so a role that is taken away ends with the
                // next call.
                let row = sql!(
                    "SELECT id FROM operators WHERE id = $1 AND role = $2 AND suspended_at IS NULL",
                    operator,
                    MODERATOR
                )
                .row_if_any(&mut self.0.readers())
                .await?;
                Ok(row.is_some())
            })
            .await
    }
}
