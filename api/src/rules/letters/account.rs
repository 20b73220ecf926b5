//! Letters about another address of an account, and which letters a person does without.
//!
//! Invariants:
//! - The letter to the old address is always sent, and has a link that takes the change back.
//! - No letter names the other address: who asks for a change chose it.

use mail::LetterBody;
use types::vocabulary::{EmailLink, LetterTopic};
use types::{LinkId, OperatorId, Timestamp};

use super::{LetterDraft, LetterPayload, minute};
use crate::error::ApiError;
use crate::secrets;
use crate::state::app::App;

impl LetterPayload {
    /// Returns the topic of a letter that its recipient may do without.
    const fn topic(&self) -> Option<LetterTopic> {
        match self {
            Self::Approval { .. } => Some(LetterTopic::Approvals),
            Self::BoughtTakenDown { .. } => Some(LetterTopic::BoughtItems),
            Self::ReportDigest { .. } => Some(LetterTopic::Reports),
            _ => None,
        }
    }
}

/// Returns true if the recipient does without the letter.
pub(super) async fn is_muted(
    app: &App,
    payload: &LetterPayload,
    operator: Option<OperatorId>,
) -> Result<bool, ApiError> {
    let (Some(topic), Some(operator)) = (payload.topic(), operator) else {
        return Ok(false);
    };
    let found = app.store.operator(operator).await?;
    Ok(found.is_some_and(|operator| operator.muted_letters.contains(&topic)))
}

/// Returns the letter with a link about another address, if the link still does something.
pub(super) async fn address(
    app: &App,
    link: EmailLink,
    id: LinkId,
    now: Timestamp,
) -> Result<Option<LetterDraft>, ApiError> {
    // The token is derived again: the job and the database have no token that could be stolen from them.
    let token = app.process.links.signer(&app.store, now).await?.email_token(link, id);
    let accounts = app.store.accounts();
    let Ok(change) = accounts.email_link(&secrets::hash(&token), link, now).await? else {
        return Ok(None);
    };
    let base = &app.config.public_url;
    Ok(Some(match link {
        EmailLink::Confirm => LetterDraft {
            to: change.new_email,
            subject: "Confirm your new address",
            body: confirm(base, &token, &minute(change.confirm_until)),
        },
        EmailLink::Stop => LetterDraft {
            to: change.old_email,
            subject: "Your e-mail address changes",
            body: stop(base, &token, &minute(change.stop_until)),
        },
    }))
}

fn confirm(base: &str, token: &str, until: &str) -> LetterBody {
    LetterBody::new(format!(
        "You get this because an account at {base} wants to use this address."
    ))
    .at_a_glance(format!("Open the page and press its button, until {until}."))
    .paragraph(format!(
        "An account at {base} wants to use this address. If it is yours, open this page and press its button:"
    ))
    .button("Confirm your new address", format!("{base}/verify/email?token={token}"))
    .paragraph(format!(
        "The link works once, until {until}. From then on you sign in with this address, and no longer with the one \
             that you had."
    ))
    .note("If it was not you, do nothing, and nothing happens.")
}

fn stop(base: &str, token: &str, until: &str) -> LetterBody {
    LetterBody::new("You get this because the account is yours.")
        .at_a_glance("Not you? Take the change back.")
        .paragraph(format!(
            "Somebody who is signed in to your account at {base} asked to change its e-mail address. It changes as soon \
             as the new address is confirmed; then you sign in with that one. If it was you, do nothing."
        ))
        .heading("If it was not you")
        .paragraph(
            "Open this page and press its button. The change is taken back, also if it was confirmed. Every session \
             and app ends, and keys and tokens that were made since work no more:",
        )
        .button("Take the change back", format!("{base}/verify/email/stop?token={token}"))
        .paragraph(format!("The link works until {until}."))
        .always_sent()
}
