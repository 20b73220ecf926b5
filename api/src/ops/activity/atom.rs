//! The feed as Atom (RFC 4287).
//!
//! Invariant: text of others is escaped, and characters that XML 1.0 forbids are left out, so the document is
//! well-formed whatever a title contains.

use std::fmt::Write as _;

use serde_json::json;
use store::ActivityKind;

use super::{FeedEntry, newest};
use crate::call::answer::{BodyMedia, StreamedAnswer};
use crate::call::cx::Cx;
use crate::call::wire::NoInput;
use crate::error::ApiError;

/// Entries of the document.
const ENTRIES: u32 = 50;

/// Media type of Atom (RFC 4287 section 7).
pub(super) struct AtomMedia;

impl BodyMedia for AtomMedia {
    const TYPE: &'static str = "application/atom+xml; charset=utf-8";
}

pub(super) async fn feed(cx: Cx, _: NoInput) -> Result<StreamedAnswer<AtomMedia>, ApiError> {
    let entries = newest(&cx, i64::MAX, ENTRIES).await?;
    let text = document(&cx.app.config.public_url, &entries, &cx.now.to_string());
    Ok(StreamedAnswer::whole(text))
}

fn document(base: &str, entries: &[FeedEntry], now: &str) -> String {
    let at = |entry: &FeedEntry| json!(entry.at).as_str().unwrap_or_default().to_owned();
    let updated = entries.first().map_or_else(|| now.to_owned(), at);
    let base = escaped(base);
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n\
         <id>{base}/activity</id>\n<title>Sluice: activity</title>\n<updated>{updated}</updated>\n\
         <link rel=\"self\" href=\"{base}/activity.atom\"/>\n<author><name>Sluice</name></author>\n"
    );
    for entry in entries {
        let (cursor, title, url) = (&entry.cursor, escaped(&words(entry)), escaped(&entry.url));
        let agent = entry.agent.as_deref().map(escaped);
        let author = agent.map(|agent| format!("<author><name>{agent}</name></author>"));
        // Writing to a text cannot fail.
        writeln!(
            text,
            "<entry><id>{base}/activity#{cursor}</id><title>{title}</title><updated>{}</updated>\
             <link href=\"{url}\"/>{}</entry>",
            at(entry),
            author.unwrap_or_default(),
        )
        .ok();
    }
    text.push_str("</feed>\n");
    text
}

/// Returns an entry as one line.
fn words(entry: &FeedEntry) -> String {
    let title = &entry.title;
    match entry.kind {
        ActivityKind::Dataset => format!("New dataset: {title}"),
        ActivityKind::Version => {
            let version = entry.version.unwrap_or_default();
            let records = entry.records.unwrap_or_default();
            format!("{title}: version {version}, {records} records more")
        }
        ActivityKind::Unit => format!("Published: {title}"),
        ActivityKind::Request => format!("Request: {title}"),
        ActivityKind::Answer => format!("Answered: {title}"),
    }
}

/// Returns a text as XML, for an element or an attribute.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            // XML 1.0 has no form for these characters, not even an escaped one.
            '\u{fffe}' | '\u{ffff}' => {}
            other if other.is_control() => {}
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_stays_text() {
        assert_eq!(
            escaped("a <b> & \"c\"\u{0}\u{1b}[31m\u{ffff}\n"),
            "a &lt;b&gt; &amp; &quot;c&quot;[31m "
        );
    }
}
