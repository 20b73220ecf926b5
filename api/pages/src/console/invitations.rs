//! Invitations: who is invited, who asks, and the form that invites.
//!
//! Invariant: rendered for administrators only.

use askama::Template;

use crate::chrome::{PageLayout, Theme};
use crate::form::{Errors as _, FieldError};
use crate::time::Instant;

/// `GET /console/invitations`. Forms: `POST /console/invitations` with `email`, and `POST /console/invitations/withdraw`.
#[derive(Debug, Template)]
#[template(path = "console/invitations.html")]
pub struct InvitationsPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// True if anybody can sign up, so that no invitation is needed.
    pub is_open: bool,
    /// Requests that nobody has answered, oldest first.
    pub requests: Vec<InvitationRequestRow>,
    /// Invitations, newest first.
    pub rows: Vec<InvitationRow>,
    /// Address of earlier ones.
    pub next: Option<String>,
    /// Address of the newest; `None` where they are shown.
    pub first: Option<String>,
    /// Address as typed.
    pub email: String,
    /// Rules that the input breaks.
    pub errors: Vec<FieldError>,
}

/// Request for an invitation.
#[derive(Clone, Debug)]
pub struct InvitationRequestRow {
    /// Address that asks.
    pub email: String,
    /// Words of the person; may be empty.
    pub note: String,
    /// Time of the request.
    pub at: Instant,
}

/// Invitation, for a table row.
#[derive(Clone, Debug)]
pub struct InvitationRow {
    /// Address that is invited.
    pub email: String,
    /// Name of who invited; `None` for an administrator at the command line.
    pub by: Option<String>,
    /// Time of the invitation.
    pub at: Instant,
    /// Time at which somebody signed up with it.
    pub used_at: Option<Instant>,
}
