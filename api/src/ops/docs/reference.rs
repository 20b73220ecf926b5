//! The reference: a page for each operation of programs, one for all, and those of the tools and the errors.
//!
//! Invariant: the pages have what the table of operations and the table of codes have, and nothing else.

use std::sync::Arc;

use http::StatusCode;
use pages::{
    DocumentedStatus, ErrorCodeEntry, ErrorCodesPart, ErrorStatus, OperationGroup, OperationIndexPart, OperationLink,
    OperationPart, SampleTrial, ToolRow, ToolsPart,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::trial::{fields, is_open, tried};
use super::{content, kept, members, page, samples};
use crate::call::answer::{JSON, NDJSON, OCTET_STREAM};
use crate::call::cx::Cx;
use crate::call::operation::{Operation, Operations};
use crate::call::schema::LINE;
use crate::call::spec::{ApiKind, CallRate, Credential, Effect, Scope, Spec};
use crate::call::view::PageResponse;
use crate::call::wire::NoInput;
use crate::codes::CODES;
use crate::error::ApiError;
use crate::ops::openapi;
use crate::ops::page_kit::page_layout;
use crate::ops::tools::{TOOLS, word};
use crate::rules::auth::apps;

/// Groups of operations by their words, in the order in which a reader wants them. Others follow.
const GROUPS: [(&str, &str); 11] = [
    ("datasets", "Datasets"),
    ("knowledge", "Knowledge"),
    ("community", "Requests and reviews"),
    ("money", "Money"),
    ("payments", "Paying with a wallet"),
    ("accounts", "Accounts and agents"),
    ("points", "Points"),
    ("reports", "Reports"),
    ("activity", "Activity"),
    ("oauth", "Sign-in for apps"),
    ("service", "The service"),
];
/// Words of names that are written otherwise.
const SPELLINGS: [(&str, &str); 7] = [
    ("oauth", "OAuth"),
    ("openapi", "OpenAPI"),
    ("mcp", "MCP"),
    ("llms", "LLMs"),
    ("did", "DID"),
    ("atom", "Atom"),
    ("usdc", "USDC"),
];

pub(super) fn add(table: &mut Operations) {
    table.add(
        page("docs_api_page", "/docs/api", "All operations as a page"),
        &[],
        index,
    );
    table.add(
        page(
            "docs_operation_page",
            "/docs/api/{operation}",
            "One operation as a page",
        ),
        &[],
        operation,
    );
    table.add(
        page("docs_tools_page", "/docs/tools", "The tools of MCP as a page"),
        &[],
        tools,
    );
    table.add(
        page("docs_errors_page", "/docs/errors", "The codes of errors as a page"),
        &[],
        errors,
    );
}

/// Address of the page of an operation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OperationPath {
    /// Name of the operation.
    #[schemars(length(max = 100), regex(pattern = LINE))]
    operation: String,
}

/// Returns the name of an operation in words.
fn title(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let spelling = SPELLINGS.iter().find(|(known, _)| *known == word);
        spelling.map_or(word, |(_, spelled)| spelled)
    });
    let mut title = words.collect::<Vec<_>>().join(" ");
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    title
}

/// Returns the operations for programs in their groups.
fn groups(table: &Operations) -> Arc<[OperationGroup]> {
    let mut groups: Vec<OperationGroup> = GROUPS
        .into_iter()
        .map(|(id, title)| OperationGroup {
            id,
            title: title.to_owned(),
            operations: Vec::new(),
        })
        .collect();
    for operation in table.iter().filter(|operation| operation.spec.surface == ApiKind::Rest) {
        let spec = &operation.spec;
        let link = link(spec);
        match groups.iter_mut().find(|group| group.id == spec.tag) {
            Some(group) => group.operations.push(link),
            None => groups.push(OperationGroup {
                id: spec.tag,
                title: title(spec.tag),
                operations: vec![link],
            }),
        }
    }
    groups.retain(|group| !group.operations.is_empty());
    groups.into()
}

