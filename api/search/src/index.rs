//! The index: slots with facts, words in tantivy, vectors beside them.
//!
//! Invariant: a key has at most one live slot. A slot that is no longer live is in no answer, from the moment of its
//! removal and before the words are committed.

use std::collections::HashMap;

use operators::knowledge::QuantisedVector;
use parking_lot::{Mutex, RwLock};
use tantivy::{IndexReader, IndexWriter, ReloadPolicy, TantivyDocument, Term};
use types::Timestamp;

use crate::Error;
use crate::document::{Document, DocumentFacts, DocumentKey};
use crate::facets::{Facet, FacetCount, FacetCounter};
use crate::query::{SearchMode, SearchQuery};
use crate::ranking::QueryMatches;
use crate::schema::{DocumentFields, create};
use crate::vectors::ChunkVectors;

/// Memory of the writer of words.
const WRITER_BYTES: usize = 64 << 20;
/// The most hits of a search, however many match.
const MAX_RANKED_HITS: usize = 1000;
/// Dead slots that are kept in any case.
const MIN_DEAD_SLOTS: usize = 10_000;
/// Hits of each way that are fused.
const FUSED_HITS: usize = 100;
/// The least cosine of a hit.
const MIN_COSINE: f32 = 0.15;
/// The share of the documents in percent whose vectors must be there before a model's are used.
const MODELLED_PERCENT: usize = 99;

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// Keys of the hits, the best first.
    pub hits: Vec<DocumentKey>,
    /// Number of matches, or of candidates.
    pub total: usize,
    /// True if every match is counted.
    pub is_exact: bool,
    /// Counts of the values of each facet, the most frequent first.
    pub facets: Vec<(Facet, Vec<FacetCount>)>,
}

/// A document without a vector of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingVector {
    /// Name of the document that lacks the vector.
    pub key: DocumentKey,
    slot: usize,
}

/// The index of the search. All methods block for milliseconds.
pub struct Index {
    fields: DocumentFields,
    slots: RwLock<DocumentSlots>,
    writer: Mutex<IndexWriter<TantivyDocument>>,
    reader: IndexReader,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Index").finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct DocumentSlots {
    entries: Vec<IndexedDocument>,
    by_key: HashMap<DocumentKey, usize>,
    /// Vectors of a model, which arrive later than the documents.
    vectors: Option<ChunkVectors>,
}

#[derive(Debug)]
struct IndexedDocument {
    key: DocumentKey,
    facts: DocumentFacts,
    is_live: bool,
    has_vectors: bool,
}

impl Index {
    /// Creates an empty index in memory.
    pub fn new() -> Result<Self, Error> {
        Self::with_model(None)
    }

