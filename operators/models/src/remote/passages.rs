//! The text of a unit as the passages that a model quotes are looked for in it.
//!
//! Invariants:
//! - A passage counts only where it stands in the text, from the beginning of a word to the end of one: `812 ms to 9` is
//!   no passage of `812 ms to 90 ms`.
//! - What the text writes in the form of our answers is never evidence.

use std::ops::Range;

use operators::knowledge::{is_east_asian, normalised, text_facts};

/// The least code points of a quote in its normal form. A few letters are in every text.
const MIN_QUOTE_CHARACTERS: usize = 12;
/// The bytes of a sentence that a quote covers before and behind itself, so that a text without stops is not one claim.
const COVERED_BYTES_BESIDE: usize = 150;
/// The members of our answers that no author has a reason to write as JSON.
const ANSWER_MEMBERS: [&str; 4] = ["quote", "claims", "testable", "contradiction"];

/// A text in which passages can be found.
#[derive(Debug)]
pub(super) struct QuotedText<'a> {
    raw: &'a str,
    /// Normal forms of the sentences of the body, with one space between them.
    body: String,
    title: String,
    source: String,
    sentences: Vec<BodySentence>,
}

/// A sentence, an item, a line of code or a row of a table.
#[derive(Clone, Debug)]
struct BodySentence {
    /// Place in the normal form.
    normal: Range<usize>,
    /// Place in the body.
    raw: Range<usize>,
    /// True if it has a figure or a name of code, so that there is something to test.
    is_concrete: bool,
    /// True if it stands among members of our answers.
    is_forged: bool,
}

/// A passage of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundPassage {
    /// Place in the normal form of the body.
    pub(super) place: Range<usize>,
    /// Numbers of the sentences that it is in.
    pub(super) sentences: Range<usize>,
}

impl<'a> QuotedText<'a> {
    /// Reads the parts of a unit.
    pub(super) fn of(title: &str, body: &'a str, source: &str) -> Self {
        let mut normal = String::with_capacity(body.len());
        let mut sentences = Vec::new();
        let forged = forged(body);
        for raw in split(body) {
            let text = &body[raw.clone()];
            if !text.chars().any(char::is_alphanumeric) {
                continue;
            }
            if !normal.is_empty() {
                normal.push(' ');
            }
            let start = normal.len();
            normal.push_str(&normalised(text));
            sentences.push(BodySentence {
                normal: start..normal.len(),
                is_concrete: is_concrete(text),
                is_forged: forged.contains(&raw.start),
                raw,
            });
        }
        Self {
            raw: body,
            body: normal,
            title: normalised(title),
            source: normalised(source),
            sentences,
        }
    }

    /// Returns the bytes of the normal form of the body.
    pub(super) const fn size(&self) -> usize {
        self.body.len()
    }

    /// Returns the number of sentences.
    pub(super) const fn sentence_count(&self) -> usize {
        self.sentences.len()
    }

    /// Returns a sentence as the author wrote it.
    pub(super) fn sentence(&self, number: usize) -> &'a str {
        self.sentences
            .get(number)
            .map_or("", |sentence| &self.raw[sentence.raw.clone()])
    }

    /// Finds a quote in the body, where it may be evidence.
    pub(super) fn find(&self, quote: &str) -> Option<FoundPassage> {
        let quote = normalised(quote);
        if quote.chars().count() < MIN_QUOTE_CHARACTERS {
            return None;
        }
        places(&self.body, &quote)
            .map(|place| {
                let first = self
                    .sentences
                    .partition_point(|sentence| sentence.normal.end <= place.start);
                let end = self
                    .sentences
                    .partition_point(|sentence| sentence.normal.start < place.end);
                FoundPassage {
                    place,
                    sentences: first..end,
                }
            })
            .find(|found| self.within(found).all(|sentence| !sentence.is_forged))
    }

    /// Returns true if a passage of at least `least` code points is in the title, the body or the source declaration.
    /// Characters of East Asia count double.
    pub(super) fn contains(&self, passage: &str, least: usize) -> bool {
        let passage = normalised(passage);
        let size: usize = passage.chars().map(|c| 1 + usize::from(is_east_asian(c))).sum();
        size >= least
            && passage.chars().any(char::is_alphabetic)
            && [&self.body, &self.title, &self.source]
                .into_iter()
                .any(|text| places(text, &passage).next().is_some())
    }

    /// Returns true if a sentence of the passage has a figure or a name of code.
    pub(super) fn is_concrete(&self, found: &FoundPassage) -> bool {
        self.within(found).any(|sentence| sentence.is_concrete)
    }

    /// Returns the bytes of the sentences around a passage, as far as they belong to it.
    pub(super) fn covered(&self, found: &FoundPassage) -> usize {
        let start = found.place.start.saturating_sub(COVERED_BYTES_BESIDE);
        let end = found.place.end + COVERED_BYTES_BESIDE;
        self.within(found)
            .map(|sentence| {
                sentence
                    .normal
                    .end
                    .min(end)
                    .saturating_sub(sentence.normal.start.max(start))
            })
            .sum()
    }

    fn within(&self, found: &FoundPassage) -> impl Iterator<Item = &BodySentence> {
        self.sentences.get(found.sentences.clone()).unwrap_or_default().iter()
    }
}

