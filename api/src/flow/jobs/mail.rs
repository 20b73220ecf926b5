//! Jobs that send a letter.
//!
//! Invariant: each try of a job sends the same letter under the same `Message-ID`, which is the id of the job.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use mail::{Letter, Mailer};
use store::Job;
use types::{Classify as _, Retry};

use super::{Failure, Handler};
use crate::error::chain;

/// Writer of the letters that jobs ask for.
#[async_trait]
pub trait Compose: Debug + Send + Sync {
    /// Returns the letter of a job. Returns `None` if nobody needs it any more, for example because its link has ended.
    ///
    /// # Errors
    /// [`Failure`] if the letter cannot be written.
    async fn letter(&self, job: &Job) -> Result<Option<Letter>, Failure>;
}

/// Handler of the jobs that send a letter.
#[derive(Debug)]
pub struct MailHandler {
    composer: Arc<dyn Compose>,
    mailer: Arc<dyn Mailer>,
}

impl MailHandler {
    /// Creates a handler that sends the letters of `composer` by `mailer`.
    pub fn new(composer: Arc<dyn Compose>, mailer: Arc<dyn Mailer>) -> Self {
        Self { composer, mailer }
    }
}

#[async_trait]
impl Handler for MailHandler {
    async fn run(&self, job: &Job) -> Result<(), Failure> {
        // A letter that nobody needs is as good as sent, so the job is done.
        let Some(letter) = self.composer.letter(job).await? else {
            return Ok(());
        };
        self.mailer.send(&letter).await.map_err(|error| Failure {
            // A server that refuses an address will refuse it again; one that is busy will not.
            may_pass: error.retry() == Retry::Backoff,
            reason: chain(&error),
        })
    }
}
