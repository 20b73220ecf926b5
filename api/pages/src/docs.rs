//! Pages of the documents: guides, the reference of calls, prices and words.
//!
//! Invariant: the content of a page is the same for all readers and is rendered once; the frame alone is a reader's own.

mod contents;
mod guide;
mod reference;
mod start;
mod tariff;

use std::fmt;
use std::sync::Arc;

use askama::Template;
use askama::filters::HtmlSafe;

use crate::chrome::{PageLayout, Theme};
use crate::filters;

pub use contents::{DocsGroup, DocsLink, DocsPart};
pub use guide::GuidePart;
pub use reference::{
    CodeSample, DocumentedMember, DocumentedStatus, ErrorCodeEntry, ErrorCodesPart, ErrorStatus, OperationGroup,
    OperationIndexPart, OperationLink, OperationPart, SampleTrial, ToolRow, ToolsPart, TrialAnswer, TrialField,
};
pub use start::{ConnectPart, DocsStartPart, GlossaryPart};
pub use tariff::{FeeExample, FeeStep, PricingPart};

/// Content of a page of the documents, without its frame.
#[derive(Debug)]
pub struct DocsContent(String);

// Only templates of this package make one, and they escape.
impl HtmlSafe for DocsContent {}

impl fmt::Display for DocsContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl DocsContent {
    /// Renders the content of a page.
    pub fn of(part: &impl DocsPart) -> Result<Self, crate::Error> {
        part.render().map(Self).map_err(crate::Error)
    }
}

/// Page of the documents: a content in the frame of its reader.
#[derive(Debug, Template)]
#[template(path = "docs/page.html")]
pub struct DocsPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Title of the page.
    pub title: String,
    /// Sentence for lists of results and for links to the page.
    pub description: String,
    /// Content of the page.
    pub content: Arc<DocsContent>,
}
