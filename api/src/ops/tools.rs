//! Names of the tools that agents call, for the endpoints of MCP and for the documents that list them.
//!
//! Invariants:
//! - A tool is an operation of this name. A name without an operation is listed nowhere.
//! - What a tool answers is marked as written by others, unless a list says that it never is. So a new tool is marked.

use crate::call::operation::Operations;
use crate::call::spec::Effect;

/// Names of the tools, which are names of operations, in reading order.
pub(crate) const TOOLS: [&str; 34] = [
    "search_knowledge",
    "get_knowledge_full",
    "submit_knowledge",
    "revise_knowledge",
    "check_submission",
    "validate_knowledge",
    "appeal_rejection",
    "mark_knowledge",
    "set_knowledge_price",
    "retire_knowledge",
    "buy_knowledge_with_credits",
    "buy_knowledge",
    "list_datasets",
    "dataset_info",
    "preview_dataset",
    "read_dataset",
    "query_dataset",
    "dataset_manifest",
    "dataset_diff",
    "contribute_records",
    "contribution_status",
    "buy_dataset",
    "create_dataset",
    "update_dataset",
    "list_requests",
    "get_request",
    "post_request",
    "answer_request",
    "choose_answer",
    "close_request",
    "review_item",
    "report_content",
    "my_quota",
    "my_earnings",
];

/// Operations that a page of the console calls as an agent. None of them spends, buys or sells.
pub(crate) const AT_CONSOLE: [&str; 10] = [
    "infer_file",
    "convert_file",
    "create_dataset",
    "dataset_info",
    "begin_upload",
    "complete_upload",
    "cancel_upload",
    "list_uploads",
    "contribution_status",
    "contribute_records",
];

/// Tools whose answers and errors have texts of the service and of the caller's operator only: no title, name of a field,
/// record, note or reason that another operator wrote, nor a verdict that quotes one.
const OWN: [&str; 13] = [
    "validate_knowledge",
    "mark_knowledge",
    "set_knowledge_price",
    "buy_knowledge_with_credits",
    "buy_dataset",
    "create_dataset",
    "update_dataset",
    "post_request",
    "answer_request",
    "close_request",
    "report_content",
    "my_quota",
    "my_earnings",
];

/// Tools whose answers are small, whatever anybody wrote: a few thousand bytes.
const SMALL: [&str; 8] = [
    "validate_knowledge",
    "mark_knowledge",
    "set_knowledge_price",
    "answer_request",
    "review_item",
    "report_content",
    "my_quota",
    "my_earnings",
];

/// Returns true if each answer of a tool is small.
pub(crate) fn is_small(name: &str) -> bool {
    SMALL.contains(&name)
}

/// Returns true if an answer or an error of a tool may quote texts of other operators. Every tool does that is not known to
/// quote none.
pub(crate) fn might_quote_others(name: &str) -> bool {
    !OWN.contains(&name)
}

/// Returns the tools of a table as a list in Markdown.
pub(crate) fn markdown(table: &Operations) -> String {
    let tools = TOOLS.iter().filter_map(|name| table.get(name));
    let lines = tools.map(|operation| {
        let spec = &operation.spec;
        format!("- `{}` ({}): {}", spec.name, word(spec.effect), spec.summary)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the word for what a tool does.
pub(crate) const fn word(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "reads",
        Effect::Write => "changes",
        Effect::Destroy => "removes",
        Effect::Spend => "spends",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::spec::{Credential, Scope};

    #[test]
    fn the_console_calls_nothing_that_spends_or_that_an_agent_may_not() {
        let table = crate::ops::all(&crate::testing::limits());
        for operation in AT_CONSOLE.into_iter().filter_map(|name| table.get(name)) {
            let spec = &operation.spec;
            assert!(spec.accepts(Credential::AgentKey), "{}", spec.name);
            assert!(
                spec.scope != Scope::Spend && spec.effect != Effect::Spend,
                "{}",
                spec.name
            );
        }
    }

    #[test]
    fn a_tool_quotes_others_unless_it_is_listed() {
        for name in [
            "contribution_status",
            "choose_answer",
            "query_dataset",
            "a_tool_of_tomorrow",
        ] {
            assert!(might_quote_others(name), "{name}");
        }
        for name in OWN {
            assert!(TOOLS.contains(&name) && !might_quote_others(name), "{name}");
        }
    }
}
