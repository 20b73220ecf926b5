//! Operations that return texts for people and agents: the terms, the platform's own licence, the guide.
//!
//! Invariant: every link in an answer to a text of this service leads to one of these.

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::{Value, json};

use crate::answer::{Media, Streamed};
use crate::codes;
use crate::cx::Cx;
use crate::error::ApiError;
use crate::licenses::License;
use crate::operation::{Operations, Spec};
use crate::wire::Nothing;

/// Path of the terms of service.
const TERMS: &str = "/terms";
/// Path of the guide for agents.
pub(crate) const GUIDE: &str = "/guide/agents.md";
/// The path of the table of error codes.
const ERRORS: &str = "/guide/errors.md";

pub(super) fn add(table: &mut Operations) {
    let base = Spec {
        tag: "service",
        ..Spec::BASE
    };
    table.add(
        Spec {
            name: "terms_text",
            path: TERMS,
            summary: "The terms of service",
            success: &[(200, "The terms in force.")],
            failure: &[(404, "The terms of this service are elsewhere; `url` says where.")],
            ..base.clone()
        },
        &[],
        terms,
    );
    table.add(
        Spec {
            name: "platform_license_text",
            path: License::PlatformStandard.url(),
            summary: "The text of the licence `platform-standard`",
            success: &[(200, "The licence.")],
            ..base.clone()
        },
        &[],
        license,
    );
    table.add(
        Spec {
            name: "agent_guide",
            path: GUIDE,
            summary: "What an agent must know beyond this description",
            success: &[(200, "The guide.")],
            ..base.clone()
        },
        &[],
        guide,
    );
    table.add(
        Spec {
            name: "error_guide",
            path: ERRORS,
            summary: "Every error code, its meaning, and when to try again",
            success: &[(200, "The table.")],
            ..base
        },
        &[],
        errors,
    );
}

/// Media type of plain text (RFC 2046 section 4.1).
struct Plain;

impl Media for Plain {
    const TYPE: &'static str = "text/plain; charset=utf-8";

    fn schema() -> Value {
        json!({"type": "string"})
    }
}

/// Media type of Markdown (RFC 7763).
struct Markdown;

impl Media for Markdown {
    const TYPE: &'static str = "text/markdown; charset=utf-8";

    fn schema() -> Value {
        json!({"type": "string"})
    }
}

async fn terms(cx: Cx, _: Nothing) -> Result<Streamed<Plain>, ApiError> {
    let config = &cx.app.config;
    let url = &config.terms_url;
    // The configuration may name terms elsewhere, and the built-in ones are then not in force.
    if *url != format!("{}{TERMS}", config.public_url) {
        return Err(ApiError::not_found(format!("the terms of this service are at {url}")).field("url", url.as_str()));
    }
    page(&cx, "terms_text", || include_str!("../texts/terms.txt").to_owned())
}

async fn license(cx: Cx, _: Nothing) -> Result<Streamed<Plain>, ApiError> {
    page(&cx, "platform_license_text", || {
        include_str!("../texts/platform-standard.txt").to_owned()
    })
}

async fn guide(cx: Cx, _: Nothing) -> Result<Streamed<Markdown>, ApiError> {
    page(&cx, "agent_guide", || include_str!("../texts/agents.md").to_owned())
}

async fn errors(cx: Cx, _: Nothing) -> Result<Streamed<Markdown>, ApiError> {
    page(&cx, "error_guide", codes::markdown)
}

/// Returns a text in which the placeholders are replaced by this service's address and version of the terms.
fn page<M>(cx: &Cx, name: &'static str, text: impl FnOnce() -> String) -> Result<Streamed<M>, ApiError> {
    let config = &cx.app.config;
    let text = cx.app.process.caches.text(name, || {
        // The texts are compiled in, so addresses and versions are filled in at run time.
        let text = text().replace("{base}", &config.public_url);
        Ok::<_, ApiError>(Bytes::from(text.replace("{version}", &config.terms_version)))
    })?;
    Ok(Streamed::ok(stream::iter([Ok(text)]).boxed()))
}

#[cfg(test)]
mod tests;
