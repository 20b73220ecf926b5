//! Letters to people, rendered when their job runs.
//!
//! Invariants:
//! - A job's payload has no secret: the token of a link is derived from the link's id, so each try is the same letter.
//! - A letter says why it came, and how to stop its kind or that it cannot be stopped.
//! - A letter has no text that a stranger chose: whoever signs up with the address of another cannot write to them.

use async_trait::async_trait;
use mail::{Letter, LetterBody};
use serde::{Deserialize, Serialize};
use store::{EmailLink, Job, LinkPurpose, Mail, NewJob};
use types::{ApprovalId, DisputeId, Kind, LinkId, OperatorId, ReportId, TakedownId, Timestamp};

use crate::error::ApiError;
use crate::ids;
use crate::rules::jobs::{ComposeLetters, JobFailure};
use crate::state::app::App;

mod account;
mod approval;
mod disputes;
mod links;
mod moderation;
mod notices;

pub use disputes::{dispute_answered, dispute_decided, dispute_opened};
pub use moderation::{decision, digest};

/// Kind of the jobs that send letters.
pub const KIND: &str = "mail";

/// Contents of a job that sends a letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "letter", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum LetterPayload {
    /// No letter: the job of a request for an address that is not entitled to one.
    Nothing {
        /// Id of a link that does not exist, so that the payload has the length of another.
        link: LinkId,
    },
    /// Link that confirms an address.
    Verify {
        /// Id of the link.
        link: LinkId,
    },
    /// Link for signing in.
    SignIn {
        /// Id of the link.
        link: LinkId,
    },
    /// Link that confirms another address of an account, to that address.
    // The word is as long as `nothing`, so that the payloads have one length.
    Address {
        /// Id of the link.
        link: LinkId,
    },
    /// Change of the address of an account, to the old one.
    AddressChanges {
        /// Id of the link that takes it back.
        link: LinkId,
    },
    /// Suspension of an account, with its reason.
    Suspended {
        /// Suspended operator.
        operator: OperatorId,
        /// Reason, as the administrator wrote it.
        reason: String,
    },
    /// End of a suspension.
    Restored {
        /// Operator that was suspended.
        operator: OperatorId,
        /// Reason, as the administrator wrote it, if any.
        reason: Option<String>,
    },
    /// Change of the payout address.
    PayoutChanged {
        /// Operator whose address changes.
        operator: OperatorId,
        /// New address.
        address: String,
        /// Instant from which it is in force, in microseconds since 1970.
        effective_at: i64,
    },
    /// Purchase of an agent that waits for its person.
    Approval {
        /// Row that waits.
        approval: ApprovalId,
    },
    /// Takedown of an item, to its owner.
    TakenDown {
        /// Takedown that hides the item.
        takedown: TakedownId,
    },
    /// End of a takedown, to the owner.
    ItemRestored {
        /// Takedown that has ended.
        takedown: TakedownId,
    },
    /// Takedown of an item, to an operator that bought it.
    BoughtTakenDown {
        /// Takedown that hides the bought item.
        takedown: TakedownId,
    },
    /// Address of the outcome of a report, to who reported without a key.
    Reported {
        /// Report whose outcome it is.
        report: ReportId,
    },
    /// Dispute that was opened, to the seller, to the buyer if an administrator opened it, and to the administrator in a job of
    /// no operator.
    DisputeOpened {
        /// Id of the dispute.
        dispute: DisputeId,
    },
    /// Answer of the seller, to the buyer and the administrator.
    DisputeAnswered {
        /// Id of the dispute.
        dispute: DisputeId,
    },
    /// End of a dispute, to the seller and the buyer.
    DisputeDecided {
        /// Id of the dispute.
        dispute: DisputeId,
    },
    /// Reports and answers of a while, to a moderator, or to the administrator in a job of no operator.
    ReportDigest {
        /// Beginning of the while, in microseconds since 1970.
        from: i64,
        /// End of the while.
        to: i64,
    },
}

/// Returns a letter to be sent: the job with this payload, counted toward the day of `now`. Without `budget` it is
/// always sent.
pub fn mail(payload: &LetterPayload, operator: Option<OperatorId>, budget: Option<u32>, now: Timestamp) -> Mail {
    Mail {
        job: NewJob {
            id: ids::new(now),
            kind: KIND.to_owned(),
            // Two letters of one kind to one person are two letters: each has a link of its own.
            dedupe: None,
            operator,
            payload: input(payload),
            due_at: now,
            now,
        },
        day: now.day(),
        budget,
    }
}

/// Returns the part of a day's letters that strangers can cause for any address: they never use up the last tenth.
pub(crate) const fn for_strangers(all: u32) -> u32 {
    all - all / 10
}

