//! The section `models`: the provider of models that judges units, screens public datasets and makes vectors.
//!
//! Invariant: no output shows the key.

use std::fmt;

use serde::Deserialize;

use types::HumanDuration;

/// Section `models`: the provider of models.
#[derive(Clone, Deserialize)]
pub struct Models {
    /// The address of the interface, such as `https://models.example.org/v1`. Empty means that fixed rules judge.
    pub url: String,
    /// The key for the provider. Empty for one that asks for none.
    pub key: String,
    /// The chat model that screens, scores, compares and summarises. Empty means fixed rules.
    pub chat: String,
    /// The chat model that decides on appeals in place of `chat`. Empty means that there are none.
    pub appeal: String,
    /// The embedding model. Empty means the encoder of the program.
    pub embeddings: String,
    /// The dimensions of the embedding model.
    pub dimensions: usize,
    /// Prefix that the embedding model expects before the text of a query; empty for none.
    pub query_prefix: String,
    /// Prefix that it expects before the text of a unit or dataset; empty for none.
    pub document_prefix: String,
    /// The tokens of all models in a UTC day. 0 means no limit.
    pub tokens_per_day: u64,
    /// The most characters of a text that the chat model is shown.
    pub context_characters: usize,
    /// The most groups of records of one contribution or upload about which the chat model is asked.
    pub questions_per_contribution: u32,
    /// The time-out of the beginning of an answer, and of half of the whole.
    pub timeout: HumanDuration,
    /// The wait before the second try of a request. It doubles.
    pub retry_first: HumanDuration,
    /// The wait after failures in a row. It doubles up to `hold_most`.
    pub hold_first: HumanDuration,
    /// The longest wait after failures, and that of a text whose answers cannot be used.
    pub hold_most: HumanDuration,
}

/// Shows everything but the key.
impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models")
            .field("url", &self.url)
            .field("chat", &self.chat)
            .field("appeal", &self.appeal)
            .field("embeddings", &self.embeddings)
            .finish_non_exhaustive()
    }
}
