//! Jobs that send a letter.
//!
//! Invariants:
//! - Each try of a job sends the same letter under the same `Message-ID`, which is the id of the job.
//! - The reason of a failure, which goes to the log, does not name the recipient.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use mail::Mailer;
use store::Job;
use types::{Classify as _, Retry};

use super::JobHandler;
use crate::rules::jobs::{ComposeLetters, JobFailure};
use types::error::with_causes;

/// Handler of the jobs that send a letter.
#[derive(Debug)]
pub struct MailHandler {
    composer: Arc<dyn ComposeLetters>,
    mailer: Arc<dyn Mailer>,
}

impl MailHandler {
    /// Creates a handler that sends the letters of `composer` by `mailer`.
    pub fn new(composer: Arc<dyn ComposeLetters>, mailer: Arc<dyn Mailer>) -> Self {
        Self { composer, mailer }
    }
}

#[async_trait]
impl JobHandler for MailHandler {
    async fn run(&self, job: &Job) -> Result<(), JobFailure> {
        // A letter that nobody needs is as good as sent, so the job is done.
        let Some(letter) = self.composer.letter(job).await? else {
            return Ok(());
        };
        self.mailer.send(&letter).await.map_err(|error| JobFailure {
            // A server that refuses an address will refuse it again; one that is busy will not.
            may_pass: error.retry() == Retry::Backoff,
            reason: without(&with_causes(&error), &letter.to),
        })
    }
}

/// Returns what a mail server said without the address of the recipient, which servers repeat in any case.
fn without(said: &str, address: &str) -> String {
    let (lower, address) = (said.to_ascii_lowercase(), address.to_ascii_lowercase());
    let (mut rest, mut kept) = (0, String::with_capacity(said.len()));
    // Lower case of ASCII has the same length.
    for (at, found) in lower.match_indices(&address) {
        kept.push_str(&said[rest..at]);
        kept.push_str("recipient");
        rest = at + found.len();
    }
    kept.push_str(&said[rest..]);
    kept
}

#[cfg(test)]
mod tests {
    use mail::Letter;
    use types::Timestamp;

    use super::*;

    #[derive(Debug)]
    struct Refusing;

    #[async_trait]
    impl ComposeLetters for Refusing {
        async fn letter(&self, job: &Job) -> Result<Option<Letter>, JobFailure> {
            Ok(Some(Letter {
                id: job.id.clone(),
                to: "Ada@Example.org".to_owned(),
                subject: "A link".to_owned(),
                text: "The link.".to_owned(),
                html: "<p>The link.</p>".to_owned(),
            }))
        }
    }

    #[async_trait]
    impl Mailer for Refusing {
        async fn send(&self, letter: &Letter) -> Result<(), mail::Error> {
            let said = format!("550 <Ada@example.org>: no mailbox {} here", letter.to);
            Err(mail::Error::Refused(said))
        }
    }

    #[tokio::test]
    async fn the_reason_of_a_refusal_does_not_name_the_recipient() {
        let job = Job {
            id: "1".to_owned(),
            kind: "mail".to_owned(),
            operator: None,
            payload: String::new(),
            due_at: Timestamp::default(),
            attempts: 1,
            last_error: None,
            created_at: Timestamp::default(),
            failed_at: None,
        };
        let handler = MailHandler::new(Arc::new(Refusing), Arc::new(Refusing));
        let failure = handler.run(&job).await.unwrap_err();
        assert_eq!(
            failure.reason,
            "the mail server refused the letter: 550 <recipient>: no mailbox recipient here"
        );
        assert!(!failure.may_pass);
    }
}
