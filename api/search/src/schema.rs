//! Fields of the index of words, and the tokenisers in the form that it wants.

use models::tokens::{StemLanguages, identifiers, tokens, word_parts};
use tantivy::schema::{FAST, Field, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer};
use tantivy::{Index, TantivyDocument};

use crate::document::Document;
use crate::kept_facts;

/// The first of the characters that name the languages of a text. They are for private use, and stand before the text.
const FIRST_LANGUAGE_MARK: u32 = 0xE000;

/// The fields of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentFields {
    pub(crate) id: Field,
    pub(crate) slot: Field,
    /// Key and facts, from which the slots are made again when the index is opened.
    pub(crate) facts: Field,
    pub(crate) title: Field,
    pub(crate) terms: Field,
    pub(crate) code: Field,
    pub(crate) body: Field,
    pub(crate) title_parts: Field,
    pub(crate) parts: Field,
}

impl DocumentFields {
    /// Returns the fields of words, each with its weight. The field of code is asked apart.
    pub(crate) const fn texts(&self) -> [(Field, f32); 3] {
        [(self.title, 3.0), (self.terms, 2.0), (self.body, 1.0)]
    }

    /// Returns what the index takes of a document, without the slot.
    pub(crate) fn words(&self, document: &Document) -> TantivyDocument {
        let Document { title, body, .. } = document;
        let mark = language_mark(StemLanguages::of_document(title, body));
        let terms = document.terms.join("\n");
        let mut words = TantivyDocument::default();
        words.add_text(self.id, document.key.term());
        words.add_text(self.facts, kept_facts::encoded(&document.key, &document.facts));
        words.add_text(self.title, format!("{mark}{title}"));
        // A tokeniser is given nothing but the text, so the language stands in front of it.
        words.add_text(self.body, format!("{mark}{body}\n{}", document.source));
        words.add_text(self.code, format!("{title}\n{body}"));
        words.add_text(self.title_parts, title);
        words.add_text(self.parts, format!("{title}\n{terms}\n{body}"));
        words.add_text(self.terms, format!("{mark}{terms}"));
        words
    }
}

/// Returns the schema of an index.
pub(crate) fn schema() -> (Schema, DocumentFields) {
    let mut schema = Schema::builder();
    let text = |tokenizer: &str, record| {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(tokenizer)
            .set_index_option(record);
        TextOptions::default().set_indexing_options(indexing)
    };
    let fields = DocumentFields {
        id: schema.add_text_field("id", STRING),
        slot: schema.add_u64_field("slot", FAST),
        facts: schema.add_text_field("facts", STORED),
        title: schema.add_text_field("title", text("words", IndexRecordOption::WithFreqsAndPositions)),
        terms: schema.add_text_field("terms", text("words", IndexRecordOption::WithFreqs)),
        code: schema.add_text_field("code", text("code", IndexRecordOption::Basic)),
        body: schema.add_text_field("body", text("words", IndexRecordOption::WithFreqsAndPositions)),
        title_parts: schema.add_text_field("title_parts", text("parts", IndexRecordOption::Basic)),
        parts: schema.add_text_field("parts", text("parts", IndexRecordOption::Basic)),
    };
    (schema.build(), fields)
}

/// Gives an index its tokenisers.
pub(crate) fn register_tokenizers(index: &Index) {
    for (name, tokenizer) in [
        ("words", FieldTokenizer::Words),
        ("code", FieldTokenizer::Code),
        ("parts", FieldTokenizer::Parts),
    ] {
        index.tokenizers().register(name, TextAnalyzer::from(tokenizer));
    }
}

/// Returns the character that names languages.
fn language_mark(languages: StemLanguages) -> char {
    char::from_u32(FIRST_LANGUAGE_MARK + u32::from(languages.bits())).unwrap_or(' ')
}

/// Returns the languages of a text, and the text behind the character that names them.
fn marked_languages(text: &str) -> (StemLanguages, &str) {
    let mut characters = text.chars();
    let bits = characters
        .next()
        .and_then(|mark| u32::from(mark).checked_sub(FIRST_LANGUAGE_MARK));
    let languages = bits.and_then(|bits| StemLanguages::from_bits(u16::try_from(bits).ok()?));
    languages.map_or((StemLanguages::ENGLISH, text), |languages| {
        (languages, characters.as_str())
    })
}

/// What a field takes of a text.
#[derive(Clone, Copy, Debug)]
enum FieldTokenizer {
    /// Tokens, with stems of the language that is marked.
    Words,
    /// Whole identifiers.
    Code,
    /// Distinct parts of words.
    Parts,
}

/// Tokens that were found already, in one buffer.
#[derive(Debug)]
struct TokenStreamBuffer {
    /// End of the token in `texts`, and its position.
    ends: std::vec::IntoIter<(usize, usize)>,
    texts: String,
    from: usize,
    token: Token,
}

impl Tokenizer for FieldTokenizer {
    type TokenStream<'a> = TokenStreamBuffer;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> TokenStreamBuffer {
        // The tokeniser calls back with each token and the index asks for one at a time, so the tokens
        // are kept in between: in one buffer, because a string for each would be most of the cost of
        // indexing.
        let mut texts = String::with_capacity(text.len() * 2);
        let mut ends = Vec::with_capacity(text.len() / 3);
        match self {
            Self::Words => {
                let (languages, text) = marked_languages(text);
                tokens(text, languages, &mut |token| {
                    texts.push_str(token.text);
                    ends.push((texts.len(), usize::try_from(token.position).unwrap_or(0)));
                });
            }
            // Parts of an identifier are words, or parts of words.
            Self::Code => identifiers(text, &mut |name, is_whole| {
                if is_whole {
                    texts.push_str(name);
                    ends.push((texts.len(), ends.len()));
                }
            }),
            Self::Parts => word_parts([text], &mut |part| {
                texts.push_str(part);
                ends.push((texts.len(), ends.len()));
            }),
        }
        TokenStreamBuffer {
            ends: ends.into_iter(),
            texts,
            from: 0,
            token: Token::default(),
        }
    }
}

impl TokenStream for TokenStreamBuffer {
    fn advance(&mut self) -> bool {
        let Some((end, position)) = self.ends.next() else {
            return false;
        };
        self.token.text.clear();
        self.token.text.push_str(&self.texts[self.from..end]);
        self.token.position = position;
        self.from = end;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
