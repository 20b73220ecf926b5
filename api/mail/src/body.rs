//! The body of a letter as a list of blocks, of which its text and its HTML are made.
//!
//! Invariants:
//! - Text and HTML say the same in the same order, since both are made of the same blocks.
//! - No text of a block becomes markup, and only addresses of the service itself become links.
//! - HTML loads nothing from anywhere, so that nobody learns that a letter was read.

mod html;
mod text;

/// Body of a letter, from its first block to the sentences about why it came and how to stop it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LetterBody {
    glance: String,
    blocks: Vec<LetterBlock>,
    reason: String,
    ending: LetterEnding,
}

/// Part of a letter.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LetterBlock {
    /// Sentences of the service. Addresses of the service in them are links.
    Paragraph(String),
    /// Sentences of less weight.
    Note(String),
    Heading(String),
    /// Text of somebody else, with its lines.
    Quote(String),
    /// Names with their values.
    Facts(Vec<(String, String)>),
    Items(Vec<String>),
    /// The one thing to do, with the words on it and its address.
    Button(String, String),
}

/// End of a letter: how no more of its kind come.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LetterEnding {
    /// Nothing is said about it.
    Open,
    /// Address of the page on which its reader chooses letters.
    Choice(String),
    /// Letters of its kind always come.
    Fixed,
}

/// Words of the link to the page on which the reader of a letter chooses letters.
const CHOICE: &str = "Choose which e-mails you get";
/// Sentence of a letter that always comes.
const FIXED: &str = "These e-mails cannot be switched off.";