    /// Creates an empty index in memory that takes model vectors of length `dimensions`, if set.
    pub fn with_model(dimensions: Option<usize>) -> Result<Self, Error> {
        let (index, fields) = create();
        let writer = index.writer(WRITER_BYTES)?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Self {
            fields,
            slots: RwLock::new(DocumentSlots {
                entries: Vec::new(),
                by_key: HashMap::new(),
                vectors: dimensions.map(ChunkVectors::new),
            }),
            writer: Mutex::new(writer),
            reader,
        })
    }

    /// Adds a document, or replaces the one of its key. Its words are found after [`commit`](Self::commit).
    pub fn put(&self, document: &Document) -> Result<(), Error> {
        // Held until the words are added: two puts of one key would otherwise delete each other's
        // words, or leave those of both.
        let writer = self.writer.lock();
        let slot = {
            let mut slots = self.slots.write();
            // Words that are not there need no deletion, which each commit looks for in all documents.
            if slots.remove(&document.key) {
                writer.delete_term(Term::from_field_text(self.fields.id, &document.key.term()));
            }
            // A slot is never used again. Words of a replaced document may still be found until the
            // next commit, and would show the new document under the old words.
            let slot = slots.entries.len();
            slots.entries.push(IndexedDocument {
                key: document.key.clone(),
                facts: document.facts.clone(),
                is_live: true,
                has_vectors: false,
            });
            slots.by_key.insert(document.key.clone(), slot);
            slot
        };
        writer.add_document(self.fields.words(document, slot))?;
        Ok(())
    }

    /// Adds documents on all cores, as [`put`](Self::put) does.
    pub fn put_all(&self, documents: &[Document]) -> Result<(), Error> {
        let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let share = documents.len().div_ceil(workers).max(1);
        std::thread::scope(|scope| {
            let parts = documents.chunks(share);
            let tasks: Vec<_> = parts
                .map(|part| scope.spawn(move || part.iter().try_for_each(|document| self.put(document))))
                .collect();
            let done = tasks.into_iter().map(|task| task.join().unwrap_or(Err(Error::Stopped)));
            done.collect()
        })
    }

    /// Removes a document. It is in no later answer.
    pub fn remove(&self, key: &DocumentKey) {
        let writer = self.writer.lock();
        // The slot dies first, because a search looks at slots after words: from here on no search
        // shows the document, although its words stay until the next commit.
        let removed = self.slots.write().remove(key);
        if removed {
            writer.delete_term(Term::from_field_text(self.fields.id, &key.term()));
        }
    }

    /// Sets the time by which a document is ordered and filtered; its words stay. Nothing happens to a key without one.
    pub fn set_time(&self, key: &DocumentKey, at: Timestamp) {
        let mut slots = self.slots.write();
        if let Some(slot) = slots.by_key.get(key).copied()
            && let Some(entry) = slots.entries.get_mut(slot)
        {
            entry.facts.published_at = at;
        }
    }

    /// Gives a document the vectors of its pieces by the model, in place of those that it had. Returns false if the
    /// document was replaced or removed meanwhile, or one has other dimensions.
    pub fn set_vectors(&self, missing: &MissingVector, pieces: &[QuantisedVector]) -> bool {
        let mut slots = self.slots.write();
        // The vectors come back from a provider seconds later. By then the slot may hold an older text.
        let is_current = slots.by_key.get(&missing.key) == Some(&missing.slot);
        let DocumentSlots { entries, vectors, .. } = &mut *slots;
        let (Some(vectors), Some(entry)) = (vectors, entries.get_mut(missing.slot).filter(|_| is_current)) else {
            return false;
        };
        if entry.has_vectors {
            vectors.take(missing.slot);
        }
        entry.has_vectors = vectors.add(missing.slot, pieces);
        entry.has_vectors
    }

    /// Returns documents without vectors of the model, at most `most`.
    pub fn without_vector(&self, most: usize) -> Vec<MissingVector> {
        let slots = self.slots.read();
        if slots.vectors.is_none() {
            return Vec::new();
        }
        let missing = slots.by_key.iter().filter(|(_, slot)| !slots.has_vectors(**slot));
        let missing = missing.map(|(key, slot)| MissingVector {
            key: key.clone(),
            slot: *slot,
        });
        missing.take(most).collect()
    }

    /// Returns true if the vectors of the model are there for nearly every document.
    pub fn is_modelled(&self) -> bool {
        let slots = self.slots.read();
        if slots.vectors.is_none() {
            return false;
        }
        let there = slots.by_key.values().filter(|slot| slots.has_vectors(**slot)).count();
        // A search by vectors alone would leave out every document that has none yet. A few may be
        // missing, since new documents always are for a moment.
        there * 100 >= slots.by_key.len() * MODELLED_PERCENT
    }

    /// Makes the words of all documents so far findable.
    pub fn commit(&self) -> Result<(), Error> {
        self.writer.lock().commit()?;
        self.reader.reload()?;
        Ok(())
    }

    /// Returns the number of documents.
    pub fn count(&self) -> usize {
        self.slots.read().by_key.len()
    }

    /// Returns true if more than half of the memory is of documents that were removed or replaced.
    pub fn is_mostly_dead(&self) -> bool {
        let slots = self.slots.read();
        slots.entries.len() > 2 * slots.by_key.len() + MIN_DEAD_SLOTS
    }

    /// Returns the documents and facets that a query finds at `now`.
    pub fn search(&self, query: &SearchQuery, now: Timestamp) -> Result<SearchResult, Error> {
        // Words first: they read the slots that their documents were given, all of which exist already.
        let matches = QueryMatches::read(query, &self.fields, &self.reader.searcher())?;
        let slots = self.slots.read();
        let mut counter = FacetCounter::new(&query.filter, now);
        let ranked = match matches {
            // Without words every document matches, and the order below puts the newest first.
            None => slots.by_key.values().map(|slot| (*slot, 0.0)).collect(),
            Some(matches) => slots.ranked(matches, query),
        };
        let mut kept: Vec<(usize, f32)> = Vec::with_capacity(ranked.len());
        for (slot, score) in ranked {
            let entry = &slots.entries[slot];
            if counter.passes(&entry.key, &entry.facts) {
                kept.push((slot, score));
            }
        }
        let order = |one: &(usize, f32), other: &(usize, f32)| {
            let (first, second) = (&slots.entries[one.0], &slots.entries[other.0]);
            let by_score = other.1.total_cmp(&one.1);
            by_score
                .then_with(|| second.facts.published_at.cmp(&first.facts.published_at))
                .then_with(|| second.facts.score.cmp(&first.facts.score))
                .then_with(|| first.key.id.cmp(&second.key.id))
        };
        let total = kept.len();
        let wanted = query.offset.saturating_add(query.limit).min(MAX_RANKED_HITS);
        // Only the pages asked for are sorted; the selection before it costs one pass over the matches.
        if kept.len() > wanted && wanted > 0 {
            kept.select_nth_unstable_by(wanted - 1, order);
            kept.truncate(wanted);
        }
        kept.sort_unstable_by(order);
        let hits = kept.into_iter().skip(query.offset).take(query.limit);
        Ok(SearchResult {
            hits: hits.map(|(slot, _)| slots.entries[slot].key.clone()).collect(),
            total,
            is_exact: query.mode == SearchMode::Keyword || query.text.trim().is_empty(),
            facets: counter.counted(),
        })
    }
}

