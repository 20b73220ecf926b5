//! Letters about what was done to an account: its suspension, the end of it, another payout address.

use mail::LetterBody;
use types::Timestamp;

use super::{LetterDraft, minute};

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
        .paragraph("Reply to this e-mail: say what the reason gets wrong, or what you have changed. A person reads it.")
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
        .facts([
            ("New address", address),
            ("Takes effect", minute(effective_at).as_str()),
        ])
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
