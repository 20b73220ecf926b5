//! Sentences with words that are code.
//!
//! Invariant: everything but the tags of code is escaped.

use std::fmt;

use askama::filters::HtmlSafe;

/// Sentence in which what stood between backticks is code, as HTML.
#[derive(Debug)]
pub(crate) struct InlineCode(String);

// Each letter that could be markup is escaped.
impl HtmlSafe for InlineCode {}

impl fmt::Display for InlineCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl InlineCode {
    /// Escapes a sentence and marks its code.
    pub(crate) fn of(sentence: &str) -> Self {
        let mut html = String::with_capacity(sentence.len() + 32);
        let mut rest = sentence;
        // A backtick without a second one stays a letter.
        while let Some((before, code, after)) = rest
            .split_once('`')
            .and_then(|(before, rest)| rest.split_once('`').map(|(code, after)| (before, code, after)))
        {
            escape(before, &mut html);
            html.push_str("<code>");
            escape(code, &mut html);
            html.push_str("</code>");
            rest = after;
        }
        escape(rest, &mut html);
        Self(html)
    }
}

fn escape(text: &str, html: &mut String) {
    for letter in text.chars() {
        match letter {
            '&' => html.push_str("&#38;"),
            '<' => html.push_str("&#60;"),
            '>' => html.push_str("&#62;"),
            '"' => html.push_str("&#34;"),
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_marked_and_everything_is_escaped() {
        for (sentence, html) in [
            ("Wait `Retry-After`.", "Wait <code>Retry-After</code>."),
            ("`<b>` & \"x\"", "<code>&#60;b&#62;</code> &#38; &#34;x&#34;"),
            ("one ` alone", "one ` alone"),
            ("", ""),
        ] {
            assert_eq!(InlineCode::of(sentence).to_string(), html);
        }
    }
}
