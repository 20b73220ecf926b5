//! The server and the path that a URL names, with every check that needs no network.
//!
//! Invariant: the text is read as RFC 3986 spells URLs. The repairs of the WHATWG standard (missing or extra slashes,
//! backslashes, tabs, numbers as addresses, escapes in the host) are refused, since another reader of the same text
//! may see another host.

use std::net::IpAddr;

use url::{Host, Url};

use crate::{ClientOptions, UrlRefusal, is_public};

/// Most bytes of a URL.
const MAX_BYTES: usize = 2_048;

/// Last labels of names that only private networks and single machines resolve (RFC 6761, RFC 6762, RFC 8375,
/// RFC 7686, RFC 9476, and `internal`, which ICANN reserves).
const PRIVATE_NAMES: [&str; 14] = [
    "alt",
    "arpa",
    "corp",
    "home",
    "intranet",
    "internal",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "onion",
    "private",
    "test",
];

/// A server and what to ask it for.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The URL without a fragment.
    pub(crate) url: Url,
    /// The host as the URL has it, for messages.
    pub(crate) host: String,
    /// The address, if the host is one.
    pub(crate) address: Option<IpAddr>,
    pub(crate) port: u16,
    pub(crate) is_tls: bool,
}

impl Target {
    /// Checks the text of a URL, which may be relative if there is a `base`.
    pub(crate) fn parse(text: &str, base: Option<&Url>, options: &ClientOptions) -> Result<Self, UrlRefusal> {
        if text.len() > MAX_BYTES {
            return Err(UrlRefusal::Length);
        }
        let is_odd = |letter: char| letter.is_control() || letter.is_whitespace() || letter == '\\';
        if text.is_empty() || text.contains(is_odd) {
            return Err(UrlRefusal::Syntax);
        }
        // RFC 3986 section 4.2: a relative text has no colon before its first slash.
        let first = text.split(['/', '?', '#']).next().unwrap_or_default();
        if base.is_none() || first.contains(':') {
            scheme_first(text)?;
        }
        let parsed = base.map_or_else(|| Url::parse(text), |base| base.join(text));
        let mut url = parsed.map_err(|_error| UrlRefusal::Syntax)?;
        // A redirect from `https` to `http` would give the rest of the exchange to everybody on the way.
        let may_be_plain = options.allow_private && base.is_none_or(|base| base.scheme() == "http");
        let is_tls = match url.scheme() {
            "https" => true,
            "http" if may_be_plain => false,
            _ => return Err(UrlRefusal::Scheme),
        };
        // The host comes from the base or is spelled in this text. Any other way is a repair of the parser.
        let authority = authority(text);
        if authority == Some("") || authority.is_none() && url.host() != base.and_then(Url::host) {
            return Err(UrlRefusal::Syntax);
        }
        if !url.username().is_empty() || url.password().is_some() || authority.is_some_and(|text| text.contains('@')) {
            return Err(UrlRefusal::UserInfo);
        }
        // The host is that of the parsed URL from here on, which is also the one that is resolved and connected to.
        let port = url.port_or_known_default().ok_or(UrlRefusal::Port)?;
        let host = url.host().ok_or(UrlRefusal::Syntax)?.to_owned();
        if let Some(authority) = authority {
            plainly_spelled(authority, &host)?;
        }
        let address = match &host {
            Host::Domain(name) => {
                name_of_a_host(name, options.allow_private)?;
                None
            }
            Host::Ipv4(address) => Some(IpAddr::V4(*address)),
            Host::Ipv6(address) => Some(IpAddr::V6(*address)),
        };
        if address.is_some_and(|address| !options.allow_private && !is_public(address)) {
            return Err(UrlRefusal::PrivateAddress);
        }
        if !options.ports.contain(port) {
            return Err(UrlRefusal::Port);
        }
        // A fragment is for the reader of the answer (RFC 9110 section 4.2.5).
        url.set_fragment(None);
        Ok(Self {
            host: host.to_string(),
            url,
            address,
            port,
            is_tls,
        })
    }

    /// Returns the path with the query, as the request line has it.
    pub(crate) fn path(&self) -> &str {
        &self.url[url::Position::BeforePath..url::Position::AfterQuery]
    }

    /// Returns the value of `Host`.
    pub(crate) fn authority(&self) -> &str {
        &self.url[url::Position::BeforeHost..url::Position::AfterPort]
    }
}

