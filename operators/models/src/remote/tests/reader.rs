//! A model that reads well: it lists what a text claims, by rules.

use serde_json::{Value, json};

/// The axes of [`super::BODY`] by a sound model: one claim of five.
pub(super) const SOUND: [u8; 4] = [20; 4];

/// A claim of [`super::BODY`] with all its parts.
pub(super) fn listed(quote: &str, kind: &str) -> Value {
    json!({
        "quote": quote, "kind": kind, "subject": "median", "figure": "812 ms", "condition": "on 8 cores",
        "method": "We ran 40 queries",
    })
}

/// Returns the name of the schema that a request asks for.
pub(super) fn schema_of(request: &Value) -> String {
    if let Some(name) = request["response_format"]["json_schema"]["name"].as_str() {
        return name.to_owned();
    }
    // The schema is among the instructions.
    let system = request["messages"][0]["content"].as_str().unwrap();
    let (_, schema) = system.rsplit_once("The schema: ").unwrap();
    let schema: Value = serde_json::from_str(schema).unwrap();
    let member = ["claims", "tests", "contradiction", "additions"]
        .into_iter()
        .find(|member| schema["properties"].get(member).is_some());
    format!("score_2_{}", member.unwrap())
}

/// Returns what a request shows of this name.
pub(super) fn shown(request: &Value, name: &str) -> Value {
    let data = request["messages"][1]["content"].as_str().unwrap();
    let line = data
        .lines()
        .find(|line| line.starts_with(name) && line.ends_with(['}', ']']));
    let line = line.and_then(|line| line.splitn(3, ' ').nth(2));
    serde_json::from_str(line.unwrap_or("[]")).unwrap()
}

fn unit_of(request: &Value) -> Value {
    let data = request["messages"][1]["content"].as_str().unwrap();
    serde_json::from_str(data.lines().nth(1).unwrap()).unwrap()
}

/// Answers like a model that reads well: claims are sentences with a figure or with code, and those of a text whose author
/// says how he knows can be tested.
pub(super) fn competent(request: &Value) -> Value {
    let unit = unit_of(request);
    let source = unit["sourceDeclaration"].as_str().unwrap();
    let first_hand = [
        "own", "our", "ran", "tried", "us on", "we ", "직접", "당사", "사내", "실제", "자체", "시험",
    ];
    let is_first_hand = source.contains(|c: char| c.is_ascii_digit())
        || first_hand.iter().any(|word| source.to_lowercase().contains(word));
    let count = shown(request, "CLAIMS").as_array().map_or(0, Vec::len);
    match schema_of(request).as_str() {
        "score_2_claims" => {
            let method = if is_first_hand {
                source.chars().take(200).collect()
            } else {
                String::new()
            };
            let claims = sentences(unit["body"].as_str().unwrap());
            let claims = claims.iter().filter_map(|sentence| claim_of(sentence, &method));
            json!({"claims": claims.take(20).collect::<Vec<_>>()})
        }
        "score_2_tests" => {
            let missing = if is_first_hand { "nothing" } else { "method" };
            json!({"tests": (1..=count).map(|at| json!({"claim": at, "missing": missing})).collect::<Vec<_>>()})
        }
        "score_2_contradiction" => json!({"contradiction": false, "first": "", "second": ""}),
        _ => {
            let adds = (1..=count).map(|at| json!({"claim": at, "adds": true, "passage": ""}));
            json!({"additions": adds.collect::<Vec<_>>()})
        }
    }
}

/// Returns the sentences, items and rows of a body.
pub(super) fn sentences(body: &str) -> Vec<String> {
    let lines = body.lines().filter(|line| !line.starts_with('#'));
    lines
        .flat_map(|line| line.split_inclusive(". "))
        .map(|text| text.trim().to_owned())
        .collect()
}

/// The claim of a sentence, if it has one.
fn claim_of(sentence: &str, method: &str) -> Option<Value> {
    let is_item = sentence.starts_with(['-', '*']) || sentence.chars().next()?.is_ascii_digit();
    let text = sentence.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | '*' | '.' | ' '));
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let figure = text
        .split_whitespace()
        .map(bare)
        .find(|word| word.contains(|c: char| c.is_ascii_digit()));
    let has_code = text.contains('`');
    if figure.is_none() && !has_code {
        return None;
    }
    let words = text
        .split_whitespace()
        .map(bare)
        .filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
    let subject = words.max_by_key(|word| word.chars().count()).unwrap_or_default();
    let is_step = is_item && has_code;
    let quote: String = text.chars().take(250).collect();
    Some(json!({
        "quote": quote, "kind": if is_step { "step" } else { "measured" }, "subject": subject,
        "figure": figure.filter(|_| !is_step).unwrap_or_default(), "condition": "", "method": method,
    }))
}