/// Returns the input of a job.
pub fn input(payload: &LetterPayload) -> String {
    // Words, ids and texts always have a JSON form.
    serde_json::to_string(payload).unwrap_or_default()
}

/// Writer of the letters of jobs.
#[derive(Debug)]
pub struct Letters {
    app: App,
}

impl Letters {
    /// Creates a writer of letters about the accounts of `app`.
    pub const fn new(app: App) -> Self {
        Self { app }
    }
}

#[async_trait]
impl ComposeLetters for Letters {
    async fn letter(&self, job: &Job) -> Result<Option<Letter>, JobFailure> {
        let now = self.app.clock.now();
        let rendered = letter(&self.app, job, now).await;
        rendered.map_err(|error| JobFailure {
            reason: error.reason().to_owned(),
            // A payload that this build cannot read stays unreadable; a database that is away comes back.
            may_pass: error.kind() != Kind::Internal,
        })
    }
}

/// Returns the letter of a job; `None` if there is nothing to send any more, for example because the link was used.
///
/// # Errors
/// A payload that this build does not know, or a database that does not answer.
pub(crate) async fn letter(app: &App, job: &Job, now: Timestamp) -> Result<Option<Letter>, ApiError> {
    let payload: LetterPayload =
        serde_json::from_str(&job.payload).map_err(|error| ApiError::internal(format!("job {}: {error}", job.id)))?;
    // Decided when it is sent, so that a choice of a minute ago counts.
    if account::is_muted(app, &payload, job.operator).await? {
        return Ok(None);
    }
    let draft: Option<LetterDraft> = match &payload {
        // The work of a letter was done for an address without an account, and nobody gets one.
        LetterPayload::Nothing { .. } => None,
        LetterPayload::Verify { link } => links::with_link(app, LinkPurpose::Verify, *link, now).await?,
        LetterPayload::SignIn { link } => links::with_link(app, LinkPurpose::SignIn, *link, now).await?,
        LetterPayload::Address { link } => account::address(app, EmailLink::Confirm, *link, now).await?,
        LetterPayload::AddressChanges { link } => account::address(app, EmailLink::Stop, *link, now).await?,
        LetterPayload::Suspended { operator, reason } => {
            let to = to(app, *operator).await?;
            to.map(|to| notices::suspended(to, reason))
        }
        LetterPayload::Restored { operator, reason } => {
            let to = to(app, *operator).await?;
            to.map(|to| notices::restored(to, &app.config.public_url, reason.as_deref()))
        }
        LetterPayload::PayoutChanged {
            operator,
            address,
            effective_at,
        } => {
            let effective_at = Timestamp::from_micros(*effective_at);
            let to = to(app, *operator).await?;
            to.map(|to| notices::payout(to, &app.config.public_url, address, effective_at))
        }
        LetterPayload::Approval { approval } => approval::asked(app, job.operator, *approval, now).await?,
        LetterPayload::Reported { report } => moderation::reported(app, *report, now).await?,
        LetterPayload::DisputeOpened { dispute }
        | LetterPayload::DisputeAnswered { dispute }
        | LetterPayload::DisputeDecided { dispute } => {
            disputes::addressed(app, job.operator, &payload, *dispute).await?
        }
        LetterPayload::TakenDown { .. }
        | LetterPayload::ItemRestored { .. }
        | LetterPayload::BoughtTakenDown { .. }
        | LetterPayload::ReportDigest { .. } => moderation::addressed(app, job.operator, &payload).await?,
    };
    let home = &app.config.public_url;
    Ok(draft.map(|LetterDraft { to, subject, body }| Letter {
        id: job.id.clone(),
        to,
        subject: format!("{subject} - Sluice"),
        text: body.text(subject, home),
        html: body.html(subject, home),
    }))
}

/// A letter before its two forms are made: to whom it goes, its subject, and its body.
#[derive(Debug)]
struct LetterDraft {
    to: String,
    subject: &'static str,
    body: LetterBody,
}

/// Returns the address of an operator that has verified it.
async fn to(app: &App, operator: OperatorId) -> Result<Option<String>, ApiError> {
    let found = app.store.operator(operator).await?;
    Ok(found
        // An address that nobody verified may be a stranger's, who must not get letters about an account. A closed one has
        // none.
        .filter(|operator| operator.verified_at.is_some() && operator.closed_at.is_none())
        .map(|operator| operator.email))
}

/// Returns the address of the page on which a person chooses letters.
fn choice_page(app: &App) -> String {
    format!("{}/console/settings#letters", app.config.public_url)
}

/// Returns an instant for people, to the minute.
fn minute(instant: Timestamp) -> String {
    let text = instant.to_string();
    // RFC 3339 has the minute in its first 16 bytes, all ASCII.
    let head = text.get(..16).unwrap_or(&text);
    format!("{} UTC", head.replace('T', " "))
}
