//! Pages by which a person comes in: sign-up, verification, sign-in, sign-out.
//!
//! Invariants:
//! - A link of a letter changes nothing when it is opened, since programs open links of letters too. Its page has a
//!   button, and only the form uses the token.
//! - Each sign-in begins a session with a new token, so nobody can prepare a session for another.

use http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use store::{LinkPurpose, LinkRefused};

use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::LINE;
use crate::call::spec::{ANYBODY, Effect, Scope, Spec};
use crate::call::view::PageResponse;
use crate::call::visit::{CONSOLE, SIGN_IN, local_path};
use crate::call::wire::NoInput;
use crate::error::ApiError;
use crate::ops::accounts::operators::{RESENDS, RESENDS_TO_ONE, SIGN_UPS};
use crate::ops::page_kit::{form_page, page_layout, repairable};
use crate::rules::accounts::{self, SignUp};
use crate::secrets;

const SIGN_UP: &str = "/signup";
const VERIFY: &str = "/verify";
const SIGN_IN_LINK: &str = "/signin/link";

pub(super) fn add(table: &mut Operations) {
    let page = |name, path, summary| Spec {
        name,
        path,
        summary,
        ..Spec::PAGE
    };
    let form = |name, path, summary| Spec {
        method: Method::POST,
        scope: Scope::Write,
        effect: Effect::Write,
        accepts: ANYBODY,
        ..page(name, path, summary)
    };
    table.add(page("sign_up_page", SIGN_UP, "Sign up"), &[], sign_up_page);
    let sign_up = Spec {
        limits: &[SIGN_UPS],
        ..form("sign_up_form", SIGN_UP, "Sign up")
    };
    table.add(sign_up, &[], sign_up_form);
    let resend = Spec {
        limits: &[RESENDS, RESENDS_TO_ONE],
        ..form(
            "resend_verification_form",
            "/signup/resend",
            "Ask for the verification letter again",
        )
    };
    table.add(resend, &[], resend_form);
    table.add(page("verify_page", VERIFY, "Confirm an address"), &[], verify_page);
    table.add(
        form("verify_operator_form", VERIFY, "Confirm an address"),
        &[],
        verify_form,
    );
    table.add(page("sign_in_page", SIGN_IN, "Sign in"), &[], sign_in_page);
    let sign_in = Spec {
        limits: &[RESENDS, RESENDS_TO_ONE],
        ..form("sign_in_link_request", SIGN_IN, "Ask for a link to sign in")
    };
    table.add(sign_in, &[], sign_in_form);
    table.add(
        page("sign_in_link_page", SIGN_IN_LINK, "Use a link to sign in"),
        &[],
        sign_in_link_page,
    );
    table.add(
        form("sign_in_form", SIGN_IN_LINK, "Use a link to sign in"),
        &[],
        sign_in_link_form,
    );
    table.add(form("sign_out_form", "/signout", "Sign out"), &[], sign_out);
    let theme = Spec {
        audit: false,
        ..form("theme_form", "/theme", "Choose the colours of the pages")
    };
    table.add(theme, &[], theme_form);
}

async fn sign_up_page(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    PageResponse::page(&blank_sign_up(&cx).await?)
}

