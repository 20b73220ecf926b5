//! Another address of the account: asked for in the settings, confirmed at the new address, taken back at the old one.
//!
//! Invariant: a link does nothing before its button is pressed, since programs open links of letters.

use pages::console::{EmailLinkPage, EmailLinkState};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{EmailChanged, EmailLink, LinkRefused};

use super::super::payout::is_fresh;
use super::super::settings::{DoneWord, done, settings};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::LINE;
use crate::call::spec::{Effect, Scope, Spec};
use crate::call::view::PageResponse;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::accounts::operators::RESENDS;
use crate::ops::page_kit::{form, form_page, page_layout, repairable};
use crate::rules::accounts::change_email;
use crate::secrets;

pub(super) fn add(table: &mut Operations) {
    let change_form = Spec {
        limits: &[RESENDS],
        ..form(
            "change_email_form",
            "/console/settings/email",
            "Ask for another address of the account",
        )
    };
    table.add(change_form, &[], change);
    let open = |name, path, summary| Spec {
        name,
        path,
        summary,
        ..Spec::PAGE
    };
    let press = |name, path, summary| Spec {
        method: http::Method::POST,
        scope: Scope::Write,
        effect: Effect::Write,
        success: &[(200, "It is done.")],
        ..open(name, path, summary)
    };
    let confirm = "/verify/email";
    table.add(
        open(
            "confirm_email_page",
            confirm,
            "Asks to confirm another address of an account",
        ),
        &[],
        confirm_page,
    );
    table.add(
        press("confirm_email_form", confirm, "Confirm another address of an account"),
        &[],
        confirm_form,
    );
    let stop = "/verify/email/stop";
    table.add(
        open(
            "stop_email_page",
            stop,
            "Asks to take back another address of an account",
        ),
        &[],
        stop_page,
    );
    table.add(
        press("stop_email_form", stop, "Take back another address of an account"),
        &[],
        stop_form,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewEmailForm {
    /// Address as the person typed it.
    #[serde(default)]
    #[schemars(length(max = 1_000))]
    email: String,
}

async fn change(cx: Cx, input: NewEmailForm) -> Result<PageResponse, ApiError> {
    // A browser that was left open must not be enough to take the account away. The link of the sign-in is the word of the old
    // address.
    if !is_fresh(&cx) {
        let message = "sign in again to change the e-mail address; the settings mail you a link";
        return Err(ApiError::new(ErrorCode::SignInIsOld, message));
    }
    let operator = cx.the_operator()?;
    match change_email(&cx.app, operator, input.email.trim(), cx.now).await {
        Ok(()) => done(DoneWord::Email),
        Err(error) => {
            let errors = repairable(error)?;
            let mut page = settings(&cx).await?;
            page.forms.email = input.email;
            page.errors = errors;
            form_page(&page, true)
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EmailLinkQuery {
    /// Token of the link.
    #[serde(default)]
    #[schemars(length(max = 200), regex(pattern = LINE))]
    token: String,
}

async fn confirm_page(cx: Cx, input: EmailLinkQuery) -> Result<PageResponse, ApiError> {
    opened(&cx, EmailLink::Confirm, input.token).await
}

async fn stop_page(cx: Cx, input: EmailLinkQuery) -> Result<PageResponse, ApiError> {
    opened(&cx, EmailLink::Stop, input.token).await
}

async fn opened(cx: &Cx, link: EmailLink, token: String) -> Result<PageResponse, ApiError> {
    let accounts = cx.app.store.accounts();
    let state = match accounts.email_link(&secrets::hash(&token), link, cx.now).await? {
        Ok(change) => EmailLinkState::Ready {
            token,
            old: change.old_email,
            new: change.new_email,
        },
        Err(refused) => closed(refused),
    };
    PageResponse::page(&link_page(cx, link, state).await?)
}

async fn link_page(cx: &Cx, link: EmailLink, state: EmailLinkState) -> Result<EmailLinkPage, ApiError> {
    Ok(EmailLinkPage {
        chrome: page_layout(cx).await?,
        is_stop: link == EmailLink::Stop,
        state,
    })
}

const fn closed(refused: LinkRefused) -> EmailLinkState {
    match refused {
        LinkRefused::Used => EmailLinkState::Used,
        LinkRefused::Expired => EmailLinkState::Expired,
        LinkRefused::Unknown => EmailLinkState::Unknown,
    }
}

async fn confirm_form(cx: Cx, input: EmailLinkQuery) -> Result<PageResponse, ApiError> {
    let changed = cx
        .app
        .store
        .accounts()
        .email_confirm(secrets::hash(&input.token), cx.now)
        .await?;
    pressed(&cx, EmailLink::Confirm, changed).await
}

async fn stop_form(cx: Cx, input: EmailLinkQuery) -> Result<PageResponse, ApiError> {
    let changed = cx
        .app
        .store
        .accounts()
        .email_stop(secrets::hash(&input.token), cx.now)
        .await?;
    pressed(&cx, EmailLink::Stop, changed).await
}

async fn pressed(cx: &Cx, link: EmailLink, changed: EmailChanged) -> Result<PageResponse, ApiError> {
    let (state, is_refused) = match changed {
        EmailChanged::Done(change) => {
            let email = match link {
                EmailLink::Confirm => change.new_email,
                EmailLink::Stop => change.old_email,
            };
            (EmailLinkState::Done { email }, false)
        }
        EmailChanged::Taken => (EmailLinkState::Taken, true),
        EmailChanged::Refused(refused) => (closed(refused), true),
    };
    form_page(&link_page(cx, link, state).await?, is_refused)
}
