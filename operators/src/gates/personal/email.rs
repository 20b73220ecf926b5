//! E-mail addresses (RFC 5321 mailboxes, RFC 6531 for other scripts).
//!
//! Invariant: an address ends in a top-level domain that exists, or in another one next to a word for e-mail; so file
//! names, decorators, packages, matrix products and hosts are not addresses.

use std::cell::LazyCell;
use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;

use super::context::Hints;

/// Generic top-level domains that addresses are found under, and those reserved for examples (RFC 2606).
const GENERIC: &str = "com org net edu gov mil int info biz name pro mobi aero asia cat coop jobs museum post tel travel \
    app dev page web cloud online site website store shop tech blog news club email mail live life world today company \
    agency studio design digital media network systems solutions services support group global center centre team space \
    works zone academy school college university education science health clinic hospital doctor dental care law legal \
    lawyer attorney bank finance financial money capital fund holdings ventures partners consulting management marketing \
    social community foundation charity church photos photography gallery art music film video games game fun xyz top icu \
    vip win work click link host press expert guru ninja rocks codes software engineering energy farm house land estate \
    realty properties rent apartments hotel travel tours restaurant cafe bar pub kitchen pizza fashion clothing shoes jewelry \
    car cars auto bike taxi london berlin paris tokyo nyc wien hamburg koeln bayern amsterdam brussels moscow istanbul \
    sydney melbourne africa swiss scot wales cymru eus gal bzh corsica quebec lat krd kiwi family baby love wedding gmbh ltd \
    inc llc srl example test invalid google microsoft samsung";

/// Country codes (ISO 3166-1 alpha-2 as delegated by IANA).
const COUNTRIES: &str = "ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bw \
    by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu fi fj fk fm fo fr \
    ga gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg \
    kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx \
    my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se \
    sg sh si sk sl sm sn so sr ss st su sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz va vc \
    ve vg vi vn vu wf ws ye yt za zm zw";

/// Top-level domains in other scripts.
const OTHER_SCRIPTS: [&str; 14] = [
    "한국",
    "中国",
    "中國",
    "香港",
    "台灣",
    "台湾",
    "рф",
    "бел",
    "укр",
    "みんな",
    "भारत",
    "السعودية",
    "امارات",
    "公司",
];

/// Unknown endings that are files or private networks even next to a word for e-mail.
const NEVER: &str = "png jpg jpeg gif svg webp ico css html htm json xml yaml yml toml txt csv pdf zip gz tar jar exe dll \
    local localhost localdomain internal lan intranet corp home service socket target timer mount slice scope js ts jsx tsx \
    java cpp hpp class conf cfg ini log lock sock bak tmp map wasm";

static GENERIC_NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| GENERIC.split_whitespace().collect());
static COUNTRY_NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| COUNTRIES.split_whitespace().collect());
static NEVER_NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| NEVER.split_whitespace().collect());

/// Names of key exchange and cipher algorithms end so.
const ALGORITHMS: [&str; 3] = ["openssh.com", "libssh.org", "lysator.liu.se"];

/// Whether `text` holds an address.
pub(super) fn has_address(text: &str, field: Hints) -> bool {
    memchr::memchr_iter(b'@', text.as_bytes()).any(|at| is_address(text, at, field) || is_spaced(text, at, field))
}

/// Whether an address stands around the `@` at byte `at`.
fn is_address(text: &str, at: usize, field: Hints) -> bool {
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
    let local = before[local_start..].trim_matches(['.', '-', '\'', '+']);
    if !local.contains(char::is_alphanumeric)
        || matches!(local, "git" | "svn" | "hg")
        || in_authority(&before[..local_start])
    {
        return false;
    }
    let after = &text[at + 1..];
    let end = after
        .char_indices()
        .take(LONGEST_DOMAIN)
        .take_while(|(_, character)| character.is_alphanumeric() || "-._".contains(*character))
        .last()
        .map_or(0, |(start, character)| start + character.len_utf8());
    // Why kept: every label may ask.
    let called = LazyCell::new(|| {
        field.has(Hints::EMAIL) || Hints::near(text.as_bytes(), local_start, at + 1 + end).has(Hints::EMAIL)
    });
    let Some(domain) = domain(&after[..end], || *called) else {
        return false;
    };
    let is_copy = after[domain.len()..].strip_prefix(':').is_some_and(|path| {
        // Why: without a bound, every address in a long list that colons join would be read to its end.
        let path = &path[..floor(path, path.len().min(LONGEST_PATH))];
        let path = path.split(char::is_whitespace).next().unwrap_or_default();
        path.contains('/') && !path.starts_with("//")
    });
    let algorithm = ALGORITHMS.iter().any(|name| domain.eq_ignore_ascii_case(name));
    !is_copy && !algorithm
}

/// Whether what stands before is the beginning of a URL's authority, `scheme://user:`.
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

/// The longest beginning of `text` that is a domain: at least two labels, the last one a top-level domain.
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

/// Whether the label is the scale in the name of an image, as in `icon@2x.png`.
fn is_scale(label: &str) -> bool {
    label
        .strip_suffix('x')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The length of the top-level domain that `label` begins with. Text of another script may stick to it.
fn top_level(label: &str, called: &impl Fn() -> bool) -> Option<usize> {
    if let Some(name) = OTHER_SCRIPTS.iter().find(|name| label.starts_with(**name)) {
        return Some(name.len());
    }
    if label.len() > 4 && label.is_char_boundary(4) && label[..4].eq_ignore_ascii_case("xn--") {
        return Some(label.len());
    }
    let length = label.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (name, rest) = label.split_at(length);
    if rest.starts_with(|character: char| character.is_ascii_digit()) {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let listed = |list: &HashSet<&str>| list.contains(name.as_str());
    let known = match length {
        0 | 1 => false,
        2 => listed(&COUNTRY_NAMES),
        _ => listed(&GENERIC_NAMES) || (length <= 18 && !listed(&NEVER_NAMES) && called()),
    };
    known.then_some(length)
}

/// Whether the `@` stands in an address with spaces around its signs: `kim @ example . com`. A space around the `@`
/// alone counts next to a word for e-mail.
fn is_spaced(text: &str, at: usize, field: Hints) -> bool {
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
    let called = || field.has(Hints::EMAIL) || Hints::near(text.as_bytes(), at, at + 1).has(Hints::EMAIL);
    is_address(&joined, joined_at, field) && (dotted || called())
}

fn floor(text: &str, mut index: usize) -> usize {
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

/// `text` with `[at]` and `(dot)` as the signs they stand for, where it has such an at.
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

/// Why: the patterns are constants, so compiling them cannot fail; a test compiles them.
static AT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)[ \t]*[\[({][ \t]*(?:at|@|골뱅이)[ \t]*[\])}][ \t]*").ok());
static DOT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)[ \t]*[\[({][ \t]*(?:dot|\.|점)[ \t]*[\])}][ \t]*").ok());
