//! Ways into an account: sign-up, a link by mail, the use of a verification link.
//!
//! Invariant: nobody but the person can accept the terms: by naming the version in force at sign-up, and with the use
//! of the link that only the mailbox's reader has. No agent key is read on the way.

use std::net::IpAddr;

use store::{LinkPurpose, LinkRefused, LinkRequest, LinkRequested, NewLink, NewSession, NewSignUp, SignedUp};
use types::{LinkId, OperatorId, SessionId, Timestamp};

use super::address;
use crate::codes::ErrorCode;
use crate::error::{ApiError, whole_seconds};
use crate::rules::letters::{self, LetterPayload};
use crate::secrets::{self, Secret, SecretKind};
use crate::state::app::App;

const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;
/// Microseconds for which a verification link works.
pub(crate) const VERIFY: i64 = DAY;
/// Microseconds for which a link for signing in works.
pub(crate) const SIGN_IN: i64 = HOUR / 4;
/// Microseconds after which a sign-up that was not verified is deleted.
pub(crate) const UNVERIFIED: i64 = 3 * DAY;
/// Seconds for which a session lasts, used or not.
pub(crate) const SESSION_SECONDS: i64 = 14 * 24 * 3_600;
/// Path of the page that takes requests for an invitation.
const INVITE: &str = "/invite";

/// Sign-up as a person filled it in.
#[derive(Clone, Debug)]
pub(crate) struct SignUp {
    pub(crate) email: String,
    pub(crate) display_name: String,
    /// Version of the terms that the person accepts.
    pub(crate) accept_terms: Option<String>,
}

/// Makes an unverified account and the job of its letter.
pub(crate) async fn sign_up(app: &App, input: SignUp, now: Timestamp) -> Result<OperatorId, ApiError> {
    let config = &app.config;
    // The version is named and not only agreed to, so nobody accepts a text that was replaced after it was read.
    if input.accept_terms.as_deref() != Some(config.terms_version.as_str()) {
        let problem = "must be the version of the terms in force";
        return Err(ApiError::invalid("/acceptTerms", problem)
            .with_code(ErrorCode::TermsNotAccepted)
            .field("termsVersion", config.terms_version.as_str())
            .field("termsUrl", config.terms_url.as_str()));
    }
    address::check("/email", &input.email)?;
    // Such an address is nobody's after some minutes, and then anybody's who asks for it: a link to it would give the
    // account away.
    if address::is_disposable(&input.email) {
        let problem = "must be an address that lasts; addresses for some minutes are not taken";
        return Err(ApiError::invalid("/email", problem).with_code(ErrorCode::EmailDisposable));
    }
    if input.display_name.trim().is_empty() {
        return Err(ApiError::invalid("/displayName", "must have a visible character"));
    }
    let id = OperatorId::new(now);
    let link = link(app, LinkPurpose::Verify, now).await?;
    let new = NewSignUp {
        id,
        email: input.email,
        display_name: input.display_name,
        terms_version: config.terms_version.clone(),
        // Whether the address has an invitation is decided in the transaction that uses it up.
        by_invitation: !config.signup_open,
        mail: letters::mail(
            &LetterPayload::Verify { link: link.id },
            Some(id),
            Some(budget(app, LinkPurpose::Verify)),
            now,
        ),
        link,
        stale: Timestamp::from_micros(now.micros() - UNVERIFIED),
        now,
    };
    let made = app.store.accounts().sign_up(new).await?;
    match made {
        SignedUp::Created => {
            types::fault::point("signup.commit");
            Ok(id)
        }
        SignedUp::NotInvited => {
            let message = "sign-up is by invitation, and the address has none";
            let invite = format!("{}{INVITE}", config.public_url);
            Err(ApiError::new(ErrorCode::SignUpByInvitation, message).field("invite", invite))
        }
        SignedUp::EmailTaken => Err(ApiError::new(
            ErrorCode::EmailTaken,
            "the address, or another spelling of its mailbox, has an account or a sign-up",
        )),
        SignedUp::MailSpent => Err(mail_spent(now)),
    }
}

