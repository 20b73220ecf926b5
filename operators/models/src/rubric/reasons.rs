//! The reasons of a refusal: what is missing, quoted from the text, and fitting to its kind.
//!
//! Invariant: nothing is asked for that is there, and a quotation is one line of at most [`QUOTED_CHARACTERS`].

use super::features::{MeasuredText, TextKind};

/// The most characters that are quoted of a sentence.
const QUOTED_CHARACTERS: usize = 120;
/// The numbers of sentences that are tried, when it is said how many would need evidence.
const TRIED_SENTENCES: [usize; 9] = [1, 2, 3, 4, 6, 8, 12, 16, 24];
/// The most reasons of a refusal.
const MAX_REASONS: usize = 3;

/// Returns the least number of sentences that would need evidence, among those that are tried.
pub(super) fn needed(bare: usize, passes: impl Fn(usize) -> bool) -> Option<usize> {
    let tried = TRIED_SENTENCES.into_iter().filter(|count| *count <= bare);
    tried.into_iter().find(|count| passes(*count))
}

/// Returns a sentence of the author in one short line.
pub(super) fn quoted(text: &str) -> String {
    let shown = text.chars().filter(|c| !operators::is_invisible(u32::from(*c)));
    let plain: String = shown
        .map(|c| {
            if c.is_control() || matches!(c, '«' | '»') {
                ' '
            } else {
                c
            }
        })
        .collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    let line = words.join(" ");
    let mut cut: String = line.chars().take(QUOTED_CHARACTERS).collect();
    if cut.len() < line.len() {
        cut.pop();
        cut.push('…');
    }
    format!("«{cut}»")
}

/// Returns the reasons of a refusal, the weightiest first.
pub(super) fn reasons(text: &MeasuredText, needed: Option<usize>) -> Vec<String> {
    let features = &text.features;
    let mut reasons = Vec::new();
    if text.sentences == 0 {
        reasons.push("There is no sentence outside of headings, code and tables: say what they show.".to_owned());
    }
    if let Some(first) = &text.first_bare
        && (text.bare * 4 > text.sentences || text.talk > 0)
    {
        let (bare, all, first) = (text.bare, text.sentences, quoted(first));
        let verb = if bare == 1 { "holds" } else { "hold" };
        reasons.push(format!(
            "{bare} of {all} sentences {verb} no figure, name, cause or command; the first is {first}."
        ));
        if let Some(needed) = needed {
            let (sentences, verb) = if needed == 1 {
                ("sentence", "needs")
            } else {
                ("sentences", "need")
            };
            reasons.push(format!(
                "About {needed} {sentences} more {verb} evidence that belongs to the subject."
            ));
        }
    }
    if let Some(stray) = &text.first_stray
        && text.bare > 0
        && features.coherent < 0.6
    {
        reasons.push(format!(
            "The evidence does not belong to the rest: {} of its sentences share no word with the title or with what is \
             claimed; the first is {}.",
            text.stray,
            quoted(stray)
        ));
    }
    if let Some(talk) = &text.first_talk
        && text.talk * 4 > text.sentences
        && text.first_talk != text.first_bare
    {
        reasons.push(format!(
            "{} sentences advise or praise and give no reason, such as {}.",
            text.talk,
            quoted(talk)
        ));
    }
    if features.boiler >= 0.5 {
        reasons.push("Much of the text is about licenses, thanks or contributors.".to_owned());
    } else if features.links >= 0.4 {
        reasons.push("Most of the text is links: say here what a reader would find there.".to_owned());
    } else if features.template >= 0.5 {
        reasons.push("It reads like a template or a sample: fill in what happened.".to_owned());
    } else if features.repeat >= 0.3 {
        reasons.push("It repeats itself.".to_owned());
    }
    reasons.extend(of_kind(text));
    if reasons.is_empty() {
        reasons.push(
            "Too little of it is evidence: say what was seen, on what and under which condition, sentence by sentence."
                .to_owned(),
        );
    }
    reasons.truncate(MAX_REASONS);
    reasons
}

/// Returns what a text of this kind needs and lacks.
fn of_kind(text: &MeasuredText) -> Option<String> {
    match text.kind {
        TextKind::Measurement => text.first_loose.as_ref().map(|loose| {
            format!(
                "{} gives a figure without what it is of or the condition it holds under.",
                quoted(loose)
            )
        }),
        TextKind::Procedure if !text.has_commands && !text.has_names => {
            Some("The steps name no command, setting or file.".to_owned())
        }
        TextKind::Limit if !text.has_figures && !text.has_names => {
            Some("A limit without its figure or the name of what is limited cannot be checked.".to_owned())
        }
        TextKind::Incident if !text.has_cause => Some("It tells of a failure and not of its cause.".to_owned()),
        TextKind::Migration if !text.has_versions => {
            Some("It tells of a change and not from which version to which.".to_owned())
        }
        _ => None,
    }
}

/// Returns one request for each axis: accuracy, novelty, reproducibility, specificity.
pub(super) fn fixes(text: &MeasuredText) -> [String; 4] {
    let features = &text.features;
    let accuracy = match text.kind {
        TextKind::Measurement if features.conditioned < 0.8 => "say under which condition each figure holds",
        TextKind::Incident if !text.has_cause => "say what caused the failure",
        _ if features.coherent < 0.6 => "give evidence for what the text claims",
        _ => "support more of the sentences by evidence",
    };
    let novelty = if features.boiler + features.stock + features.market > 0.5 {
        "leave out what any text says"
    } else {
        "say what you found yourself"
    };
    let reproducibility = match text.kind {
        TextKind::Procedure if !text.has_commands => "name the commands, settings or files of the steps",
        TextKind::Migration if !text.has_versions => "name the versions before and after",
        _ if !text.has_environment => "name the version and the machine",
        _ => "say how a reader does it again",
    };
    let specificity = if features.vague + features.talk > 0.4 {
        "replace general advice by what you saw"
    } else {
        "name the settings, errors or figures in more of the sentences"
    };
    [accuracy, novelty, reproducibility, specificity].map(ToOwned::to_owned)
}
