//! Invitations for administrators.
//!
//! Invariant: an address is invited once, however often a form is sent.

use pages::console::{InvitationRequestRow, InvitationRow, InvitationsPage};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Invitation, InviteRequest};
use types::Timestamp;

use super::staff::administrator;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::LINE;
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::page_kit::{PAGE_ROWS, form, form_page, instant, missing, page, page_layout, repairable};
use crate::rules::accounts::address;

const PATH: &str = "/console/invitations";

pub(super) fn add(table: &mut Operations) {
    table.add(page("invitations_page", PATH, "Invitations"), &[], show);
    table.add(form("invite_account_form", PATH, "Invite an address"), &[], invite);
    table.add(
        form(
            "withdraw_invitation_form",
            "/console/invitations/withdraw",
            "Take an invitation back",
        ),
        &[],
        withdraw,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InvitationsQuery {
    /// Place in the invitations.
    #[schemars(length(max = 300))]
    before: Option<String>,
}

async fn show(cx: Cx, input: InvitationsQuery) -> Result<PageResponse, ApiError> {
    administrator(&cx).await?;
    PageResponse::page(&shown(&cx, input.before.as_deref()).await?)
}

/// Returns the page as it is now.
async fn shown(cx: &Cx, before: Option<&str>) -> Result<InvitationsPage, ApiError> {
    let place = before.map(place).transpose()?;
    let accounts = cx.app.store.accounts();
    let (requests, mut found) = tokio::try_join!(
        accounts.invite_requests(PAGE_ROWS),
        accounts.invitations(place, PAGE_ROWS + 1)
    )?;
    let most = usize::try_from(PAGE_ROWS).unwrap_or(usize::MAX);
    let has_more = found.len() > most;
    found.truncate(most);
    let next = found.last().filter(|_| has_more).map(|last| {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("before", &format!("{}.{}", last.created_at.micros(), last.email));
        format!("{PATH}?{}", query.finish())
    });
    Ok(InvitationsPage {
        chrome: page_layout(cx).await?,
        is_open: cx.app.config.signup_open,
        requests: requests.into_iter().map(request).collect(),
        rows: found.into_iter().map(row).collect(),
        next,
        first: before.is_some().then(|| PATH.to_owned()),
        email: String::new(),
        errors: Vec::new(),
    })
}

/// Reads a place in the invitations: a time and an address.
fn place(text: &str) -> Result<(Timestamp, String), ApiError> {
    let parsed = text
        .split_once('.')
        .and_then(|(at, email)| Some((Timestamp::from_micros(at.parse().ok()?), email.to_owned())));
    parsed.ok_or_else(|| missing("page"))
}

fn request(request: InviteRequest) -> InvitationRequestRow {
    InvitationRequestRow {
        email: request.email,
        note: request.note,
        at: instant(request.created_at),
    }
}

fn row(invitation: Invitation) -> InvitationRow {
    InvitationRow {
        email: invitation.email,
        by: invitation.invited_by,
        at: instant(invitation.created_at),
        used_at: invitation.used_at.map(instant),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InvitationForm {
    /// Address to invite.
    #[schemars(length(max = 254), regex(pattern = LINE))]
    email: String,
}

async fn invite(cx: Cx, input: InvitationForm) -> Result<PageResponse, ApiError> {
    let by = administrator(&cx).await?;
    let email = input.email.trim();
    if let Err(error) = address::check("/email", email) {
        let page = InvitationsPage {
            email: input.email,
            errors: repairable(error)?,
            ..shown(&cx, None).await?
        };
        return form_page(&page, true);
    }
    // An address that is invited already stays so.
    cx.app.store.accounts().invite_as(email, Some(by), cx.now).await?;
    PageResponse::see(PATH)
}

async fn withdraw(cx: Cx, input: InvitationForm) -> Result<PageResponse, ApiError> {
    administrator(&cx).await?;
    // One that was withdrawn, or used, before the form came is as it would be after it, and the page says which.
    cx.app.store.accounts().invite_withdraw(input.email.trim()).await?;
    PageResponse::see(PATH)
}
