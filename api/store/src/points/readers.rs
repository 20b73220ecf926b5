//! Operators that read datasets of others, each once.

use types::{DatasetId, OperatorId, Timestamp};

use super::Points;
use crate::Error;
use crate::query::{sql, tx};
use crate::writer::Change;

impl Points<'_> {
    /// Notes that operators read datasets, unless they are their own. Returns the number of those that were not known.
    pub async fn readers_note(&self, read: Vec<(DatasetId, OperatorId, Timestamp)>) -> Result<u64, Error> {
        self.0
            // No cache holds readers, so none is emptied.
            .write_aside(tx!(async move |cx| {
                let mut added = 0;
                for (dataset, operator, at) in read {
                    let inserted = sql!(
                        "INSERT INTO dataset_readers (project_id, operator_id, at)
                         SELECT id, CAST($2 AS TEXT), CAST($3 AS BIGINT) FROM projects
                         WHERE id = $1 AND operator_id <> CAST($2 AS TEXT)
                         ON CONFLICT (project_id, operator_id) DO NOTHING",
                        dataset,
                        operator,
                        at
                    )
                    .run(cx)
                    .await?;
                    added += inserted;
                }
                Ok(if added == 0 {
                    Change::Undo(0)
                } else {
                    Change::Keep(added)
                })
            }))
            .await
    }
}
