//! Vectors of a model for the search: of documents in the background, of queries as they come.
//!
//! Invariant: the vectors of a model are used only once nearly every document has one, and a search never waits long for
//! the model: without its answer words are used alone, and the answer says so.

use std::collections::HashMap;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use operators::knowledge::{EmbeddedText, Embedder, QuantisedVector, TextRole};
use operators::screen::Cause;
use parking_lot::Mutex;
use search::{DocumentKey, Index, MissingVector};
use store::{NewVectors, Store};
use types::UnitId;
use types::unit::Judge;
use types::vocabulary::ItemKind;

use super::Error;

/// Documents whose stored vectors are read at a time.
const READ_DOCUMENTS: usize = 256;
/// Documents whose vectors are made at a time.
const FILLED: usize = 32;
/// The longest time that a search waits for the vector of its text.
const PATIENCE: Duration = Duration::from_secs(3);
/// Vectors of queries that are remembered.
const REMEMBERED: usize = 1_000;
/// Bytes of the scale before those of a vector.
const SCALE: usize = 4;

/// Embedder of the search, with the vectors of queries.
#[derive(Debug)]
pub(super) struct SearchModel {
    embedder: Arc<dyn Embedder>,
    /// True once nearly every document has a vector.
    is_ready: AtomicBool,
    /// Vectors by hashes of queries.
    queries: Mutex<HashMap<[u8; 32], Vec<f32>>>,
}

/// A text whose vector is missing.
struct MissingText {
    missing: MissingVector,
    /// Version of a unit, or id of a dataset.
    item: String,
    chain: Option<UnitId>,
    title: String,
    body: String,
    hash: Vec<u8>,
}

impl SearchModel {
    pub(super) fn new(embedder: Arc<dyn Embedder>) -> Self {
        Self {
            embedder,
            is_ready: AtomicBool::new(false),
            queries: Mutex::default(),
        }
    }

    pub(super) fn dimensions(&self) -> usize {
        self.embedder.dimensions()
    }

    pub(super) fn judge(&self) -> Judge {
        self.embedder.judge()
    }

    /// Returns the vector of a query, unless documents or the model are not there yet.
    pub(super) async fn query(&self, text: &str) -> Option<Vec<f32>> {
        // With vectors of few documents, all others would seem to match nothing.
        if !self.is_ready.load(Ordering::Relaxed) {
            return None;
        }
        let hash = *blake3::hash(text.as_bytes()).as_bytes();
        if let Some(known) = self.queries.lock().get(&hash) {
            return Some(known.clone());
        }
        let texts = [EmbeddedText { title: text, body: "" }];
        // No lock is held while the model works, so two searches with the same text may both ask. Their
        // vectors are equal.
        let vectors = tokio::time::timeout(PATIENCE, self.embedder.embed(&texts, TextRole::Query)).await;
        let vector = vectors.ok()?.ok()?.into_iter().flatten().next()?;
        let mut queries = self.queries.lock();
        if queries.len() >= REMEMBERED {
            // Emptied as a whole: keeping an order would cost every search, and a lost vector costs one
            // call of the model.
            queries.clear();
        }
        queries.insert(hash, vector.clone());
        Some(vector)
    }

