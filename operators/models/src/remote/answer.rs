//! The answers of a chat model: their schemas, and the rules by which one counts.
//!
//! Invariant: an answer that breaks a rule is no answer. Nothing in it is mended, since a score of 95 that is cut to the
//! range would be a 10.

use operators::summary::SUMMARY_CHARACTERS;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The most bytes of an answer's object.
const MOST_BYTES: usize = 64 << 10;
/// The most code points of a sentence.
const MOST_CHARACTERS: usize = 300;
/// Greatest score that an axis may have.
const MOST_SCORE: f64 = 10.0;

/// An answer that repeats the number it was given.
pub(super) trait EchoedNumber: DeserializeOwned {
    /// Returns the number that the answer repeats.
    fn echo(&self) -> &str;

    /// Returns true if every member keeps its rules.
    fn is_sound(&self) -> bool;
}

/// Returns the object of a completion, or `None` if it is not exactly what was asked for.
pub(super) fn read<T: EchoedNumber>(body: &[u8], echo: &str) -> Option<T> {
    let completion: ChatCompletion = serde_json::from_slice(body).ok()?;
    // Two answers are none: nothing says which of them is meant.
    let [choice] = completion.choices.as_slice() else {
        return None;
    };
    // An answer that ended at the limit of tokens, or that a filter cut, may parse and still lack its
    // end.
    if choice.finish_reason.as_deref() != Some("stop") {
        return None;
    }
    let text = choice.message.content.as_deref()?.trim();
    // A list would be read as the members in their order.
    if text.len() > MOST_BYTES || !text.starts_with('{') {
        return None;
    }
    // The whole text must be the object: prose around it is a model that talks, perhaps because it was
    // told to.
    let answer: T = serde_json::from_str(text).ok()?;
    // The number stands behind the text, so a verdict written into the text beforehand cannot have it.
    (answer.echo() == echo && answer.is_sound()).then_some(answer)
}

#[derive(Debug, Deserialize)]
struct ChatCompletion {
    choices: Vec<AnswerChoice>,
}

#[derive(Debug, Deserialize)]
struct AnswerChoice {
    finish_reason: Option<String>,
    message: ChatMessage,
}

#[derive(Debug, Deserialize)]
struct ChatMessage {
    content: Option<String>,
}

/// Answer of a model in the format `score-1`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Score {
    echo: String,
    accuracy: AxisScore,
    novelty: AxisScore,
    reproducibility: AxisScore,
    specificity: AxisScore,
    // The language is computed from the text. The member is asked for because the schema of the format has it.
    language: String,
}

/// The score of one axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AxisScore {
    pub(super) score: f64,
    pub(super) evidence: String,
    pub(super) fix: String,
}

impl Score {
    /// Returns the axes in the order of `Axis::ALL`.
    pub(super) const fn axes(&self) -> [&AxisScore; 4] {
        [&self.accuracy, &self.novelty, &self.reproducibility, &self.specificity]
    }

    /// Returns the schema with the axes in this order.
    pub(super) fn schema(axes: &[&str]) -> Value {
        let axis = object(&[("score", number()), ("evidence", sentence()), ("fix", sentence())]);
        let mut members = vec![("echo", string())];
        members.extend(axes.iter().map(|name| (*name, axis.clone())));
        members.push(("language", string()));
        object(&members)
    }
}

impl EchoedNumber for Score {
    fn echo(&self) -> &str {
        &self.echo
    }

    fn is_sound(&self) -> bool {
        let is_sound = |axis: &AxisScore| {
            axis.score.is_finite()
                && (0.0..=MOST_SCORE).contains(&axis.score)
                && is_sentence(&axis.evidence)
                && is_sentence(&axis.fix)
        };
        self.axes().into_iter().all(is_sound) && is_sentence(&self.language)
    }
}

/// The verdict of `screen-1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ScreenVerdict {
    Acceptable,
    Objectionable,
}

/// The rule that a text breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ScreenCode {
    Spam,
    Secret,
    Injection,
    Unlawful,
    Hate,
    Sexual,
    OffPurpose,
    None,
}

/// Answer of a model in the format `screen-1`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScreenAnswer {
    echo: String,
    pub(super) verdict: ScreenVerdict,
    pub(super) code: ScreenCode,
    pub(super) detail: String,
}

impl ScreenAnswer {
    pub(super) fn schema() -> Value {
        let codes = [
            "spam",
            "secret",
            "injection",
            "unlawful",
            "hate",
            "sexual",
            "off_purpose",
            "none",
        ];
        object(&[
            ("echo", string()),
            (
                "verdict",
                json!({"type": "string", "enum": ["acceptable", "objectionable"]}),
            ),
            ("code", json!({"type": "string", "enum": codes})),
            ("detail", sentence()),
        ])
    }
}

impl EchoedNumber for ScreenAnswer {
    fn echo(&self) -> &str {
        &self.echo
    }

    fn is_sound(&self) -> bool {
        // A verdict and a rule that contradict each other are no answer.
        (self.verdict == ScreenVerdict::Acceptable) == (self.code == ScreenCode::None) && is_sentence(&self.detail)
    }
}

/// Answer of a model in the format `distinct-1`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Distinct {
    echo: String,
    #[serde(rename = "distinct")]
    pub(super) adds_something: bool,
    pub(super) adds: String,
}

impl Distinct {
    pub(super) fn schema() -> Value {
        object(&[
            ("echo", string()),
            ("distinct", json!({"type": "boolean"})),
            ("adds", sentence()),
        ])
    }
}

impl EchoedNumber for Distinct {
    fn echo(&self) -> &str {
        &self.echo
    }

    fn is_sound(&self) -> bool {
        is_sentence(&self.adds)
    }
}

/// Answer of a model in the format `summary-1`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SummaryAnswer {
    echo: String,
    pub(super) summary: String,
}

impl SummaryAnswer {
    pub(super) fn schema() -> Value {
        object(&[
            ("echo", string()),
            ("summary", json!({"type": "string", "maxLength": SUMMARY_CHARACTERS})),
        ])
    }
}

impl EchoedNumber for SummaryAnswer {
    fn echo(&self) -> &str {
        &self.echo
    }

    fn is_sound(&self) -> bool {
        self.summary.chars().count() <= SUMMARY_CHARACTERS
    }
}

fn is_sentence(text: &str) -> bool {
    text.chars().count() <= MOST_CHARACTERS
}

fn object(members: &[(&str, Value)]) -> Value {
    let names: Vec<_> = members.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<String, Value> = members
        .iter()
        .map(|(name, schema)| ((*name).to_owned(), schema.clone()))
        .collect();
    // The strict mode of the chat API wants every member required and no others, or refuses the schema.
    json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
}

fn string() -> Value {
    json!({"type": "string"})
}

fn sentence() -> Value {
    json!({"type": "string", "maxLength": MOST_CHARACTERS})
}

fn number() -> Value {
    json!({"type": "number", "minimum": 0, "maximum": MOST_SCORE})
}
