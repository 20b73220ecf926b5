//! Browsers: pages, the session in a cookie, and forms.
//!
//! Invariants:
//! - A session is read from its cookie on pages only; a program's request never has the rights of a cookie.
//! - A form changes something only if the browser says that a page of this service sent it, and if it carries the token
//!   that the session's own pages contain.
//! - A page has no script or style of its own text, and no other site can frame it.

use data_encoding::BASE64URL_NOPAD;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use types::{Kind, Timestamp};

use crate::answer::{Answer, HTML, Output};
use crate::auth;
use crate::caller::Presented;
use crate::error::ApiError;
use crate::state::app::App;

/// Cookie of a session. The prefix makes browsers take it only from this host, by TLS or loopback (RFC 6265bis section
/// 4.1.3.2).
pub(crate) const SESSION: &str = "__Host-sluice";
/// Cookie of the colour scheme that the person chose.
const THEME: &str = "theme";
/// Cookie of the path that a person goes to after signing in.
const NEXT: &str = "__Host-next";
/// Seconds for which a browser keeps that path: as long as a link for signing in works.
const NEXT_SECONDS: u32 = 900;
/// Header by which a browser names the relation between the page that sent a request and this service.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Longest text of the browser about itself that is kept, in characters.
const MAX_USER_AGENT: usize = 200;
/// Page that a signed-in person sees first.
pub(crate) const CONSOLE: &str = "/console";
/// Page that mails a link for signing in.
pub(crate) const SIGN_IN: &str = "/signin";
/// Code of the refusal that leads a browser to the sign-in page.
const NOT_SIGNED_IN: &str = "not_signed_in";
/// Longest path that a person is sent back to after signing in, in bytes.
const MAX_NEXT: usize = 3_500;

/// Browser that opens a page or sends a form.
#[derive(Clone)]
pub struct Visit {
    /// Token of the session, from the cookie.
    session: Option<String>,
    /// True if the browser says that a page of this service sent the request.
    from_own_page: bool,
    /// Path that the person wanted before signing in.
    next: Option<String>,
    /// Colour scheme that the person chose.
    pub(crate) theme: pages::Theme,
    /// Path and query of the request.
    pub(crate) path: String,
    /// Name of the browser, as it calls itself.
    pub(crate) user_agent: String,
}

/// Shows no session.
impl std::fmt::Debug for Visit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Visit").finish_non_exhaustive()
    }
}

impl Visit {
    /// Reads what a page needs of a request to the service at `public_url`.
    pub(crate) fn of(parts: &Parts, public_url: &str) -> Self {
        let user_agent = text(&parts.headers, &header::USER_AGENT).unwrap_or_default();
        Self {
            session: session(&parts.headers),
            from_own_page: is_own(&parts.headers, public_url),
            next: cookie(&parts.headers, NEXT),
            theme: pages::Theme::of(cookie(&parts.headers, THEME).as_deref().unwrap_or_default()),
            path: parts
                .uri
                .path_and_query()
                .map_or_else(|| "/".to_owned(), |path| path.as_str().to_owned()),
            user_agent: user_agent.chars().take(MAX_USER_AGENT).collect(),
        }
    }

    /// Returns the path that the person wanted before signing in, or the console.
    pub(crate) fn next(&self) -> &str {
        // The cookie is checked again, as everything that a browser sends.
        local_path(self.next.as_deref().unwrap_or(CONSOLE))
    }

    /// Returns the credential of the browser.
    pub(crate) fn presented(&self) -> Presented {
        self.session.clone().map_or(Presented::Nothing, Presented::Session)
    }

    /// Returns the token that forms of this session carry; empty without a session.
    pub(crate) fn form_token(&self) -> String {
        // The token says nothing about the session's own, so a page that leaks does not give the session away.
        let hash = self.session.as_ref().map(|token| auth::hash(&format!("form {token}")));
        hash.map(|hash| BASE64URL_NOPAD.encode(&hash[..24])).unwrap_or_default()
    }

    /// Fails with 403 if no page of this service sent the form.
    pub(crate) fn check_origin(&self) -> Result<(), ApiError> {
        if self.from_own_page {
            return Ok(());
        }
        Err(foreign("the form was not sent by a page of this service"))
    }

    /// Fails with 403 if a form of a signed-in person does not carry the token of the session.
    pub(crate) fn check_token(&self, given: Option<&str>) -> Result<(), ApiError> {
        // Hashes are compared, so the time of the comparison says nothing about the token.
        if given.map(auth::hash) == Some(auth::hash(&self.form_token())) {
            return Ok(());
        }
        Err(foreign(
            "the form is of an earlier session; open its page again and repeat the step",
        ))
    }
}

fn foreign(message: &str) -> ApiError {
    ApiError::new(Kind::Forbidden, "foreign_form", message)
}