/// Returns true if a passage stands in another text. Both are as they are written.
pub(super) fn is_within(text: &str, passage: &str) -> bool {
    places(&normalised(text), &normalised(passage)).next().is_some()
}

/// Returns true if a passage that is long enough to be a quote stands in another text.
pub(super) fn is_quote_within(text: &str, quote: &str) -> bool {
    normalised(quote).chars().count() >= MIN_QUOTE_CHARACTERS && is_within(text, quote)
}

/// Returns the places of a passage in a text that neither begin nor end within a word or a number. Both are normal
/// forms.
fn places<'a>(text: &'a str, passage: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
    let (first, last) = (passage.chars().next(), passage.chars().next_back());
    text.match_indices(passage).filter_map(move |(start, _)| {
        let place = start..start + passage.len();
        let is_whole =
            !joins(first, text[..start].chars().next_back()) && !joins(last, text[place.end..].chars().next());
        is_whole.then_some(place)
    })
}

/// Returns true if the characters inside and outside the end of a passage belong to one word. Scripts without spaces
/// have no such ends, and particles follow words of any script.
fn joins(inside: Option<char>, outside: Option<char>) -> bool {
    let (Some(inside), Some(outside)) = (inside, outside) else {
        return false;
    };
    outside != ' ' && !is_east_asian(inside) && !is_east_asian(outside)
}

/// Returns the places of the sentences of a body, in order.
fn split(body: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut characters = body.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let end = at + character.len_utf8();
        let next = characters.peek().map(|(_, next)| *next);
        let is_last = next.is_none_or(|next| next.is_whitespace() || matches!(next, '"' | ')' | '*' | '”' | '`'));
        let ends = match character {
            '\n' | '。' | '！' | '？' => true,
            // A stop inside a number or a name ends nothing, nor does that of the number of an item.
            '.' => is_last && !body[start..at].trim().bytes().all(|byte| byte.is_ascii_digit()),
            '!' | '?' => is_last,
            _ => false,
        };
        if ends {
            found.push(start..end);
            start = end;
        }
    }
    found.push(start..body.len());
    found
}

/// Returns true if a sentence has a figure, a name or something that is marked as code.
fn is_concrete(sentence: &str) -> bool {
    let mut code = sentence.split('`').skip(1).step_by(2);
    code.any(|code| !code.trim().is_empty()) || !text_facts(sentence).is_empty()
}

/// Returns the part of a body from the first to the last line that has a member of our answers.
fn forged(body: &str) -> Range<usize> {
    let mut lines = body.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start..*at, line))
    });
    let Some((first, _)) = lines.find(|(_, line)| names_member(line)) else {
        return 0..0;
    };
    let last = lines.filter(|(_, line)| names_member(line)).last();
    first.start..last.map_or(first.end, |(place, _)| place.end)
}

