//! The answers of a chat model: their schemas, and the rules by which one counts.
//!
//! Invariant: an answer that breaks a rule is no answer. Nothing in it is mended: a list that is too long is not cut, since
//! nothing says which of its claims are meant.

use operators::summary::SUMMARY_CHARACTERS;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::claims::{ClaimKind, ClaimSheet, ListedClaim, MAX_CLAIMS, MissingPart};
use super::passages::QuotedText;
use super::prompt::{CLAIMS, TextQuestion};

/// The most bytes of an answer's object.
const MOST_BYTES: usize = 64 << 10;
/// The most code points of a sentence.
const MOST_CHARACTERS: usize = 300;

/// An answer that repeats the number it was given.
pub(super) trait EchoedNumber: DeserializeOwned {
    /// Returns the number that the answer repeats.
    fn echo(&self) -> &str;

    /// Returns true if every member keeps its rules.
    fn is_sound(&self) -> bool;

    /// Returns true if it can be an answer to this question.
    fn fits(&self, _question: &TextQuestion<'_>) -> bool {
        true
    }
}

/// Returns the object of a completion, or `None` if it is not exactly what was asked for.
pub(super) fn read<T: EchoedNumber>(body: &[u8], echo: &str, question: &TextQuestion<'_>) -> Option<T> {
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
    (answer.echo() == echo && answer.is_sound() && answer.fits(question)).then_some(answer)
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

/// Claims of a text: the first answer of `score-2`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClaimList {
    echo: String,
    pub(super) claims: Vec<ListedClaim>,
}

impl ClaimList {
    pub(super) fn schema() -> Value {
        let kinds = ClaimKind::ALL.map(|(_, name)| name);
        let claim = object(&[
            ("quote", sentence()),
            ("kind", json!({"type": "string", "enum": kinds})),
            ("subject", sentence()),
            ("figure", sentence()),
            ("condition", sentence()),
            ("method", sentence()),
        ]);
        object(&[("echo", string()), ("claims", list(&claim))])
    }
}

impl EchoedNumber for ClaimList {
    fn echo(&self) -> &str {
        &self.echo
    }

    fn is_sound(&self) -> bool {
        let is_sound = |claim: &ListedClaim| {
            let members = [
                &claim.quote,
                &claim.subject,
                &claim.figure,
                &claim.condition,
                &claim.method,
            ];
            members.into_iter().all(|member| is_sentence(member))
        };
        self.claims.len() <= MAX_CLAIMS && self.claims.iter().all(is_sound)
    }

    fn fits(&self, question: &TextQuestion<'_>) -> bool {
        let part = |name: &str| question.text[name].as_str().unwrap_or_default();
        let text = QuotedText::of(part("title"), part("body"), part("sourceDeclaration"));
        ClaimSheet::is_read_from(&text, &self.claims)
    }
}

/// Answers about each claim: the second answer of `score-2`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TestList {
    echo: String,
    tests: Vec<ClaimTest>,
}

/// Answer about one claim: if a reader could test it, else what is missing.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimTest {
    claim: usize,
    missing: MissingPart,
}

impl TestList {
    pub(super) fn schema() -> Value {
        let parts = MissingPart::ALL.map(|(_, name, _)| name);
        let test = object(&[
            ("claim", json!({"type": "integer"})),
            ("missing", json!({"type": "string", "enum": parts})),
        ]);
        object(&[("echo", string()), ("tests", list(&test))])
    }

    /// Returns the missing parts in the order of the claims.
    pub(super) fn missing(&self) -> Vec<MissingPart> {
        self.tests.iter().map(|test| test.missing).collect()
    }
}

impl EchoedNumber for TestList {
    fn echo(&self) -> &str {
        &self.echo
    }

    fn is_sound(&self) -> bool {
        self.tests.len() <= MAX_CLAIMS
    }

    fn fits(&self, question: &TextQuestion<'_>) -> bool {
        numbers_each_claim(question, self.tests.iter().map(|test| test.claim))
    }
}

/// Answer about the whole text: the third of `score-2`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContradictionAnswer {
    echo: String,
    contradiction: bool,
    first: String,
    second: String,
}

impl ContradictionAnswer {
    pub(super) fn schema() -> Value {
        object(&[
            ("echo", string()),
            ("contradiction", json!({"type": "boolean"})),
            ("first", sentence()),
            ("second", sentence()),
        ])
    }

    /// Returns the two passages of which the model says that they contradict each other.
    pub(super) fn quotes(&self) -> Option<[&str; 2]> {
        self.contradiction
            .then_some([self.first.as_str(), self.second.as_str()])
    }
}

impl EchoedNumber for ContradictionAnswer {
    fn echo(&self) -> &str {
        &self.echo
    }

    fn is_sound(&self) -> bool {
        is_sentence(&self.first) && is_sentence(&self.second)
    }
}

/// Answers about each claim beside the nearest published unit: the fourth of `score-2`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AdditionList {
    echo: String,
    pub(super) additions: Vec<ClaimAddition>,
}

/// Answer about one claim: if it adds something, else the passage of the other unit that says it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClaimAddition {
    claim: usize,
    pub(super) adds: bool,
    pub(super) passage: String,
}

impl AdditionList {
    pub(super) fn schema() -> Value {
        let addition = object(&[
            ("claim", json!({"type": "integer"})),
            ("adds", json!({"type": "boolean"})),
            ("passage", sentence()),
        ]);
        object(&[("echo", string()), ("additions", list(&addition))])
    }
}

impl EchoedNumber for AdditionList {
    fn echo(&self) -> &str {
        &self.echo
    }

    fn is_sound(&self) -> bool {
        self.additions.len() <= MAX_CLAIMS && self.additions.iter().all(|addition| is_sentence(&addition.passage))
    }

    fn fits(&self, question: &TextQuestion<'_>) -> bool {
        numbers_each_claim(question, self.additions.iter().map(|addition| addition.claim))
    }
}

/// Returns true if the numbers are those of the claims that were shown, each once and in order.
fn numbers_each_claim(question: &TextQuestion<'_>, numbers: impl Iterator<Item = usize>) -> bool {
    let shown = question.beside.iter().find(|(name, _)| *name == CLAIMS);
    let count = shown.and_then(|(_, claims)| claims.as_array()).map_or(0, Vec::len);
    numbers.eq(1..=count)
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

fn list(item: &Value) -> Value {
    json!({"type": "array", "items": item, "maxItems": MAX_CLAIMS})
}
