//! Texts that are shown at once, such as comments: judged in the request by the gates that need no model.

use std::sync::Arc;

use operators::screen::LocalScreener;
use operators::{Decision, Reason, Verdict, standard_chain};
use serde_json::json;
use types::key::NoKeys;
use types::vocabulary::OnRefused;
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

async fn refusal(member: &str, text: &str, counts: impl Fn(&Reason) -> bool) -> Result<(), ApiError> {
    let contract = json!({"fields": [{"name": member, "type": "string", "required": true}]});
    let contract: Contract = serde_json::from_value(contract).map_err(ApiError::internal)?;
    let batch = Batch::decode(&Arc::new(contract), &[json!({member: text})]);
    // Without the keys of earlier records: to say the same as before is no duplicate here.
    let judged = standard_chain(Arc::new(NoKeys), Some(Arc::new(LocalScreener)))
        .run(batch)
        .await;
    if judged.decision(OnRefused::Reject) == Decision::Merge {
        return Ok(());
    }
    let reasons = judged.verdicts.into_iter().flat_map(|row| match row.verdict {
        Verdict::Refuse { reasons } => reasons,
        Verdict::Drop { reason } | Verdict::Hold { reason, .. } => vec![reason],
        Verdict::Pass => Vec::new(),
    });
    let details: Vec<_> = reasons
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
