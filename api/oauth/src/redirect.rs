//! Redirect URIs: which ones a client can register, and which one a request may name.
//!
//! Invariant: texts are compared, never parsed URLs, so that no repair of a parser makes two different URIs equal. The
//! one exception is the port of a loopback URI, which native apps get from their system (RFC 8252 section 7.3), and the
//! name of its host, since libraries register one name and listen at another.

use types::host::is_host_name;
use url::{Host, Url};

/// Most bytes of a redirect URI.
const MAX_BYTES: usize = 2_048;

/// Hosts of loopback URIs, which are one computer. `localhost` is not recommended by RFC 8252 and common among
/// command-line clients.
pub(crate) const LOOPBACK_ORIGINS: [&str; 3] = ["http://127.0.0.1", "http://[::1]", "http://localhost"];

/// Schemes without a dot that no app of a person's own has: those of the web and of browsers, those that send a message,
/// and those that open programs of the system. RFC 8252 section 7.1 asks for a dot, which hardly a desktop app has.
const FOREIGN_SCHEMES: [&str; 40] = [
    "about",
    "acap",
    "afp",
    "blob",
    "callto",
    "chrome",
    "cid",
    "content",
    "data",
    "dav",
    "edge",
    "facetime",
    "feed",
    "file",
    "filesystem",
    "ftp",
    "ftps",
    "geo",
    "gopher",
    "imap",
    "intent",
    "jar",
    "javascript",
    "ldap",
    "magnet",
    "mailto",
    "market",
    "news",
    "nfs",
    "resource",
    "rtsp",
    "sftp",
    "sip",
    "smb",
    "sms",
    "ssh",
    "tel",
    "telnet",
    "vbscript",
    "xmpp",
];
/// Beginnings of such schemes.
const FOREIGN_FAMILIES: [&str; 11] = [
    "android", "chrome-", "http", "itms", "mms", "moz-", "ms-", "search-", "view-", "web+", "ws",
];

/// Kind of a client (`application_type`), which decides about its redirect URIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// A client on a server: `https` only.
    Web,
    /// A client on a device of a person: loopback and private schemes too.
    Native,
}

impl Application {
    /// Returns the word of the kind.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Native => "native",
        }
    }
}

/// Returns true if a client of this kind can register the URI.
///
/// It has no fragment and no user, is spelled as a browser would send it, and is one of: `https` with a plain host
/// name; `http` on a loopback host; a private scheme, with a dot in it or with the form of one of a desktop app. The
/// latter two are for native applications.
pub fn can_be_registered(uri: &str, application: Application) -> bool {
    let is_plain = uri.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') && uri.len() <= MAX_BYTES;
    let Some(url) = Url::parse(uri).ok().filter(|_| is_plain && !uri.contains('#')) else {
        return false;
    };
    // A parser repairs segments of dots, numbers as hosts and default ports. An empty path is harmless.
    let is_canonical = url.as_str() == uri || url.as_str().strip_suffix('/') == Some(uri);
    let has_user = !url.username().is_empty() || url.password().is_some();
    if !is_canonical || has_user {
        return false;
    }
    let is_native = application == Application::Native;
    match url.scheme() {
        "https" => matches!(url.host(), Some(Host::Domain(name)) if name.contains('.') && is_host_name(name)),
        "http" => is_native && loopback(uri).is_some(),
        scheme => {
            // After a private scheme the host is a name that the program chose, which may have an underscore.
            let has_plain_host = url.host_str().is_none_or(|name| is_host_name(&name.replace('_', "-")));
            is_native && has_plain_host && (scheme.contains('.') || is_of_an_app(uri, scheme))
        }
    }
}

