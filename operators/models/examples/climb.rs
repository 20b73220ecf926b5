//! Attackers of the rubric who see no more than its verdict, as `POST /knowledge/validate` gives it, and add and move
//! sentences of invented evidence in junk until it is published.
//!
//! Invariant: the same texts and seeds give the same shares.
//!
//! ```text
//! cargo run --release -p models --example climb -- [FOLDER] [CALLS]      200 calls for each text
//! ```
//!
//! `FOLDER` has `texts.jsonl`, which `corpus/fetch.py` writes; without one the project's vague texts are attacked.

#![expect(clippy::print_stdout, reason = "an example prints")]

#[path = "../tests/corpus/climber.rs"]
mod climber;
#[path = "../tests/corpus/gaming.rs"]
mod gaming;
#[path = "../tests/corpus/texts.rs"]
mod texts;

use std::collections::BTreeSet;
use std::env;
use std::error::Error;
use std::path::Path;

use models::rubric::{INTERCEPT, RUBRIC_NAME, WEIGHTS, measure, weighed};
use types::knowledge::UnitText;

use self::climber::climbed;
use self::gaming::passage_copies;
use self::texts::{LabelledText, TRAINING_HALF, gaming_sentences, project_texts, stranger_texts};

const CALLS: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args().nth(1);
    let calls = env::args().nth(2).map_or(Ok(CALLS), |text| text.parse())?;
    for half in [TRAINING_HALF, "held"] {
        let sentences = gaming_sentences(half)?;
        let project: Vec<LabelledText> = project_texts(half)?;
        let mut sets = vec![("the project's", project)];
        if let Some(folder) = &folder {
            sets.push(("strangers", stranger_texts(Path::new(folder), half)?));
        }
        for (name, texts) in sets {
            let mut domains = BTreeSet::new();
            let (mut junk, mut plain, mut published, mut spent, mut adorned, mut copies) = (0, 0, 0, 0, 0, 0);
            for text in texts.into_iter().filter(|text| text.junk && text.label != "good") {
                junk += 1;
                domains.insert(text.domain.clone());
                let passes = |body: &str| {
                    let unit = UnitText {
                        title: text.title.clone(),
                        body: body.to_owned(),
                        category: text.category.clone(),
                        source_declaration: text.source.clone(),
                    };
                    weighed(&measure(&unit), WEIGHTS, INTERCEPT).total >= 0.0
                };
                for copy in passage_copies(&text, &sentences) {
                    copies += 1;
                    adorned += usize::from(passes(&copy.body));
                }
                if passes(&text.body) {
                    plain += 1;
                    continue;
                }
                let of_language = sentences.iter().filter(|sentence| sentence.language == text.language);
                let own: Vec<String> = of_language.flat_map(|sentence| sentence.about(&text.title)).collect();
                let own: Vec<&str> = own.iter().map(String::as_str).collect();
                if let Some((_, used)) = climbed(&text.body, &own, calls, &text.id, passes) {
                    published += 1;
                    spent += used;
                }
            }
            println!(
                "{RUBRIC_NAME}, {name}, {half}: {junk} junk texts of {} domains; {plain} are published as they are, {adorned} of {copies} \
                 with one passage, {published} of the rest after at most {calls} calls ({} on average)",
                domains.len(),
                spent.checked_div(published).unwrap_or(0)
            );
        }
    }
    Ok(())
}
