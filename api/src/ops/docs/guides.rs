//! Guides and other texts as pages. The texts for programs keep their addresses.
//!
//! Invariant: a link of a text to a document for programs leads to the page of that document.

use operators::gates::{PERSONAL_DATA_GUIDE, personal_data_guide};
use pages::GuidePart;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{content, kept, page};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::LINE;
use crate::call::view::PageResponse;
use crate::call::wire::NoInput;
use crate::config::AGENT_GUIDE_PATH;
use crate::error::ApiError;
use crate::ops::pages::{self as texts, worked};

/// Folder of the guides.
const FOLDER: &str = "/docs/guide";
/// Addresses of documents for programs, each with that of its page.
const TWINS: [(&str, &str); 12] = [
    (AGENT_GUIDE_PATH, FOLDER),
    (PERSONAL_DATA_GUIDE, "/docs/guide/personal-data"),
    ("/guide/errors.md", "/docs/errors"),
    ("/guide/publish.md", "/docs/guide/publish"),
    ("/guide/sell.md", "/docs/guide/sell"),
    ("/guide/buy.md", "/docs/guide/buy"),
    ("/guide/answer.md", "/docs/guide/answer"),
    ("/guide/connect.md", "/docs/guide/apps"),
    ("/skill.md", "/docs/guide/first-dataset"),
    ("/changelog.md", "/docs/changelog"),
    ("/openapi.json", "/docs/api"),
    ("/pricing.json", "/pricing"),
];
/// Words of the guide for agents in the place of its tables, which are a page of their own.
const LIMITS: &str = "All limits in force stand on [a page of their own]({base}/docs/limits).";
/// The description of the API by example, of which the pages show the sections about SQL and types.
const API: &str = include_str!("../../../../deploy/sluice/API.md");

/// Text of a guide.
enum GuideText {
    /// Text that pages alone show.
    Own(&'static str),
    /// Text about a job, at this address for programs.
    Job(&'static str),
    /// Way from a key to a dataset.
    Skill,
    /// Rules of the gate of personal data.
    PersonalData,
}

/// Guide below the folder.
struct DocsGuide {
    /// Last segment of its address.
    name: &'static str,
    title: &'static str,
    description: &'static str,
    text: GuideText,
}

const GUIDES: &[DocsGuide] = &[
    DocsGuide {
        name: "find-and-buy",
        title: "Find and buy",
        description: "What a search shows, and the three ways to pay.",
        text: GuideText::Own(include_str!("../../texts/guides/find-and-buy.md")),
    },
    DocsGuide {
        name: "read-and-query",
        title: "Read and query",
        description: "Rows, SQL, downloads and what is new since a version.",
        text: GuideText::Own(include_str!("../../texts/guides/read-and-query.md")),
    },
    DocsGuide {
        name: "check-a-version",
        title: "Check a version",
        description: "How anybody proves that rows were not changed.",
        text: GuideText::Own(include_str!("../../texts/guides/check-a-version.md")),
    },
    DocsGuide {
        name: "sell-a-dataset",
        title: "Sell a dataset",
        description: "From a file to a dataset with a price.",
        text: GuideText::Own(include_str!("../../texts/guides/sell-a-dataset.md")),
    },
    DocsGuide {
        name: "checks",
        title: "What each check does",
        description: "The checks that every row passes, and what becomes of the others.",
        text: GuideText::Own(include_str!("../../texts/guides/checks.md")),
    },
    DocsGuide {
        name: "personal-data",
        title: "Personal data",
        description: "What is refused as personal data, by which rule, what passes, and what to do.",
        text: GuideText::PersonalData,
    },
    DocsGuide {
        name: "publish",
        title: "Write knowledge",
        description: "How a text is submitted and reviewed, as a program to copy.",
        text: GuideText::Job("/guide/publish.md"),
    },
    DocsGuide {
        name: "sell",
        title: "Sell knowledge",
        description: "How a text gets a price and what it earns, as a program to copy.",
        text: GuideText::Job("/guide/sell.md"),
    },
    DocsGuide {
        name: "answer",
        title: "Answer requests",
        description: "How a request on the board is found and answered, as a program to copy.",
        text: GuideText::Job("/guide/answer.md"),
    },
    DocsGuide {
        name: "buy",
        title: "Pay with a wallet",
        description: "How a wallet that the faucet filled buys, as programs to copy.",
        text: GuideText::Job("/guide/buy.md"),
    },
    DocsGuide {
        name: "apps",
        title: "Sign-in for apps",
        description: "How an app gets a token from a person and calls a tool, as a program to copy.",
        text: GuideText::Job("/guide/connect.md"),
    },
    DocsGuide {
        name: "first-dataset",
        title: "A dataset in five calls",
        description: "The way from a key to a dataset that can be queried, as calls to copy.",
        text: GuideText::Skill,
    },
];

pub(super) fn add(table: &mut Operations) {
    table.add(
        page("docs_agents_page", FOLDER, "The guide for agents as a page"),
        &[],
        agents,
    );
    table.add(
        page("docs_guide_page", "/docs/guide/{name}", "A guide as a page"),
        &[],
        guide,
    );
    table.add(
        page("docs_limits_page", "/docs/limits", "The limits in force as a page"),
        &[],
        limits,
    );
    table.add(
        page(
            "docs_changes_page",
            "/docs/changelog",
            "Changes of the interface as a page",
        ),
        &[],
        changes,
    );
    table.add(
        page("docs_sql_page", "/docs/sql", "The dialect of SQL as a page"),
        &[],
        sql,
    );
    table.add(
        page(
            "docs_commands_page",
            "/docs/cli",
            "The commands of the program as a page",
        ),
        &[],
        commands,
    );
}

/// Answers a text as a page.
async fn text_page(
    cx: &Cx,
    place: &str,
    title: &str,
    description: &str,
    raw: Option<&'static str>,
    source: impl FnOnce() -> String,
) -> Result<PageResponse, ApiError> {
    kept(cx, place, title, description, || {
        let text = texts::filled_in(cx, &linked(&source()));
        content(&GuidePart::new(place, title, raw, &text))
    })
    .await
}

/// Makes the links of a text to documents of this service lead to their pages.
fn linked(text: &str) -> String {
    let mut linked = text.to_owned();
    for (raw, place) in TWINS {
        linked = linked.replace(&format!("]({{base}}{raw}"), &format!("]({place}"));
    }
    // Other addresses of the service need no host, so a reader stays where the page was opened.
    linked.replace("]({base}", "](")
}

/// Returns a section of a text in Markdown with its heading; empty if there is none of that name.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let Some(at) = text.find(heading) else { return "" };
    let rest = &text[at..];
    let end = rest[heading.len()..].find("\n## ");
    end.map_or(rest, |end| &rest[..heading.len() + end])
}

/// Address of a guide.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GuidePath {
    /// Name of the guide.
    #[schemars(length(max = 100), regex(pattern = LINE))]
    name: String,
}

