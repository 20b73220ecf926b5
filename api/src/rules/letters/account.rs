//! Letters about another address of an account, and which letters a person does without.
//!
//! Invariants:
//! - The letter to the old address is always sent, and has a link that takes the change back.
//! - No letter names the other address: who asks for a change chose it.

use types::vocabulary::{EmailLink, LetterTopic};
use types::{LinkId, OperatorId, Timestamp};

use super::{Addressed, LetterPayload, minute};
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
) -> Result<Option<Addressed>, ApiError> {
    // The token is derived again: the job and the database have no token that could be stolen from them.
    let token = app.process.links.signer(&app.store, now).await?.email_token(link, id);
    let accounts = app.store.accounts();
    let Ok(change) = accounts.email_link(&secrets::hash(&token), link, now).await? else {
        return Ok(None);
    };
    let base = &app.config.public_url;
    Ok(Some(match link {
        EmailLink::Confirm => {
            let until = minute(change.confirm_until);
            let text = format!(
                "Hello,\n\n\
                 an account at {base} wants to use this address.\n\
                 If it is yours, open this page and press the button:\n\n\
                 {base}/verify/email?token={token}\n\n\
                 The link works once, until {until}. From then on you sign in with\n\
                 this address, and no longer with the one that you had.\n\n\
                 If it was not you, do nothing, and nothing happens.\n"
            );
            (change.new_email, "Confirm your new address", text)
        }
        EmailLink::Stop => {
            let until = minute(change.stop_until);
            let text = format!(
                "Hello,\n\n\
                 somebody who is signed in to your account at {base}\n\
                 asked to change its e-mail address. It changes as soon as the new\n\
                 address is confirmed; then you sign in with that one.\n\n\
                 If it was you, do nothing.\n\n\
                 If it was not you, open this page and press the button. The change is\n\
                 taken back, also if it was confirmed, and every session ends:\n\n\
                 {base}/verify/email/stop?token={token}\n\n\
                 The link works until {until}.\n"
            );
            (change.old_email, "Your e-mail address changes", text)
        }
    }))
}
