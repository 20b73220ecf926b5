//! Pieces of a text: as much of it as is encoded at once.
//!
//! Invariant: pieces are cut at the beginnings of tokens, follow each other without a gap, and each but the last is as
//! long as it can be.

use std::ops::Range;

use crate::tokens::Tokens;

/// Characters that may stand between the end of a sentence and the space behind it.
const CLOSERS: [char; 12] = ['"', '\'', ')', ']', '}', '*', '_', '`', '”', '’', '»', '」'];
/// The most closers that are looked at, so that a long run of them costs nothing.
const MAX_CLOSERS: usize = 2;

/// Quality of a place for a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CutQuality {
    Inside,
    BeforeWord,
    BehindSentence,
}

/// Cuts a text into pieces of at most `most` tokens.
pub(crate) fn cut(text: &str, tokens: &Tokens, most: usize) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let (mut from, mut first) = (0, 0);
    while let Some(rest) = tokens.starts.get(first..).filter(|rest| rest.len() > most) {
        let places = rest
            .iter()
            .enumerate()
            .skip(1)
            .filter_map(|(at, place)| Some((at, (*place)?)));
        let within = places.clone().take_while(|(at, _)| *at <= most);
        let best = within.max_by_key(|(at, place)| (quality(text, *place), *at));
        // Longer than it should be only where one character is made of more tokens than a piece has.
        let Some((at, place)) = best.or_else(|| places.clone().next()) else {
            break;
        };
        pieces.push(from..place);
        (from, first) = (place, first + at);
    }
    if first < tokens.starts.len() {
        pieces.push(from..text.len());
    }
    pieces
}

fn quality(text: &str, place: usize) -> CutQuality {
    let Some((before, behind)) = text.split_at_checked(place) else {
        return CutQuality::Inside;
    };
    let gap = &behind[..behind.len() - behind.trim_start().len()];
    let mut last = before.chars().rev();
    let mut end = last.next();
    for _ in 0..MAX_CLOSERS {
        if end.is_some_and(|character| CLOSERS.contains(&character)) {
            end = last.next();
        }
    }
    match end {
        _ if gap.contains('\n') => CutQuality::BehindSentence,
        Some('。' | '！' | '？' | '｡' | '．' | '\n') => CutQuality::BehindSentence,
        Some('.' | '!' | '?' | '…' | '؟' | '۔' | '।') if !gap.is_empty() => CutQuality::BehindSentence,
        _ if !gap.is_empty() => CutQuality::BeforeWord,
        _ => CutQuality::Inside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces of a text with a token for each character.
    fn cut_characters(text: &str, most: usize) -> Vec<&str> {
        let tokens = Tokens {
            ids: vec![0; text.chars().count()],
            starts: text.char_indices().map(|(at, _)| Some(at)).collect(),
        };
        cut(text, &tokens, most).into_iter().map(|piece| &text[piece]).collect()
    }

    #[test]
    fn a_piece_ends_behind_the_last_sentence_or_line_that_fits() {
        assert_eq!(cut_characters("One. Two. Three", 12), ["One. Two.", " Three"]);
        assert_eq!(cut_characters("One two\nthree", 10), ["One two\n", "three"]);
        assert_eq!(cut_characters("(One.) Two three.", 12), ["(One.)", " Two three."]);
        assert_eq!(cut_characters("一二。三四五六", 5), ["一二。", "三四五六"]);
        // A point inside of a number ends nothing.
        assert_eq!(cut_characters("is 1.5 of it", 8), ["is 1.5", " of it"]);
    }

    #[test]
    fn a_sentence_that_does_not_fit_is_cut_before_a_word_or_anywhere() {
        assert_eq!(cut_characters("one two three", 9), ["one two", " three"]);
        assert_eq!(cut_characters("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(cut_characters("ab", 3), ["ab"]);
        assert_eq!(cut_characters("", 3), [""; 0]);
    }

    #[test]
    fn a_character_of_many_tokens_is_not_cut() {
        let starts = vec![Some(0), None, None, None, Some(1), None];
        let ids = vec![0; starts.len()];
        assert_eq!(cut("ab", &Tokens { ids, starts }, 2), [0..1, 1..2]);
    }
}
