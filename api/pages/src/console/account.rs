//! Forms of the account, another address of it, and its end.
//!
//! Invariant: a page that is opened by a link of a letter names the addresses of the change and nothing else of the account.

use askama::Template;
use types::money::MicroUsdc;
use types::vocabulary::LetterTopic;

use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::form::{Errors as _, FieldError};
use crate::time::Instant;

/// Forms of the settings: name, address, public name and letters.
#[derive(Clone, Debug, Default)]
pub struct AccountForms {
    /// Name as it is or was typed.
    pub name: String,
    /// Name that the form was made from. With another one by now nothing is changed.
    pub name_seen: String,
    /// New address as it was typed.
    pub email: String,
    /// Address that waits for its confirmation, and until when.
    pub waiting: Option<(String, Instant)>,
    /// Time until which the last change can be taken back, and no other begins.
    pub settled_at: Option<Instant>,
    /// True if the person signed in a short time ago. An older session does not change the address.
    pub is_fresh: bool,
    /// True if public pages leave the name out.
    pub is_hidden: bool,
    /// Letters that the person may do without.
    pub letters: Vec<LetterChoice>,
}

/// Kind of letters with the person's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LetterChoice {
    /// Topic of the letters.
    pub topic: LetterTopic,
    /// True if the person gets them.
    pub is_wanted: bool,
}

impl LetterChoice {
    /// Returns the words beside the box: what comes, and why.
    pub(crate) const fn words(self) -> (&'static str, &'static str) {
        match self.topic {
            LetterTopic::Approvals => (
                "An agent asks to buy something",
                "Without the e-mail it waits in the console, up to 24 hours.",
            ),
            LetterTopic::BoughtItems => ("Something you bought was taken down", "The library says so, too."),
            LetterTopic::Reports => (
                "Reports wait for a moderator",
                "At most one e-mail in 15 minutes. You are a moderator.",
            ),
        }
    }
}

/// State of a link about another address.
#[derive(Clone, Debug)]
pub enum EmailLinkState {
    /// The link works: a form to the same path with `token`.
    Ready {
        /// Token of the link.
        token: String,
        /// Address before the change.
        old: String,
        /// Address after the change.
        new: String,
    },
    /// It is done.
    Done {
        /// Address of the account now.
        email: String,
    },
    /// Another account has the address by now.
    Taken,
    /// The link is too old.
    Expired,
    /// The link was used before.
    Used,
    /// There is no such link.
    Unknown,
}

/// Page of a link about another address: `GET /verify/email` and `GET /verify/email/stop`.
#[derive(Debug, Template)]
#[template(path = "email-link.html")]
pub struct EmailLinkPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// True for the link that takes the change back.
    pub is_stop: bool,
    /// State of the link.
    pub state: EmailLinkState,
}

impl EmailLinkPage {
    const fn heading(&self) -> &'static str {
        match (&self.state, self.is_stop) {
            (EmailLinkState::Ready { .. }, false) => "Use this address for your account",
            (EmailLinkState::Ready { .. }, true) => "Keep the old address",
            (EmailLinkState::Done { .. }, false) => "Your address is changed",
            (EmailLinkState::Done { .. }, true) => "The old address stays",
            (EmailLinkState::Taken, _) => "The address is taken",
            (EmailLinkState::Expired, _) => "This link is too old",
            (EmailLinkState::Used, _) => "This link was used",
            (EmailLinkState::Unknown, _) => "There is no such link",
        }
    }

    /// Returns the path of the form.
    const fn action(&self) -> &'static str {
        if self.is_stop {
            "/verify/email/stop"
        } else {
            "/verify/email"
        }
    }
}

/// Matter that must end before an account can be closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenMatter {
    /// Matter, such as `1 payout is on its way`.
    pub what: String,
    /// Way in which it ends.
    pub next: &'static str,
    /// Page of it.
    pub href: &'static str,
}

/// `GET /console/settings/close`: what closing the account does, and what is in its way. A form to `POST
/// /console/settings/close` with `confirm`.
#[derive(Debug, Template)]
#[template(path = "console/close.html")]
pub struct CloseAccountPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Address of the account, which the person types.
    pub email: String,
    /// Matters that must end before the account can be closed; empty if nothing is in its way.
    pub open: Vec<OpenMatter>,
    /// Number of active agents.
    pub agents: u64,
    /// Credits that would be given up.
    pub credits: MicroUsdc,
    /// Shares that are still to be paid out.
    pub owed: MicroUsdc,
    /// Address that they go to.
    pub payout: Option<String>,
    /// True if the person signed in recently enough.
    pub is_fresh: bool,
    /// Address as it was typed.
    pub typed: String,
    /// Rules that the input breaks.
    pub errors: Vec<FieldError>,
}

/// Answer to the form that closed an account.
#[derive(Debug, Template)]
#[template(path = "account-closed.html")]
pub struct AccountClosedPage {
    /// Frame of the page.
    pub chrome: PageLayout,
}
