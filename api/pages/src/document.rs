//! Documents: terms and licences.
//!
//! Invariant: HTML within a document is shown as text.

use std::borrow::Cow;
use std::fmt;

use askama::Template;
use askama::filters::HtmlSafe;
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use crate::chrome::{PageLayout, Theme};

/// Document in Markdown, rendered.
#[derive(Debug)]
pub(crate) struct RenderedMarkdown(String);

// The parser gives no event of raw HTML: each became text, which the renderer escapes.
impl HtmlSafe for RenderedMarkdown {}

impl fmt::Display for RenderedMarkdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the level of a heading below the title of the page, at most one deeper than the heading before it.
fn lower(level: HeadingLevel, before: HeadingLevel) -> HeadingLevel {
    let deepest = match before {
        HeadingLevel::H1 => HeadingLevel::H2,
        HeadingLevel::H2 => HeadingLevel::H3,
        _ => HeadingLevel::H4,
    };
    // The page has the one heading of the first level. A level that is left out would break the outline
    // that screen readers offer.
    level.max(HeadingLevel::H2).min(deepest)
}

/// Returns an address if it is one of the web, of mail or of this service, otherwise an empty one.
fn web(address: CowStr<'_>) -> CowStr<'_> {
    let scheme = address.split_once(':').map(|(scheme, _)| scheme);
    let is_safe =
        // A colon after a slash, `#` or `?` belongs to a relative address. Everything else before a
        // colon is a scheme, and `javascript:` would run in the page's origin.
        scheme.is_none_or(|scheme| matches!(scheme, "http" | "https" | "mailto") || scheme.contains(['/', '#', '?']));
    if is_safe { address } else { CowStr::from("") }
}

/// The most blocks that one line of a document opens within each other.
const MOST_NESTED: usize = 32;

/// Returns the place in a line of the marker that would open a block within [`MOST_NESTED`] others: a quotation or an item of
/// a list (`CommonMark` sections 5.1 and 5.2).
fn too_deep(line: &str) -> Option<usize> {
    let is_rule = |marker: char| line.chars().all(|letter| letter == marker || letter.is_whitespace());
    if ['-', '*', '_'].into_iter().any(is_rule) {
        return None;
    }
    let mut at = 0;
    for nested in 0.. {
        let rest = &line[at..];
        let text = rest.trim_start_matches([' ', '\t']);
        let begin = at + rest.len() - text.len();
        let number = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
        let marker = text.len() - number.len();
        let opens = match number.chars().next() {
            Some('>') => marker == 0,
            Some('-' | '+' | '*') => marker == 0 && number[1..].starts_with([' ', '\t']),
            Some('.' | ')') => marker > 0 && number[1..].starts_with([' ', '\t']),
            _ => false,
        };
        if !opens {
            return None;
        }
        if nested == MOST_NESTED {
            return Some(begin + marker);
        }
        at = begin + marker + 1;
    }
    None
}

/// Makes text of the markers of blocks that are too deep: the parser looks for all open blocks at the start of every line.
fn shallow(markdown: &str) -> Cow<'_, str> {
    if markdown.lines().all(|line| too_deep(line).is_none()) {
        return markdown.into();
    }
    let mut text = String::with_capacity(markdown.len() + 16);
    for line in markdown.split_inclusive('\n') {
        let (before, after) = line.split_at(too_deep(line).unwrap_or(0));
        text.push_str(before);
        if !before.is_empty() {
            text.push('\\');
        }
        text.push_str(after);
    }
    text.into()
}

impl RenderedMarkdown {
    pub(crate) fn of(markdown: &str) -> Self {
        let markdown = &shallow(markdown);
        let mut level_before = HeadingLevel::H1;
        // Tables alone. Footnotes, for one, would put ids of the author's choice into the page, which
        // could stand in for those of our own elements.
        let events = Parser::new_ext(markdown, Options::ENABLE_TABLES).map(|event| match event {
            // Shown and not dropped: a reader sees that something was written there, and an author
            // finds the mistake.
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            Event::Start(Tag::Heading { level, .. }) => {
                level_before = lower(level, level_before);
                Event::Start(Tag::Heading {
                    level: level_before,
                    id: None,
                    classes: Vec::new(),
                    attrs: Vec::new(),
                })
            }
            Event::End(TagEnd::Heading(_)) => Event::End(TagEnd::Heading(level_before)),
            Event::Start(Tag::Link {
                link_type,
                dest_url,
                title,
                id,
            }) => Event::Start(Tag::Link {
                link_type,
                dest_url: web(dest_url),
                title,
                id,
            }),
            // A picture would be loaded from elsewhere; its words stay.
            Event::Start(Tag::Image { .. }) => Event::Start(Tag::Emphasis),
            Event::End(TagEnd::Image) => Event::End(TagEnd::Emphasis),
            other => other,
        });
        let mut text = String::new();
        html::push_html(&mut text, events);
        Self(text)
    }
}

/// `GET /terms`, and any other document.
#[derive(Debug, Template)]
#[template(path = "terms.html")]
pub struct TermsPage {
    chrome: PageLayout,
    title: String,
    version: String,
    body: RenderedMarkdown,
}

impl TermsPage {
    /// Creates the page of a document in Markdown. A first heading that repeats the title is left out.
    pub fn new(chrome: PageLayout, title: impl Into<String>, version: impl Into<String>, markdown: &str) -> Self {
        let title = title.into();
        let heading = markdown
            .trim_start()
            .strip_prefix("# ")
            .and_then(|rest| rest.split_once('\n'));
        let body = match heading {
            // The page shows the title above the document already.
            Some((first, rest)) if first.trim() == title => rest,
            _ => markdown,
        };
        Self {
            chrome,
            title,
            version: version.into(),
            body: RenderedMarkdown::of(body),
        }
    }
}

/// `GET /licenses`: the licences that an item may have.
#[derive(Debug, Template)]
#[template(path = "licenses.html")]
pub struct LicensesPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Licences, in the order of the interface.
    pub licenses: Vec<LicenseView>,
}

/// Licence with the link to its text.
#[derive(Clone, Debug)]
pub struct LicenseView {
    /// Id of the licence.
    pub id: String,
    /// Name of the licence.
    pub name: String,
    /// Address of its text.
    pub url: String,
}
