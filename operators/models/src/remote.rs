//! Judges and embedders of a provider with an interface like that of `OpenAI`: chat completions and embeddings.
//!
//! Invariants:
//! - An answer counts only if it has the form that was asked for and repeats a number that no text can know. Anything
//!   else, silence and errors hold what was to be judged; nothing is ever taken as a verdict in their place.
//! - A text is data: it is one line of JSON between two marks that it cannot contain.

mod answer;
mod budget;
mod chat;
mod circuit;
mod claims;
mod embedder;
mod passages;
mod prompt;
mod provider;
mod sample;

/// Name of the protocol by which a chat model scores: which questions are asked, and how the answers are counted.
const SCORE_PROTOCOL: &str = "score-2";

pub use budget::{LeaseError, TokenBudget, TokenLeases};
pub use chat::{ChatModel, CompleteScreener};
pub use embedder::{RemoteEmbedder, TextPrefixes};
pub use provider::{NoReply, Provider, ProviderReply, Transport, Waits};

#[cfg(test)]
mod tests;
