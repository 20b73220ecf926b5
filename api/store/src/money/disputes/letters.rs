//! Letters about disputes.
//!
//! Invariant: a letter is a job of the transaction that it tells of, with an id of the dispute and its reader, so no step of
//! a dispute is told twice.

use sqlx::AnyConnection;
use types::{DisputeId, OperatorId, Timestamp};

use crate::{Error, NewJob, jobs};

/// Letters to the parties of a dispute, and to the administrator. The reader of each decides on its words.
#[derive(Clone, Debug)]
pub struct DisputeLetters {
    /// Kind of their jobs.
    pub kind: String,
    /// Input of the jobs.
    pub payload: String,
}

/// Reader of a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LetterReader {
    /// The person of an operator.
    Operator(OperatorId),
    /// The administrator of the service.
    Administrator,
}

impl DisputeLetters {
    /// Adds a letter to each reader about a step of a dispute.
    pub(super) async fn send(
        &self,
        cx: &mut AnyConnection,
        dispute: DisputeId,
        step: &str,
        readers: [Option<LetterReader>; 3],
        now: Timestamp,
    ) -> Result<(), Error> {
        for (place, reader) in readers.into_iter().enumerate() {
            let Some(reader) = reader else { continue };
            let job = NewJob {
                id: format!("{dispute}-{step}-{place}"),
                kind: self.kind.clone(),
                dedupe: None,
                operator: match reader {
                    LetterReader::Operator(operator) => Some(operator),
                    LetterReader::Administrator => None,
                },
                payload: self.payload.clone(),
                due_at: now,
                now,
            };
            jobs::insert(cx, &job).await?;
        }
        Ok(())
    }
}