/// Returns true if a scheme without a dot can be that of a desktop app: it has at least three letters, names a place
/// after two slashes, and is none of the web, of a browser or of the system.
fn is_of_an_app(uri: &str, scheme: &str) -> bool {
    let place = uri[scheme.len()..].strip_prefix("://");
    let is_foreign =
        FOREIGN_SCHEMES.contains(&scheme) || FOREIGN_FAMILIES.iter().any(|family| scheme.starts_with(family));
    scheme.len() >= 3 && place.is_some_and(|place| !place.is_empty() && !place.starts_with('/')) && !is_foreign
}

/// Returns true if a request may name `uri` because the client registered `registered`.
pub fn matches(registered: &str, uri: &str) -> bool {
    registered == uri || loopback(registered).is_some_and(|known| loopback(uri) == Some(known))
}

/// Returns the path and the query of a loopback URI.
fn loopback(uri: &str) -> Option<&str> {
    // The texts of the hosts do not begin one another, so that at most one is found.
    let host = LOOPBACK_ORIGINS.into_iter().find(|host| uri.starts_with(host))?;
    let rest = &uri[host.len()..];
    let Some(port) = rest.strip_prefix(':') else {
        // `http://localhost.evil.example` and `http://127.0.0.12` go on after the text of a loopback host.
        let ends_host = rest.is_empty() || rest.starts_with(['/', '?']);
        return ends_host.then_some(rest);
    };
    let end = port.find(['/', '?']).unwrap_or(port.len());
    let (port, rest) = port.split_at(end);
    // `:`, `:0`, `:080` and `:+80` are ports to some parsers and not to others.
    let is_digits = port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0');
    let is_port = is_digits && port.parse::<u16>().is_ok();
    is_port.then_some(rest)
}