    /// Gives documents of the index their vectors, from the database or by the model, until all have one or the model
    /// does not answer.
    pub(super) async fn fill(&self, store: &Store, index: &Index) -> Result<(), Error> {
        'rounds: loop {
            let missing = index.without_vector(READ_DOCUMENTS);
            if missing.is_empty() {
                break;
            }
            let mut texts = read(store, index, missing).await?;
            let items: Vec<String> = texts.iter().map(|text| text.item.clone()).collect();
            let mut stored: HashMap<(String, Vec<u8>), Vec<QuantisedVector>> = HashMap::new();
            for row in store.searching().vectors(self.embedder.id(), &items).await? {
                stored
                    .entry((row.item, row.hash))
                    .or_default()
                    .extend(decoded(&row.vector));
            }
            texts.retain(|text| {
                let known = stored.get(&(text.item.clone(), text.hash.clone()));
                // Stored vectors that the index does not take, such as those of other dimensions, are
                // made anew.
                known.is_none_or(|vectors| !index.set_vectors(&text.missing, vectors))
            });
            for texts in texts.chunks(FILLED) {
                if !self.make(store, index, texts).await? {
                    break 'rounds;
                }
            }
        }
        // Also when the model fell silent: documents that came meanwhile may have made the vectors too
        // few.
        self.is_ready.store(index.is_modelled(), Ordering::Relaxed);
        Ok(())
    }

    /// Makes and keeps the vectors of texts. Returns false if the model does not answer.
    async fn make(&self, store: &Store, index: &Index, texts: &[MissingText]) -> Result<bool, Error> {
        let inputs: Vec<EmbeddedText<'_>> = texts
            .iter()
            .map(|text| EmbeddedText {
                title: &text.title,
                body: &text.body,
            })
            .collect();
        let vectors = match self.embedder.embed(&inputs, TextRole::Document).await {
            Ok(vectors) => Some(vectors.iter().map(|pieces| QuantisedVector::of_each(pieces)).collect()),
            // One text that the model refuses fails the whole call, so each is tried alone.
            Err(error) if error.reason == Cause::Text => self.each(&inputs).await,
            Err(_) => None,
        };
        let Some(vectors) = vectors else {
            return Ok(false);
        };
        for (text, pieces) in texts.iter().zip(vectors) {
            let new = NewVectors {
                item: text.item.clone(),
                hash: text.hash.clone(),
                vectors: pieces.iter().map(encoded).collect(),
            };
            let searching = store.searching();
            // An erased unit is out of the index soon.
            if searching.keep_vectors(self.embedder.id(), text.chain, new).await? {
                index.set_vectors(&text.missing, &pieces);
            } else {
                index.remove(&text.missing.key);
            }
        }
        Ok(true)
    }

    /// Returns the vectors of each text, asked for alone. A text to which the model gives none gets one that is near to
    /// nothing, so that it keeps no other waiting. Returns `None` if the model does not answer.
    async fn each(&self, texts: &[EmbeddedText<'_>]) -> Option<Vec<Vec<QuantisedVector>>> {
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            let text = slice::from_ref(text);
            vectors.push(match self.embedder.embed(text, TextRole::Document).await {
                Ok(found) => QuantisedVector::of_each(found.first()?),
                Err(error) if error.reason == Cause::Text => {
                    vec![QuantisedVector::near_to_nothing(self.embedder.dimensions())]
                }
                Err(_) => return None,
            });
        }
        Some(vectors)
    }
}

/// Reads the texts of documents. What is not shown any more leaves the index.
async fn read(store: &Store, index: &Index, missing: Vec<MissingVector>) -> Result<Vec<MissingText>, Error> {
    let ids = |kind: ItemKind| -> Vec<String> {
        let of_kind = missing.iter().filter(|missing| missing.key.kind == kind);
        of_kind.map(|missing| missing.key.id.clone()).collect()
    };
    let (units, datasets) = (ids(ItemKind::Unit), ids(ItemKind::Dataset));
    let searching = store.searching();
    let (units, datasets) = tokio::try_join!(searching.units(&units), searching.datasets(&datasets))?;
    let of_unit = |unit: store::Unit| {
        let key = DocumentKey {
            kind: ItemKind::Unit,
            id: unit.chain.id.to_string(),
        };
        (key, (unit.id.to_string(), Some(unit.chain.id), unit.title, unit.body))
    };
    let of_dataset = |project: store::Project| {
        let id = project.id.to_string();
        let key = DocumentKey {
            kind: ItemKind::Dataset,
            id: id.clone(),
        };
        (key, (id, None, project.title, project.readme))
    };
    let mut shown: HashMap<DocumentKey, _> = units
        .into_iter()
        .map(of_unit)
        .chain(datasets.into_iter().map(of_dataset))
        .collect();
    let mut texts = Vec::with_capacity(missing.len());
    for missing in missing {
        let Some((item, chain, title, body)) = shown.remove(&missing.key) else {
            // It was deleted or hidden after the index named it, and would be asked for in every round.
            index.remove(&missing.key);
            continue;
        };
        let hash = blake3::hash([&title, "\n", &body].concat().as_bytes());
        texts.push(MissingText {
            missing,
            item,
            chain,
            title,
            body,
            hash: hash.as_bytes().to_vec(),
        });
    }
    Ok(texts)
}

fn encoded(vector: &QuantisedVector) -> Vec<u8> {
    let bytes = vector.bytes.iter().map(|byte| byte.to_le_bytes()[0]);
    vector.scale.to_le_bytes().into_iter().chain(bytes).collect()
}

fn decoded(stored: &[u8]) -> Option<QuantisedVector> {
    let (scale, bytes) = stored.split_at_checked(SCALE)?;
    Some(QuantisedVector {
        scale: f32::from_le_bytes(scale.try_into().ok()?),
        bytes: bytes.iter().map(|byte| i8::from_le_bytes([*byte])).collect(),
    })
}
