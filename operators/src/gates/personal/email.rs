//! E-mail addresses (RFC 5321 mailboxes, RFC 6531 for other scripts).
//!
//! Invariant: an address ends in a top-level domain that exists, or in another one next to a word for e-mail; so file
//! names, decorators, packages, matrix products and hosts are not addresses. Addresses under the domains of examples are
//! nobody's.

use std::cell::LazyCell;
use std::sync::LazyLock;

use regex::Regex;

use super::context::ContextFlags;
use super::domains::{is_placeholder, is_reserved, top_level};

/// Domains in the names of key exchange and cipher algorithms.
const ALGORITHMS: [&str; 3] = ["openssh.com", "libssh.org", "lysator.liu.se"];

/// Returns true if `text` contains an address.
pub(super) fn has_address(text: &str, field: ContextFlags) -> bool {
    memchr::memchr_iter(b'@', text.as_bytes()).any(|at| is_address(text, at, field) || is_spaced(text, at, field))
}

/// Returns true if the `@` at byte `at` is part of an address.
fn is_address(text: &str, at: usize, field: ContextFlags) -> bool {
    const LONGEST_LOCAL: usize = 64;
    const LONGEST_DOMAIN: usize = 255;
    const LONGEST_PATH: usize = 1_024;
    let before = &text[..at];
    let local_start = before
        .char_indices()
        .rev()
        .take(LONGEST_LOCAL)
        .take_while(|(_, character)| character.is_alphanumeric() || "._%+-'".contains(*character))
        .last()
        .map_or(at, |(start, _)| start);
    // Signs at the ends belong to the sentence and not to the address.
    let local = before[local_start..].trim_matches(['.', '-', '\'', '+']);
    if !local.contains(char::is_alphanumeric)
        // These are users of code hosts in the addresses of repositories.
        || matches!(local, "git" | "svn" | "hg")
        || in_authority(&before[..local_start])
    {
        return false;
    }
    let after = &text[at + 1..];
    let end = after
        .char_indices()
        .take(LONGEST_DOMAIN)
        .take_while(|(_, character)| is_of_label(*character) || "-._".contains(*character))
        .last()
        .map_or(0, |(start, character)| start + character.len_utf8());
    // Computed at most once, since every label may need it.
    let called = LazyCell::new(|| {
        field.has(ContextFlags::EMAIL)
            || ContextFlags::near(text.as_bytes(), local_start, at + 1 + end).has(ContextFlags::EMAIL)
    });
    let Some(domain) = domain(&after[..end], || *called) else {
        return false;
    };
    let is_copy = after[domain.len()..].strip_prefix(':').is_some_and(|path| {
        // Without a bound, every address in a long list joined by colons would be read to the
        // end of the list.
        let path = &path[..floor(path, path.len().min(LONGEST_PATH))];
        let path = path.split(char::is_whitespace).next().unwrap_or_default();
        is_path(path)
    });
    if is_reserved(domain) || is_placeholder(local, domain) || is_quality(text, local_start, at + 1 + domain.len()) {
        return false;
    }
    // Names such as `aes256-gcm@openssh.com` have the form of an address.
    let algorithm = ALGORITHMS.iter().any(|name| domain.eq_ignore_ascii_case(name));
    !is_copy && !algorithm
}

/// Returns true if the word around `text[start..end]` is the qualities of a DNA read (FASTQ, a character for each
/// base): it is long, has no small letters, and goes no further than K, as Illumina's scores do, or has marks of very
/// many kinds.
fn is_quality(text: &str, start: usize, end: usize) -> bool {
    const REACH: usize = 64;
    const LONG: usize = 20;
    const KINDS: u32 = 10;
    let bytes = text.as_bytes();
    let before = bytes[..start]
        .iter()
        .rev()
        .take(REACH)
        .take_while(|byte| byte.is_ascii_graphic());
    let after = bytes[end..]
        .iter()
        .take(REACH)
        .take_while(|byte| byte.is_ascii_graphic());
    let (mut length, mut last, mut marks) = (0, 0, 0_u128);
    for byte in before.chain(&bytes[start..end]).chain(after) {
        if byte.is_ascii_lowercase() || !byte.is_ascii() {
            return false;
        }
        length += 1;
        last = (*byte).max(last);
        if byte.is_ascii_punctuation() {
            marks |= 1 << byte;
        }
    }
    length >= LONG && (last <= b'K' || marks.count_ones() >= KINDS)
}