/// Returns the URI with parameters added to its query.
pub(crate) fn with_parameters(uri: &str, parameters: &[(&str, &str)]) -> String {
    let mut added = url::form_urlencoded::Serializer::new(String::new());
    added.extend_pairs(parameters);
    // The registered query stays as it is: a parser could encode it in another way than the client compares.
    let separator = match uri.split_once('?') {
        None => "?",
        Some((_, "")) => "",
        Some(_) => "&",
    };
    format!("{uri}{separator}{}", added.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_safe_uris_can_be_registered() {
        let web = "https://app.example/callback https://app.example https://app.example/ https://app.example/cb?a=b \
                   https://app.example:8443/cb https://xn--bcher-kva.example/cb";
        for uri in web.split_whitespace() {
            assert!(can_be_registered(uri, Application::Web), "{uri}");
            assert!(can_be_registered(uri, Application::Native), "{uri}");
        }
        let native = "http://127.0.0.1/cb http://127.0.0.1:3000/cb http://[::1]:3000/cb http://localhost:3000/cb \
                      http://localhost com.example.app:/oauth com.example.app://oauth \
                      com.example.app://oauth_callback cursor://anysphere.cursor-mcp/oauth/callback \
                      vscode://vscode.github-authentication/did-authenticate windsurf://codeium.windsurf/callback \
                      claude://oauth/callback zed://mcp/callback myapp://cb";
        for uri in native.split_whitespace() {
            assert!(can_be_registered(uri, Application::Native), "{uri}");
            assert!(!can_be_registered(uri, Application::Web), "{uri}");
        }
        let never = "http://app.example/cb http://127.0.0.2/cb http://127.1/cb http://localhost.evil.example/cb \
                     http://localhost:99999/cb http://localhost:/cb http://localhost:03/cb http://localhost@evil.example/ \
                     https://app.example/cb#x https://app.example/cb# https://user@app.example/cb https://a:b@app.example/ \
                     https://app.example/a/../cb https://app.example/./cb https://app.example/%2e%2e/cb \
                     https://App.example/cb HTTPS://app.example/cb https://app.example:443/cb https:app.example/cb \
                     https:///app.example/cb https://app.example\\cb https://127.0.0.1/cb https://[::1]/cb https://0x7f.1/cb \
                     https://localhost/cb https://app.example./cb https://b\u{fc}cher.example/cb javascript:alert(1) \
                     https://a;b.example/cb https://a'b.example/cb https://a,b.example/cb https://*.example/cb \
                     https://a_b.example/cb https://-a.example/cb https://a..example/cb https://a&b.example/cb \
                     com.example.app://a;b/cb com.example.app://a'b com.example.app://[::1]/cb \
                     data:text/html,a file:///etc/passwd vbscript:a about:blank blob:https://a.example/1 ftp://a.example/ \
                     myapp:cb myapp:///cb my://cb ms-msdt://cb search-ms://cb intent://cb view-source://cb web+app://cb \
                     chrome-extension://abc/cb httpx://cb sms://cb mailto:a@b.example ws://localhost/cb cb /cb //app.example/cb";
        for uri in never
            .split_whitespace()
            .chain(["", " https://app.example/cb", "https://app.example/c b"])
        {
            assert!(!can_be_registered(uri, Application::Native), "{uri}");
        }
        let long = format!("https://app.example/{}", "a".repeat(2_048));
        assert!(!can_be_registered(&long, Application::Web));
    }

    #[test]
    fn a_uri_matches_itself_and_on_loopback_with_any_port() {
        let registered = "https://app.example/cb";
        assert!(matches(registered, registered));
        let near = "https://app.example/cb/ https://app.example/cb? https://app.example/cb?a=b https://app.example/c \
                    https://app.example/cb#a https://app.example:443/cb https://app.example:444/cb https://App.example/cb \
                    HTTPS://app.example/cb http://app.example/cb https://app.example/CB https://app.example/x/../cb \
                    https://app.example/%63b https://app.example.evil.example/cb https://evil.example/cb \
                    https://app.example/cb.evil.example https://app.example@evil.example/cb https://app.example/cb/../evil";
        for uri in near.split_whitespace() {
            assert!(!matches(registered, uri), "{uri}");
        }
        for port in ["", ":1", ":3000", ":65535"] {
            for host in ["127.0.0.1", "[::1]", "localhost"] {
                let uri = format!("http://{host}{port}/cb?a=b");
                assert!(matches(&format!("http://{host}:8080/cb?a=b"), &uri), "{uri}");
                assert!(matches(&format!("http://{host}/cb?a=b"), &uri), "{uri}");
                assert!(matches("http://localhost/cb?a=b", &uri), "{uri}");
            }
        }
        let near = "https://localhost:3000/cb http://[::2]:3000/cb https://127.0.0.1:3000/cb http://127.0.0.1:3000/cb/ \
                    http://127.0.0.1:3000/ http://127.0.0.1:3000 http://127.0.0.1:0/cb http://127.0.0.1:65536/cb \
                    http://127.0.0.1:/cb http://127.0.0.1:+80/cb http://127.0.0.1:3000@evil.example/cb http://127.0.0.1:080/cb \
                    http://127.0.0.1.evil.example/cb http://127.0.0.12/cb http://127.0.0.1@evil.example/cb \
                    http://127.0.0.1:3000/x/../cb http://127.0.0.1#/cb http://127.0.0.1\\@evil.example/cb";
        for uri in near.split_whitespace() {
            assert!(!matches("http://127.0.0.1/cb", uri), "{uri}");
        }
    }

    #[test]
    fn parameters_are_appended_and_encoded() {
        let with = |uri| with_parameters(uri, &[("code", "a b"), ("iss", "https://s.example")]);
        assert_eq!(
            with("https://a.example/cb"),
            "https://a.example/cb?code=a+b&iss=https%3A%2F%2Fs.example"
        );
        assert_eq!(
            with("https://a.example/cb?x=1"),
            "https://a.example/cb?x=1&code=a+b&iss=https%3A%2F%2Fs.example"
        );
        assert_eq!(
            with("com.example.app:/cb?"),
            "com.example.app:/cb?code=a+b&iss=https%3A%2F%2Fs.example"
        );
    }
}