impl LetterBody {
    /// Creates a body without blocks. The reason is a sentence that says why the letter came.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            glance: String::new(),
            blocks: Vec::new(),
            reason: reason.into(),
            ending: LetterEnding::Open,
        }
    }

    /// Sets the sentence that mailboxes show beside the subject. It is in HTML only, and repeats what the letter says.
    #[must_use]
    pub fn at_a_glance(mut self, sentence: impl Into<String>) -> Self {
        self.glance = sentence.into();
        self
    }

    /// Adds sentences of the service.
    #[must_use]
    pub fn paragraph(self, sentences: impl Into<String>) -> Self {
        self.with(LetterBlock::Paragraph(sentences.into()))
    }

    /// Adds sentences of less weight.
    #[must_use]
    pub fn note(self, sentences: impl Into<String>) -> Self {
        self.with(LetterBlock::Note(sentences.into()))
    }

    /// Adds the heading of the blocks that follow.
    #[must_use]
    pub fn heading(self, words: impl Into<String>) -> Self {
        self.with(LetterBlock::Heading(words.into()))
    }

    /// Adds a text of somebody else. Nothing in it is a link.
    #[must_use]
    pub fn quote(self, text: impl Into<String>) -> Self {
        self.with(LetterBlock::Quote(text.into()))
    }

    /// Adds names with their values. Nothing in a value is a link.
    #[must_use]
    pub fn facts<N: Into<String>, V: Into<String>>(self, facts: impl IntoIterator<Item = (N, V)>) -> Self {
        let facts = facts.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.with(LetterBlock::Facts(facts.collect()))
    }

    /// Adds a list of sentences of the service.
    #[must_use]
    pub fn items<I: Into<String>>(self, items: impl IntoIterator<Item = I>) -> Self {
        self.with(LetterBlock::Items(items.into_iter().map(Into::into).collect()))
    }

    /// Adds the button, with the words on it and the address that it opens. A letter has one at most.
    #[must_use]
    pub fn button(self, words: impl Into<String>, address: impl Into<String>) -> Self {
        self.with(LetterBlock::Button(words.into(), address.into()))
    }

    /// Says that letters of its kind always come.
    #[must_use]
    pub fn always_sent(mut self) -> Self {
        self.ending = LetterEnding::Fixed;
        self
    }

    /// Names the page on which the reader chooses letters.
    #[must_use]
    pub fn chosen_at(mut self, address: impl Into<String>) -> Self {
        self.ending = LetterEnding::Choice(address.into());
        self
    }

    /// Returns the letter as text of lines of at most 70 characters, longer words apart. `home` is the address of the
    /// service.
    pub fn text(&self, title: &str, home: &str) -> String {
        text::page(self, title, home)
    }

    /// Returns the letter as HTML of ASCII characters. `home` is the address of the service.
    pub fn html(&self, title: &str, home: &str) -> String {
        html::page(self, title, home)
    }

    fn with(mut self, block: LetterBlock) -> Self {
        self.blocks.push(block);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: &str = "https://sluice.example";

    fn letter() -> LetterBody {
        LetterBody::new("You get this because Harbour Lab owns the item.")
            .at_a_glance("Reason: copyright. You can answer.")
            .paragraph(format!(
                "A person looked at a report. It is listed at {HOME}/takedowns."
            ))
            .facts([
                ("Item", "Footer sizes of 40 public Parquet files"),
                ("Reason", "copyright"),
            ])
            .heading("What the moderator says")
            .quote(
                "Table 2 equals a table of a paid report of 2024. Say where your numbers come from, or replace \
                 them.\nThanks",
            )
            .items([
                "One thing",
                "Another thing, which is said with so many words that they do not fit into one line",
            ])
            .button("Answer", format!("{HOME}/console/reports/86"))
            .note("Or reply to this e-mail.")
            .always_sent()
    }

    #[test]
    fn a_text_has_every_block_in_order_and_short_lines() {
        let expected = "\
Your write-up is down
=====================

A person looked at a report. It is listed at
https://sluice.example/takedowns.

  Item:    Footer sizes of 40 public Parquet files
  Reason:  copyright

What the moderator says
-----------------------

  > Table 2 equals a table of a paid report of 2024. Say where your
  > numbers come from, or replace them.
  > Thanks

- One thing
- Another thing, which is said with so many words that they do not fit
  into one line

Answer:
https://sluice.example/console/reports/86

Or reply to this e-mail.

--\u{20}
Sluice, https://sluice.example
You get this because Harbour Lab owns the item. These e-mails cannot
be switched off.
";
        assert_eq!(letter().text("Your write-up is down", HOME), expected);
    }

    #[test]
    fn html_says_what_the_text_says_in_the_same_order() {
        let (text, html) = (letter().text("Title", HOME), letter().html("Title", HOME));
        let (_, shown) = html.split_once("<h1").unwrap();
        // The words between the tags, without the sentence for mailboxes, which stands before.
        let mut words = String::new();
        for piece in format!("<h1{shown}").split('<') {
            words.push_str(piece.split_once('>').map_or("", |(_, words)| words));
            words.push(' ');
        }
        let plain = |words: &str| {
            let kept = words.split_whitespace().map(|word| word.trim_matches([':', '.', ',']));
            let kept = kept.filter(|word| word.chars().any(char::is_alphanumeric));
            kept.map(str::to_owned).collect::<Vec<_>>()
        };
        // The text says in its last part which service it is of; in HTML that is the head.
        let text = text.replace(&format!("--\u{20}\nSluice, {HOME}\n"), "");
        assert_eq!(plain(&words), plain(&text));
    }

    #[test]
    fn a_text_of_others_is_neither_markup_nor_a_link() {
        let evil = "</blockquote><script>alert(1)</script> \"'& https://evil.example/x ünï\u{202e}\u{7}";
        let body = LetterBody::new("Why.")
            .quote(evil)
            .facts([("Name", evil)])
            .paragraph("See https://sluice.example.evil.example/a and https://sluice.example/b.")
            .chosen_at("https://sluice.example/console/settings#mail");
        let html = body.html(evil, HOME);
        assert!(html.is_ascii() && !html.contains("<script"), "{html}");
        assert!(html.contains("&#x202e;") && html.contains("&#xfffd;"), "{html}");
        let links: Vec<_> = html.match_indices("href=\"").map(|(at, _)| &html[at + 6..]).collect();
        let links: Vec<_> = links.iter().filter_map(|link| link.split('"').next()).collect();
        assert_eq!(
            links,
            [
                "https://sluice.example/b",
                "https://sluice.example/console/settings#mail"
            ]
        );
        for loaded in ["src=", "url(", "<link", "<img", "@import"] {
            assert!(!html.contains(loaded), "{loaded}");
        }
    }
}
