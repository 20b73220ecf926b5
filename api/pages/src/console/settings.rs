//! Account, sessions and tokens.

use askama::Template;

use super::AccountForms;
use crate::chrome::{PageLayout, Theme};
use crate::form::{Errors as _, FieldError};
use crate::time::Instant;

/// `GET /console/settings`. Forms: `POST /console/settings/name` with `name` and `seen`, `POST /console/settings/email` with
/// `email`, `POST /console/settings/profile` with `hidden`, `POST /console/settings/letters` with `letter` for each that is
/// wanted, `POST /console/sessions/{id}/end`, `POST /console/sessions/end-others`,
/// `POST /console/tokens` with `label`, `POST /console/tokens/{id}/revoke`.
#[derive(Debug, Template)]
#[template(path = "console/settings.html")]
pub struct SettingsPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Account of the person.
    pub account: AccountView,
    /// Forms that change it.
    pub forms: AccountForms,
    /// Sessions that are open, the current one first.
    pub sessions: Vec<SessionRow>,
    /// Operator tokens that are valid, newest first.
    pub tokens: Vec<TokenRow>,
    /// Label of a new token, as typed.
    pub token_label: String,
    /// Payout address in force; the page of money changes it.
    pub payout: Option<String>,
    /// Rules that the input breaks: fields `name`, `email` and `label`.
    pub errors: Vec<FieldError>,
    /// Outcome of the last action, one sentence.
    pub notice: Option<String>,
}

/// Account of the operator.
#[derive(Clone, Debug)]
pub struct AccountView {
    /// Id of the operator.
    pub id: String,
    /// E-mail address that links are sent to.
    pub email: String,
    /// Name that others see.
    pub display_name: String,
    /// Version of the terms accepted last.
    pub terms_version: String,
    /// Time of the sign-up.
    pub created_at: Instant,
    /// Time at which the address was verified.
    pub verified_at: Option<Instant>,
    /// Time at which the person stated to be 19 or older.
    pub adult_stated_at: Option<Instant>,
}

/// Session of the person.
#[derive(Clone, Debug)]
pub struct SessionRow {
    /// Id of the session.
    pub id: String,
    /// True for the session of the reader.
    pub current: bool,
    /// Time of signing in.
    pub created_at: Instant,
    /// Time of the last use.
    pub seen_at: Instant,
    /// Time at which it ends.
    pub expires_at: Instant,
    /// Network address that signed in.
    pub address: String,
    /// Program that signed in, as it calls itself.
    // The header `User-Agent`, which a program can set to anything: a hint for the person, and no
    // proof.
    pub program: String,
}

/// Operator token. The service keeps only its hash.
#[derive(Clone, Debug)]
pub struct TokenRow {
    /// Id of the token.
    pub id: String,
    /// Name that the person gave it.
    pub label: Option<String>,
    /// Time of its creation.
    pub created_at: Instant,
}
