//! The embedder of the program: vectors of its multilingual sentence encoder.
//!
//! Invariant: a document has at most five vectors whatever its length, and at most two threads compute vectors. A query
//! never waits for one of them.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use encoder::{ENCODED_DIMENSIONS, ENCODER_ID, Encoder, EncoderError, PIECE_TOKENS, QUERY_TOKENS};
use operators::knowledge::{EmbeddedText, Embedder, TextRole, Vector, text_facts};
use operators::screen::{Cause, Unavailable};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use types::unit::Judge;

/// The most threads that compute vectors.
const MAX_THREADS: usize = 2;
/// The parts of a body behind its first piece. Each has a vector of one piece.
const PARTS: usize = 3;

/// The embedder [`ENCODER_ID`]. Vectors are near if the texts mean the same, also in different languages.
#[derive(Debug)]
pub struct SentenceEmbedder {
    threads: Arc<Semaphore>,
}

impl SentenceEmbedder {
    /// Creates an embedder with threads of its own.
    ///
    /// # Errors
    /// A program whose weights are damaged.
    pub fn open() -> Result<Self, EncoderError> {
        encoder::check()?;
        Ok(Self {
            threads: Arc::new(Semaphore::new(MAX_THREADS)),
        })
    }
}

#[async_trait]
impl Embedder for SentenceEmbedder {
    fn id(&self) -> &str {
        ENCODER_ID
    }

    /// A model, not a heuristic: its weights were learned from texts, and no rule says why two of them are near.
    fn judge(&self) -> Judge {
        Judge::model(ENCODER_ID)
    }

    fn dimensions(&self) -> usize {
        ENCODED_DIMENSIONS
    }

    /// A document has a vector of the beginning of its title, one of the first piece of its body, and one of the piece with
    /// most facts of each third of the rest. Fails at once for a query while both threads are busy.
    async fn embed(&self, texts: &[EmbeddedText<'_>], role: TextRole) -> Result<Vec<Vec<Vector>>, Unavailable> {
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            // A thread for each text and not for all, so that many documents leave room for a query.
            let threads = Arc::clone(&self.threads);
            let thread = match role {
                TextRole::Document => threads.acquire_owned().await.ok(),
                TextRole::Query => threads.try_acquire_owned().ok(),
            };
            let thread = thread.ok_or_else(unavailable)?;
            let (title, body) = (text.title.to_owned(), text.body.to_owned());
            let work = spawn_blocking(move || {
                let vectors = vectors_of(&title, &body, role);
                drop(thread);
                vectors
            });
            vectors.push(work.await.ok().flatten().ok_or_else(unavailable)?);
        }
        Ok(vectors)
    }
}

const fn unavailable() -> Unavailable {
    Unavailable {
        reason: Cause::Provider,
        resumes_after: None,
    }
}

/// Computes the vectors of a text, or says why there are none.
fn vectors_of(title: &str, body: &str, role: TextRole) -> Option<Vec<Vector>> {
    let encoder = match Encoder::shared() {
        Ok(encoder) => encoder,
        Err(error) => {
            tracing::error!(%error, "the sentence encoder cannot be used; what needs vectors waits");
            return None;
        }
    };
    Some(match role {
        TextRole::Query => vec![encoder.encode(title, QUERY_TOKENS)],
        TextRole::Document => {
            let pieces = telling(body, encoder.pieces(body));
            let pieces = pieces.into_iter().filter_map(|piece| body.get(piece));
            let texts = std::iter::once(title).chain(pieces);
            texts.map(|text| encoder.encode(text, PIECE_TOKENS)).collect()
        }
    })
}

/// Returns the first piece, and the piece with most facts of each third of the rest; of equal ones the first.
fn telling(body: &str, pieces: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let Some((first, rest)) = pieces.split_first() else {
        return pieces;
    };
    let count = |piece: &&Range<usize>| text_facts(body.get((*piece).clone()).unwrap_or_default()).len();
    let parts = (0..PARTS).map(|part| &rest[rest.len() * part / PARTS..rest.len() * (part + 1) / PARTS]);
    // The last of equal ones wins, so they are taken from the end.
    let best = parts.filter_map(|part| part.iter().rev().max_by_key(count));
    std::iter::once(first).chain(best).cloned().collect()
}

#[cfg(test)]
mod tests;
