//! HTTP rules for the head of every request, independent of its operation.
//!
//! Invariant: a request that two readers could understand differently reaches no operation.

use http::header::{self, HeaderName};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, Version};

use crate::error::ApiError;

/// Refuses a head that breaks a rule.
pub(super) fn check(parts: &Parts) -> Result<(), ApiError> {
    // Two values could be read differently by a proxy and by this service (request smuggling).
    host(parts)?;
    once(&parts.headers, &header::AUTHORIZATION)?;
    once(&parts.headers, &header::CONTENT_TYPE)?;
    for (name, text) in [("path", Some(parts.uri.path())), ("query", parts.uri.query())] {
        if text.is_some_and(|text| !is_percent_encoded(text)) {
            let problem = format!("must have a {name} that is percent-encoded UTF-8 (RFC 3986 section 2.1)");
            return Err(ApiError::invalid("", problem));
        }
    }
    Ok(())
}

/// Checks that there is one host. HTTP/1.0 need not name any (RFC 9112 section 3.2).
fn host(parts: &Parts) -> Result<(), ApiError> {
    once(&parts.headers, &header::HOST)?;
    let problem = match parts.headers.get(header::HOST) {
        None if parts.version < Version::HTTP_11 => return Ok(()),
        None => "must have a `Host` header",
        Some(host) if is_host(host.as_bytes()) => return Ok(()),
        Some(_) => "must have a host and at most a port in its `Host` header",
    };
    Err(ApiError::invalid("", problem))
}

/// Returns true for a legal value of `Host`: nothing, or a host with or without a port.
fn is_host(host: &[u8]) -> bool {
    if host.is_empty() {
        return true;
    }
    // `Authority` accepts user information, which `Host` must not contain.
    let authority = Authority::try_from(host).ok().filter(|_| !host.contains(&b'@'));
    authority.is_some_and(|authority| {
        let port = authority.as_str().strip_prefix(authority.host());
        let port = port.map(|port| port.strip_prefix(':').unwrap_or(port));
        port.is_some_and(|port| port.is_empty() || port.parse::<u16>().is_ok())
    })
}

/// Checks that a header that is no list occurs at most once (RFC 9110 section 5.3).
fn once(headers: &HeaderMap, name: &HeaderName) -> Result<(), ApiError> {
    if headers.get_all(name).iter().nth(1).is_some() {
        let problem = format!("must have the header `{name}` once");
        return Err(ApiError::invalid("", problem));
    }
    Ok(())
}

/// Returns true if each `%` begins two hexadecimal digits, and the decoded text is UTF-8.
fn is_percent_encoded(text: &str) -> bool {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let digits = [bytes.next(), bytes.next()].map(|digit| char::from(digit.unwrap_or_default()).to_digit(16));
        let [Some(high), Some(low)] = digits else {
            return false;
        };
        decoded.extend(u8::try_from(high * 16 + low));
    }
    str::from_utf8(&decoded).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_takes_time_that_is_linear_in_its_text() {
        growth::is_linear("the path", 8_000, |text| {
            is_percent_encoded(text);
        });
        growth::is_linear("the host", 8_000, |text| {
            is_host(text.as_bytes());
        });
    }

    #[test]
    fn escapes_are_whole_and_say_text() {
        for text in ["", "/a%20b", "/%C3%a9", "a=1%26b", "/é"] {
            assert!(is_percent_encoded(text), "{text}");
        }
        for text in ["%", "/a%2", "/a%zz", "/%+1", "/%ff", "/%C3", "a=%c3%28"] {
            assert!(!is_percent_encoded(text), "{text}");
        }
    }
}
