//! Documents as pages: where to begin, guides, the reference of calls, prices and words.
//!
//! Invariant: a page says nothing of its own about calls, limits, prices or errors; all of it is read from the tables and the
//! texts that programs get.

mod guides;
mod members;
mod prices;
mod reference;
mod samples;
mod trial;

use pages::{ConnectPart, DocsContent, DocsPage, DocsPart, DocsStartPart, GlossaryPart};

use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::call::view::PageResponse;
use crate::call::wire::NoInput;
use crate::error::ApiError;
use crate::ops::page_kit::page_layout;

/// Operation of the first call that the documents show.
const FIRST_CALL: &str = "search_knowledge";

pub(super) fn add(table: &mut Operations) {
    table.add(page("docs_page", "/docs", "Where the documents begin"), &[], start);
    table.add(
        page("docs_connect_page", "/docs/connect", "How clients of MCP are connected"),
        &[],
        connect,
    );
    table.add(
        page(
            "docs_glossary_page",
            "/docs/glossary",
            "Words of the pages and of the interface",
        ),
        &[],
        glossary,
    );
    guides::add(table);
    reference::add(table);
    prices::add(table);
}

/// Returns the description of a page of the documents.
fn page(name: &'static str, path: &'static str, summary: &'static str) -> Spec {
    Spec {
        name,
        path,
        summary,
        ..Spec::PAGE
    }
}

/// Returns the content that a template makes.
fn content(part: &impl DocsPart) -> Result<DocsContent, ApiError> {
    DocsContent::of(part).map_err(|error| ApiError::internal(format!("page: {error}")))
}

/// Answers a page whose content is made once.
async fn kept(
    cx: &Cx,
    place: &str,
    title: &str,
    description: &str,
    make: impl FnOnce() -> Result<DocsContent, ApiError>,
) -> Result<PageResponse, ApiError> {
    let content = cx.app.process.caches.document(place, make)?;
    PageResponse::page(&DocsPage {
        chrome: page_layout(cx).await?,
        title: title.to_owned(),
        description: description.to_owned(),
        content,
    })
}

async fn start(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    kept(&cx, "/docs", "Docs", "How to buy, sell and build with Sluice.", || {
        let operation = cx.operations.get(FIRST_CALL);
        let samples = operation.map(|operation| samples::of(operation, &cx.app.config.public_url));
        content(&DocsStartPart {
            samples: samples.unwrap_or_default(),
        })
    })
    .await
}

async fn connect(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let description = "One address for Claude, Cursor, VS Code, Codex, Gemini, Python and every other client of MCP.";
    kept(&cx, "/docs/connect", "Connect an agent", description, || {
        content(&ConnectPart {
            base: cx.app.config.public_url.clone(),
        })
    })
    .await
}

async fn glossary(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let description = "The words of the pages, and what the API calls the same thing.";
    kept(&cx, "/docs/glossary", "Glossary", description, || {
        content(&GlossaryPart)
    })
    .await
}

#[cfg(test)]
mod tests;
