//! Browsers: the session in a cookie, and forms.
//!
//! Invariants:
//! - A session is read from its cookie on pages only; a program's request never has the rights of a cookie. The one exception
//!   is the door of the console (`transport/rest/act.rs`), where a script of an own page calls what is listed there.
//! - A form changes something only if the browser says that a page of this service sent it, and if it carries the token
//!   that the session's own pages contain.
//! - A form that only asks, but for something that costs, has a token of its own in its address, which is good for that alone.

use data_encoding::BASE64URL_NOPAD;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;

use super::caller::PresentedCredential;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::secrets;

/// Cookie of a session. The prefix makes browsers take it only from this host, by TLS or loopback (RFC 6265bis section
/// 4.1.3.2).
pub(crate) const SESSION: &str = "__Host-sluice";
/// Cookie of the colour scheme that the person chose.
pub(super) const THEME: &str = "theme";
/// Cookie of the path that a person goes to after signing in.
pub(super) const NEXT: &str = "__Host-next";
/// Seconds for which a browser keeps that path: as long as a link for signing in works.
pub(super) const NEXT_SECONDS: u32 = 900;
/// Header by which a browser names the relation between the page that sent a request and this service.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Longest text of the browser about itself that is kept, in characters.
const MAX_USER_AGENT: usize = 200;
/// Page that a signed-in person sees first.
pub(crate) const CONSOLE: &str = "/console";
/// Page that mails a link for signing in.
pub(crate) const SIGN_IN: &str = "/signin";
/// Longest path that a person is sent back to after signing in, in bytes.
const MAX_NEXT: usize = 3_500;

/// Browser that opens a page or sends a form.
#[derive(Clone)]
pub struct BrowserRequest {
    /// Token of the session, from the cookie.
    session: Option<String>,
    /// True if the browser says that a page of this service sent the request.
    from_own_page: bool,
    /// True if it says so in `Origin`.
    names_origin: bool,
    /// True if the browser says that a page of another site sent it.
    from_elsewhere: bool,
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
impl std::fmt::Debug for BrowserRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Visit").finish_non_exhaustive()
    }
}

impl BrowserRequest {
    /// Reads what a page needs of a request to the service at `public_url`.
    pub(crate) fn of(parts: &Parts, public_url: &str) -> Self {
        let user_agent = text(&parts.headers, &header::USER_AGENT).unwrap_or_default();
        Self {
            session: session(&parts.headers),
            from_own_page: is_own(&parts.headers, public_url),
            names_origin: names_own_origin(&parts.headers, public_url),
            from_elsewhere: is_foreign(&parts.headers, public_url),
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

    /// Returns true if the browser says that a page of another site led to this one. A person who types an address, or keeps
    /// it, comes from nowhere.
    pub(crate) const fn is_from_elsewhere(&self) -> bool {
        self.from_elsewhere
    }

    /// Returns the credential of the browser.
    pub(crate) fn presented(&self) -> PresentedCredential {
        self.session
            .clone()
            .map_or(PresentedCredential::Nothing, PresentedCredential::Session)
    }

    /// Returns the token that forms of this session carry; empty without a session.
    pub(crate) fn form_token(&self) -> String {
        self.token_for("form")
    }

    /// Returns the token by which a page of this session asks for filtered or ordered rows of a dataset; empty without a
    /// session. It stands in addresses, so it is good for nothing else.
    pub(crate) fn rows_token(&self, slug: &str) -> String {
        self.token_for(&format!("rows {slug}"))
    }

    /// Returns true if a page of this service, and of this session, asks for filtered or ordered rows of a dataset. Another site
    /// can lead a browser here by a page of this service, such as the one for signing in, but knows no token.
    pub(crate) fn is_own_filter(&self, slug: &str, given: Option<&str>) -> bool {
        self.from_own_page && self.session.is_some() && is_token(&self.rows_token(slug), given)
    }

    fn token_for(&self, purpose: &str) -> String {
        // The token says nothing about the session's own, so a page that leaks does not give the session away.
        let hash = self
            .session
            .as_ref()
            .map(|token| secrets::hash(&format!("{purpose} {token}")));
        hash.map(|hash| BASE64URL_NOPAD.encode(&hash[..24])).unwrap_or_default()
    }

    /// Fails with 403 if no page of this service sent the form, or if `in_origin` and the browser says so in another header only.
    pub(crate) fn check_origin(&self, in_origin: bool) -> Result<(), ApiError> {
        let is_own = if in_origin {
            self.names_origin
        } else {
            self.from_own_page
        };
        if is_own {
            return Ok(());
        }
        Err(foreign("the form was not sent by a page of this service"))
    }

    /// Fails with 403 if a form of a signed-in person does not carry the token of the session.
    pub(crate) fn check_token(&self, given: Option<&str>) -> Result<(), ApiError> {
        if is_token(&self.form_token(), given) {
            return Ok(());
        }
        Err(foreign(
            "the form is of an earlier session; open its page again and repeat the step",
        ))
    }
}

fn foreign(message: &str) -> ApiError {
    ApiError::new(ErrorCode::ForeignForm, message)
}

fn is_token(token: &str, given: Option<&str>) -> bool {
    // Hashes are compared, so the time of the comparison says nothing about the token.
    given.map(secrets::hash) == Some(secrets::hash(token))
}

/// Returns true if the browser says that a page of another site than `public_url` sent the request. What says nothing is a
/// program, or a browser from before 2023.
fn is_foreign(headers: &HeaderMap, public_url: &str) -> bool {
    let has_origin = headers.contains_key(&header::ORIGIN);
    let site = text(headers, &FETCH_SITE);
    !is_own(headers, public_url) && (has_origin || matches!(site.as_deref(), Some("same-site" | "cross-site")))
}

/// Returns true if the browser says that a page of the service at `public_url` sent the request.
fn is_own(headers: &HeaderMap, public_url: &str) -> bool {
    // Browsers send `Origin` with every form. Without it, only the statement of a newer browser counts.
    match text(headers, &header::ORIGIN) {
        Some(origin) => origin.eq_ignore_ascii_case(public_url),
        None => text(headers, &FETCH_SITE).as_deref() == Some("same-origin"),
    }
}

/// Returns true if the browser names the service at `public_url` in `Origin`, once.
pub(crate) fn names_own_origin(headers: &HeaderMap, public_url: &str) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let is_own = |origin: &HeaderValue| origin.as_bytes().eq_ignore_ascii_case(public_url.as_bytes());
    origins.next().is_some_and(is_own) && origins.next().is_none()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_of_this_service_is_opened_after_signing_in() {
        for path in ["/", "/console", "/oauth/authorize?client_id=a&scope=read%20write"] {
            assert_eq!(local_path(path), path);
        }
        let long = format!("/{}", "a".repeat(3_500));
        for path in [
            "",
            "console",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "https://evil.example",
            "/\t/evil.example",
            "/\n/evil.example",
            "/a b",
            "/é",
            &long,
        ] {
            assert_eq!(local_path(path), CONSOLE, "{path:?}");
        }
        assert_eq!(sign_in("/a?b=c&d"), "/signin?next=/a%3Fb%3Dc%26d");
        assert_eq!(sign_in("//evil.example"), "/signin?next=/console");
    }

    #[test]
    fn a_form_is_own_if_the_browser_names_this_service() {
        let own = |name: HeaderName, value: &'static str| {
            let headers = HeaderMap::from_iter([(name, HeaderValue::from_static(value))]);
            is_own(&headers, "https://sluice.example")
        };
        assert!(own(header::ORIGIN, "https://sluice.example"));
        assert!(own(FETCH_SITE, "same-origin"));
        for origin in [
            "null",
            "https://evil.example",
            "http://sluice.example",
            "https://sluice.example.evil.example",
            "",
        ] {
            assert!(!own(header::ORIGIN, origin), "{origin}");
        }
        for site in ["same-site", "cross-site", "none"] {
            assert!(!own(FETCH_SITE, site), "{site}");
        }
        assert!(!is_own(&HeaderMap::new(), "https://sluice.example"));
    }