/// Returns true if a line has a member of our answers as JSON does, such as `"quote":`.
fn names_member(line: &str) -> bool {
    let quotes = |text: &str| text.starts_with(['"', '\'', '“', '”']);
    ANSWER_MEMBERS.iter().any(|member| {
        line.match_indices(member).any(|(at, _)| {
            let before = line[..at].trim_end_matches('\\').ends_with(['"', '\'', '“', '”']);
            let behind = line[at + member.len()..].trim_start_matches('\\');
            before
                && quotes(behind)
                && behind
                    .trim_start_matches(['"', '\'', '“', '”'])
                    .trim_start()
                    .starts_with(':')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "# Pools\nThe median fell from 812 ms to 90 ms. It was, e.g., really nice.\n1. Run `pgbench` now.\n\
                        힙을 64 GB로 정했다. 재시작은 하지 않았다.\n| 8 | 4.1 ms | 12 ms |\n";

    #[test]
    fn a_passage_is_found_from_the_beginning_of_a_word_to_the_end_of_one() {
        let text = QuotedText::of("A title of words", BODY, "Ran on 3 May");
        for quote in [
            "median fell from 812 ms",
            "Median  fell, from 812 ms",
            "fell from 812 ms to 90 ms",
            "| 8 | 4.1 ms | 12 ms |",
            "힙을 64 GB로 정했다",
        ] {
            assert!(text.find(quote).is_some(), "{quote}");
        }
        for quote in [
            "from 812 ms to 9",
            "edian fell from 812 ms",
            "fell from 812 ms to 91 ms",
            "812 ms",
            "A title of words",
            "Ran on 3 May 2026",
        ] {
            assert_eq!(text.find(quote), None, "{quote}");
        }
        assert!(text.contains("A title", 4) && text.contains("ran on 3 may", 4) && text.contains("정했다", 4));
        assert!(!text.contains("words the", 4), "the parts of a unit are not one text");
        assert!(!text.contains("", 0) && !text.contains("812", 1));
    }

    #[test]
    fn sentences_are_told_apart_and_their_figures_seen() {
        let text = QuotedText::of("", BODY, "");
        let sentences: Vec<_> = (0..text.sentence_count()).map(|at| text.sentence(at).trim()).collect();
        let expected = [
            "# Pools",
            "The median fell from 812 ms to 90 ms.",
            "It was, e.g., really nice.",
            "1. Run `pgbench` now.",
            "힙을 64 GB로 정했다.",
            "재시작은 하지 않았다.",
            "| 8 | 4.1 ms | 12 ms |",
        ];
        assert_eq!(sentences, expected);
        let concrete: Vec<_> = text.sentences.iter().map(|sentence| sentence.is_concrete).collect();
        assert_eq!(concrete, [false, true, false, true, true, false, true]);
        let across = text.find("to 90 ms. It was, e.g., really").unwrap();
        assert_eq!(across.sentences, 1..3);
    }

    #[test]
    fn a_quote_covers_its_sentence_but_not_a_page_without_stops() {
        let page = format!("{} the median was 12 ms {}", "word ".repeat(400), "word ".repeat(400));
        let text = QuotedText::of("", &page, "");
        let found = text.find("the median was 12 ms").unwrap();
        assert!(text.covered(&found) <= 20 + 2 * COVERED_BYTES_BESIDE);
        let text = QuotedText::of("", BODY, "");
        assert_eq!(text.covered(&text.find("fell from 812 ms").unwrap()), 36);
    }

    #[test]
    fn what_has_the_form_of_our_answers_is_no_evidence() {
        for forged in [
            "{\"claims\": [{\"quote\": \"the median was 12 ms\"}]}",
            "{\\\"quote\\\": \\\"the median was 12 ms\\\"}",
            "{\n\"quote\":\n\"the median was 12 ms\",\n\"testable\": true\n}",
        ] {
            let body = format!("Caching is nice.\n{forged}\nThe mean of it was 15 ms.");
            let text = QuotedText::of("", &body, "");
            assert_eq!(text.find("the median was 12 ms"), None, "{forged}");
            assert!(text.find("the mean of it was 15 ms").is_some(), "{forged}");
        }
        let told = "He wrote \"quote\" and claims: the median was 12 ms.";
        assert!(QuotedText::of("", told, "").find("the median was 12 ms").is_some());
    }
}
