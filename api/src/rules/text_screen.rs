//! Texts that are shown at once, such as comments: judged in the request by the gates that need no model.

use std::sync::Arc;

use operators::screen::LocalScreener;
use operators::{GateChain, Reason, Verdict, standard_chain};
use serde_json::{Value, json};
use types::key::NoKeys;
use types::{Batch, Contract};

use crate::codes::ErrorCode;
use crate::error::{ApiError, ErrorDetail};

/// Code of the objection to repeated or dummy text.
const FILLER: &str = "filler";

/// Checks a text for personal data and what the local screener refuses. The error names the rule and never quotes.
pub(crate) async fn check(member: &str, text: &str) -> Result<(), ApiError> {
    refusal(member, text, |_| true).await
}

/// Checks a text of the board in the same way. What is dull or repeats itself is let through: it is short, asks for an
/// item or answers one, and readers judge it.
pub(crate) async fn check_of_board(member: &str, text: &str) -> Result<(), ApiError> {
    refusal(member, text, |reason| reason.code != FILLER).await
}

/// Returns the reasons for which a chain does not let a record of these texts pass.
pub(crate) async fn reasons(members: &[(&str, &str)], mut chain: GateChain) -> Result<Vec<Reason>, ApiError> {
    let fields: Vec<_> = members
        .iter()
        .map(|(name, _)| json!({"name": name, "type": "string", "required": true}))
        .collect();
    let contract: Contract = serde_json::from_value(json!({"fields": fields})).map_err(ApiError::internal)?;
    let record = members
        .iter()
        .map(|(name, text)| ((*name).to_owned(), json!(text)))
        .collect();
    let judged = chain
        .run(Batch::decode(&Arc::new(contract), &[Value::Object(record)]))
        .await;
    let reasons = judged.verdicts.into_iter().flat_map(|row| match row.verdict {
        Verdict::Refuse { reasons } => reasons,
        Verdict::Drop { reason } | Verdict::Hold { reason, .. } => vec![reason],
        Verdict::Pass => Vec::new(),
    });
    Ok(reasons.collect())
}

async fn refusal(member: &str, text: &str, counts: impl Fn(&Reason) -> bool) -> Result<(), ApiError> {
    // Without the keys of earlier records: to say the same as before is no duplicate here.
    let chain = standard_chain(Arc::new(NoKeys), Some(Arc::new(LocalScreener)));
    let details: Vec<_> = reasons(&[(member, text)], chain)
        .await?
        .into_iter()
        .filter(counts)
        .map(|reason| ErrorDetail {
            path: format!("/{member}"),
            problem: format!("must be {}; found {}", reason.expected, reason.actual),
        })
        .collect();
    if details.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid_all(details).with_code(ErrorCode::RefusedText))
}
