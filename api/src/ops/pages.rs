//! Operations that return texts for people and agents: the terms, the platform's own licence, the guide.
//!
//! Invariant: every link in an answer to a text of this service leads to one of these.

use bytes::Bytes;
use operators::gates::{PERSONAL_DATA_GUIDE, personal_data_guide};

use crate::call::answer::{BodyMedia, PlainMedia, StreamedAnswer};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::call::wire::NoInput;
use crate::codes;
use crate::config::AGENT_GUIDE_PATH;
use crate::error::ApiError;
use crate::licenses::License;
use crate::ops::tools;

mod limits;
pub(super) mod worked;

/// Path of the terms of service.
pub(super) const TERMS: &str = "/terms";
/// Path of the changes of the interface.
const CHANGELOG: &str = "/changelog.md";
/// Changes of the interface, as Markdown. Places of the address stay open.
pub(super) const CHANGES: &str = include_str!("../texts/changelog.md");
/// The path of the table of error codes.
const ERRORS: &str = "/guide/errors.md";

pub(super) fn add(table: &mut Operations) {
    let base = Spec {
        tag: "service",
        lenient: true,
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
            path: AGENT_GUIDE_PATH,
            summary: "What an agent must know beyond this description",
            success: &[(200, "The guide.")],
            ..base.clone()
        },
        &[],
        guide,
    );
    table.add(
        Spec {
            name: "llms_index",
            path: "/llms.txt",
            summary: "Where a language model finds what: documents, tools, metadata",
            success: &[(200, "The index.")],
            ..base.clone()
        },
        &[],
        index,
    );
    table.add(
        Spec {
            name: "agent_skill",
            path: "/skill.md",
            summary: "The way from a key to a dataset that can be queried, as calls to copy",
            success: &[(200, "The skill.")],
            ..base.clone()
        },
        &[],
        skill,
    );
    table.add(
        Spec {
            name: "error_guide",
            path: ERRORS,
            summary: "Every error code, its meaning, and when to try again",
            success: &[(200, "The table.")],
            ..base.clone()
        },
        &[],
        errors,
    );
    table.add(
        Spec {
            name: "changelog",
            path: CHANGELOG,
            summary: "Changes of the interface that a client can see, by its version",
            success: &[(200, "The changes, the newest first.")],
            ..base.clone()
        },
        &[],
        changelog,
    );
    table.add(
        Spec {
            name: "personal_data_guide",
            path: PERSONAL_DATA_GUIDE,
            summary: "What is refused as personal data, by which rule, what passes, and what to do",
            success: &[(200, "The rules.")],
            ..base.clone()
        },
        &[],
        personal_data,
    );
    worked::add(table, &base);
}

/// Media type of Markdown (RFC 7763).
struct MarkdownMedia;

impl BodyMedia for MarkdownMedia {
    const TYPE: &'static str = "text/markdown; charset=utf-8";
}

async fn terms(cx: Cx, _: NoInput) -> Result<StreamedAnswer<PlainMedia>, ApiError> {
    Ok(StreamedAnswer::whole(built_in_terms(&cx)?))
}

/// Returns the terms, if the configuration names no others.
pub(super) fn built_in_terms(cx: &Cx) -> Result<Bytes, ApiError> {
    let config = &cx.app.config;
    let url = &config.terms_url;
    // The configuration may name terms elsewhere, and the built-in ones are then not in force.
    if *url != format!("{}{TERMS}", config.public_url) {
        return Err(ApiError::not_found(format!("the terms of this service are at {url}")).field("url", url.as_str()));
    }
    filled(cx, "terms_text", || include_str!("../texts/terms.txt").to_owned())
}

async fn license(cx: Cx, _: NoInput) -> Result<StreamedAnswer<PlainMedia>, ApiError> {
    Ok(StreamedAnswer::whole(license_text(&cx)?))
}

/// Returns the text of the licence `platform-standard`.
pub(super) fn license_text(cx: &Cx) -> Result<Bytes, ApiError> {
    filled(cx, "platform_license_text", || {
        include_str!("../texts/platform-standard.txt").to_owned()
    })
}

async fn guide(cx: Cx, _: NoInput) -> Result<StreamedAnswer<MarkdownMedia>, ApiError> {
    let text = filled(&cx, "agent_guide", || {
        worked::figures(&cx, &guide_source(&limits_source(&cx)))
    });
    Ok(StreamedAnswer::whole(text?))
}

/// Returns the guide for agents with this text about the limits. Figures, the address and the version stay open.
pub(super) fn guide_source(limits: &str) -> String {
    let text = include_str!("../texts/agents.md").replace("{limits}", limits);
    text.replace("{jobs}", &worked::links())
}

/// Returns the limits in force, as tables in Markdown.
pub(super) fn limits_source(cx: &Cx) -> String {
    limits::markdown(&cx.app.limits, &cx.app.pay, &cx.operations)
}

async fn index(cx: Cx, _: NoInput) -> Result<StreamedAnswer<PlainMedia>, ApiError> {
    let text = filled(&cx, "llms_index", || {
        let tools = tools::markdown(&cx.operations);
        let text = include_str!("../texts/llms.txt").replace("{tools}", &tools);
        text.replace("{jobs}", &worked::links())
    });
    Ok(StreamedAnswer::whole(text?))
}

async fn skill(cx: Cx, _: NoInput) -> Result<StreamedAnswer<MarkdownMedia>, ApiError> {
    Ok(StreamedAnswer::whole(filled(&cx, "agent_skill", || skill_source(&cx))?))
}

/// Returns the way from a key to a dataset. Places of the address and the version stay open.
pub(super) fn skill_source(cx: &Cx) -> String {
    let records = cx.app.limits.records_per_contribution.get().to_string();
    include_str!("../texts/skill.md").replace("{records}", &records)
}

async fn changelog(cx: Cx, _: NoInput) -> Result<StreamedAnswer<MarkdownMedia>, ApiError> {
    Ok(StreamedAnswer::whole(filled(&cx, "changelog", || CHANGES.to_owned())?))
}

async fn errors(cx: Cx, _: NoInput) -> Result<StreamedAnswer<MarkdownMedia>, ApiError> {
    Ok(StreamedAnswer::whole(filled(&cx, "error_guide", codes::markdown)?))
}

async fn personal_data(cx: Cx, _: NoInput) -> Result<StreamedAnswer<MarkdownMedia>, ApiError> {
    Ok(StreamedAnswer::whole(filled(
        &cx,
        "personal_data_guide",
        personal_data_guide,
    )?))
}

/// Returns a text in which the placeholders are replaced by this service's address and version of the terms.
fn filled(cx: &Cx, name: &'static str, text: impl FnOnce() -> String) -> Result<Bytes, ApiError> {
    cx.app
        .process
        .caches
        .text(name, || Ok(Bytes::from(filled_in(cx, &text()))))
}

/// Fills the address of the service and the version of its terms into a text.
pub(super) fn filled_in(cx: &Cx, text: &str) -> String {
    // The texts are compiled in, so addresses and versions are filled in at run time.
    let config = &cx.app.config;
    let text = text.replace("{base}", &config.public_url);
    text.replace("{version}", &config.terms_version)
}

#[cfg(test)]
mod tests;
