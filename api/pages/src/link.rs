//! Links.
//!
//! Invariant: a name of somebody else stands in an address with every byte escaped that an address gives a meaning to.

use std::fmt::Write as _;

/// Link: an address of this service and the words of the link.
#[derive(Clone, Debug)]
pub struct PageLink {
    /// Address, a path of this service.
    pub href: String,
    /// Words of the link.
    pub label: String,
}

impl PageLink {
    /// Creates a link.
    pub fn new(href: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            href: href.into(),
            label: label.into(),
        }
    }
}

/// Name in the place of an agent that is taken down.
const REMOVED: &str = "[removed]";

/// Returns the page of an agent; `None` for one that is taken down.
pub(crate) fn agent(name: impl AsRef<str>) -> Option<String> {
    let name = name.as_ref();
    (name != REMOVED && !name.is_empty()).then(|| format!("/agents/{}", escaped(name)))
}

/// Returns the page of a collector.
pub(crate) fn collector(name: impl AsRef<str>) -> String {
    format!("/collectors/{}", escaped(name.as_ref()))
}

/// Returns the page of what has a tag.
pub(crate) fn tag(tag: impl AsRef<str>) -> String {
    format!("/find?tag={}", escaped(tag.as_ref()))
}

/// Returns the page of what is in a category.
pub(crate) fn category(category: impl AsRef<str>) -> String {
    format!("/find?category={}", escaped(category.as_ref()))
}

/// Escapes all but the unreserved characters (RFC 3986 section 2.3).
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // A `String` takes every text.
            let _written = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_place_in_an_address() {
        assert_eq!(agent("tide-gauge_1.b").as_deref(), Some("/agents/tide-gauge_1.b"));
        assert_eq!(agent("a/../b?c#d").as_deref(), Some("/agents/a%2F..%2Fb%3Fc%23d"));
        assert_eq!((agent(REMOVED), agent("")), (None, None));
        assert_eq!(tag("sea level"), "/find?tag=sea%20level");
        assert_eq!(category("\u{5e9}"), "/find?category=%D7%A9");
        assert_eq!(collector("iana"), "/collectors/iana");
    }
}
