//! Browsers at the transport: the headers of pages, and pages for requests that failed.
//!
//! Invariant: no other site can frame a page. A page is answered to whoever asks for HTML; the calls of a page as an agent
//! (`rest/act.rs`), the only ones beside pages that read the cookie, are answered as JSON.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

use crate::call::view::{LayoutOptions, PageResponse, page_layout};
use crate::call::visit::{BrowserRequest, CONSOLE, sign_in};
use crate::codes::ErrorCode;
use crate::error::ApiError;

/// Returns true if the client wants a page rather than JSON or text.
pub(crate) fn prefers_page(headers: &HeaderMap) -> bool {
    // Browsers name HTML; programs that name JSON, or take anything, get JSON.
    headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| {
            let accept = accept.to_ascii_lowercase();
            accept.contains("text/html") && !accept.contains("application/json")
        })
}

/// Adds the headers that every page has, where the page has none of its own.
pub(crate) fn protect(headers: &mut HeaderMap) {
    let common = [
        (header::CONTENT_SECURITY_POLICY, pages::CONTENT_SECURITY_POLICY),
        (header::X_FRAME_OPTIONS, "DENY"),
        // Pages have tokens in their addresses, which no other site may see. Browsers then still name this service as
        // the origin of its own forms.
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in common {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// Returns the answer to a browser whose request failed: the sign-in page if that is what is missing, otherwise a page
/// that says what happened.
pub(crate) fn refusal(
    error: &ApiError,
    visit: &BrowserRequest,
    method: &Method,
    request_id: &str,
    frame: &LayoutOptions,
) -> PageResponse {
    if error.code() == ErrorCode::NotSignedIn {
        // A form cannot be repeated by a redirect, so its sender begins at the page that it was on, or at the console.
        let next = if method == Method::GET {
            visit.path.as_str()
        } else {
            page_of_form(&visit.path).unwrap_or(CONSOLE)
        };
        if let Ok(view) = PageResponse::see(&sign_in(next)) {
            return view;
        }
    }
    let body = error.body(request_id);
    let page = pages::ErrorPage {
        chrome: page_layout(visit, None, frame),
        status: error.status().as_u16(),
        title: String::new(),
        message: error.message().to_owned(),
        what_next: body["hint"].as_str().unwrap_or_default().to_owned(),
        // The body says when in seconds.
        retry_at: body["retryAfter"]
            .as_i64()
            .map(|seconds| pages::Instant(frame.now.micros().saturating_add(seconds.saturating_mul(1_000_000)))),
        request_id: request_id.to_owned(),
        json: serde_json::to_string_pretty(&body).unwrap_or_default(),
    };
    let view =
        PageResponse::page(&page).unwrap_or_else(|_unrendered| PageResponse::empty(StatusCode::INTERNAL_SERVER_ERROR));
    view.of_error(error)
}

/// Returns the page that a form was on: the question that it answered, the settings, or the page of an item.
fn page_of_form(path: &str) -> Option<&str> {
    let answered = path.strip_suffix("/yes").or_else(|| path.strip_suffix("/no"));
    let question = answered.filter(|path| path.starts_with("/console/approvals/"));
    if question.is_some() {
        return question;
    }
    // Nobody opens, answers or decides a dispute by coming back, so the page of the form is asked for again.
    let of_dispute = path.strip_suffix("/answer").unwrap_or(path);
    let is_of_sale = of_dispute.starts_with("/console/sales/") && of_dispute.ends_with("/dispute");
    if is_of_sale || of_dispute.starts_with("/console/disputes/") {
        return Some(of_dispute);
    }
    if path.starts_with("/console/settings/") {
        return Some("/console/settings");
    }
    if path.starts_with("/console/reports/") || path.starts_with("/console/takedowns/") {
        return Some("/console/moderation");
    }
    if path.starts_with("/console/payout") {
        return Some("/console/money");
    }
    let items = [
        "/units/",
        "/console/datasets/",
        "/console/knowledge/",
        "/console/operators/",
    ];
    items.iter().find_map(|list| {
        let item = path.strip_prefix(list)?.split('/').next()?;
        path.get(..list.len() + item.len())
    })
}

#[cfg(test)]
mod tests;
