//! A chat model as scorer, screener, comparer and writer of summaries.
//!
//! Invariant: code computes what a verdict becomes. No number of the model is a score.

mod rubric;
mod score;
mod summary;

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use operators::knowledge::{Comparer, ComparerAnswer, NearestUnit, Previews};
use operators::screen::{Cause, LocalScreener, Opinion, Screener, Unavailable};
use serde_json::{Value, json};
use types::knowledge::UnitText;
use types::unit::Judge;

use self::rubric::{COMPARE_PROMPT, SCREEN_PROMPT, objection, undecided};
use super::answer::{Distinct, EchoedNumber, ScreenAnswer, ScreenVerdict, read};
use super::prompt::{CLAIMS, NEAREST, TextQuestion, cut};
use super::provider::{Provider, ProviderFailure, ProviderRequest};
use super::sample::QuestionSample;
use crate::screen::UnitScreener;

/// The most bytes of a completion, which has our object of at most 64 KiB as a string.
const ANSWER_BYTES: u64 = 256 << 10;
/// The most tokens of an answer of some sentences.
const SHORT_TOKENS: u64 = 400;
/// Asks for one answer, because the first may be rubbish.
const MAX_ANSWERS_ASKED: u32 = 2;

/// A chat model of a provider.
#[derive(Debug)]
pub struct ChatModel {
    provider: Arc<Provider>,
    model: String,
    /// The most code points of a text.
    most: usize,
    previews: Option<Arc<dyn Previews>>,
    /// True once the server has refused a schema that it was to enforce.
    is_loose: AtomicBool,
}

impl ChatModel {
    /// Creates a judge that shows the model at most `most` code points of a text. Without previews, the model does not
    /// see published texts.
    pub fn new(
        provider: Arc<Provider>,
        model: impl Into<String>,
        most: usize,
        previews: Option<Arc<dyn Previews>>,
    ) -> Self {
        Self {
            provider,
            model: model.into(),
            most,
            previews,
            is_loose: AtomicBool::new(false),
        }
    }

    /// Asks until an answer counts. Without one, the same question about a text of our own tells a text that spoils its
    /// answers from a model that is of no use now.
    async fn ask<T: EchoedNumber>(&self, question: &TextQuestion<'_>) -> Result<T, Unavailable> {
        if let Some(answer) = self.answer(question).await? {
            return Ok(answer);
        }
        // The control has the same instructions and schema, so only the text differs between the two
        // questions.
        let text = own_text();
        let control = TextQuestion {
            text: &text,
            beside: question
                .beside
                .iter()
                .map(|(name, _)| (*name, own_beside(name)))
                .collect(),
            ..question.clone()
        };
        let answers_others = self.answer::<T>(&control).await?.is_some();
        let schema = question.schema.0;
        tracing::warn!(
            model = self.model,
            schema,
            answers_others,
            "the answers of the chat model cannot be used; what needs them waits"
        );
        Err(self.provider.unusable(answers_others))
    }

    /// Asks until an answer counts, at most twice. Returns `None` if none does.
    async fn answer<T: EchoedNumber>(&self, question: &TextQuestion<'_>) -> Result<Option<T>, Unavailable> {
        for _ in 0..MAX_ANSWERS_ASKED {
            let is_strict = !self.is_loose.load(Ordering::Relaxed);
            match self.ask_once(question, is_strict).await {
                Ok(Some(answer)) => return Ok(Some(answer)),
                // Only these are asked again: a request without an answer was tried again by the
                // provider already.
                Ok(None) => {}
                Err(ProviderFailure::Unavailable(unavailable)) => return Err(unavailable),
                // Some servers know no schemas.
                Err(ProviderFailure::Refused) if is_strict => return self.ask_loosely(question).await,
                Err(ProviderFailure::Refused) => break,
            }
        }
        Ok(None)
    }

    /// Asks with the schema among the instructions, and remembers that the server takes that.
    async fn ask_loosely<T: EchoedNumber>(&self, question: &TextQuestion<'_>) -> Result<Option<T>, Unavailable> {
        match self.ask_once(question, false).await {
            Ok(answer) => {
                // Only after it worked: a refusal may be about this text, for one that is too long for
                // the model.
                self.is_loose.store(true, Ordering::Relaxed);
                Ok(answer)
            }
            Err(ProviderFailure::Unavailable(unavailable)) => Err(unavailable),
            Err(ProviderFailure::Refused) => Ok(None),
        }
    }