fn link(spec: &Spec) -> OperationLink {
    OperationLink {
        name: spec.name,
        title: title(spec.name),
        method: spec.method.to_string(),
        path: spec.path,
        summary: spec.summary.trim_end_matches('.'),
    }
}

async fn index(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let description = "Every call of the interface, with its parameters, answers, errors and examples.";
    kept(&cx, "/docs/api", "API reference", description, || {
        content(&OperationIndexPart {
            groups: groups(&cx.operations),
            version: openapi::VERSION,
            base: cx.app.config.public_url.clone(),
        })
    })
    .await
}

async fn operation(cx: Cx, input: OperationPath) -> Result<PageResponse, ApiError> {
    let found = cx.operations.get(&input.operation);
    let found = found.filter(|operation| operation.spec.surface == ApiKind::Rest);
    let operation = Arc::clone(found.ok_or_else(|| ApiError::not_found("there is no such operation"))?);
    let spec = &operation.spec;
    let (place, heading) = (format!("/docs/api/{}", spec.name), title(spec.name));
    let heading = format!("{heading} · API");
    let description = format!("{} {}: {}.", spec.method, spec.path, spec.summary.trim_end_matches('.'));
    let query = cx.the_visit()?.path.split_once('?').map(|(_, query)| query.to_owned());
    if let Some(trial) = tried(&cx, &operation, query.as_deref().unwrap_or_default()).await? {
        let part = described(&cx, &operation, Some(trial));
        return PageResponse::page(&pages::DocsPage {
            chrome: page_layout(&cx).await?,
            title: heading,
            description,
            content: Arc::new(content(&part)?),
        });
    }
    kept(&cx, &place, &heading, &description, || {
        let trial = is_open(&operation).then(|| SampleTrial {
            fields: fields(&operation, None),
            answer: None,
        });
        content(&described(&cx, &operation, trial))
    })
    .await
}

/// Returns all that the page of an operation says.
fn described(cx: &Cx, operation: &Operation, trial: Option<SampleTrial>) -> OperationPart {
    let spec = &operation.spec;
    let status = |status: u16, meaning: &str| DocumentedStatus {
        status,
        meaning: meaning.to_owned(),
    };
    let successes = spec.success.iter().chain(spec.empty);
    let mut successes: Vec<_> = successes.map(|(code, meaning)| status(*code, meaning)).collect();
    if operation.takes_key() && successes.iter().all(|success| success.status != 200) {
        let meaning = "What an earlier call with the same idempotency key made, with `replayed`, as it is now.";
        successes.insert(0, status(200, meaning));
    }
    let mut failures: Vec<DocumentedStatus> = Vec::new();
    for (code, meaning) in openapi::refusals(operation) {
        // A later entry of a status is more exact than an earlier one.
        failures.retain(|known| known.status != code);
        failures.push(status(code, meaning));
    }
    failures.sort_by_key(|failure| failure.status);
    OperationPart {
        place: format!("/docs/api/{}", spec.name),
        groups: groups(&cx.operations),
        group: spec.tag,
        operation: link(spec),
        description: spec.description,
        facts: facts(cx, operation),
        parameters: members::parameters(operation),
        body: members::body(operation),
        body_note: if spec.takes.contains(&OCTET_STREAM) {
            "or the bytes of the file, as `application/octet-stream`".to_owned()
        } else {
            spec.takes
                .iter()
                .find(|taken| **taken != JSON)
                .map_or_else(String::new, |taken| format!("`{taken}`"))
        },
        successes,
        answer: members::answer(&operation.output),
        answer_note: match operation.content_type {
            JSON => String::new(),
            NDJSON => "one JSON object a line".to_owned(),
            other => format!("`{other}`"),
        },
        failures,
        samples: samples::of(operation, &cx.app.config.public_url),
        trial,
    }
}