/// Returns true if the browser says that a page of the service at `public_url` sent the request.
fn is_own(headers: &HeaderMap, public_url: &str) -> bool {
    // Browsers send `Origin` with every form. Without it, only the statement of a newer browser counts.
    match text(headers, &header::ORIGIN) {
        Some(origin) => origin.eq_ignore_ascii_case(public_url),
        None => text(headers, &FETCH_SITE).as_deref() == Some("same-origin"),
    }
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// Returns the token of the session that a browser sends.
pub(crate) fn session(headers: &HeaderMap) -> Option<String> {
    cookie(headers, SESSION).filter(|token| !token.is_empty())
}

/// Returns the value of a cookie (RFC 6265 section 5.4). Of two with a name, the first counts: browsers send the one
/// with the longer path first, and the session's cookie has the path `/` by its prefix.
fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let values = headers.get_all(header::COOKIE).iter();
    let mut pairs = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'));
    pairs.find_map(|pair| {
        let (given, value) = pair.trim().split_once('=')?;
        (given == name).then(|| value.to_owned())
    })
}

/// Returns true if the client wants a page rather than JSON or text.
pub(crate) fn prefers_page(headers: &HeaderMap) -> bool {
    // Browsers name HTML; programs that name JSON, or take anything, get JSON.
    text(headers, &header::ACCEPT).is_some_and(|accept| {
        let accept = accept.to_ascii_lowercase();
        accept.contains("text/html") && !accept.contains("application/json")
    })
}

/// Returns a path of this service that a person is sent to; the console for anything else.
pub(crate) fn local_path(next: &str) -> &str {
    // Browsers take `//host` and `/\host` for another host, and drop control characters before they look.
    let bytes = next.as_bytes();
    let is_local = next.len() <= MAX_NEXT
        && bytes.first() == Some(&b'/')
        && !matches!(bytes.get(1), Some(b'/' | b'\\'))
        && bytes.iter().all(|byte| (0x21..=0x7e).contains(byte));
    if is_local { next } else { CONSOLE }
}

/// Returns the address of the sign-in page that leads back to `path`.
pub(crate) fn sign_in(path: &str) -> String {
    // Everything but letters, digits, `/`, `-` and `_` is escaped, so the path stays one parameter.
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_');
    let escape = |byte: u8| {
        if plain(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    let query: String = local_path(path).bytes().map(escape).collect();
    format!("{SIGN_IN}?next={query}")
}

/// Answer to a browser: a page, or a redirect to one.
#[derive(Debug)]
pub(crate) struct View {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    html: String,
}

impl View {
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

    /// Makes the browser forget its session.
    ///
    /// # Errors
    /// None in practice: the text is fixed.
    pub(crate) fn signed_out(self) -> Result<Self, ApiError> {
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

impl Answer for View {
    const CONTENT_TYPE: &'static str = HTML;

    fn schema() -> Value {
        json!({"type": "string"})
    }

    fn into_output(self) -> Result<Output, ApiError> {
        Ok(Output::Whole {
            status: self.status,
            headers: self.headers,
            content_type: HTML,
            body: self.html.into(),
        })
    }
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
pub(crate) fn refusal(error: &ApiError, visit: &Visit, method: &Method, request_id: &str, frame: &Frame) -> View {
    if error.machine_code() == NOT_SIGNED_IN {
        // A form cannot be repeated by a redirect, so its sender begins at the console.
        let next = if method == Method::GET {
            visit.path.as_str()
        } else {
            CONSOLE
        };
        if let Ok(view) = View::see(&sign_in(next)) {
            return view;
        }
    }
    let body = error.body(request_id);
    let page = pages::ErrorPage {
        chrome: chrome(visit, None, frame),
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
    let view = View::page(&page).unwrap_or_else(|_unrendered| View {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        headers: Vec::new(),
        html: String::new(),
    });
    view.of_error(error)
}

/// Facts about the service that every page shows.
pub(crate) struct Frame {
    /// Address of the service.
    pub(crate) base: String,
    /// Time of rendering.
    pub(crate) now: Timestamp,
}

impl Frame {
    /// Returns the frame of pages of `app` at this moment.
    pub(crate) fn of(app: &App) -> Self {
        Self {
            base: app.config.public_url.clone(),
            now: app.clock.now(),
        }
    }
}

/// Returns what surrounds the content of a page.
pub(crate) fn chrome(visit: &Visit, person: Option<pages::Person>, frame: &Frame) -> pages::Chrome {
    pages::Chrome {
        theme: visit.theme,
        person,
        form_token: visit.form_token(),
        path: visit.path.clone(),
        attention: 0,
        now: pages::Instant(frame.now.micros()),
        base: frame.base.clone(),
    }
}

#[cfg(test)]
mod tests;