    /// Asks once. Returns `None` if the answer does not count.
    async fn ask_once<T: EchoedNumber>(
        &self,
        question: &TextQuestion<'_>,
        is_strict: bool,
    ) -> Result<Option<T>, ProviderFailure> {
        // Without randomness nothing can be asked, which ends like a refusal.
        let (body, numbers) = question
            .request(&self.model, is_strict)
            .ok_or(ProviderFailure::Refused)?;
        let request = ProviderRequest {
            path: "chat/completions",
            body: &body,
            answer_tokens: question.tokens,
            answer_bytes: ANSWER_BYTES,
        };
        let answer = self.provider.ask(request).await?;
        Ok(read(&answer, &numbers.echo, question))
    }

    /// Returns the unit as JSON, and true if its body was cut.
    fn shown(&self, unit: &UnitText) -> (Value, bool) {
        let cut = cut(&unit.body, self.most);
        let is_cut = cut.is_some();
        let body = cut.unwrap_or_else(|| unit.body.clone());
        let shown = json!({
            "title": unit.title,
            "category": unit.category,
            "sourceDeclaration": unit.source_declaration,
            "body": body,
        });
        (shown, is_cut)
    }

    /// Returns the nearest published unit as JSON, if it may be shown.
    async fn nearest(&self, near: &NearestUnit) -> Option<Value> {
        let (unit, previews) = (near.unit?, self.previews.as_ref()?);
        let preview = previews.preview(unit).await?;
        // Rounded, since the digits behind would make equal questions differ and tell the model
        // nothing.
        let similarity = (f64::from(near.cosine) * 100.0).round() / 100.0;
        Some(json!([{"title": preview.title, "preview": preview.text, "similarity": similarity}]))
    }

    /// Asks if a group of records may be published. Returns the objection if one may not.
    async fn screen_once(&self, records: &[&str]) -> Result<Option<Opinion>, Unavailable> {
        // As JSON within JSON: as text, every quote of a record would be escaped once more and cost
        // tokens.
        let parsed = |record: &&str| serde_json::from_str(record).unwrap_or_else(|_| Value::from(*record));
        let text = match records {
            [one] => parsed(one),
            many => many.iter().map(parsed).collect(),
        };
        // A record that is too long is cut as text.
        let plain = text.to_string();
        let text = cut(&plain, self.most).map_or(text, Value::from);
        let schema = ScreenAnswer::schema();
        let question = TextQuestion {
            instructions: SCREEN_PROMPT,
            text: &text,
            beside: Vec::new(),
            order: "Screen it.",
            schema: ("screen_1", &schema),
            tokens: SHORT_TOKENS,
        };
        let answer: ScreenAnswer = self.ask(&question).await?;
        if answer.verdict == ScreenVerdict::Acceptable {
            return Ok(None);
        }
        Ok(Some(objection(answer.code, &vetted(&answer.detail).await)))
    }
}

#[async_trait]
impl Comparer for ChatModel {
    fn judge(&self) -> Judge {
        Judge::model(&self.model)
    }

    async fn compare(&self, unit: &UnitText, near: &NearestUnit) -> Result<Option<ComparerAnswer>, Unavailable> {
        // A text that was hidden or withdrawn since has no preview, and must not be shown to a model
        // either.
        let Some(nearest) = self.nearest(near).await else {
            return Ok(None);
        };
        let (text, _) = self.shown(unit);
        let schema = Distinct::schema();
        let question = TextQuestion {
            instructions: COMPARE_PROMPT,
            text: &text,
            beside: vec![(NEAREST, nearest)],
            order: "Compare it with the nearest published unit.",
            schema: ("distinct_1", &schema),
            tokens: SHORT_TOKENS,
        };
        let answer: Distinct = self.ask(&question).await?;
        let mut adds = vetted(&answer.adds).await;
        if adds.is_empty() {
            adds.push_str("something of its own");
        }
        Ok(Some(ComparerAnswer {
            is_distinct: answer.adds_something,
            adds,
        }))
    }
}

#[async_trait]
impl Screener for ChatModel {
    fn judge(&self) -> Judge {
        Judge::model(&self.model)
    }

    /// Asks about groups of records, and halves a group with an objection until the record is found.
    async fn screen(&self, records: &[&str]) -> Result<Vec<Opinion>, Unavailable> {
        let mut opinions = vec![Opinion::Acceptable; records.len()];
        let mut groups = self.groups(records);
        while let Some(group) = groups.pop() {
            let Some(objection) = self.screen_once(&records[group.clone()]).await? else {
                continue;
            };
            if group.len() == 1 {
                opinions[group.start] = objection;
            } else {
                groups.extend(halves(&group));
            }
        }
        Ok(opinions)
    }
}

