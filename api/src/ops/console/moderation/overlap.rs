//! Sentences that two texts share.
//!
//! Invariant: the time is linear in the length of both texts.

use std::collections::HashSet;

use pages::console::TextPiece;

/// Fewest words of a sentence that is compared. Shorter ones, such as headings, are in many texts.
const MIN_WORDS: usize = 4;

/// Sentences of a text in a form in which copies are equal.
#[derive(Debug, Default)]
pub(super) struct Sentences(HashSet<String>);

impl Sentences {
    /// Returns the sentences of a text.
    pub(super) fn of(text: &str) -> Self {
        let all = text.split('\n').flat_map(split).filter_map(folded);
        Self(all.collect())
    }

    /// Returns the share of these sentences that the others have too, in percent.
    pub(super) fn shared_with(&self, other: &Self) -> u32 {
        let shared = self.0.intersection(&other.0).count();
        // No more than 100, which fits.
        shared
            .checked_mul(100)
            .and_then(|shared| shared.checked_div(self.0.len()))
            .and_then(|percent| u32::try_from(percent).ok())
            .unwrap_or(0)
    }
}

/// Returns a text by paragraphs and sentences, each marked if `other` has it too; and how many of its characters are beyond
/// the first `most`.
pub(super) fn marked(text: &str, other: Option<&Sentences>, most: usize) -> (Vec<Vec<TextPiece>>, u64) {
    let cut = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    let (shown, rest) = text.split_at(cut);
    let piece = |sentence: &str| TextPiece {
        text: sentence.trim().to_owned(),
        is_shared: other.is_some_and(|other| folded(sentence).is_some_and(|folded| other.0.contains(&folded))),
    };
    let paragraphs = shown
        .split('\n')
        .filter(|line| !line.trim().is_empty())
        .map(|line| split(line).map(piece).filter(|piece| !piece.text.is_empty()).collect())
        .collect();
    (paragraphs, rest.chars().count().try_into().unwrap_or(u64::MAX))
}

/// Splits a line behind each full stop, question mark or exclamation mark that is followed by a space.
fn split(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut letters = rest.char_indices().peekable();
        let mut end = rest.len();
        while let Some((at, letter)) = letters.next() {
            let is_end = match letter {
                '.' | '?' | '!' => letters.peek().is_some_and(|(_, next)| next.is_whitespace()),
                '\u{3002}' => true,
                _ => false,
            };
            if is_end {
                end = at + letter.len_utf8();
                break;
            }
        }
        let (sentence, behind) = rest.split_at(end);
        rest = behind;
        Some(sentence)
    })
}

/// Returns a sentence in lower case with its words only; `None` if it is too short to tell anything.
fn folded(sentence: &str) -> Option<String> {
    let lower = sentence.to_lowercase();
    let words: Vec<_> = lower
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    (words.len() >= MIN_WORDS).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "# Retry budgets\n\nEach client was pointed at a server that answers 503. Seven were tried.\n\
                       Only two of them honoured the header in every try.";

    #[test]
    fn sentences_in_another_order_and_case_are_shared() {
        let other = "Only TWO of them honoured the header, in every try. Something else entirely is said here. \
                     each client was pointed at a server that answers 503!";
        let (one, other) = (Sentences::of(ONE), Sentences::of(other));
        assert_eq!(one.shared_with(&other), 100);
        assert_eq!(other.shared_with(&one), 66);
        assert_eq!(one.shared_with(&Sentences::of("")), 0);
        assert_eq!(Sentences::of("").shared_with(&one), 0);
    }

    #[test]
    fn a_text_is_shown_by_paragraphs_and_cut() {
        let other = Sentences::of("Each client was pointed at a server that answers 503.");
        let (paragraphs, more) = marked(ONE, Some(&other), 10_000);
        assert_eq!((paragraphs.len(), more), (3, 0));
        let shared: Vec<_> = paragraphs[1].iter().map(|piece| piece.is_shared).collect();
        assert_eq!(shared, [true, false]);
        let (paragraphs, more) = marked("한국어 글자", None, 3);
        assert_eq!((paragraphs[0][0].text.as_str(), more), ("한국어", 3));
    }
}
