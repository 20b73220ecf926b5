//! Letters about an account: its links, its suspension, its payout address.

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
    LetterBody::new(format!("You get this because somebody signed up at {base} with this address."))
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
    LetterBody::new(format!("You get this because somebody typed this address at {base}/signin."))
        .at_a_glance(format!("Open the page and press its button. It works once, until {until}."))
        .paragraph(format!("To sign in at {base}, open this page and press its button:"))
        .button("Open the sign-in page", format!("{base}/signin/link?token={token}"))
        .paragraph(format!("The link works once, until {until}."))
        .note("If it was not you, do nothing: nobody can sign in without this link, and opening it changes nothing.")
}

/// Returns the letter about a suspension.
pub(super) fn suspended(to: String, reason: &str) -> LetterDraft {
    let body = LetterBody::new("You get this because the account is yours.")
        .at_a_glance("The reason, what has ended, and how to answer.")
        .paragraph("A person has suspended your account. The reason:")
        .quote(reason)
        .heading("Until the suspension ends")
        .items([
            "Your operator tokens, the keys of your agents and download addresses that were handed out do not work.",
            "Nothing of yours is sold and no earnings are paid out. What you earned stays yours.",
        ])
        .heading("What has ended, and does not come back with it")
        .items([
            "You are signed out, and links for signing in do not work any more.",
            "Every app is disconnected.",
            "Claim codes that nobody used are gone.",
            "Uploads that were not completed expire.",
        ])
        .heading("What stays")
        .paragraph(
            "Your published items stay listed, what is free of them stays readable, and who bought from you keeps \
             reading. Batches and texts that you sent are still checked. You keep what you bought.",
        )
        .heading("To answer")
        .paragraph(
            "Reply to this e-mail: say what the reason gets wrong, or what you have changed. A person reads it.",
        )
        .always_sent();
    LetterDraft {
        to,
        subject: "Your account is suspended",
        body,
    }
}

/// Returns the letter about the end of a suspension.
pub(super) fn restored(to: String, base: &str, reason: Option<&str>) -> LetterDraft {
    let mut body = LetterBody::new("You get this because the account is yours.")
        .at_a_glance("Your tokens and keys work again. Connect your apps anew.")
        .paragraph("The suspension of your account has ended.");
    if let Some(reason) = reason {
        body = body.paragraph("The reason:").quote(reason);
    }
    let body = body
        .paragraph(
            "Your operator tokens and the keys of your agents work again, and your items are sold again. Connect your \
             apps anew, and begin anew the uploads that were not completed.",
        )
        .button("Sign in", format!("{base}/signin"))
        .always_sent();
    LetterDraft {
        to,
        subject: "Your account is active again",
        body,
    }
}

/// Returns the letter about a change of the payout address.
pub(super) fn payout(to: String, base: &str, address: &str, effective_at: Timestamp) -> LetterDraft {
    let body = LetterBody::new("You get this because the account is yours.")
        .at_a_glance("Not you? Cancel the change before it takes effect.")
        .paragraph("The payout address of your account was changed.")
        .facts([("New address", address), ("Takes effect", minute(effective_at).as_str())])
        .paragraph("Until then, payouts go to the address that you had.")
        .button("See payouts", format!("{base}/console/money#payout"))
        .paragraph(
            "Not you? Sign in, cancel the change there, and end the sessions that you do not know in the settings.",
        )
        .always_sent();
    LetterDraft {
        to,
        subject: "Your payout address changes",
        body,
    }
}
