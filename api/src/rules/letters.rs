//! Letters to people, rendered when their job runs.
//!
//! Invariants:
//! - A job's payload has no secret: the token of a link is derived from the link's id, so each try is the same letter.
//! - The lines are short, so that a letter is sent as it is and its file can be read.
//! - A letter has no text that a stranger chose: whoever signs up with the address of another cannot write to them.

use async_trait::async_trait;
use mail::Letter;
use serde::{Deserialize, Serialize};
use store::{ApprovalState, ItemKind, Job, LinkPurpose, Mail, NewJob};
use types::{ApprovalId, DisputeId, Kind, LinkId, OperatorId, ReportId, TakedownId, Timestamp};

use crate::error::ApiError;
use crate::ids;
use crate::rules::jobs::{ComposeLetters, JobFailure};
use crate::secrets;
use crate::state::app::App;

mod disputes;
mod moderation;

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
    let addressed = match &payload {
        // The work of a letter was done for an address without an account, and nobody gets one.
        LetterPayload::Nothing { .. } => None,
        LetterPayload::Verify { link } => with_link(app, LinkPurpose::Verify, *link, now).await?,
        LetterPayload::SignIn { link } => with_link(app, LinkPurpose::SignIn, *link, now).await?,
        LetterPayload::Suspended { operator, reason } => to(app, *operator).await?.map(|to| {
            let text = suspended(&app.config.public_url, reason);
            (to, "Your account is suspended", text)
        }),
        LetterPayload::Restored { operator, reason } => to(app, *operator).await?.map(|to| {
            let text = restored(&app.config.public_url, reason.as_deref());
            (to, "Your account is active again", text)
        }),
        LetterPayload::PayoutChanged {
            operator,
            address,
            effective_at,
        } => to(app, *operator).await?.map(|to| {
            let text = payout(&app.config.public_url, address, Timestamp::from_micros(*effective_at));
            (to, "Your payout address changes", text)
        }),
        LetterPayload::Approval { approval } => asked(app, job.operator, *approval, now).await?,
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
    Ok(addressed.map(|(to, subject, text)| Letter {
        id: job.id.clone(),
        to,
        subject: format!("{subject} - Sluice"),
        text,
    }))
}

