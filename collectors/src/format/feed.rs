//! Entries of RSS 2.0 and Atom (RFC 4287), each as an object of texts.
//!
//! Invariant: no entity of a document type is expanded, and a document that is cut off is refused.

use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesStart, Event};
use serde_json::{Map, Value};

use crate::RunFailure;

/// Deepest nesting of elements.
const MAX_DEPTH: usize = 32;

/// Decodes the entries: `id`, `title`, `link`, `published`, `updated`, `summary`, `author`, where they have them.
pub(super) fn entries(body: &[u8]) -> Result<Vec<Value>, RunFailure> {
    let broken = || RunFailure::form("the answer is no complete RSS or Atom");
    let text = std::str::from_utf8(body).map_err(|_error| broken())?;
    let mut reader = Reader::from_str(text);
    let mut path: Vec<String> = Vec::new();
    let mut entries = Vec::new();
    let mut entry: Option<Map<String, Value>> = None;
    let mut content = String::new();
    let mut is_feed = false;
    loop {
        match reader.read_event().map_err(|_error| broken())? {
            Event::Start(start) => {
                let name = local_name(&start);
                if path.is_empty() {
                    is_feed = matches!(name.as_str(), "rss" | "feed" | "RDF");
                }
                if matches!(name.as_str(), "item" | "entry") {
                    entry = Some(Map::new());
                }
                if let Some(entry) = &mut entry {
                    note_link(entry, &name, &start);
                }
                content.clear();
                path.push(name);
                if path.len() > MAX_DEPTH {
                    return Err(broken());
                }
            }
            Event::Empty(start) => {
                let name = local_name(&start);
                if let Some(entry) = &mut entry {
                    note_link(entry, &name, &start);
                }
            }
            Event::Text(piece) => content.push_str(&piece.decode().map_err(|_error| broken())?),
            Event::CData(piece) => content.push_str(&piece.decode().map_err(|_error| broken())?),
            Event::GeneralRef(reference) => {
                let name = reference.decode().map_err(|_error| broken())?;
                match reference.resolve_char_ref().map_err(|_error| broken())? {
                    Some(letter) => content.push(letter),
                    None => content.push_str(resolve_xml_entity(&name).ok_or_else(broken)?),
                }
            }
            Event::End(_) => {
                let name = path.pop().ok_or_else(broken)?;
                if matches!(name.as_str(), "item" | "entry") {
                    entries.extend(entry.take().map(Value::Object));
                } else if let Some(entry) = &mut entry {
                    note_text(entry, &name, path.last().map(String::as_str), content.trim());
                }
                content.clear();
            }
            Event::Eof => break,
            Event::Decl(_) | Event::PI(_) | Event::DocType(_) | Event::Comment(_) => {}
        }
    }
    if !path.is_empty() || !is_feed {
        return Err(broken());
    }
    Ok(entries)
}

fn local_name(start: &BytesStart<'_>) -> String {
    String::from_utf8_lossy(start.local_name().as_ref()).into_owned()
}

/// Notes the link of an Atom entry, which is an attribute.
fn note_link(entry: &mut Map<String, Value>, name: &str, start: &BytesStart<'_>) {
    if name != "link" {
        return;
    }
    let attribute = |name: &str| {
        let found = start.try_get_attribute(name).ok().flatten()?;
        found.unescape_value().ok().map(std::borrow::Cow::into_owned)
    };
    let is_alternate = attribute("rel").is_none_or(|rel| rel == "alternate");
    if let (true, Some(address)) = (is_alternate, attribute("href")) {
        entry.entry("link").or_insert_with(|| address.into());
    }
}

/// Notes the text of an element directly in an entry; the name of an author is one level deeper.
fn note_text(entry: &mut Map<String, Value>, name: &str, parent: Option<&str>, text: &str) {
    let member = match (name, parent) {
        ("name", Some("author")) => "author",
        (_, parent) if !matches!(parent, Some("item" | "entry")) => return,
        ("guid" | "id", _) => "id",
        ("title", _) => "title",
        ("link", _) => "link",
        ("pubDate" | "published" | "issued" | "date", _) => "published",
        ("updated" | "modified", _) => "updated",
        ("description" | "summary" | "content", _) => "summary",
        ("author" | "creator", _) => "author",
        _ => return,
    };
    if !text.is_empty() {
        entry.entry(member).or_insert_with(|| text.into());
    }
}