impl ChatModel {
    /// Asks about a sample of the groups of a contribution. A record that spoils the answers about it is refused: a
    /// contribution has no count of its tries, and would ask for ever.
    async fn screen_sample(&self, records: &[&str], sample: &QuestionSample) -> Result<Vec<Opinion>, Unavailable> {
        let mut opinions = vec![Opinion::Acceptable; records.len()];
        for group in self.groups(records) {
            if !sample.takes_group() {
                continue;
            }
            let mut groups = vec![group];
            while let Some(group) = groups.pop() {
                let found = match self.screen_once(&records[group.clone()]).await {
                    Ok(None) => continue,
                    Ok(Some(objection)) => objection,
                    Err(unavailable) if unavailable.reason == Cause::Text => undecided(),
                    Err(unavailable) => return Err(unavailable),
                };
                if group.len() > 1 && sample.locates() {
                    groups.extend(halves(&group));
                    continue;
                }
                sample.objects();
                // Without more questions all records of the group stand for the one that is meant.
                opinions[group].fill(found);
            }
        }
        Ok(opinions)
    }

    /// Returns ranges of records that fit into one question.
    fn groups(&self, records: &[&str]) -> Vec<std::ops::Range<usize>> {
        let mut groups = Vec::new();
        let (mut start, mut length) = (0, 0);
        for (at, record) in records.iter().enumerate() {
            let more = record.chars().count() + 1;
            // A record that is longer than a question has one of its own, where it is cut.
            if at > start && length + more > self.most {
                groups.push(start..at);
                (start, length) = (at, 0);
            }
            length += more;
        }
        if start < records.len() {
            groups.push(start..records.len());
        }
        groups
    }
}

/// A local screener whose refusal stands, and a model for a sample of what it accepts.
#[derive(Clone, Debug)]
pub struct CompleteScreener {
    local: Arc<dyn Screener>,
    model: Arc<ChatModel>,
    /// The most groups of a contribution that the model is asked about.
    most: u32,
    /// The sample of one contribution. Without it, every call is a contribution.
    sample: Option<Arc<QuestionSample>>,
}

impl CompleteScreener {
    /// Creates a screener of both, which asks the model about at most `most` groups of the records of a contribution.
    pub fn new(local: Arc<dyn Screener>, model: Arc<ChatModel>, most: u32) -> Self {
        Self {
            local,
            model,
            most,
            sample: None,
        }
    }
}

#[async_trait]
impl Screener for CompleteScreener {
    fn judge(&self) -> Judge {
        Screener::judge(&*self.model)
    }

    fn for_contribution(&self) -> Option<Arc<dyn Screener>> {
        let sample = Some(Arc::new(QuestionSample::new(self.most)));
        Some(Arc::new(Self { sample, ..self.clone() }))
    }

    async fn screen(&self, records: &[&str]) -> Result<Vec<Opinion>, Unavailable> {
        let mut opinions = self.local.screen(records).await?;
        // One objection rejects a batch, so the model has nothing to add.
        if opinions.iter().all(|opinion| *opinion == Opinion::Acceptable) {
            let sample = self.sample.clone();
            let sample = sample.unwrap_or_else(|| Arc::new(QuestionSample::new(self.most)));
            opinions = self.model.screen_sample(records, &sample).await?;
        }
        Ok(opinions)
    }
}

/// Returns a text of our own, about which every model can answer.
fn own_text() -> Value {
    json!({
        "title": "An index on the date",
        "category": "performance-tuning",
        "sourceDeclaration": "Ran on a rented machine with 8 cores.",
        "body": "The median of 40 runs fell from 812 ms to 90 ms with an index on the date.",
    })
}

/// Returns what is shown beside the text of our own in place of what has this name.
fn own_beside(name: &str) -> Value {
    match name {
        CLAIMS => json!([{"claim": 1, "quote": "The median of 40 runs fell from 812 ms to 90 ms"}]),
        _ => json!([{"title": "An index on the name", "preview": "It changed nothing.", "similarity": 0.9}]),
    }
}

/// Returns the halves of a range.
fn halves(range: &std::ops::Range<usize>) -> [std::ops::Range<usize>; 2] {
    let middle = range.start.midpoint(range.end);
    [range.start..middle, middle..range.end]
}

/// Returns a sentence of the model on one line without its stop, or nothing if it may not be shown.
async fn vetted(sentence: &str) -> String {
    shown(sentence).await.trim_end_matches('.').to_owned()
}

/// Returns what the model says on one line, or nothing if it may not be shown.
async fn shown(said: &str) -> String {
    let plain = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let record = Value::from(plain.as_str()).to_string();
    let records = [record.as_str()];
    for screener in [&LocalScreener as &dyn Screener, &UnitScreener] {
        let accepted = screener.screen(&records).await;
        if !accepted.is_ok_and(|opinions| opinions == [Opinion::Acceptable]) {
            return String::new();
        }
    }
    plain
}
