//! Letters with a link that lets a person in.
//!
//! Invariant: the token is in no job and no row, and opening the page of the link changes nothing.

use mail::LetterBody;
use store::LinkPurpose;
use types::{LinkId, Timestamp};

use super::{LetterDraft, minute};
use crate::error::ApiError;
use crate::secrets;
use crate::state::app::App;

/// Returns the letter with a link, if the link still works.
pub(super) async fn with_link(
    app: &App,
    purpose: LinkPurpose,
    id: LinkId,
    now: Timestamp,
) -> Result<Option<LetterDraft>, ApiError> {
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
    let until = minute(link.expires_at);
    let (subject, body) = match purpose {
        LinkPurpose::Verify => ("Confirm your address", verify(app, &token, &until)),
        LinkPurpose::SignIn => ("Sign in", sign_in(&app.config.public_url, &token, &until)),
    };
    Ok(Some(LetterDraft {
        to: link.email,
        subject,
        body,
    }))
}

fn verify(app: &App, token: &str, until: &str) -> LetterBody {
    let config = &app.config;
    let (base, version, terms) = (&config.public_url, &config.terms_version, &config.terms_url);
    LetterBody::new(format!(
        "You get this because somebody signed up at {base} with this address."
    ))
    .at_a_glance(format!("Open the page and press its button, until {until}."))
    .paragraph(format!(
        "Somebody signed up at {base} with this address. If it was you, open this page and press its button:"
    ))
    .button("Confirm your address", format!("{base}/verify?token={token}"))
    .paragraph(format!("The link works once, until {until}."))
    .paragraph(format!(
        "By pressing the button on the page, or by using the token in any other way, you state that you are 19 years \
             old or older, and you accept the terms of service, version {version}: {terms}"
    ))
    .note("If it was not you, do nothing. The sign-up is deleted after 72 hours.")
}

fn sign_in(base: &str, token: &str, until: &str) -> LetterBody {
    LetterBody::new(format!(
        "You get this because somebody typed this address at {base}/signin."
    ))
    .at_a_glance(format!(
        "Open the page and press its button. It works once, until {until}."
    ))
    .paragraph(format!("To sign in at {base}, open this page and press its button:"))
    .button("Open the sign-in page", format!("{base}/signin/link?token={token}"))
    .paragraph(format!("The link works once, until {until}."))
    .note("If it was not you, do nothing: nobody can sign in without this link, and opening it changes nothing.")
}