async fn guide(cx: Cx, input: GuidePath) -> Result<PageResponse, ApiError> {
    let guide = GUIDES.iter().find(|guide| guide.name == input.name);
    let guide = guide.ok_or_else(|| ApiError::not_found("there is no such guide"))?;
    let raw = match guide.text {
        GuideText::Own(_) => None,
        GuideText::Job(path) => Some(path),
        GuideText::Skill => Some("/skill.md"),
        GuideText::PersonalData => Some(PERSONAL_DATA_GUIDE),
    };
    let place = format!("{FOLDER}/{}", guide.name);
    text_page(&cx, &place, guide.title, guide.description, raw, || match guide.text {
        GuideText::Own(text) => worked::figures(&cx, text),
        GuideText::Job(path) => worked::figures(&cx, worked::source(path).unwrap_or_default()),
        // The lines before the title are for programs that look for skills.
        GuideText::Skill => {
            let text = texts::skill_source(&cx);
            text.split_once("\n# Sluice\n")
                .map_or_else(String::new, |(_, rest)| rest.to_owned())
        }
        GuideText::PersonalData => personal_data_guide(),
    })
    .await
}

async fn agents(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let description = "Keys, reading, knowledge, contributing, files, paying and errors, for who builds an agent.";
    text_page(
        &cx,
        FOLDER,
        "Guide for agents",
        description,
        Some(AGENT_GUIDE_PATH),
        || worked::figures(&cx, &texts::guide_source(LIMITS)),
    )
    .await
}

async fn limits(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let description = "Every limit in force: rates, sizes, times, and the length of each member.";
    text_page(&cx, "/docs/limits", "Limits", description, None, || {
        let tables = texts::limits_source(&cx);
        format!("What is over a limit answers 429 and says in `Retry-After` when to come back.\n\n{tables}\n")
    })
    .await
}

async fn changes(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let description = "What a client can see that changed, by version, the newest first.";
    let raw = Some("/changelog.md");
    text_page(&cx, "/docs/changelog", "Changes", description, raw, || {
        texts::CHANGES.to_owned()
    })
    .await
}

async fn sql(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let description = "The dialect of SQL, what is refused and why, and the types of fields.";
    text_page(&cx, "/docs/sql", "SQL", description, None, || {
        let text = include_str!("../../texts/guides/sql.md");
        let text = text.replace("{dialect}", section(API, "## SQL dialect\n"));
        text.replace("{types}", section(API, "## Types of fields\n"))
    })
    .await
}

async fn commands(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let description = "The commands of the program sluice, and how each ends.";
    text_page(&cx, "/docs/cli", "Command line", description, None, || {
        include_str!("../../texts/guides/cli.md").to_owned()
    })
    .await
}