impl DocumentSlots {
    fn has_vectors(&self, slot: usize) -> bool {
        self.entries.get(slot).is_some_and(|entry| entry.has_vectors)
    }

    fn remove(&mut self, key: &DocumentKey) -> bool {
        let removed = self.by_key.remove(key);
        if let Some(slot) = removed {
            self.entries[slot].is_live = false;
        }
        removed.is_some()
    }

    /// Returns the candidates of a query with their scores, in no order.
    fn ranked(&self, mut matches: QueryMatches, query: &SearchQuery) -> Vec<(usize, f32)> {
        let live = |slot: usize| self.entries.get(slot).is_some_and(|entry| entry.is_live);
        let passes = |slot: usize| {
            let entry = self.entries.get(slot).filter(|entry| entry.is_live);
            entry.is_some_and(|entry| query.filter.is_satisfied(&entry.key, &entry.facts))
        };
        let vectors = self.vectors.as_ref().zip(query.vector.as_deref());
        let nearest = |most: usize, keeps: &dyn Fn(usize) -> bool| {
            vectors.map(|(vectors, query)| vectors.nearest(query, MIN_COSINE, most, keeps))
        };
        match query.mode {
            SearchMode::Semantic if vectors.is_some() => {
                let keeps = |slot: usize| live(slot) && matches.allows(slot);
                nearest(MAX_RANKED_HITS, &keeps).unwrap_or_default()
            }
            SearchMode::Keyword => {
                // Every match is counted, also those that satisfy all conditions but one, for the facets.
                matches.retain(live);
                let mut scores: HashMap<usize, f32> = matches.slots().map(|slot| (slot, 0.0)).collect();
                // Filtered before the cut to the best: with a narrow filter, all of them could fail it.
                matches.retain(passes);
                scores.extend(matches.fused(None, MAX_RANKED_HITS));
                scores.into_iter().collect()
            }
            SearchMode::Auto | SearchMode::Semantic => {
                let near = nearest(FUSED_HITS, &|slot| passes(slot) && matches.allows(slot));
                matches.retain(passes);
                matches.fused(near, FUSED_HITS)
            }
        }
    }
}

#[cfg(test)]
mod tests;
