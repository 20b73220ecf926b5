//! Documents: terms, licences, and texts of others.
//!
//! Invariants:
//! - HTML within a document is shown as text.
//! - A link in a text of somebody else runs nothing for who follows it: a link to rows or statements of this service has no
//!   query.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use askama::Template;
use askama::filters::HtmlSafe;
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};
use url::Url;

use crate::chrome::{PageLayout, Theme};

/// Heading of a document, with the name of its place on the page.
#[derive(Clone, Debug)]
pub(crate) struct DocumentHeading {
    pub(crate) id: String,
    pub(crate) text: String,
}

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

/// Bytes of a heading after which no more of it is taken into a list.
const MOST_OF_LINE: usize = 200;

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
pub(crate) fn shallow(markdown: &str) -> Cow<'_, str> {
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

/// Returns true for a path of this service at which a query of the address can make a reader's account run a statement.
fn runs_queries(path: &str) -> bool {
    let mut parts = path.split('/');
    // As the router takes it: letter by letter, without any decoding.
    let is_dataset = parts.next() == Some("") && parts.next() == Some("projects") && parts.next().is_some();
    is_dataset && matches!(parts.next(), Some("rows" | "sql"))
}

/// Returns an address that runs nothing: without its query if a browser on `page` finds rows or statements of this service
/// there.
fn harmless<'a>(address: CowStr<'a>, page: &Url) -> CowStr<'a> {
    // The parser of addresses is that of browsers (WHATWG URL), so dots, backslashes and tabs mean the same here.
    let Ok(mut found) = page.join(&address) else {
        return address;
    };
    if found.query().is_none() || found.origin() != page.origin() || !runs_queries(found.path()) {
        return address;
    }
    found.set_query(None);
    CowStr::from(String::from(found))
}

/// Returns the id of a heading in a text, by its number from 1.
pub(crate) fn heading_id(number: usize) -> String {
    format!("text-{number}")
}

