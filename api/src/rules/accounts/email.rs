//! Another address of an account: what may be asked for, and its two letters.
//!
//! Invariant: the answer to who asks is the same whether or not another account has the address.

use std::time::Duration;

use store::{EmailChangeAsked, EmailLink, NewEmailChange, NewLink};
use types::{LinkId, OperatorId, Timestamp};

use super::address;
use super::entry::mail_spent;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::rules::letters::{self, LetterPayload};
use crate::secrets;
use crate::state::app::App;
use crate::state::links::AddressSigner;

/// Time for which a new address can be confirmed.
const CONFIRM_LASTS: Duration = Duration::from_hours(24);
/// Time for which the old address can take a change back.
const STOP_LASTS: Duration = Duration::from_hours(7 * 24);

/// Asks for another address of an account. Its letters go to the new address, unless another account has it, and to the old
/// one.
///
/// # Errors
/// 400 for a text that is no lasting address, for the address that the account has, and while the last change can be taken
/// back; 503 if the letters of the day are spent.
pub(crate) async fn change_email(app: &App, operator: OperatorId, email: &str, now: Timestamp) -> Result<(), ApiError> {
    address::check("/email", email)?;
    if address::is_disposable(email) {
        let problem = "must be an address that lasts; addresses for some minutes are not taken";
        return Err(ApiError::invalid("/email", problem).with_code(ErrorCode::EmailDisposable));
    }
    let signer = app.process.links.signer(&app.store, now).await?;
    let confirm = link(&signer, EmailLink::Confirm, CONFIRM_LASTS, now);
    let stop = link(&signer, EmailLink::Stop, STOP_LASTS, now);
    let budget = Some(letters::for_strangers(app.config.mails_per_day));
    let new = NewEmailChange {
        operator,
        email: email.to_owned(),
        to_new: letters::mail(&LetterPayload::Address { link: confirm.id }, None, budget, now),
        blank: letters::mail(&LetterPayload::Nothing { link: confirm.id }, None, None, now).job,
        // Without a budget: the owner must hear of the change while it can still be taken back.
        to_old: letters::mail(
            &LetterPayload::AddressChanges { link: stop.id },
            Some(operator),
            None,
            now,
        ),
        confirm,
        stop,
        now,
    };
    match app.store.accounts().email_change(new).await? {
        EmailChangeAsked::Asked => Ok(()),
        EmailChangeAsked::Same => Err(ApiError::invalid("/email", "is the address of the account already")),
        EmailChangeAsked::TooSoon { until } => Err(ApiError::invalid(
            "/email",
            format!("cannot change before {until}, until when the old address can take the last change back"),
        )),
        EmailChangeAsked::MailSpent => Err(mail_spent(now)),
    }
}

fn link(signer: &AddressSigner, purpose: EmailLink, lasts: Duration, now: Timestamp) -> NewLink {
    let id = LinkId::new(now);
    NewLink {
        id,
        token_hash: secrets::hash(&signer.email_token(purpose, id)),
        expires_at: now.plus(lasts),
    }
}
