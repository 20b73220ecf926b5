//! The chat model as a scorer: the questions of `score-2`, and the score that code makes of their answers.
//!
//! Invariant: a unit asks at most four questions: its claims, if a reader could test each, a contradiction, and what it adds
//! to the nearest published unit. A text without a claim that counts asks only the first.

use async_trait::async_trait;
use operators::knowledge::{NearestUnit, Scorer, ScorerAnswer};
use operators::screen::Unavailable;
use serde_json::{Value, json};
use types::knowledge::{Axes, UnitText};
use types::unit::Judge;

use super::super::answer::{AdditionList, ClaimList, ContradictionAnswer, TestList};
use super::super::claims::ClaimSheet;
use super::super::passages::{QuotedText, is_quote_within};
use super::super::prompt::{CLAIMS, NEAREST, TextQuestion};
use super::ChatModel;
use super::rubric::{ADDITIONS_PROMPT, CLAIMS_PROMPT, CONTRADICTION_PROMPT, TESTS_PROMPT};

/// The most tokens of a list of claims: 200 for each.
const CLAIMS_TOKENS: u64 = 4_000;
/// The most tokens of a list of what is missing: 40 for each claim.
const TESTS_TOKENS: u64 = 800;
/// The most tokens of an answer with two passages.
const CONTRADICTION_TOKENS: u64 = 600;
/// The most tokens of a list with passages of another unit: 120 for each claim.
const ADDITIONS_TOKENS: u64 = 2_400;

/// The sentence about a text that the model did not see whole.
const CUT: &str = "The middle of the text was left out because it is too long for the model.";

#[async_trait]
impl Scorer for ChatModel {
    fn judge(&self) -> Judge {
        Judge::model(&self.model)
    }

    async fn score(&self, unit: &UnitText, near: &NearestUnit) -> Result<ScorerAnswer, Unavailable> {
        let (shown, is_cut) = self.shown(unit);
        // Of the whole text: neither the mark of a cut nor the escapes of JSON are evidence.
        let text = QuotedText::of(&unit.title, &unit.body, &unit.source_declaration);
        let schema = ClaimList::schema();
        let question = TextQuestion {
            instructions: CLAIMS_PROMPT,
            text: &shown,
            beside: Vec::new(),
            order: "List its claims.",
            schema: ("score_2_claims", &schema),
            tokens: CLAIMS_TOKENS,
        };
        let listed: ClaimList = self.ask(&question).await?;
        let mut sheet = ClaimSheet::of(text, &listed.claims);
        // Whatever the other answers were, nothing would be left to score.
        if !sheet.claims.is_empty() {
            self.ask_about_claims(&mut sheet, &shown, near).await?;
        }
        let mut remark = sheet.remark();
        if is_cut {
            remark.extend([" ", CUT]);
        }
        Ok(ScorerAnswer {
            axes: Axes::of_tenths(sheet.axes()),
            fixes: sheet.requests(),
            reasons: Vec::new(),
            language: crate::rubric::language(&unit.body),
            remark: Some(remark),
        })
    }
}

impl ChatModel {
    /// Asks what there is to ask about claims that count, and notes the answers.
    async fn ask_about_claims(
        &self,
        sheet: &mut ClaimSheet<'_>,
        shown: &Value,
        near: &NearestUnit,
    ) -> Result<(), Unavailable> {
        let numbered = (1..).zip(&sheet.claims);
        let claims: Value = numbered
            .map(|(number, claim): (usize, _)| json!({"claim": number, "quote": claim.quote}))
            .collect();
        let schema = TestList::schema();
        let question = TextQuestion {
            instructions: TESTS_PROMPT,
            text: shown,
            beside: vec![(CLAIMS, claims.clone())],
            order: "Answer for each claim if a reader could test it.",
            schema: ("score_2_tests", &schema),
            tokens: TESTS_TOKENS,
        };
        let tests: TestList = self.ask(&question).await?;
        sheet.note_tests(&tests.missing());
        let schema = ContradictionAnswer::schema();
        let question = TextQuestion {
            instructions: CONTRADICTION_PROMPT,
            text: shown,
            beside: Vec::new(),
            order: "Find out if it contradicts itself.",
            schema: ("score_2_contradiction", &schema),
            tokens: CONTRADICTION_TOKENS,
        };
        let found: ContradictionAnswer = self.ask(&question).await?;
        if let Some(quotes) = found.quotes() {
            sheet.note_contradiction(quotes);
        }
        let Some(nearest) = self.nearest(near).await else {
            return Ok(());
        };
        let schema = AdditionList::schema();
        let question = TextQuestion {
            instructions: ADDITIONS_PROMPT,
            text: shown,
            beside: vec![(CLAIMS, claims), (NEAREST, nearest.clone())],
            order: "Answer for each claim if it adds something to the nearest published unit.",
            schema: ("score_2_additions", &schema),
            tokens: ADDITIONS_TOKENS,
        };
        let answer: AdditionList = self.ask(&question).await?;
        for (number, addition) in answer.additions.iter().enumerate() {
            // The other text is a stranger's too, and might say that everything is known already.
            if !addition.adds && is_shown(&nearest, &addition.passage) {
                sheet.note_known(number);
            }
        }
        Ok(())
    }
}

/// Returns true if a passage stands in what the model was shown of the nearest unit.
fn is_shown(nearest: &Value, passage: &str) -> bool {
    let mut parts = nearest
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|unit| [&unit["title"], &unit["preview"]]);
    parts.any(|part| part.as_str().is_some_and(|part| is_quote_within(part, passage)))
}
