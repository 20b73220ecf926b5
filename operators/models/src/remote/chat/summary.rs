//! The chat model as the writer of summaries.
//!
//! Invariant: a summary that the local screens refuse is no summary, like an answer that cannot be used.

use async_trait::async_trait;
use operators::screen::Unavailable;
use operators::summary::{DatasetText, Summariser};
use serde_json::{Value, json};
use types::unit::Judge;

use super::super::answer::SummaryAnswer;
use super::super::prompt::{TextQuestion, cut};
use super::rubric::SUMMARY_PROMPT;
use super::{ChatModel, shown};

/// The most tokens of an answer. A summary in Korean takes about two for each character.
const SUMMARY_TOKENS: u64 = 1_000;

#[async_trait]
impl Summariser for ChatModel {
    fn judge(&self) -> Judge {
        Judge::model(&self.model)
    }

    async fn summarise(&self, text: &DatasetText) -> Result<String, Unavailable> {
        let text = json!({
            "title": text.title,
            "readme": text.readme,
            "contract": text.contract,
            "records": text.records,
        });
        // A dataset that is too long is cut as text.
        let plain = text.to_string();
        let text = cut(&plain, self.most).map_or(text, Value::from);
        let schema = SummaryAnswer::schema();
        let question = TextQuestion {
            instructions: SUMMARY_PROMPT,
            text: &text,
            beside: Vec::new(),
            order: "Summarise it.",
            schema: ("summary_1", &schema),
            tokens: SUMMARY_TOKENS,
        };
        let answer: SummaryAnswer = self.ask(&question).await?;
        let summary = shown(&answer.summary).await;
        if summary.is_empty() {
            return Err(self.provider.unusable(true));
        }
        Ok(summary)
    }
}
