//! The staff: operators who decide about reports, and those who do more.
//!
//! Invariant: nobody becomes one of the staff but by an administrator at the command line.

use types::OperatorId;
use types::vocabulary::StaffRole;

use super::Moderation;
use crate::Error;
use crate::query::{sql, tx};
use crate::row::Columns;
use crate::writer::Change;

impl Moderation<'_> {
    /// Gives an operator a role, or takes it. Returns false if there is no such operator.
    pub async fn role_set(&self, operator: OperatorId, role: Option<StaffRole>) -> Result<bool, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                let set = sql!("UPDATE operators SET role = $2 WHERE id = $1", operator, role)
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

    /// Returns true if there is somebody who decides about reports: one of the staff that is not suspended.
    pub async fn has_moderator(&self) -> Result<bool, Error> {
        self.0
            .read(async {
                let row = sql!(
                    "SELECT id FROM operators WHERE role IN ('moderator', 'administrator') AND suspended_at IS NULL LIMIT 1"
                )
                .row_if_any(&mut self.0.readers())
                .await?;
                Ok(row.is_some())
            })
            .await
    }

    /// Returns the role of an operator; `None` without one, and while it is suspended.
    pub async fn role_of(&self, operator: OperatorId) -> Result<Option<StaffRole>, Error> {
        self.0
            .read(async {
                // Asked each time and remembered nowhere, so a role that is taken away ends with the
                // next call.
                let row = sql!(
                    "SELECT role FROM operators WHERE id = $1 AND suspended_at IS NULL",
                    operator
                )
                .row_if_any(&mut self.0.readers())
                .await?;
                Ok(row.map(|row| row.get("role")).transpose()?.flatten())
            })
            .await
    }
}
