//! The operation that judges a text without keeping it.
//!
//! Invariant: the answer names a step and no score, no count and no unit, and the text is compared with none. Each answer
//! about a text that was changed a little would tell more about the weights of the judge, or about texts that are sold.

use std::sync::Arc;

use models::rubric::{ArithmeticFinder, RubricScorer};
use models::screen::UnitScreener;
use operators::GateChain;
use operators::gates::PersonalData;
use operators::knowledge::{ContradictionFinder as _, NearestUnit, Scorer as _};
use operators::screen::{LocalScreener, Screen, Screener};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::Timestamp;
use types::knowledge::UnitText;
use types::vocabulary::ReviewStep;

use super::fields::CATEGORY;
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::schema::{LINE, TEXT};
use crate::error::ApiError;
use crate::rules::text_screen;

/// The sentence about a text whose score is too low. It says no more of it.
const SCORE_TOO_LOW: &str = "The text does not reach the total of a published unit: most of its sentences must hold a \
                             figure with its condition, a name, a cause or a command, and be about its subject.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ValidateUnitInput {
    /// Title in one line.
    #[schemars(length(min = 1, max = 200), regex(pattern = LINE))]
    title: String,
    /// Text: what was measured, what failed and why, or how it is done, with exact parameters.
    #[schemars(length(min = 1, max = 50_000), regex(pattern = TEXT))]
    body: String,
    /// Category; any name of this form, best one of the recommended ones.
    #[schemars(length(min = 1, max = 50), regex(pattern = CATEGORY))]
    category: String,
    /// Source: what was measured, where and when, or whose work it is.
    #[schemars(length(min = 4, max = 2_000), regex(pattern = TEXT))]
    source_declaration: String,
}

/// What the local steps of the review say of a text.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Validation")]
#[serde(rename_all = "camelCase")]
pub(super) struct TextValidation {
    result: ValidationResult,
    /// First step that refuses the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<ReviewStep>,
    /// One sentence on what that step refuses; it quotes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ValidationResult {
    Pass,
    Refused,
}

/// A step that refuses, and its sentence.
type StepRefusal = (ReviewStep, String);

pub(super) async fn validate(cx: Cx, input: ValidateUnitInput) -> Result<JsonReply<TextValidation>, ApiError> {
    let text = UnitText {
        title: input.title,
        body: input.body,
        category: input.category,
        source_declaration: input.source_declaration,
    };
    let place = Arc::clone(&cx.app.process.dry_runs)
        .acquire_owned()
        .await
        .map_err(ApiError::internal)?;
    // The steps use the processor for long, so they run on a blocking thread and not on the runtime's.
    let (runtime, now) = (tokio::runtime::Handle::current(), cx.now);
    let judging = tokio::task::spawn_blocking(move || {
        let refusal = runtime.block_on(first_refusal(&text, now));
        // A caller that disconnects does not end the work, so it must not free the permit.
        drop(place);
        refusal
    });
    let refusal = judging
        .await
        .map_err(|error| ApiError::internal(format!("validation: {error}")))??;
    let (result, step, message) = match refusal {
        None => (ValidationResult::Pass, None, None),
        Some((step, message)) => (ValidationResult::Refused, Some(step), Some(message)),
    };
    Ok(JsonReply::ok(TextValidation { result, step, message }))
}

/// Returns the first step that refuses a text.
async fn first_refusal(text: &UnitText, now: Timestamp) -> Result<Option<StepRefusal>, ApiError> {
    let members = [
        ("title", text.title.as_str()),
        ("body", text.body.as_str()),
        ("category", text.category.as_str()),
        ("sourceDeclaration", text.source_declaration.as_str()),
    ];
    let mut steps = vec![(ReviewStep::PersonalData, GateChain::new().gate(PersonalData::new()))];
    let screeners: [Arc<dyn Screener>; 2] = [Arc::new(LocalScreener), Arc::new(UnitScreener)];
    for screener in screeners {
        let chain = GateChain::new().stage(Arc::new(Screen::new(screener)));
        steps.push((ReviewStep::Screen, chain));
    }
    for (step, chain) in steps {
        let reasons = text_screen::reasons(&members, chain).await?;
        if let Some(reason) = reasons.first() {
            let place = match step {
                ReviewStep::PersonalData => format!("`{}`: ", reason.path),
                _ => String::new(),
            };
            let message = format!("{place}Expected {}; found {}.", reason.expected, reason.actual);
            return Ok(Some((step, message)));
        }
    }
    if let Some(contradiction) = ArithmeticFinder.contradictions(text, now).into_iter().next() {
        return Ok(Some((ReviewStep::Consistency, contradiction)));
    }
    let scored = RubricScorer
        .score(text, &NearestUnit::default())
        .await
        .map_err(ApiError::internal)?;
    Ok((!scored.axes.passes()).then(|| (ReviewStep::Score, SCORE_TOO_LOW.to_owned())))
}
