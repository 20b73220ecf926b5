//! The sentence encoder of the program: Universal Sentence Encoder, multilingual, version 3, with its weights.
//!
//! Invariants:
//! - A vector depends on the text only. It has the same bits on every machine and with every set of instructions, so
//!   vectors of different processes can be compared.
//! - Work is linear in the text; of a text of any length at most a piece is encoded at once.

mod file;
mod layers;
mod matrix;
mod normal;
mod number;
mod pieces;
mod tokens;

use std::ops::Range;
use std::sync::LazyLock;

use file::ModelFile;
use layers::Layers;
use matrix::Instructions;
use tokens::Tokeniser;

pub use file::{EncoderError, check};

/// The id of the vectors.
pub const ENCODER_ID: &str = "use-m3-1";
/// The number of dimensions of a vector.
pub const ENCODED_DIMENSIONS: usize = 512;
/// The most tokens of a piece of a document.
pub const PIECE_TOKENS: usize = 96;
/// The most tokens of a query.
pub const QUERY_TOKENS: usize = 64;

static SHARED: LazyLock<Result<Encoder, EncoderError>> = LazyLock::new(Encoder::unpack);

/// The unpacked model, about 75 MB.
#[derive(Debug)]
pub struct Encoder {
    tokeniser: Tokeniser,
    layers: Layers,
}

impl Encoder {
    /// Returns the encoder of this process. The first call unpacks it, which takes some 0.2 s of processor time.
    pub fn shared() -> Result<&'static Self, &'static EncoderError> {
        SHARED.as_ref()
    }

    fn unpack() -> Result<Self, EncoderError> {
        let file = ModelFile::unpack()?;
        Ok(Self {
            tokeniser: Tokeniser::of(&file)?,
            layers: Layers::of(file)?,
        })
    }

    /// Returns the ids of the tokens of a text, at least one, as the published implementation gives them.
    pub fn tokens(&self, text: &str) -> Vec<u32> {
        self.tokeniser.tokens(text).ids
    }

    /// Cuts a text into pieces of at most [`PIECE_TOKENS`] tokens: behind a line or sentence where one ends in them, or
    /// else before a word. Together the pieces are the text; one without tokens has none.
    pub fn pieces(&self, text: &str) -> Vec<Range<usize>> {
        pieces::cut(text, &self.tokeniser.tokens(text), PIECE_TOKENS)
    }

    /// Returns the vector of the first `most` tokens of a text: [`ENCODED_DIMENSIONS`] numbers, of length 1.
    pub fn encode(&self, text: &str, most: usize) -> Vec<f32> {
        self.encode_with(Instructions::best(), text, most)
    }

    fn encode_with(&self, instructions: Instructions, text: &str, most: usize) -> Vec<f32> {
        let mut ids = self.tokens(text);
        ids.truncate(most);
        self.layers.vector(instructions, &ids)
    }
}

#[cfg(test)]
mod tests;