type Addressed = (String, &'static str, String);

/// Returns the address of an operator that has verified it.
async fn to(app: &App, operator: OperatorId) -> Result<Option<String>, ApiError> {
    let found = app.store.operator(operator).await?;
    Ok(found
        // An address that nobody verified may be a stranger's, who must not get letters about an account.
        .filter(|operator| operator.verified_at.is_some())
        .map(|operator| operator.email))
}

/// Returns the letter with a link, if the link still works.
async fn with_link(app: &App, purpose: LinkPurpose, id: LinkId, now: Timestamp) -> Result<Option<Addressed>, ApiError> {
    // The token is derived again: the job and the database have no token that could be stolen from them.
    let token = app.process.links.signer(&app.store, now).await?.mail_token(purpose, id);
    // The link may have been used, or its time may be over, before the letter could be sent.
    let Ok(link) = app
        .store
        .accounts()
        .mail_link(&secrets::hash(&token), purpose, now)
        .await?
    else {
        return Ok(None);
    };
    let config = &app.config;
    let base = &config.public_url;
    let until = minute(link.expires_at);
    let (subject, text) = match purpose {
        LinkPurpose::Verify => {
            let (version, terms) = (&config.terms_version, &config.terms_url);
            let text = format!(
                "Hello,\n\n\
                 somebody signed up at {base} with this address.\n\
                 If it was you, open this page and press the button:\n\n\
                 {base}/verify?token={token}\n\n\
                 The link works once, until {until}.\n\n\
                 By pressing the button, or by using the token in any other way, you\n\
                 state that you are 19 years old or older, and you accept the terms of\n\
                 service, version {version}:\n\
                 {terms}\n\n\
                 If it was not you, do nothing. The sign-up is deleted after 72 hours.\n"
            );
            ("Confirm your address", text)
        }
        LinkPurpose::SignIn => {
            let text = format!(
                "Hello,\n\n\
                 to sign in at {base}, open this page and press\n\
                 the button:\n\n\
                 {base}/signin/link?token={token}\n\n\
                 The link works once, until {until}.\n\n\
                 If you did not ask for it, do nothing. Nobody can sign in without this\n\
                 link.\n"
            );
            ("Sign in", text)
        }
    };
    Ok(Some((link.email, subject, text)))
}

/// Returns the letter about a purchase that waits; `None` once it does no more.
async fn asked(
    app: &App,
    operator: Option<OperatorId>,
    id: ApprovalId,
    now: Timestamp,
) -> Result<Option<Addressed>, ApiError> {
    let Some(operator) = operator else { return Ok(None) };
    let approval = app.store.money().approval(operator, id, now).await?;
    let Some(approval) = approval.filter(|approval| approval.state == ApprovalState::Waiting) else {
        return Ok(None);
    };
    let item = match approval.kind {
        ItemKind::Unit => "a knowledge unit",
        ItemKind::Dataset => "a version of a dataset",
    };
    // No title and no words of the agent: a letter has no text that a stranger chose.
    let text = format!(
        "Hello,\n\n\
         your agent\n\n\
         {}\n\n\
         wants to buy {item} for ${} in test USDC.\n\
         Decide on this page, where you sign in first:\n\n\
         {}\n\n\
         It waits until {}. If you do nothing, nothing is bought.\n",
        quoted(&approval.agent_name),
        approval.price,
        app.config.approval_page(id),
        minute(approval.expires_at)
    );
    let to = to(app, operator).await?;
    Ok(to.map(|to| (to, "Your agent asks to buy something", text)))
}

fn suspended(base: &str, reason: &str) -> String {
    format!(
        "Hello,\n\n\
         your account at {base} is suspended. The reason:\n\n\
         {}\n\n\
         Until the suspension ends:\n\n\
         - Your operator tokens, the keys of your agents and download addresses\n\
         \x20 that were handed out do not work.\n\
         - Nothing of yours is sold and no earnings are paid out. What you earned\n\
         \x20 stays yours.\n\n\
         These have ended and do not come back with it:\n\n\
         - You are signed out, and links for signing in do not work any more.\n\
         - Every app is disconnected.\n\
         - Claim codes that nobody used are gone.\n\
         - Uploads that were not completed expire.\n\n\
         Your published items stay listed, what is free of them stays readable,\n\
         and who bought from you keeps reading. Batches and texts that you sent\n\
         are still judged. You keep what you bought.\n\n\
         To answer, reply to this letter: say what the reason gets wrong, or\n\
         what you have changed. A person reads it.\n",
        quoted(reason)
    )
}

fn restored(base: &str, reason: Option<&str>) -> String {
    let reason = reason.map(|reason| format!("The reason:\n\n{}\n\n", quoted(reason)));
    format!(
        "Hello,\n\n\
         the suspension of your account at {base} has ended.\n\n\
         {}Your operator tokens and the keys of your agents work again, and\n\
         your items are sold again. Connect your apps anew, and begin anew the\n\
         uploads that were not completed.\n\
         Sign in at {base}/signin.\n",
        reason.unwrap_or_default()
    )
}

fn payout(base: &str, address: &str, effective_at: Timestamp) -> String {
    format!(
        "Hello,\n\n\
         the payout address of your account at {base} was\n\
         changed to:\n\n\
         {}\n\n\
         The change takes effect at {}. Until then, payouts go\n\
         to the address that you had.\n\n\
         If it was not you, sign in at {base}/signin,\n\
         cancel the change in the settings, and end the sessions that you do not\n\
         know.\n",
        quoted(address),
        minute(effective_at)
    )
}

/// Indents a text that the letter quotes.
fn quoted(text: &str) -> String {
    text.lines()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns an instant for people, to the minute.
fn minute(instant: Timestamp) -> String {
    let text = instant.to_string();
    // RFC 3339 has the minute in its first 16 bytes, all ASCII.
    let head = text.get(..16).unwrap_or(&text);
    format!("{} UTC", head.replace('T', " "))
}