/// Returns what a caller needs, and what the call costs and does.
fn facts(cx: &Cx, operation: &Operation) -> Vec<(&'static str, String)> {
    let spec = &operation.spec;
    let mut facts = vec![("Credential", credentials(spec))];
    if TOOLS.contains(&spec.name) {
        let place = if samples::is_in_directory(operation) {
            "at `/mcp` and `/mcp/directory`"
        } else {
            "at `/mcp`"
        };
        let scope = apps::of(spec.scope).word();
        facts.push(("Tool", format!("`{}` {place}; an app needs `{scope}`", spec.name)));
    }
    if spec.effect == Effect::Spend || spec.scope == Scope::Spend {
        facts.push(("Cost", "the price of what is bought".to_owned()));
    } else if spec.egress {
        facts.push(("Cost", "its bytes count as traffic of the account".to_owned()));
    }
    let mut limits: Vec<String> = Vec::new();
    if spec.rate == CallRate::Call {
        let calls = cx.app.limits.calls_per_ip_per_minute;
        limits.push(format!("{calls} calls a minute and address"));
    }
    let own = spec.limits.iter();
    limits.extend(own.map(|limit| format!("{} {}", (limit.most)(&cx.app.limits), limit.counted)));
    if !limits.is_empty() {
        facts.push(("Limit", limits.join("; ")));
    }
    if operation.takes_key() {
        let window = cx.app.limits.idempotency_window.hours();
        facts.push(("Repeat", format!("harmless with `Idempotency-Key`, for {window} hours")));
    }
    facts
}

/// Returns the credentials that a call takes, in words.
fn credentials(spec: &Spec) -> String {
    let mut words: Vec<String> = Vec::new();
    for kind in spec.accepts {
        words.extend(match kind {
            Credential::AgentKey => Some("an agent key (`km_…`)".to_owned()),
            Credential::OperatorToken => Some("a token of the account (`wto_…`)".to_owned()),
            Credential::ClaimedKey => Some("the key of a claim (`km_…`)".to_owned()),
            Credential::AppToken if spec.any_scope => Some("the token of an app".to_owned()),
            Credential::AppToken => Some(format!("the token of an app with `{}`", apps::of(spec.scope).word())),
            Credential::Anonymous | Credential::Session => None,
        });
    }
    let words = words.join(" or ");
    if words.is_empty() {
        "none".to_owned()
    } else if spec.accepts(Credential::Anonymous) {
        format!("none needed; {words} shows or does more")
    } else {
        words
    }
}

async fn tools(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let description = "The tools that agents call over MCP, with what each reads, changes or spends.";
    kept(&cx, "/docs/tools", "Tools of MCP", description, || {
        let tools = TOOLS.iter().filter_map(|name| cx.operations.get(name));
        let rows = tools.map(|operation| ToolRow {
            name: operation.spec.name,
            summary: operation.spec.summary,
            effect: word(operation.spec.effect),
            scope: apps::of(operation.spec.scope).word(),
        });
        content(&ToolsPart {
            base: cx.app.config.public_url.clone(),
            tools: rows.collect(),
        })
    })
    .await
}

async fn errors(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let description = "Every error code, its meaning, and when to try again.";
    kept(&cx, "/docs/errors", "Errors", description, || {
        let mut groups: Vec<ErrorStatus> = Vec::new();
        // The codes are in the order of their statuses.
        for row in CODES {
            let code = ErrorCodeEntry {
                word: row.word,
                meaning: row.meaning,
                fields: row.fields,
                again: row.again.advice(),
            };
            match groups.last_mut().filter(|group| group.status == row.status) {
                Some(group) => group.codes.push(code),
                None => groups.push(ErrorStatus {
                    status: row.status,
                    phrase: StatusCode::from_u16(row.status)
                        .ok()
                        .and_then(|status| status.canonical_reason())
                        .unwrap_or_default(),
                    codes: vec![code],
                }),
            }
        }
        content(&ErrorCodesPart { groups })
    })
    .await
}
