//! Vectors of an embedding model.
//!
//! Invariant: a vector has the configured number of dimensions, only finite numbers and length 1; what the model answers
//! otherwise is no vector.

use std::sync::Arc;

use async_trait::async_trait;
use operators::knowledge::{EmbeddedText, Embedder, TextRole, Vector};
use operators::screen::Unavailable;
use serde::Deserialize;
use serde_json::json;
use types::unit::Judge;
use xxhash_rust::xxh3::xxh3_64;

use super::provider::{Provider, ProviderFailure, ProviderRequest};

/// Texts in one request.
const MAX_TEXTS_PER_REQUEST: usize = 32;
/// Code points of a body that are embedded.
const MAX_EMBEDDED_CHARACTERS: usize = 20_000;
/// Bytes of a number in an answer.
const BYTES_PER_NUMBER: u64 = 40;
/// Version of the way in which texts are put together.
const TEXT_FORM_VERSION: u32 = 1;

/// A text of our own, for which every model has a vector.
const PROBE_TEXT: EmbeddedText<'static> = EmbeddedText {
    title: "An index on the date",
    body: "The median of 40 runs fell from 812 ms to 90 ms with an index on the date.",
};

/// The words that a model wants before each text, by the role of the text; empty for a model that wants none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextPrefixes {
    /// Before the text of a query, such as `query: `.
    pub query: String,
    /// Before a text that is found or compared, such as `passage: `.
    pub document: String,
}

impl TextPrefixes {
    const fn is_empty(&self) -> bool {
        self.query.is_empty() && self.document.is_empty()
    }

    fn of(&self, role: TextRole) -> &str {
        match role {
            TextRole::Document => &self.document,
            TextRole::Query => &self.query,
        }
    }

    /// Returns a number that other prefixes do not have.
    fn digest(&self) -> u64 {
        // The length keeps `a`, `bc` apart from `ab`, `c`.
        let length = self.query.len().to_string();
        xxh3_64([&length, ":", &self.query, &self.document].concat().as_bytes())
    }
}

/// An embedding model of a provider.
#[derive(Debug)]
pub struct RemoteEmbedder {
    provider: Arc<Provider>,
    model: String,
    dimensions: usize,
    prefixes: TextPrefixes,
    id: String,
}

impl RemoteEmbedder {
    /// Creates an embedder of a model whose vectors have `dimensions` numbers.
    pub fn new(provider: Arc<Provider>, model: impl Into<String>, dimensions: usize, prefixes: TextPrefixes) -> Self {
        let model = model.into();
        // Vectors are compared only under one id. A change of how texts are put together needs a new
        // version, or old and new vectors would be taken for each other's neighbours.
        let mut id = format!("{model}-{dimensions}-{TEXT_FORM_VERSION}");
        // Without prefixes the id is that of the vectors that were made before there were any.
        if !prefixes.is_empty() {
            id.extend(["-", &format!("{:016x}", prefixes.digest())]);
        }
        Self {
            provider,
            model,
            dimensions,
            prefixes,
            id,
        }
    }

    async fn some(&self, texts: &[EmbeddedText<'_>], role: TextRole) -> Result<Vec<Vector>, Unavailable> {
        if let Some(vectors) = self.vectors(texts, role).await? {
            return Ok(vectors);
        }
        // A text of our own tells texts that have no vectors from a model that gives none.
        let answers_others = self.vectors(&[PROBE_TEXT], role).await?.is_some();
        tracing::warn!(
            model = self.model,
            answers_others,
            "the answers of the embedding model cannot be used; what needs them waits"
        );
        Err(self.provider.unusable(answers_others))
    }

    /// Asks for vectors, at most twice. Returns `None` if no answer counts.
    async fn vectors(&self, texts: &[EmbeddedText<'_>], role: TextRole) -> Result<Option<Vec<Vector>>, Unavailable> {
        let prefix = self.prefixes.of(role);
        let inputs: Vec<String> = texts.iter().map(|text| input(prefix, text)).collect();
        let body = json!({"model": self.model, "input": inputs, "encoding_format": "float"});
        let request = ProviderRequest {
            path: "embeddings",
            body: &body,
            answer_tokens: 0,
            answer_bytes: (1 << 16) + (texts.len() * self.dimensions) as u64 * BYTES_PER_NUMBER,
        };
        for _ in 0..2 {
            match self.provider.ask(request).await {
                Ok(answer) => {
                    if let Some(vectors) = self.read(&answer, texts.len()) {
                        return Ok(Some(vectors));
                    }
                }
                Err(ProviderFailure::Unavailable(unavailable)) => return Err(unavailable),
                Err(ProviderFailure::Refused) => break,
            }
        }
        Ok(None)
    }

    /// Returns the vectors of an answer in the order of the texts, or `None` if it is not one for each.
    fn read(&self, body: &[u8], count: usize) -> Option<Vec<Vector>> {
        let answer: EmbeddingsAnswer = serde_json::from_slice(body).ok()?;
        if answer.data.len() != count {
            return None;
        }
        let mut vectors: Vec<Option<Vector>> = vec![None; count];
        for item in answer.data {
            // By the index of the answer: the API does not promise the order of the texts.
            let place = vectors.get_mut(item.index)?;
            if place.is_some() || item.embedding.len() != self.dimensions {
                return None;
            }
            *place = Some(unit_length(item.embedding)?);
        }
        vectors.into_iter().collect()
    }
}

#[async_trait]
impl Embedder for RemoteEmbedder {
    fn id(&self) -> &str {
        &self.id
    }

    fn judge(&self) -> Judge {
        Judge::model(&self.model)
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    async fn embed(&self, texts: &[EmbeddedText<'_>], role: TextRole) -> Result<Vec<Vec<Vector>>, Unavailable> {
        let mut vectors = Vec::with_capacity(texts.len());
        for texts in texts.chunks(MAX_TEXTS_PER_REQUEST) {
            let found = self.some(texts, role).await?;
            vectors.extend(found.into_iter().map(|vector| vec![vector]));
        }
        Ok(vectors)
    }
}

#[derive(Debug, Deserialize)]
struct EmbeddingsAnswer {
    data: Vec<EmbeddingItem>,
}

#[derive(Debug, Deserialize)]
struct EmbeddingItem {
    index: usize,
    embedding: Vec<f32>,
}

/// Returns the text that is embedded.
fn input(prefix: &str, text: &EmbeddedText<'_>) -> String {
    // Cut here, because a provider may refuse a text that is too long instead of cutting it.
    let body: String = text.body.chars().take(MAX_EMBEDDED_CHARACTERS).collect();
    let text = format!("{}\n{body}", text.title);
    // The space at the end of a prefix is a part of it.
    [prefix, text.trim()].concat()
}

/// Returns a vector with length 1, or `None` for one without a direction.
fn unit_length(mut vector: Vector) -> Option<Vector> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if !length.is_finite() || length <= f32::MIN_POSITIVE {
        return None;
    }
    for value in &mut vector {
        *value /= length;
    }
    // Length 1 makes the product of two vectors their cosine, without a division for each comparison.
    vector.iter().all(|value| value.is_finite()).then_some(vector)
}
