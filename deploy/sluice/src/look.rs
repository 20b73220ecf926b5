//! A look at a whole file: what it is, by the flags of the command line and the answers of a person.
//!
//! Invariant: what is open is asked or ends the command with exit code 3. Nothing is guessed into a dataset.

use std::fs;

use anyhow::{Context as _, anyhow, bail};
use indicatif::ProgressBar;
use serde_json::Value;
use tabular::infer::{Inference, InferOptions, Question, Remedy};
use tabular::reading::Reading;
use types::Contract;

use crate::cli::ReadingArgs;
use crate::exit::{FileRefused, Unanswered, WrongUsage};
use crate::input::InputFile;
use crate::push::table;
use crate::terminal;

/// The most times that a person is asked.
const MAX_ANSWERS: usize = 100;

/// Returns the options of the flags. `contract` is that of the dataset that the file goes to.
pub(crate) fn options(arguments: &ReadingArgs, contract: Option<&Contract>) -> anyhow::Result<InferOptions> {
    let mut options = InferOptions {
        reading: arguments.reading.as_deref().map(saved_reading).transpose()?,
        contract: contract.cloned(),
        // The bytes are at hand, so all of them are looked at.
        max_text_bytes: u64::MAX,
        ..InferOptions::default()
    };
    for (flag, value) in arguments.flags() {
        options
            .set(flag, value)
            .map_err(|error| WrongUsage(error.to_string()))?;
    }
    Ok(options)
}

/// Reads a saved reading: the JSON of `infer`, or its member `reading`.
fn saved_reading(path: &std::path::Path) -> anyhow::Result<Reading> {
    let unread = || format!("the reading `{}` cannot be read", path.display());
    let text = fs::read(path).with_context(unread)?;
    let saved: Value = serde_json::from_slice(&text).map_err(|error| FileRefused::mark(error.into())).with_context(unread)?;
    let reading = saved.get("reading").cloned().unwrap_or(saved);
    let reading: Result<Reading, _> = serde_json::from_value(reading);
    reading.map_err(|error| FileRefused::mark(anyhow!("it is no reading: {error}"))).with_context(unread)
}

/// Looks at the whole file. Questions are in the answer.
pub(crate) async fn infer(input: &InputFile, options: &InferOptions, bar: &ProgressBar) -> anyhow::Result<Inference> {
    crate::files::infer(input, options, bar).await
}

/// Looks at the file until nothing is open: a person at the terminal answers the questions.
///
/// # Errors
/// [`Unanswered`] with the questions, if nobody answers.
pub(crate) async fn settled(
    input: &InputFile,
    options: &mut InferOptions,
    bar: &ProgressBar,
) -> anyhow::Result<Inference> {
    for _ in 0..MAX_ANSWERS {
        let inference = infer(input, options, bar).await?;
        bar.finish_and_clear();
        let Some(question) = inference.questions.first() else {
            return Ok(inference);
        };
        let Some(answer) = asked(question)? else {
            let questions = table::questions(&inference).join("\n");
            bail!(Unanswered(format!("{}: {questions}\nNothing was created.", input.name())));
        };
        let value = answer.value.as_deref().unwrap_or_default();
        options
            .set(answer.flag, value)
            .map_err(|error| WrongUsage(error.to_string()))?;
    }
    bail!(Unanswered(format!("{}: more than {MAX_ANSWERS} questions are open", input.name())))
}

/// Asks a person which of the flags is meant. `None` if nobody answers.
fn asked(question: &Question) -> anyhow::Result<Option<&Remedy>> {
    let answers = &question.remedies;
    if answers.is_empty() {
        return Ok(None);
    }
    let mut text = format!("{}\n", terminal::plain(&question.message));
    for (number, answer) in (1..).zip(answers) {
        let value = answer.value.as_deref().map_or_else(String::new, terminal::shown);
        text.push_str(&format!("  {number}  {} {value}\n", answer.flag));
    }
    text.push_str(&format!("Which one, 1 to {}? Enter ends. ", answers.len()));
    let typed = terminal::ask(&text)?;
    let number = typed.and_then(|typed| typed.parse::<usize>().ok());
    Ok(number.and_then(|number| answers.get(number.checked_sub(1)?)))
}

/// Returns the contract for the records of a file.
pub(crate) fn contract_of(inference: &Inference) -> anyhow::Result<Contract> {
    let contract = inference.contract.clone();
    contract.ok_or_else(|| FileRefused::mark(anyhow!("no contract can be made of the file")))
}
