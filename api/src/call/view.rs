//! Answers to browsers: pages, and redirects to them.
//!
//! Invariant: a page has no script or style of its own text.

use http::StatusCode;
use http::header::{self, HeaderName, HeaderValue};
use serde_json::{Value, json};
use types::Timestamp;

use super::answer::{HTML, OperationOutput, OperationResult};
use super::visit::{BrowserRequest, NEXT, NEXT_SECONDS, SESSION, THEME, local_path};
use crate::error::ApiError;
use crate::state::app::App;

/// Answer to a browser: a page, or a redirect to one.
#[derive(Debug)]
pub(crate) struct PageResponse {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    html: String,
}

impl PageResponse {
    /// Creates an answer with this page.
    ///
    /// # Errors
    /// 500 if the page cannot be rendered.
    pub(crate) fn page(page: &impl pages::Page) -> Result<Self, ApiError> {
        let html = page
            .html()
            .map_err(|error| ApiError::internal(format!("page: {error}")))?;
        Ok(Self {
            status: StatusCode::OK,
            headers: Vec::new(),
            html,
        })
    }

    /// Creates a redirect after which the browser opens `path` with GET (RFC 9110 section 15.4.4).
    ///
    /// # Errors
    /// 500 if the path is no header value.
    pub(crate) fn see(path: &str) -> Result<Self, ApiError> {
        let location = HeaderValue::from_str(path).map_err(|error| ApiError::internal(format!("redirect: {error}")))?;
        Ok(Self {
            status: StatusCode::SEE_OTHER,
            headers: vec![(header::LOCATION, location)],
            html: String::new(),
        })
    }

    /// Creates an answer without a page.
    pub(crate) const fn empty(status: StatusCode) -> Self {
        Self {
            status,
            headers: Vec::new(),
            html: String::new(),
        }
    }

    /// Replaces the status.
    #[must_use]
    pub(crate) const fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Gives the page the status and the headers of an error that it shows.
    #[must_use]
    pub(crate) fn of_error(mut self, error: &ApiError) -> Self {
        self.status = error.status();
        self.headers.extend(error.headers().iter().cloned());
        self
    }

    /// Adds a header.
    #[must_use]
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Signs the browser in with the token of a session that lasts `seconds`.
    ///
    /// # Errors
    /// 500 if the token is no header value.
    pub(crate) fn signed_in(self, token: &str, seconds: i64) -> Result<Self, ApiError> {
        // `Lax` and not `Strict`: a person who comes by a link of a letter would seem signed out
        // otherwise.
        self.set_cookie(&format!(
            "{SESSION}={token}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Lax"
        ))
    }

    /// Makes the browser forget its session, and what pages of the session kept, such as the addresses of an upload's parts
    /// (W3C Clear Site Data, section 3.1).
    ///
    /// # Errors
    /// None in practice: the text is fixed.
    pub(crate) fn signed_out(mut self) -> Result<Self, ApiError> {
        let clear = HeaderName::from_static("clear-site-data");
        self.headers.push((clear, HeaderValue::from_static("\"storage\"")));
        // A browser drops a cookie only if name and path are those that it was set with.
        self.set_cookie(&format!(
            "{SESSION}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax"
        ))
    }

    /// Makes the browser keep the path that it goes to after signing in.
    ///
    /// # Errors
    /// 500 if the path is no header value.
    pub(crate) fn going_to(self, next: &str) -> Result<Self, ApiError> {
        // Both can end the value of a cookie. In a query, such as that of an app's request, they mean the same escaped.
        let next = next.replace(';', "%3B").replace(',', "%2C");
        let next = local_path(&next);
        self.set_cookie(&format!(
            "{NEXT}={next}; Path=/; Max-Age={NEXT_SECONDS}; Secure; HttpOnly; SameSite=Lax"
        ))
    }

    /// Makes the browser forget that path.
    ///
    /// # Errors
    /// None in practice: the text is fixed.
    pub(crate) fn arrived(self) -> Result<Self, ApiError> {
        self.set_cookie(&format!("{NEXT}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax"))
    }

    /// Keeps the colour scheme of the browser for a year.
    ///
    /// # Errors
    /// 500 if the word is no header value.
    pub(crate) fn themed(self, word: &str) -> Result<Self, ApiError> {
        // The scheme is no secret, so it needs neither `Secure` nor `HttpOnly`.
        self.set_cookie(&format!("{THEME}={word}; Path=/; Max-Age=31536000; SameSite=Lax"))
    }

    fn set_cookie(self, cookie: &str) -> Result<Self, ApiError> {
        let value = HeaderValue::from_str(cookie).map_err(|error| ApiError::internal(format!("cookie: {error}")))?;
        Ok(self.header(header::SET_COOKIE, value))
    }
}

impl OperationResult for PageResponse {
    const CONTENT_TYPE: &'static str = HTML;

    fn schema() -> Value {
        json!({"type": "string"})
    }

    fn into_output(self) -> Result<OperationOutput, ApiError> {
        Ok(OperationOutput::Whole {
            status: self.status,
            headers: self.headers,
            content_type: HTML,
            body: self.html.into(),
        })
    }
}

/// Facts about the service that every page shows.
pub(crate) struct LayoutOptions {
    /// Address of the service.
    pub(crate) base: String,
    /// Time of rendering.
    pub(crate) now: Timestamp,
}

impl LayoutOptions {
    /// Returns the frame of pages of `app` at this moment.
    pub(crate) fn of(app: &App) -> Self {
        Self {
            base: app.config.public_url.clone(),
            now: app.clock.now(),
        }
    }
}

/// Returns what surrounds the content of a page.
pub(crate) fn page_layout(
    visit: &BrowserRequest,
    person: Option<pages::Person>,
    frame: &LayoutOptions,
) -> pages::PageLayout {
    pages::PageLayout {
        theme: visit.theme,
        person,
        form_token: visit.form_token(),
        path: visit.path.clone(),
        waits: Vec::new(),
        credits: None,
        now: pages::Instant(frame.now.micros()),
        base: frame.base.clone(),
    }
}
