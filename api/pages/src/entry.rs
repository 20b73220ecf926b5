//! Pages before a session: sign-up, invitation, letters, sign-in.
//!
//! Invariant: none of them tells whether an address has an account.

use askama::Template;

use crate::chrome::{PageLayout, Theme};
use crate::form::{Errors as _, FieldError};
use crate::time::Instant;

/// `GET /signup`: a form to `POST /signup` with `email`, `display_name`, `accept_terms` (the version of the terms), `adult`
/// and, if given, `next`.
#[derive(Debug, Template)]
#[template(path = "signup.html")]
pub struct SignUpPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// True if everybody may sign up, false if only invited addresses may.
    pub open: bool,
    /// Version of the terms in force.
    pub terms_version: String,
    /// Address as the person typed it.
    pub email: String,
    /// Display name, as typed.
    pub display_name: String,
    /// True if the terms were accepted.
    pub accepted: bool,
    /// True if the person stated to be 19 or older.
    pub adult: bool,
    /// Path to go to afterwards.
    pub next: Option<String>,
    /// Rules that the input breaks.
    pub errors: Vec<FieldError>,
}

/// `GET /invite`: a form to `POST /invite` with `email` and `message`.
#[derive(Debug, Template)]
#[template(path = "invite.html")]
pub struct InvitePage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// True after the form was sent; the same for every address.
    // The same for every address: a different answer for one that was invited would tell who has an
    // account.
    pub asked: bool,
    /// Address as the person typed it.
    pub email: String,
    /// Message to the administrators, as typed.
    pub message: String,
    /// Rules that the input breaks.
    pub errors: Vec<FieldError>,
}

/// Letter that a person waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailKind {
    /// Verification of a sign-up; its form sends `email` to `POST /signup/resend`.
    Verify,
    /// Link to sign in; its form sends `email` and `next` to `POST /signin`.
    SignIn,
}

/// Answer to a request for a letter.
#[derive(Debug, Template)]
#[template(path = "check-mail.html")]
pub struct CheckMailPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Letter that was asked for.
    pub kind: MailKind,
    /// Address as the person typed it.
    pub email: String,
    /// Path to go to after signing in.
    pub next: Option<String>,
    /// Time until which no letters are sent, if so.
    // The page is the same for an address without an account: nothing was stored, and the text says so.
    pub paused_until: Option<Instant>,
}

/// State of the link that verifies an address.
#[derive(Clone, Debug)]
pub enum VerifyState {
    /// The link works: a form to `POST /verify` with `token`, `adult` and `accept_terms` (the version of the terms).
    Ready {
        /// Token of the link.
        token: String,
        /// Version of the terms in force.
        terms_version: String,
    },
    /// The link is too old: a form to `POST /signup/resend` with `email`.
    Expired,
    /// The link was used before.
    Used,
    /// There is no such link.
    Unknown,
}

/// `GET /verify`: asks for the statement of the person and verifies the address.
#[derive(Debug, Template)]
#[template(path = "verify.html")]
pub struct VerifyPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// State of the link.
    pub state: VerifyState,
    /// Rules that the input breaks.
    pub errors: Vec<FieldError>,
}

/// `GET /signin`: a form to `POST /signin` with `email` and, if given, `next`.
#[derive(Debug, Template)]
#[template(path = "signin.html")]
pub struct SignInPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Address as the person typed it.
    pub email: String,
    /// Path to go to afterwards.
    pub next: Option<String>,
    /// Rules that the input breaks.
    pub errors: Vec<FieldError>,
}

/// State of the link that signs in.
#[derive(Clone, Debug)]
pub enum LinkState {
    /// The link works: a form to `POST /signin/link` with `token` and, if given, `next`.
    Ready {
        /// Token of the link.
        token: String,
        /// Path to go to afterwards.
        next: Option<String>,
    },
    /// The link is too old.
    Expired,
    /// The link was used before.
    Used,
    /// There is no such link.
    Unknown,
}

/// `GET /signin/link`: a button that signs in. Programs that open links in letters do not press it.
#[derive(Debug, Template)]
#[template(path = "signin-link.html")]
pub struct SignInLinkPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// State of the link.
    pub state: LinkState,
}

impl CheckMailPage {
    const fn heading(&self) -> &'static str {
        match self.paused_until {
            Some(_) => "Letters are paused",
            None => "Check your mail",
        }
    }

    /// Returns the path of the form that asked for the letter.
    const fn form(&self) -> &'static str {
        match self.kind {
            MailKind::Verify => "/signup",
            MailKind::SignIn => "/signin",
        }
    }
}

impl VerifyPage {
    const fn heading(&self) -> &'static str {
        match self.state {
            VerifyState::Ready { .. } => "Verify your address",
            VerifyState::Expired => "This link is too old",
            VerifyState::Used => "This link was used",
            VerifyState::Unknown => "There is no such link",
        }
    }
}

impl SignInLinkPage {
    const fn heading(&self) -> &'static str {
        match self.state {
            LinkState::Ready { .. } => "Sign in to the console",
            LinkState::Expired => "This link is too old",
            LinkState::Used => "This link was used",
            LinkState::Unknown => "There is no such link",
        }
    }
}