    #[test]
    fn the_statement_of_a_newer_browser_names_no_origin() {
        let names = |pairs: &[(HeaderName, &'static str)]| {
            let pairs = pairs
                .iter()
                .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(name, value);
            }
            names_own_origin(&headers, "https://sluice.example")
        };
        let own = (header::ORIGIN, "https://sluice.example");
        assert!(names(std::slice::from_ref(&own)));
        for others in [
            vec![],
            vec![(FETCH_SITE, "same-origin")],
            vec![(header::ORIGIN, "null")],
            vec![(header::ORIGIN, "https://evil.example"), (FETCH_SITE, "same-origin")],
            vec![own.clone(), (header::ORIGIN, "https://evil.example")],
            vec![own.clone(), own],
        ] {
            assert!(!names(&others), "{others:?}");
        }
    }

    fn browser(session: Option<&str>, header: Option<(HeaderName, &'static str)>) -> BrowserRequest {
        let mut request = http::Request::builder().uri("/");
        if let Some(session) = session {
            request = request.header(header::COOKIE, format!("{SESSION}={session}"));
        }
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        BrowserRequest::of(&request.body(()).unwrap().into_parts().0, "https://sluice.example")
    }

    #[test]
    fn another_site_is_told_from_a_person_who_types_an_address() {
        for (header, is_foreign) in [
            (Some((FETCH_SITE, "cross-site")), true),
            (Some((FETCH_SITE, "same-site")), true),
            (Some((header::ORIGIN, "https://evil.example")), true),
            (Some((header::ORIGIN, "null")), true),
            (Some((header::ORIGIN, "https://sluice.example")), false),
            (Some((FETCH_SITE, "same-origin")), false),
            (Some((FETCH_SITE, "none")), false),
            (None, false),
        ] {
            let is_from_elsewhere = browser(None, header.clone()).is_from_elsewhere();
            assert_eq!(is_from_elsewhere, is_foreign, "{header:?}");
        }
    }

    #[test]
    fn rows_are_filtered_for_an_own_page_of_the_session_and_the_dataset() {
        let own = Some((FETCH_SITE, "same-origin"));
        let visit = browser(Some("wts_a"), own.clone());
        let token = visit.rows_token("tides");
        assert!(visit.is_own_filter("tides", Some(&token)));
        assert!(!visit.is_own_filter("tides", None) && !visit.is_own_filter("tides", Some("")));
        assert!(!visit.is_own_filter("tides-2", Some(&token)));
        assert!(
            !visit.is_own_filter("tides", Some(&visit.form_token())),
            "tokens of forms stand in no address"
        );
        for other in [
            browser(Some("wts_b"), own.clone()),
            browser(Some("wts_a"), Some((FETCH_SITE, "cross-site"))),
            browser(Some("wts_a"), None),
        ] {
            assert!(!other.is_own_filter("tides", Some(&token)));
        }
        let nobody = browser(None, own);
        assert!(!nobody.is_own_filter("tides", Some(&nobody.rows_token("tides"))));
        assert!(visit.check_token(Some(&token)).is_err());
    }
}
