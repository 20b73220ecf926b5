//! Texts in which the words of a search are marked.
//!
//! Invariant: the words of the text stay as they are: a mark surrounds a word and changes none.

use std::fmt::{self, Write as _};

use askama::filters::HtmlSafe;

/// Letters by which a longer word of a search may differ from a word that is marked.
const MAX_ENDING_CHARS: usize = 2;
/// Least letters of a word that is marked for its beginning.
const MIN_STEM_CHARS: usize = 3;

/// Text of somebody else with the words of a search in elements `mark`.
#[derive(Clone, Debug, Default)]
pub struct MarkedText {
    /// Pieces in order, with whether each is marked.
    pieces: Vec<(String, bool)>,
}

// Every sign that HTML has a meaning for is written as a reference.
impl HtmlSafe for MarkedText {}

impl MarkedText {
    /// Marks words in a text. The words are in lower case.
    pub fn new(text: &str, words: &[String]) -> Self {
        let mut marked = Self::default();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let is_word = first.is_alphanumeric();
            let end = rest.find(|sign: char| sign.is_alphanumeric() != is_word);
            let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
            rest = after;
            if is_word {
                marked.add_word(run, words);
            } else {
                marked.add(run, false);
            }
        }
        marked
    }

    fn add_word(&mut self, word: &str, words: &[String]) {
        let lower = word.to_lowercase();
        // Scripts without spaces have many words in one run; those have no cases, so their places are the same.
        let part = (lower == word).then(|| {
            let inner = words.iter().filter(|sought| !sought.is_ascii());
            inner
                .filter_map(|sought| Some((word.find(sought.as_str())?, sought.len())))
                .min()
        });
        if let Some((at, length)) = part.flatten() {
            let (before, rest) = word.split_at(at);
            let (found, after) = rest.split_at(length);
            self.add(before, false);
            self.add(found, true);
            self.add(after, false);
        } else {
            self.add(word, words.iter().any(|sought| is_form(&lower, sought)));
        }
    }

    fn add(&mut self, piece: &str, is_marked: bool) {
        if piece.is_empty() {
            return;
        }
        match self.pieces.last_mut() {
            Some((last, was_marked)) if !is_marked && !*was_marked => last.push_str(piece),
            _ => self.pieces.push((piece.to_owned(), is_marked)),
        }
    }
}

/// Returns true if a word is what was sought, or another form of it.
fn is_form(word: &str, sought: &str) -> bool {
    let (word_chars, sought_chars) = (word.chars().count(), sought.chars().count());
    word == sought
        || (sought_chars >= MIN_STEM_CHARS && word.starts_with(sought))
        || (word_chars > MIN_STEM_CHARS
            && sought.starts_with(word)
            && sought_chars.saturating_sub(word_chars) <= MAX_ENDING_CHARS)
}

impl fmt::Display for MarkedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (piece, is_marked) in &self.pieces {
            if *is_marked {
                f.write_str("<mark>")?;
            }
            for sign in piece.chars() {
                match sign {
                    '<' | '>' | '&' | '"' | '\'' => write!(f, "&#{};", u32::from(sign))?,
                    other => f.write_char(other)?,
                }
            }
            if *is_marked {
                f.write_str("</mark>")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::MarkedText;

    fn marked(text: &str, words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        MarkedText::new(text, &words).to_string()
    }

    #[test]
    fn words_and_their_forms_are_marked_and_others_are_not() {
        assert_eq!(
            marked("Drifts of a Gauge, ungauged", &["gauges", "drift"]),
            "<mark>Drifts</mark> of a <mark>Gauge</mark>, ungauged"
        );
        // Two letters are a word, and no beginning of one.
        assert_eq!(marked("An io iota", &["io"]), "An <mark>io</mark> iota");
        assert_eq!(marked("v1.2 of x", &["1"]), "v1.2 of x");
        assert_eq!(marked("", &["a"]), "");
        assert_eq!(marked("Tide", &[]), "Tide");
    }

    #[test]
    fn a_word_within_a_run_of_a_script_without_spaces_is_marked() {
        assert_eq!(
            marked("출근시간의 혼잡도", &["시간", "혼잡도"]),
            "출근<mark>시간</mark>의 <mark>혼잡도</mark>"
        );
    }

    #[test]
    fn markup_in_a_text_stays_text() {
        assert_eq!(
            marked("<b onclick=\"x\">tide</b> & '", &["tide", "b"]),
            "&#60;<mark>b</mark> onclick=&#34;x&#34;&#62;<mark>tide</mark>&#60;/<mark>b</mark>&#62; &#38; &#39;"
        );
    }
}
