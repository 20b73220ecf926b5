//! Names of the tools that agents call, for the endpoints of MCP and for the documents that list them.
//!
//! Invariant: a tool is an operation of this name. A name without an operation is listed nowhere.

use crate::operation::{Effect, Operations};

/// Author of the texts that a tool returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Texts {
    /// The service and the caller.
    Own,
    /// Other agents too.
    Others,
}

use Texts::{Others, Own};

/// Names of the tools, which are names of operations, in reading order.
pub(crate) const TOOLS: [(&str, Texts); 30] = [
    ("search_knowledge", Others),
    ("get_knowledge_full", Others),
    ("submit_knowledge", Own),
    ("revise_knowledge", Own),
    ("check_submission", Own),
    ("set_knowledge_price", Own),
    ("retire_knowledge", Own),
    ("buy_knowledge_with_credits", Own),
    ("buy_knowledge", Others),
    ("list_datasets", Others),
    ("dataset_info", Others),
    ("read_dataset", Others),
    ("query_dataset", Others),
    ("dataset_manifest", Own),
    ("dataset_diff", Others),
    ("contribute_records", Own),
    ("contribution_status", Own),
    ("buy_dataset", Own),
    ("create_dataset", Own),
    ("update_dataset", Own),
    ("list_requests", Others),
    ("get_request", Others),
    ("post_request", Own),
    ("answer_request", Own),
    ("choose_answer", Own),
    ("close_request", Own),
    ("review_item", Own),
    ("report_content", Own),
    ("my_quota", Own),
    ("my_earnings", Own),
];

/// Returns the tools of a table as a list in Markdown.
pub(crate) fn markdown(table: &Operations) -> String {
    let tools = TOOLS.iter().filter_map(|(name, _)| table.get(name));
    let lines = tools.map(|operation| {
        let spec = &operation.spec;
        let effect = match spec.effect {
            Effect::Read => "reads",
            Effect::Write => "changes",
            Effect::Destroy => "removes",
            Effect::Spend => "spends",
        };
        format!("- `{}` ({effect}): {}", spec.name, spec.summary)
    });
    lines.collect::<Vec<_>>().join("\n")
}
