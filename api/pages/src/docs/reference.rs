//! The reference of calls, tools and errors, made from the tables of the service.
//!
//! Invariant: nothing here says more than the table of operations; words between backticks are shown as code.

use std::sync::Arc;

use askama::Template;

use super::contents::DocsPart;
use crate::filters;

/// Group of operations.
#[derive(Clone, Debug)]
pub struct OperationGroup {
    /// Word of the group, unique among them.
    pub id: &'static str,
    /// Name of the group.
    pub title: String,
    /// Operations, in reading order.
    pub operations: Vec<OperationLink>,
}

/// Operation in a list.
#[derive(Clone, Debug)]
pub struct OperationLink {
    /// Name of the operation, which is a part of the address of its page.
    pub name: &'static str,
    /// Name in words.
    pub title: String,
    /// HTTP method in capitals, such as `GET`.
    pub method: String,
    /// Path with its members in braces.
    pub path: &'static str,
    /// Sentence about it.
    pub summary: &'static str,
}

/// `GET /docs/api`: all operations.
#[derive(Debug, Template)]
#[template(path = "docs/operations.html")]
pub struct OperationIndexPart {
    /// Groups of operations.
    pub groups: Arc<[OperationGroup]>,
    /// Version of the description of the interface.
    pub version: &'static str,
    /// Address of this service without a slash at the end.
    pub base: String,
}

impl DocsPart for OperationIndexPart {
    fn place(&self) -> &'static str {
        "/docs/api"
    }
}

/// `GET /docs/api/{operation}`: one operation.
#[derive(Debug, Template)]
#[template(path = "docs/operation.html")]
pub struct OperationPart {
    /// Address of the page.
    pub place: String,
    /// Groups of all operations.
    pub groups: Arc<[OperationGroup]>,
    /// Word of the group of the operation.
    pub group: &'static str,
    /// Operation that the page is about.
    pub operation: OperationLink,
    /// Text about it; empty if the sentence suffices.
    pub description: &'static str,
    /// Names and values of facts about calling: credential, tool, cost, limits, and repetition.
    pub facts: Vec<(&'static str, String)>,
    /// Members of the path, the query and the headers.
    pub parameters: Vec<DocumentedMember>,
    /// Members of the body.
    pub body: Vec<DocumentedMember>,
    /// Form of the body, if it need not be JSON.
    pub body_note: String,
    /// Statuses of success.
    pub successes: Vec<DocumentedStatus>,
    /// Members of the answer.
    pub answer: Vec<DocumentedMember>,
    /// Form of the answer, if it is not a JSON value.
    pub answer_note: String,
    /// Statuses of failure.
    pub failures: Vec<DocumentedStatus>,
    /// The call in several languages.
    pub samples: Vec<CodeSample>,
    /// Form that tries the call; `None` for one that needs a key or changes something.
    pub trial: Option<SampleTrial>,
}

/// Member of an input or an answer.
#[derive(Clone, Debug)]
pub struct DocumentedMember {
    /// Name with those of the members around it.
    pub name: String,
    /// Type, bounds and place.
    pub note: String,
    /// Description of the member in its schema, with its default; empty if it has neither.
    pub meaning: String,
}

/// Status of an answer.
#[derive(Clone, Debug)]
pub struct DocumentedStatus {
    /// Status of HTTP.
    pub status: u16,
    /// Sentence about the case in which the status is sent.
    pub meaning: String,
}

/// Call in a language.
#[derive(Clone, Debug)]
pub struct CodeSample {
    /// Word that is unique on the page.
    pub id: &'static str,
    /// Name of the language.
    pub label: &'static str,
    /// Text to copy.
    pub code: String,
}

/// Form that tries a call that needs no key.
#[derive(Clone, Debug)]
pub struct SampleTrial {
    /// Members of the query.
    pub fields: Vec<TrialField>,
    /// Answer to the form that was sent.
    pub answer: Option<TrialAnswer>,
}

/// Member of a query, in the form.
#[derive(Clone, Debug)]
pub struct TrialField {
    /// Name of the member.
    pub name: String,
    /// Value in the form.
    pub value: String,
    /// Values to choose from; empty for any text.
    pub choices: Vec<String>,
}

/// Answer of a call that was tried.
#[derive(Clone, Debug)]
pub struct TrialAnswer {
    /// Status of HTTP.
    pub status: u16,
    /// Time that the call took, in milliseconds.
    pub millis: u64,
    /// Bytes of the answer.
    pub bytes: u64,
    /// Answer, cut if it is long.
    pub text: String,
    /// True if it was cut.
    pub is_cut: bool,
}

impl OperationPart {
    /// Returns the groups of operations, each with true for the one of this page.
    fn listed(&self) -> impl Iterator<Item = (&OperationGroup, bool)> {
        self.groups.iter().map(|group| (group, group.id == self.group))
    }
}

impl DocsPart for OperationPart {
    fn place(&self) -> &str {
        &self.place
    }
}

/// `GET /docs/tools`: the tools of MCP.
#[derive(Debug, Template)]
#[template(path = "docs/tools.html")]
pub struct ToolsPart {
    /// Address of this service without a slash at the end.
    pub base: String,
    /// Tools, in reading order.
    pub tools: Vec<ToolRow>,
}

/// Tool in the list.
#[derive(Clone, Debug)]
pub struct ToolRow {
    /// Name of the tool, and of its operation.
    pub name: &'static str,
    /// Sentence about it.
    pub summary: &'static str,
    /// Word for what it does: `reads`, `changes`, `removes` or `spends`.
    pub effect: &'static str,
    /// Permission that an app needs for it.
    pub scope: &'static str,
}

impl DocsPart for ToolsPart {
    fn place(&self) -> &'static str {
        "/docs/tools"
    }
}

/// `GET /docs/errors`: the codes of all refusals.
#[derive(Debug, Template)]
#[template(path = "docs/errors.html")]
pub struct ErrorCodesPart {
    /// Codes by status.
    pub groups: Vec<ErrorStatus>,
}

/// Codes of a status.
#[derive(Clone, Debug)]
pub struct ErrorStatus {
    /// Status of HTTP.
    pub status: u16,
    /// Its name in HTTP.
    pub phrase: &'static str,
    /// Codes, by their words.
    pub codes: Vec<ErrorCodeEntry>,
}

/// Code of a refusal.
#[derive(Clone, Copy, Debug)]
pub struct ErrorCodeEntry {
    /// Word on the wire.
    pub word: &'static str,
    /// Sentence about the fault that the code stands for.
    pub meaning: &'static str,
    /// Members of the body beside `error` and `message`.
    pub fields: &'static [&'static str],
    /// Advice on sending the call again.
    pub again: &'static str,
}

impl DocsPart for ErrorCodesPart {
    fn place(&self) -> &'static str {
        "/docs/errors"
    }
}
