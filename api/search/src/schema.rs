//! Fields of the index of words, and the tokeniser in the form that it wants.

use models::tokens::{identifiers, tokens};
use tantivy::Index;
use tantivy::schema::{FAST, Field, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer};

/// The fields of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentFields {
    pub(crate) id: Field,
    pub(crate) slot: Field,
    pub(crate) title: Field,
    pub(crate) terms: Field,
    pub(crate) code: Field,
    pub(crate) body: Field,
    pub(crate) source: Field,
}

impl DocumentFields {
    /// Returns the fields of text, each with its weight. The field of code is asked apart.
    pub(crate) const fn texts(&self) -> [(Field, f32); 4] {
        [
            (self.title, 3.0),
            (self.terms, 2.0),
            (self.body, 1.0),
            (self.source, 0.5),
        ]
    }
}

/// Creates an empty index in memory.
pub(crate) fn create() -> (Index, DocumentFields) {
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
        title: schema.add_text_field("title", text("words", IndexRecordOption::WithFreqsAndPositions)),
        terms: schema.add_text_field("terms", text("words", IndexRecordOption::WithFreqs)),
        code: schema.add_text_field("code", text("code", IndexRecordOption::WithFreqs)),
        body: schema.add_text_field("body", text("words", IndexRecordOption::WithFreqsAndPositions)),
        source: schema.add_text_field("source", text("words", IndexRecordOption::WithFreqs)),
    };
    let index = Index::create_in_ram(schema.build());
    index
        .tokenizers()
        .register("words", TextAnalyzer::from(TextWords { code: false }));
    index
        .tokenizers()
        .register("code", TextAnalyzer::from(TextWords { code: true }));
    (index, fields)
}

/// The tokens of a text, or its identifiers.
#[derive(Clone, Copy, Debug)]
struct TextWords {
    code: bool,
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

impl Tokenizer for TextWords {
    type TokenStream<'a> = TokenStreamBuffer;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> TokenStreamBuffer {
        // The tokeniser calls back with each token and the index asks for one at a time, so the tokens
        // are kept in between: in one buffer, because a string for each would be most of the cost of
        // indexing.
        let mut texts = String::with_capacity(text.len() * 2);
        let mut ends = Vec::with_capacity(text.len() / 3);
        if self.code {
            identifiers(text, &mut |name, _| {
                texts.push_str(name);
                ends.push((texts.len(), ends.len()));
            });
        } else {
            tokens(text, &mut |token| {
                texts.push_str(token.text);
                ends.push((texts.len(), usize::try_from(token.position).unwrap_or(0)));
            });
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