/// Returns the texts of the headings of a document, each at most as long as a line.
fn headings(markdown: &str) -> Vec<String> {
    let (mut found, mut is_open) = (Vec::new(), false);
    for event in Parser::new_ext(&shallow(markdown), Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => {
                is_open = true;
                found.push(String::new());
            }
            Event::End(TagEnd::Heading(_)) => is_open = false,
            Event::Text(text) | Event::Code(text) | Event::InlineHtml(text) if is_open => {
                if let Some(last) = found.last_mut()
                    && last.len() < MOST_OF_LINE
                {
                    last.push_str(text.get(..text.floor_char_boundary(MOST_OF_LINE)).unwrap_or_default());
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns the text of the first paragraph of a document, without its markup, cut at a word after at most `most` characters.
pub(crate) fn lede(markdown: &str, most: usize) -> String {
    // A paragraph that is longer than this is cut in any case.
    let most_bytes = most * 8;
    let (mut text, mut is_open) = (String::new(), false);
    // A hostile text can have headings only, and all of it is not worth reading for a line.
    let begin: &str = markdown
        .get(..markdown.floor_char_boundary(most_bytes * 8))
        .unwrap_or(markdown);
    for event in Parser::new(&shallow(begin)) {
        match event {
            Event::Start(Tag::Paragraph) => is_open = true,
            Event::End(TagEnd::Paragraph) if is_open => break,
            Event::Text(part) | Event::Code(part) if is_open => text.push_str(&part),
            Event::SoftBreak | Event::HardBreak if is_open => text.push(' '),
            _ => {}
        }
        if text.len() > most_bytes {
            break;
        }
    }
    let Some((end, _)) = text.char_indices().nth(most) else {
        return text;
    };
    let cut = &text[..end];
    let at = cut.rfind(' ').unwrap_or(end);
    format!("{}…", cut[..at].trim_end())
}

/// Returns the words of the heading whose events begin here.
fn words_of_heading(events: &[Event<'_>]) -> String {
    let mut words = String::new();
    for event in events {
        match event {
            Event::End(TagEnd::Heading(_)) => break,
            Event::Text(text) | Event::Code(text) => words.push_str(text),
            Event::SoftBreak | Event::HardBreak => words.push(' '),
            _ => {}
        }
    }
    words
}

/// Returns the name of the place of a heading, as GitHub makes it, and unlike those before. `places` has the highest number
/// that was added to each.
fn place(words: &str, places: &mut BTreeMap<String, u32>) -> String {
    let letters = words.chars().filter_map(|letter| match letter {
        ' ' | '-' => Some('-'),
        letter if letter.is_ascii_alphanumeric() || letter == '_' => Some(letter.to_ascii_lowercase()),
        _ => None,
    });
    let name: String = letters.collect();
    let Some(mut number) = places.get(&name).copied() else {
        places.insert(name.clone(), 0);
        return name;
    };
    let free = loop {
        number += 1;
        let free = format!("{name}-{number}");
        if !places.contains_key(&free) {
            break free;
        }
    };
    places.insert(free.clone(), 0);
    places.insert(name, number);
    free
}

impl RenderedMarkdown {
    /// Renders a document of this service.
    pub(crate) fn of(markdown: &str) -> Self {
        Self::with_links(markdown, web, |_| None)
    }

    /// Renders a text of somebody else that stands on a page.
    pub(crate) fn of_stranger(markdown: &str, page: &PageLayout) -> Self {
        Self::of_stranger_named(markdown, page, |_| None)
    }

    /// Renders a text of somebody else that stands on a page, with the texts of its headings. Their ids are
    /// [`heading_id`].
    pub(crate) fn of_stranger_with_headings(markdown: &str, page: &PageLayout) -> (Self, Vec<String>) {
        (
            Self::of_stranger_named(markdown, page, |number| Some(heading_id(number).into())),
            headings(markdown),
        )
    }

    fn of_stranger_named(
        markdown: &str,
        page: &PageLayout,
        name: impl FnMut(usize) -> Option<CowStr<'static>>,
    ) -> Self {
        let address = Url::parse(&page.base).and_then(|base| base.join(&page.path));
        Self::with_links(
            markdown,
            |link| match &address {
                Ok(address) => harmless(web(link), address),
                // Without the address of the page nobody knows where a link leads.
                Err(_) => CowStr::from(""),
            },
            name,
        )
    }

    /// Renders a document of this service that fills a page: headings have places, code can be copied, and tables scroll.
    /// Returns the headings of the second level, too.
    pub(crate) fn with_places(markdown: &str) -> (Self, Vec<DocumentHeading>) {
        let markdown = &shallow(markdown);
        let events: Vec<Event<'_>> = Parser::new_ext(markdown, Options::ENABLE_TABLES).collect();
        let mut headings = Vec::new();
        let mut places = BTreeMap::new();
        let (mut level_before, mut blocks, mut tables) = (HeadingLevel::H1, 0_u32, 0_u32);
        let mut shown: Vec<Event<'_>> = Vec::with_capacity(events.len() + 16);
        for (at, event) in events.iter().enumerate() {
            match event {
                Event::Html(text) | Event::InlineHtml(text) => shown.push(Event::Text(text.clone())),
                Event::Start(Tag::Heading { level, .. }) => {
                    level_before = lower(*level, level_before);
                    let text = words_of_heading(&events[at + 1..]);
                    let id = place(&text, &mut places);
                    shown.push(Event::Start(Tag::Heading {
                        level: level_before,
                        id: Some(id.clone().into()),
                        classes: Vec::new(),
                        attrs: Vec::new(),
                    }));
                    if level_before == HeadingLevel::H2 {
                        headings.push(DocumentHeading { id, text });
                    }
                }
                Event::End(TagEnd::Heading(_)) => shown.push(Event::End(TagEnd::Heading(level_before))),
                Event::Start(Tag::CodeBlock(_)) => {
                    blocks += 1;
                    let html = format!(
                        "<div class=\"code boxed\"><button class=\"btn sm copy\" type=\"button\" \
                         data-copy=\"code-{blocks}\">Copy</button><pre id=\"code-{blocks}\" tabindex=\"0\" \
                         aria-label=\"Example {blocks}\"><code>"
                    );
                    shown.push(Event::Html(html.into()));
                }
                Event::End(TagEnd::CodeBlock) => shown.push(Event::Html("</code></pre></div>\n".into())),
                Event::Start(Tag::Table(_)) => {
                    tables += 1;
                    let html =
                        format!("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Table {tables}\">");
                    shown.push(Event::Html(html.into()));
                    shown.push(event.clone());
                }
                Event::End(TagEnd::Table) => {
                    shown.push(event.clone());
                    shown.push(Event::Html("</div>\n".into()));
                }
                other => shown.push(other.clone()),
            }
        }
        let mut text = String::new();
        html::push_html(&mut text, shown.into_iter());
        (Self(text), headings)
    }

    fn with_links(
        markdown: &str,
        target: impl Fn(CowStr<'_>) -> CowStr<'_>,
        mut name: impl FnMut(usize) -> Option<CowStr<'static>>,
    ) -> Self {
        let markdown = &shallow(markdown);
        let mut level_before = HeadingLevel::H1;
        let mut heading = 0;
        // Tables alone. Footnotes, for one, would put ids of the author's choice into the page, which
        // could stand in for those of our own elements.
        let events = Parser::new_ext(markdown, Options::ENABLE_TABLES).map(|event| match event {
            // Shown and not dropped: a reader sees that something was written there, and an author
            // finds the mistake.
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            Event::Start(Tag::Heading { level, .. }) => {
                level_before = lower(level, level_before);
                heading += 1;
                Event::Start(Tag::Heading {
                    level: level_before,
                    id: name(heading),
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
                dest_url: target(dest_url),
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
        // A long line is scrolled by the keyboard, too. No text has this tag but by a block of code.
        Self(text.replace("<pre>", "<pre tabindex=\"0\">"))
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
