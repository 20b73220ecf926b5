//! What pages share: their descriptions, what surrounds them, and the errors of their forms.
//!
//! Invariant: a message on a page is a sentence.

use http::Method;
use types::Timestamp;

use crate::call::cx::Cx;
use crate::call::spec::{Effect, SESSION, Scope, Spec};
use crate::call::view::{self, LayoutOptions, PageResponse};
use crate::error::ApiError;
use crate::ops::{console, spend_lines};

/// Rows on a page of a list.
pub(super) const PAGE_ROWS: u32 = 50;

/// Returns the description of a page of the console.
pub(super) fn page(name: &'static str, path: &'static str, summary: &'static str) -> Spec {
    Spec {
        name,
        path,
        summary,
        accepts: SESSION,
        ..Spec::PAGE
    }
}

/// Returns the description of a form of the console.
pub(super) fn form(name: &'static str, path: &'static str, summary: &'static str) -> Spec {
    Spec {
        method: Method::POST,
        scope: Scope::Write,
        effect: Effect::Write,
        success: &[(303, "It is done; the browser opens the page again.")],
        ..page(name, path, summary)
    }
}

/// Returns what surrounds the content of a page, with the person who is signed in.
pub(super) async fn page_layout(cx: &Cx) -> Result<pages::PageLayout, ApiError> {
    let visit = cx.the_visit()?;
    let frame = LayoutOptions::of(&cx.app);
    let Some(operator) = cx.operator() else {
        return Ok(view::page_layout(visit, None, &frame));
    };
    let store = &cx.app.store;
    let moderation = store.moderation();
    let (found, role) = tokio::try_join!(store.operator(operator), moderation.role_of(operator))?;
    let person = found.map(|operator| pages::Person {
        email: operator.email,
        role,
    });
    let layout = view::page_layout(visit, person, &frame);
    // The rail of the console counts what waits, and its pages show the credits themselves.
    Ok(if layout.is_console() {
        let waits = console::attention_pages(cx, operator).await?;
        pages::PageLayout { waits, ..layout }
    } else {
        let credits = Some(spend_lines::credits(cx, operator).await?);
        pages::PageLayout { credits, ..layout }
    })
}

/// Returns a text of a form with the line ends that it had before a browser sent it, which makes two characters of each.
pub(super) fn form_lines(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Returns an instant as pages take it.
pub(super) const fn instant(at: Timestamp) -> pages::Instant {
    pages::Instant(at.micros())
}

/// Returns the errors of a form that the person can repair, or the error itself if there is nothing to repair.
pub(super) fn repairable(error: ApiError) -> Result<Vec<pages::FieldError>, ApiError> {
    // A limit, an outage and a missing session have pages of their own.
    if !matches!(error.status().as_u16(), 400 | 403 | 409 | 410) {
        return Err(error);
    }
    if error.details().is_empty() {
        return Ok(vec![pages::FieldError::new("", sentence(error.message()))]);
    }
    let field = |path: &str| match path.trim_start_matches('/') {
        "displayName" => "display_name".to_owned(),
        "acceptTerms" => "accept_terms".to_owned(),
        "walletAddress" => "wallet_address".to_owned(),
        name => name.to_owned(),
    };
    let details = error.details().iter();
    let details = details.map(|detail| pages::FieldError::new(field(&detail.path), sentence(&detail.problem)));
    Ok(details.collect())
}

/// Returns a message as a sentence: with a capital letter at its beginning.
pub(super) fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// Returns the 404 for a thing that the operator does not have.
pub(super) fn missing(what: &str) -> ApiError {
    ApiError::not_found(format!("there is no such {what}"))
}

/// Parses the id in a path; a text that is no id names nothing.
pub(super) fn id<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, ApiError> {
    text.parse().map_err(|_error| missing(what))
}

/// Returns a page with the status of a form that was not accepted, or 200 without errors.
pub(super) fn form_page(page: &impl pages::Page, errors: bool) -> Result<PageResponse, ApiError> {
    let view = PageResponse::page(page)?;
    Ok(if errors {
        view.with_status(http::StatusCode::BAD_REQUEST)
    } else {
        view
    })
}
