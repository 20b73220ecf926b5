//! The body of a letter as plain text.
//!
//! Invariant: a word is never broken, so that an address stays whole.

use super::{CHOICE, FIXED, LetterBlock, LetterBody, LetterEnding};

/// Most characters of a line, as long as no word is longer.
const LINE_CHARS: usize = 70;

/// Returns the letter as text.
pub(super) fn page(body: &LetterBody, title: &str, home: &str) -> String {
    let mut lines = underlined(title, "=");
    for block in &body.blocks {
        lines.push(String::new());
        lines.extend(written(block));
    }
    lines.push(String::new());
    // The mark of a signature in mail (RFC 3676 section 4.3).
    lines.push("-- ".to_owned());
    lines.push(format!("Sluice, {home}"));
    match &body.ending {
        LetterEnding::Open => lines.extend(wrapped(&body.reason, "", "")),
        LetterEnding::Fixed => lines.extend(wrapped(&format!("{} {FIXED}", body.reason), "", "")),
        LetterEnding::Choice(address) => {
            lines.extend(wrapped(&body.reason, "", ""));
            lines.extend([format!("{CHOICE}:"), address.clone()]);
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

fn written(block: &LetterBlock) -> Vec<String> {
    match block {
        LetterBlock::Paragraph(sentences) | LetterBlock::Note(sentences) => wrapped(sentences, "", ""),
        LetterBlock::Heading(words) => underlined(words, "-"),
        LetterBlock::Quote(text) => text.lines().flat_map(|line| wrapped(line, "  > ", "  > ")).collect(),
        LetterBlock::Facts(facts) => {
            let widest = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
            let below = " ".repeat(widest + 5);
            let line = |(name, value): &(String, String)| {
                let name = format!("{name}:");
                wrapped(value, &format!("  {name:<0$}", widest + 3), &below)
            };
            facts.iter().flat_map(line).collect()
        }
        LetterBlock::Items(items) => items.iter().flat_map(|item| wrapped(item, "- ", "  ")).collect(),
        LetterBlock::Button(words, address) => vec![format!("{words}:"), address.clone()],
    }
}

fn underlined(words: &str, sign: &str) -> Vec<String> {
    let lines = wrapped(words, "", "");
    let widest = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let rule = sign.repeat(widest);
    lines.into_iter().chain([rule]).collect()
}

/// Returns the words of a text in lines, the first of which begins with `first`, the others with `others`.
fn wrapped(text: &str, first: &str, others: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut length, mut is_begun) = (first.to_owned(), first.chars().count(), false);
    for word in text.split_whitespace() {
        let more = word.chars().count();
        if is_begun && length + 1 + more > LINE_CHARS {
            lines.push(line);
            (line, length, is_begun) = (others.to_owned(), others.chars().count(), false);
        }
        if is_begun {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += more;
        is_begun = true;
    }
    if !is_begun {
        // Without a word there is nothing behind the begin.
        line.truncate(line.trim_end().len());
    }
    lines.push(line);
    lines
}