/// Mails a link to the account with this address, if it is entitled to one. The answer is the same if not.
pub(crate) async fn request_link(app: &App, email: &str, purpose: LinkPurpose, now: Timestamp) -> Result<(), ApiError> {
    address::check_known("/email", email)?;
    let link = link(app, purpose, now).await?;
    let payload = match purpose {
        LinkPurpose::Verify => LetterPayload::Verify { link: link.id },
        LinkPurpose::SignIn => LetterPayload::SignIn { link: link.id },
    };
    let mail = letters::mail(&payload, None, Some(budget(app, purpose)), now);
    let request = LinkRequest {
        email: email.to_owned(),
        // Without an account the same work is done with a letter to nobody, so the time of the answer reveals nothing.
        blank: letters::mail(&LetterPayload::Nothing { link: link.id }, None, None, now).job,
        link,
        mail,
        now,
    };
    match app.store.accounts().link_request(request, purpose).await? {
        LinkRequested::Taken => Ok(()),
        LinkRequested::MailSpent => Err(mail_spent(now)),
    }
}

/// Uses a verification link: the account is active, and the person has stated to be 19 or older and accepted the terms
/// in force. With `session`, the person is signed in, too.
pub(crate) async fn use_verification(
    app: &App,
    token: &str,
    session: Option<NewSession>,
    now: Timestamp,
) -> Result<OperatorId, ApiError> {
    let terms = app.config.terms_version.clone();
    // The terms in force now, which the letter names, and not those of the day of the sign-up.
    let accounts = app.store.accounts();
    let used = accounts.verify(secrets::hash(token), terms, session, now).await?;
    let operator = used.map_err(refused)?;
    let (money, tariff) = (app.store.money(), &app.pay);
    // A gift that is not given here is given by the keeper of the money within minutes.
    let given = money.gift(&tariff.asset, operator, tariff.given_at_sign_up, now).await;
    if let Err(error) = given {
        tracing::debug!(%error, "cannot give the credits of a sign-up; they are given later");
    }
    Ok(operator)
}

/// Uses a link for signing in, and begins the session.
pub(crate) async fn sign_in(
    app: &App,
    token: &str,
    session: NewSession,
    now: Timestamp,
) -> Result<OperatorId, ApiError> {
    let used = app.store.accounts().sign_in(secrets::hash(token), session, now).await?;
    used.map_err(refused)
}

/// Returns a session for a browser, and its token.
pub(crate) fn new_session(client: IpAddr, user_agent: &str, now: Timestamp) -> Result<(NewSession, String), ApiError> {
    let secret = Secret::generate(SecretKind::Session).map_err(ApiError::unavailable)?;
    let session = NewSession {
        id: SessionId::new(now),
        token_hash: secret.hash(),
        expires_at: Timestamp::from_micros(now.micros() + SESSION_SECONDS * 1_000_000),
        address: client.to_string(),
        user_agent: user_agent.to_owned(),
    };
    Ok((session, secret.reveal()))
}

/// Returns the error for a link that does not work.
fn refused(reason: LinkRefused) -> ApiError {
    match reason {
        LinkRefused::Unknown => ApiError::invalid("/token", "must be the token of a link that was mailed")
            .with_code(ErrorCode::TokenUnknown),
        LinkRefused::Used => ApiError::new(ErrorCode::TokenUsed, "the link was used before"),
        LinkRefused::Expired => {
            let message = "the time of the link is over; ask for another";
            ApiError::new(ErrorCode::TokenExpired, message)
        }
    }
}

/// Returns a new link with the hash of its token, which is derived from its id.
async fn link(app: &App, purpose: LinkPurpose, now: Timestamp) -> Result<NewLink, ApiError> {
    let id = LinkId::new(now);
    let token = app.process.links.signer(&app.store, now).await?.mail_token(purpose, id);
    let lasts = match purpose {
        LinkPurpose::Verify => VERIFY,
        LinkPurpose::SignIn => SIGN_IN,
    };
    Ok(NewLink {
        id,
        token_hash: secrets::hash(&token),
        expires_at: Timestamp::from_micros(now.micros() + lasts),
    })
}

/// Returns the number of letters of the day at which no further one of this kind is sent. A tenth is kept for people
/// who sign in, so that a flood of sign-ups does not lock them out.
fn budget(app: &App, purpose: LinkPurpose) -> u32 {
    let all = app.config.mails_per_day;
    match purpose {
        LinkPurpose::Verify => letters::for_strangers(all),
        LinkPurpose::SignIn => all,
    }
}

/// Returns the 503 for a day whose letters are spent.
pub(super) fn mail_spent(now: Timestamp) -> ApiError {
    // The budget begins anew with the UTC day, so a try before it would fail as well.
    let again = now.next_day();
    let seconds = whole_seconds(again.since(now)).max(1);
    let message = "the letters of the day are spent; nothing was made or sent";
    ApiError::new(ErrorCode::MailSpent, message)
        .field("retryAt", again.to_string())
        .retry_after(seconds)
}