/// Refuses a text that does not begin with a scheme, two slashes and a host.
fn scheme_first(text: &str) -> Result<(), UrlRefusal> {
    let (scheme, rest) = text.split_once(':').ok_or(UrlRefusal::Syntax)?;
    if !["https", "http"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Err(UrlRefusal::Scheme);
    }
    let host = rest.strip_prefix("//").ok_or(UrlRefusal::Syntax)?;
    if host.is_empty() || host.starts_with(['/', '?', '#']) {
        return Err(UrlRefusal::Syntax);
    }
    Ok(())
}

/// Returns the part of a URL between two slashes and the path, if the text has one.
fn authority(text: &str) -> Option<&str> {
    let rest = if let Some(rest) = text.strip_prefix("//") {
        rest
    } else {
        let (scheme, rest) = text.split_once("://")?;
        let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphabetic());
        is_scheme.then_some(rest)?
    };
    rest.split(['/', '?', '#']).next()
}

/// Refuses a host with escapes, and an IPv4 address that is not four decimal numbers.
fn plainly_spelled<S: AsRef<str>>(authority: &str, host: &Host<S>) -> Result<(), UrlRefusal> {
    let spelled = match authority.rsplit_once(':') {
        Some((spelled, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => spelled,
        _ => authority,
    };
    let is_plain = match host {
        Host::Ipv4(address) => spelled == address.to_string(),
        // Brackets admit nothing but the hexadecimal form, in which every spelling means one address.
        Host::Ipv6(_) => true,
        Host::Domain(_) => !spelled.contains('%'),
    };
    if is_plain { Ok(()) } else { Err(UrlRefusal::Spelling) }
}

/// Refuses a name that DNS cannot have and, unless `private` are allowed, one that only private networks have.
fn name_of_a_host(name: &str, allow_private: bool) -> Result<(), UrlRefusal> {
    let is_label = |label: &str| {
        let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
        (1..=63).contains(&label.len()) && label.bytes().all(is_letter)
    };
    // A last dot makes an empty label.
    if name.len() > 253 || !name.split('.').all(is_label) {
        return Err(UrlRefusal::Spelling);
    }
    // A name of one label is completed by the search list of the machine.
    let is_private = match name.rsplit_once('.') {
        None => true,
        Some((_, last)) => PRIVATE_NAMES.contains(&last),
    };
    if is_private && !allow_private {
        return Err(UrlRefusal::PrivateName);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ports;

    fn strict() -> ClientOptions {
        ClientOptions::new("ops@example.org")
    }

    #[test]
    fn the_request_has_the_host_and_the_path_of_the_url_and_no_fragment() {
        let target = Target::parse("https://B\u{fc}cher.Example/a%20b?c=d#e", None, &strict()).unwrap();
        assert_eq!(target.authority(), "xn--bcher-kva.example");
        assert_eq!(target.path(), "/a%20b?c=d");
        assert_eq!((target.port, target.is_tls), (443, true));
        let target = Target::parse("https://example.org", None, &strict()).unwrap();
        assert_eq!(target.path(), "/");
    }

    #[test]
    fn a_url_takes_time_that_is_linear_in_its_text() {
        let (options, base) = (strict(), Url::parse("https://example.org/a/b").unwrap());
        for before in [
            "https://example.org/",
            "https://",
            "https://a@",
            "https://example.org/?",
            "",
        ] {
            growth::is_linear("a URL", MAX_BYTES / 2 - 20, |text| {
                growth::consume(Target::parse(&format!("{before}{text}"), Some(&base), &options));
            });
        }
    }

    #[test]
    fn a_redirect_is_read_relative_to_its_url_and_not_down_to_plain_http() {
        let mut options = strict();
        let base = Url::parse("https://example.org/a/b").unwrap();
        let next = |text: &str, options: &ClientOptions| Target::parse(text, Some(&base), options).map(|next| next.url);
        assert_eq!(next("c?d", &options).unwrap().as_str(), "https://example.org/a/c?d");
        assert_eq!(
            next("//other.example/c", &options).unwrap().as_str(),
            "https://other.example/c"
        );
        assert_eq!(next("//127.1/c", &options), Err(UrlRefusal::Spelling));
        assert_eq!(next("/\\127.0.0.1/c", &options), Err(UrlRefusal::Syntax));
        assert_eq!(next("///127.0.0.1/c", &options), Err(UrlRefusal::Syntax));
        assert_eq!(next("https:/127.0.0.1/c", &options), Err(UrlRefusal::Syntax));
        options.allow_private = true;
        options.ports = Ports::Any;
        assert_eq!(next("http://example.org/", &options), Err(UrlRefusal::Scheme));
    }
}