async fn blank_sign_up(cx: &Cx) -> Result<pages::SignUpPage, ApiError> {
    let config = &cx.app.config;
    Ok(pages::SignUpPage {
        chrome: page_layout(cx).await?,
        open: config.signup_open,
        terms_version: config.terms_version.clone(),
        email: String::new(),
        display_name: String::new(),
        accepted: false,
        adult: false,
        next: None,
        errors: Vec::new(),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SignUpForm {
    /// E-mail address; a letter is sent to it.
    #[schemars(length(max = 254), regex(pattern = LINE))]
    email: String,
    /// Name to show.
    #[schemars(length(max = 80), regex(pattern = LINE))]
    display_name: String,
    /// Version of the terms that the person accepts; absent if the box is not ticked.
    #[schemars(length(max = 40), regex(pattern = LINE))]
    accept_terms: Option<String>,
    /// Present if the person states to be 19 years old or older.
    #[schemars(length(max = 10))]
    adult: Option<String>,
}

async fn sign_up_form(cx: Cx, input: SignUpForm) -> Result<PageResponse, ApiError> {
    let blank = blank_sign_up(&cx).await?;
    let filled = pages::SignUpPage {
        email: input.email.clone(),
        display_name: input.display_name.clone(),
        accepted: input.accept_terms.is_some(),
        adult: input.adult.is_some(),
        ..blank
    };
    let mut errors = statements(input.adult.as_ref(), input.accept_terms.as_ref());
    if errors.is_empty() {
        let new = SignUp {
            email: input.email,
            display_name: input.display_name,
            accept_terms: input.accept_terms,
        };
        match accounts::sign_up(&cx.app, new, cx.now).await {
            Ok(_) => return check_mail(&cx, pages::MailKind::Verify, filled.email, None).await,
            Err(error) => errors = repairable(error)?,
        }
    }
    form_page(&pages::SignUpPage { errors, ..filled }, true)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EmailForm {
    /// Address of the account.
    #[schemars(length(max = 254), regex(pattern = LINE))]
    email: String,
}

async fn resend_form(cx: Cx, input: EmailForm) -> Result<PageResponse, ApiError> {
    accounts::request_link(&cx.app, &input.email, LinkPurpose::Verify, cx.now).await?;
    // The page is the same with and without an account, so it does not tell which addresses have one.
    check_mail(&cx, pages::MailKind::Verify, input.email, None).await
}

/// Returns the page that says that a letter is on its way. It is the answer to the form, so that the address that was
/// typed is in no link.
pub(super) async fn check_mail(
    cx: &Cx,
    kind: pages::MailKind,
    email: String,
    next: Option<String>,
) -> Result<PageResponse, ApiError> {
    PageResponse::page(&pages::CheckMailPage {
        chrome: page_layout(cx).await?,
        kind,
        email,
        next,
        paused_until: None,
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SignInTokenForm {
    /// Token of the link.
    #[schemars(length(max = 200), regex(pattern = LINE))]
    token: Option<String>,
}

/// Returns why a link does not work; nothing if it does.
async fn refused_link(cx: &Cx, token: &str, purpose: LinkPurpose) -> Result<Option<LinkRefused>, ApiError> {
    let accounts = cx.app.store.accounts();
    Ok(accounts.mail_link(&secrets::hash(token), purpose, cx.now).await?.err())
}

async fn verify_page(cx: Cx, input: SignInTokenForm) -> Result<PageResponse, ApiError> {
    verify_view(&cx, input.token.unwrap_or_default(), Vec::new()).await
}

async fn verify_view(cx: &Cx, token: String, errors: Vec<pages::FieldError>) -> Result<PageResponse, ApiError> {
    let state = match refused_link(cx, &token, LinkPurpose::Verify).await? {
        None => pages::VerifyState::Ready {
            token,
            terms_version: cx.app.config.terms_version.clone(),
        },
        Some(LinkRefused::Used) => pages::VerifyState::Used,
        Some(LinkRefused::Expired) => pages::VerifyState::Expired,
        Some(LinkRefused::Unknown) => pages::VerifyState::Unknown,
    };
    let failed = !errors.is_empty();
    let page = pages::VerifyPage {
        chrome: page_layout(cx).await?,
        state,
        errors,
    };
    form_page(&page, failed)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VerifyForm {
    /// Token of the link.
    #[schemars(length(max = 200), regex(pattern = LINE))]
    token: String,
    /// Present if the person states to be 19 years old or older.
    #[schemars(length(max = 10))]
    adult: Option<String>,
    /// Version of the terms that the person accepts; absent if the box is not ticked.
    #[schemars(length(max = 40), regex(pattern = LINE))]
    accept_terms: Option<String>,
}

async fn verify_form(cx: Cx, input: VerifyForm) -> Result<PageResponse, ApiError> {
    let mut errors = statements(input.adult.as_ref(), input.accept_terms.as_ref());
    // Terms that changed since the page was opened are read and accepted anew.
    if input
        .accept_terms
        .is_some_and(|version| version != cx.app.config.terms_version)
    {
        errors.push(pages::FieldError::new(
            "accept_terms",
            "The terms have changed; read and accept them again",
        ));
    }
    if !errors.is_empty() {
        return verify_view(&cx, input.token, errors).await;
    }
    let (session, secret) = accounts::new_session(cx.client, &cx.the_visit()?.user_agent, cx.now)?;
    // The mailbox is the person's, so the same step signs in.
    match accounts::use_verification(&cx.app, &input.token, Some(session), cx.now).await {
        Ok(_) => PageResponse::see(CONSOLE)?.signed_in(&secret, accounts::SESSION_SECONDS),
        Err(error) => {
            let errors = repairable(error)?;
            verify_view(&cx, input.token, errors).await
        }
    }
}

/// Returns an error for each statement that only a person can make and that is missing.
fn statements(adult: Option<&String>, accept_terms: Option<&String>) -> Vec<pages::FieldError> {
    let mut errors = Vec::new();
    if accept_terms.is_none() {
        let message = "Read and accept the terms of service";
        errors.push(pages::FieldError::new("accept_terms", message));
    }
    if adult.is_none() {
        errors.push(pages::FieldError::new("adult", "Confirm that you are 19 or older"));
    }
    errors
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NextQuery {
    /// Path of this service to open after signing in.
    #[schemars(length(max = 3_500))]
    next: Option<String>,
}

async fn sign_in_page(cx: Cx, input: NextQuery) -> Result<PageResponse, ApiError> {
    let next = input.next.map(|next| local_path(&next).to_owned());
    PageResponse::page(&pages::SignInPage {
        chrome: page_layout(&cx).await?,
        email: String::new(),
        next,
        errors: Vec::new(),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SignInForm {
    /// Address of the account.
    #[schemars(length(max = 254), regex(pattern = LINE))]
    email: String,
    /// Path of this service to open after signing in.
    #[schemars(length(max = 3_500))]
    next: Option<String>,
}

async fn sign_in_form(cx: Cx, input: SignInForm) -> Result<PageResponse, ApiError> {
    let next = input.next.filter(|next| !next.is_empty());
    match accounts::request_link(&cx.app, &input.email, LinkPurpose::SignIn, cx.now).await {
        Ok(()) => {
            let view = check_mail(&cx, pages::MailKind::SignIn, input.email, next.clone()).await?;
            // The letter cannot carry the path, so the browser keeps it.
            match next {
                Some(next) => view.going_to(&next),
                None => Ok(view),
            }
        }
        Err(error) => {
            let errors = repairable(error)?;
            let page = pages::SignInPage {
                chrome: page_layout(&cx).await?,
                email: input.email,
                next,
                errors,
            };
            form_page(&page, true)
        }
    }
}

async fn sign_in_link_page(cx: Cx, input: SignInTokenForm) -> Result<PageResponse, ApiError> {
    let token = input.token.unwrap_or_default();
    let state = match refused_link(&cx, &token, LinkPurpose::SignIn).await? {
        None => pages::LinkState::Ready { token, next: None },
        Some(refused) => closed(refused),
    };
    PageResponse::page(&pages::SignInLinkPage {
        chrome: page_layout(&cx).await?,
        state,
    })
}

const fn closed(refused: LinkRefused) -> pages::LinkState {
    match refused {
        LinkRefused::Used => pages::LinkState::Used,
        LinkRefused::Expired => pages::LinkState::Expired,
        LinkRefused::Unknown => pages::LinkState::Unknown,
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UseLink {
    /// Token of the link.
    #[schemars(length(max = 200), regex(pattern = LINE))]
    token: String,
}

async fn sign_in_link_form(cx: Cx, input: UseLink) -> Result<PageResponse, ApiError> {
    let visit = cx.the_visit()?;
    let (session, secret) = accounts::new_session(cx.client, &visit.user_agent, cx.now)?;
    match accounts::sign_in(&cx.app, &input.token, session, cx.now).await {
        Ok(_) => PageResponse::see(visit.next())?
            .signed_in(&secret, accounts::SESSION_SECONDS)?
            .arrived(),
        Err(error) => {
            repairable(error)?;
            let refused = refused_link(&cx, &input.token, LinkPurpose::SignIn).await?;
            let page = pages::SignInLinkPage {
                chrome: page_layout(&cx).await?,
                // The link of a suspended operator is answered like one that never was.
                state: closed(refused.unwrap_or(LinkRefused::Unknown)),
            };
            form_page(&page, true)
        }
    }
}

async fn sign_out(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    if let Some((operator, session)) = cx.session() {
        cx.app.store.accounts().session_end(operator, session).await?;
    }
    // The cookie goes also without a session: the browser would keep that of an ended one.
    PageResponse::see("/")?.signed_out()
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ThemeForm {
    /// `light`, `dark` or `system`.
    #[schemars(regex(pattern = "^(light|dark|system)$"))]
    theme: String,
    /// Page that the form was on.
    #[schemars(length(max = 2_000))]
    return_to: Option<String>,
}

async fn theme_form(_: Cx, input: ThemeForm) -> Result<PageResponse, ApiError> {
    let back = input.return_to.unwrap_or_else(|| "/".to_owned());
    PageResponse::see(local_path(&back))?.themed(&input.theme)
}
