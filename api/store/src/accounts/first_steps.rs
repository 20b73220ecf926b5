//! First steps of a new account, which a person can hide.

use types::{OperatorId, Timestamp};

use crate::query::{sql, tx};
use crate::row::Columns;
use crate::writer::Change;
use crate::{Accounts, Error};

impl Accounts<'_> {
    /// Returns true if the person of an operator hid the first steps.
    pub async fn hides_first_steps(&self, operator: OperatorId) -> Result<bool, Error> {
        let reading = self.0.read(async {
            let row = sql!("SELECT steps_hidden_at FROM operators WHERE id = $1", operator)
                .row_if_any(&mut self.0.readers())
                .await?;
            let hidden_at: Option<Timestamp> = row.map_or(Ok(None), |row| row.get("steps_hidden_at"))?;
            Ok(hidden_at.is_some())
        });
        reading.await
    }

    /// Hides the first steps of an operator. The first time counts.
    pub async fn hide_first_steps(&self, operator: OperatorId, now: Timestamp) -> Result<(), Error> {
        let writing = self.0.write(tx!(async move |cx| {
            sql!(
                "UPDATE operators SET steps_hidden_at = $2 WHERE id = $1 AND steps_hidden_at IS NULL",
                operator,
                now
            )
            .run(cx)
            .await?;
            Ok(Change::Keep(()))
        }));
        writing.await
    }
}
