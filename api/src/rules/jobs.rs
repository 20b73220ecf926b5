//! Jobs: work that a change asks for and that a background task does later.
//!
//! Invariant: a job has all that it needs in its row. What asks for one knows its kind, and not who does it.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use mail::Letter;
use serde::{Deserialize, Serialize};
use store::{Job, NewJob};
use types::{RequestId, Timestamp};

use crate::ids;
use types::error::with_causes;

/// Kind of the job that writes down the end of a request on the board.
pub(crate) const REQUEST_ENDS: &str = "request_ends";
/// Kind of the job that tells sellers of a request on the board.
pub(crate) const REQUEST_MATCHES: &str = "request_matches";
/// Time between two looks for sellers.
const AGAIN: Duration = Duration::from_hours(1);

/// Reason for which a job was not done.
#[derive(Debug)]
pub struct JobFailure {
    /// Reason, for the log and the list of jobs.
    pub reason: String,
    /// True if another try can help.
    pub may_pass: bool,
}

impl JobFailure {
    /// Creates the failure of a dependency that may recover.
    pub(crate) fn passing(error: &dyn std::error::Error) -> Self {
        Self {
            reason: with_causes(error),
            may_pass: true,
        }
    }
}

/// Writer of the letters that jobs ask for.
#[async_trait]
pub trait ComposeLetters: Debug + Send + Sync {
    /// Returns the letter of a job. Returns `None` if nobody needs it any more, for example because its link has ended.
    ///
    /// # Errors
    /// [`JobFailure`] if the letter cannot be written.
    async fn letter(&self, job: &Job) -> Result<Option<Letter>, JobFailure>;
}

/// Input of both jobs.
#[derive(Debug, Serialize, Deserialize)]
struct RequestJobPayload {
    request: String,
    #[serde(default)]
    round: u32,
}

fn request_job(kind: &'static str, request: RequestId, round: u32, due_at: Timestamp, now: Timestamp) -> NewJob {
    let payload = RequestJobPayload {
        request: request.to_string(),
        round,
    };
    NewJob {
        id: ids::new(now),
        kind: kind.to_owned(),
        dedupe: Some(format!("{kind}:{request}:{round}")),
        operator: None,
        // A text and a number have no value that JSON lacks.
        payload: serde_json::to_string(&payload).unwrap_or_default(),
        due_at,
        now,
    }
}

/// Returns the request of a job, and the number of its round.
pub(crate) fn of_request(job: &Job) -> Result<(RequestId, u32), JobFailure> {
    // The payload of a job never changes, so another try would read the same.
    let broken = |reason: String| JobFailure {
        reason,
        may_pass: false,
    };
    let payload: RequestJobPayload = serde_json::from_str(&job.payload).map_err(|error| broken(with_causes(&error)))?;
    let request = payload.request.parse();
    request
        .map(|request| (request, payload.round))
        .map_err(|_error| broken(format!("`{}` is no id of a request", payload.request)))
}

/// Returns the job that writes down the end of a request with this deadline.
pub(crate) fn request_ends(request: RequestId, deadline: Timestamp, now: Timestamp) -> NewJob {
    request_job(REQUEST_ENDS, request, 0, deadline, now)
}

/// Returns the job that tells sellers of a request in a round.
pub(crate) fn request_matches(request: RequestId, round: u32, now: Timestamp) -> NewJob {
    let due_at = if round == 0 { now } else { now.plus(AGAIN) };
    request_job(REQUEST_MATCHES, request, round, due_at, now)
}
