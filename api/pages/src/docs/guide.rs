//! A document in Markdown as a page.

use askama::Template;

use super::contents::DocsPart;
use crate::document::{DocumentHeading, RenderedMarkdown};

/// Headings from which on a document has a list of them.
const LISTED_FROM: usize = 4;

/// Document in Markdown.
#[derive(Debug, Template)]
#[template(path = "docs/guide.html")]
pub struct GuidePart {
    place: String,
    title: String,
    /// Address of the same text for programs.
    raw: Option<&'static str>,
    body: RenderedMarkdown,
    headings: Vec<DocumentHeading>,
}

impl GuidePart {
    /// Creates the page of a text of this service. Its first line is left out if it is a heading: the page has the title.
    pub fn new(place: impl Into<String>, title: impl Into<String>, raw: Option<&'static str>, markdown: &str) -> Self {
        let text = markdown.trim_start();
        let text = match text.split_once('\n') {
            Some((first, rest)) if first.starts_with("# ") => rest,
            _ => text,
        };
        let (body, headings) = RenderedMarkdown::with_places(text);
        Self {
            place: place.into(),
            title: title.into(),
            raw,
            body,
            headings,
        }
    }

    /// Returns the headings, if there are enough of them for a list.
    fn listed(&self) -> &[DocumentHeading] {
        if self.headings.len() < LISTED_FROM {
            &[]
        } else {
            &self.headings
        }
    }
}

impl DocsPart for GuidePart {
    fn place(&self) -> &str {
        &self.place
    }
}
