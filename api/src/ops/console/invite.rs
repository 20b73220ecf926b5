//! Page by which a person asks for an invitation.

use http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use store::InviteRequest;

use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::{LINE, TEXT};
use crate::call::spec::{Effect, Scope, Spec};
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::accounts::operators::SIGN_UPS;
use crate::ops::page_kit::{form_page, page_layout, repairable};
use crate::rules::accounts::address;

const PATH: &str = "/invite";

pub(super) fn add(table: &mut Operations) {
    let page = Spec {
        name: "invite_page",
        path: PATH,
        summary: "Ask for an invitation",
        ..Spec::PAGE
    };
    table.add(page.clone(), &[], show);
    let form = Spec {
        name: "invite_form",
        method: Method::POST,
        scope: Scope::Write,
        effect: Effect::Write,
        limits: &[SIGN_UPS],
        ..page
    };
    table.add(form, &[], ask);
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InviteQuery {
    /// Present after the request.
    #[schemars(length(max = 10))]
    asked: Option<String>,
}

async fn show(cx: Cx, input: InviteQuery) -> Result<PageResponse, ApiError> {
    PageResponse::page(&pages::InvitePage {
        chrome: page_layout(&cx).await?,
        asked: input.asked.is_some(),
        email: String::new(),
        message: String::new(),
        errors: Vec::new(),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InviteForm {
    /// Address to invite.
    #[schemars(length(max = 254), regex(pattern = LINE))]
    email: String,
    /// Words of the person.
    #[schemars(length(max = 500), regex(pattern = TEXT))]
    message: Option<String>,
}

async fn ask(cx: Cx, input: InviteForm) -> Result<PageResponse, ApiError> {
    let message = input.message.unwrap_or_default();
    if let Err(error) = address::check("/email", &input.email) {
        let page = pages::InvitePage {
            chrome: page_layout(&cx).await?,
            asked: false,
            email: input.email,
            message,
            errors: repairable(error)?,
        };
        return form_page(&page, true);
    }
    let request = InviteRequest {
        email: input.email,
        note: message,
        created_at: cx.now,
    };
    // The answer is the same for every address, so it does not tell who has an account.
    cx.app.store.accounts().invite_request(request).await?;
    PageResponse::see("/invite?asked=yes")
}