/// Returns true if the text after a host and a colon is a path to copy to or from, and neither the end of a sentence
/// nor a URL.
fn is_path(text: &str) -> bool {
    let is_scheme = |scheme: &str| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let url = text.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme));
    let named = text.contains('/') && text.contains(char::is_alphanumeric);
    named && !url && !text.starts_with("//")
}

/// Returns true if a label of a domain may contain the character. The signs of India's scripts are not letters by
/// themselves.
fn is_of_label(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '\u{93C}' | '\u{94D}' | '\u{971}'..='\u{DFF}')
}

/// Returns true if the text before is the beginning of a URL's authority, `scheme://user:`.
fn in_authority(before: &str) -> bool {
    const REACH: usize = 200;
    let before = &before[floor(before, before.len().saturating_sub(REACH))..];
    let token = before
        .rsplit(|character: char| character.is_whitespace() || "\"'<>(),;".contains(character))
        .next();
    token
        .and_then(|token| token.rsplit_once("://"))
        .is_some_and(|(scheme, rest)| {
            !rest.contains(['/', '?', '#']) && !scheme.to_ascii_lowercase().ends_with("mailto")
        })
}

/// Returns the longest prefix of `text` that is a domain: at least two labels, the last one a top-level domain.
fn domain(text: &str, called: impl Fn() -> bool) -> Option<&str> {
    let mut start = 0;
    let mut found = None;
    for (index, label) in text.split('.').enumerate() {
        if label.is_empty() || label.starts_with(['-', '_']) || (index == 0 && is_scale(label)) {
            break;
        }
        if index > 0
            && let Some(length) = top_level(label, &called)
        {
            found = Some(&text[..start + length]);
        }
        start += label.len() + 1;
    }
    found
}

/// Returns true if the label is the scale in the name of an image, as in `icon@2x.png`.
fn is_scale(label: &str) -> bool {
    label
        .strip_suffix('x')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns true if the `@` is in an address with spaces around its signs: `kim @ example . com`. Spaces around the `@`
/// alone count next to a word for e-mail.
fn is_spaced(text: &str, at: usize, field: ContextFlags) -> bool {
    const REACH: usize = 160;
    let (Some(before), Some(after)) = (text[..at].strip_suffix(' '), text[at + 1..].strip_prefix(' ')) else {
        return false;
    };
    let start = floor(before, before.len().saturating_sub(REACH));
    let joined = format!(
        "{}@{}",
        before[start..].replace(" . ", ".").trim_end(),
        after[..floor(after, after.len().min(REACH))].replace(" . ", ".")
    );
    let Some(joined_at) = joined.find('@') else {
        return false;
    };
    let dotted = after.split_once('@').map_or(after, |(head, _)| head).contains(" . ");
    let called =
        || field.has(ContextFlags::EMAIL) || ContextFlags::near(text.as_bytes(), at, at + 1).has(ContextFlags::EMAIL);
    is_address(&joined, joined_at, field) && (dotted || called())
}

fn floor(text: &str, mut index: usize) -> usize {
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

/// Replaces `[at]` and `(dot)` by the signs they stand for. Returns `None` if the text has no such at.
pub(super) fn unmask(text: &str) -> Option<String> {
    let (at, dot) = (AT.as_ref()?, DOT.as_ref()?);
    let opened = memchr::memchr3_iter(b'(', b'[', b'{', text.as_bytes()).any(|open| {
        let inside = text[open + 1..].trim_start();
        inside.get(..2).is_some_and(|word| word.eq_ignore_ascii_case("at")) || inside.starts_with(['@', '골'])
    });
    if !opened || !at.is_match(text) {
        return None;
    }
    Some(dot.replace_all(&at.replace_all(text, "@"), ".").into_owned())
}

/// The pattern of a masked at. The patterns are constants, so compiling cannot fail; a test compiles them.
static AT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)[ \t]*[\[({][ \t]*(?:at|@|골뱅이)[ \t]*[\])}][ \t]*").ok());
static DOT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)[ \t]*[\[({][ \t]*(?:dot|\.|점)[ \t]*[\])}][ \t]*").ok());
