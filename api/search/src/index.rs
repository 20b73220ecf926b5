//! The index: slots with facts, words in tantivy, vectors beside them.
//!
//! Invariant: a key has at most one live slot. A slot that is no longer live is in no answer, from the moment of its
//! removal and before the words are committed.

use std::collections::HashMap;

use models::hashing::{HASHED_DIMENSIONS, HashingEmbedder};
use operators::knowledge::QuantisedVector;
use parking_lot::{Mutex, RwLock};
use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::Column;
use tantivy::{
    DocId, IndexReader, IndexWriter, ReloadPolicy, Score, Searcher, SegmentOrdinal, SegmentReader, TantivyDocument,
    Term,
};
use types::Timestamp;

use crate::Error;
use crate::document::{Document, DocumentFacts, DocumentKey};
use crate::facets::{Facet, FacetCount, FacetCounter};
use crate::query::{SearchMode, SearchQuery, parsed};
use crate::schema::{DocumentFields, create};
use crate::vectors::{Vectors, best};

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
/// Added to ranks before they are fused.
const RANK_OFFSET: f32 = 60.0;
/// Weight of the vectors of a heuristic beside the words.
const HEURISTIC_WEIGHT: f32 = 0.6;
/// Weight of the vectors of a model beside the words.
const MODEL_WEIGHT: f32 = 1.0;
/// The share of the documents in percent whose vectors must be there before a model's are used.
const MODELLED_PERCENT: usize = 99;
/// A vector without dimensions, which stands for one that is not there yet.
const MISSING_VECTOR: QuantisedVector = QuantisedVector {
    scale: 0.0,
    bytes: Vec::new(),
};
/// The most that a rare word weighs in the vector of a query.
const MAX_WORD_WEIGHT: f32 = 6.0;

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
    vectors: Vectors,
    /// Vectors of a model, which arrive later than the documents.
    modelled: Option<Vectors>,
}

#[derive(Debug)]
struct IndexedDocument {
    key: DocumentKey,
    facts: DocumentFacts,
    is_live: bool,
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
                vectors: Vectors::new(HASHED_DIMENSIONS),
                modelled: dimensions.map(Vectors::new),
            }),
            writer: Mutex::new(writer),
            reader,
        })
    }

    /// Adds a document, or replaces the one of its key. Its words are found after [`commit`](Self::commit).
    pub fn put(&self, document: &Document) -> Result<(), Error> {
        let vector = QuantisedVector::of(&HashingEmbedder::document(&document.title, &document.body));
        // Held until the words are added: two puts of one key would otherwise delete each other's
        // words, or leave those of both.
        let writer = self.writer.lock();
        let term = Term::from_field_text(self.fields.id, &document.key.term());
        writer.delete_term(term);
        let slot = {
            let mut slots = self.slots.write();
            slots.remove(&document.key);
            // A slot is never used again. Words of a replaced document may still be found until the
            // next commit, and would show the new document under the old words.
            let slot = slots.entries.len();
            slots.entries.push(IndexedDocument {
                key: document.key.clone(),
                facts: document.facts.clone(),
                is_live: true,
            });
            slots.by_key.insert(document.key.clone(), slot);
            slots.vectors.push(&vector);
            if let Some(modelled) = &mut slots.modelled {
                modelled.push(&MISSING_VECTOR);
            }
            slot
        };
        let mut words = TantivyDocument::default();
        words.add_text(self.fields.id, document.key.term());
        words.add_u64(self.fields.slot, slot as u64);
        words.add_text(self.fields.title, &document.title);
        words.add_text(self.fields.terms, document.terms.join("\n"));
        words.add_text(self.fields.code, format!("{}\n{}", document.title, document.body));
        words.add_text(self.fields.body, &document.body);
        words.add_text(self.fields.source, &document.source);
        writer.add_document(words)?;
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
        // The slot dies first, because a search looks at slots after words: from here on no search
        // shows the document, although its words stay until the next commit.
        self.slots.write().remove(key);
        let term = Term::from_field_text(self.fields.id, &key.term());
        self.writer.lock().delete_term(term);
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

    /// Adds the vector of a document by the model. Returns false if the document was replaced or removed meanwhile, or
    /// the vector has other dimensions.
    pub fn set_vector(&self, missing: &MissingVector, vector: &QuantisedVector) -> bool {
        let mut slots = self.slots.write();
        // The vector comes back from a provider seconds later. By then the slot may hold an older text.
        let is_current = slots.by_key.get(&missing.key) == Some(&missing.slot);
        let modelled = slots.modelled.as_mut().filter(|_| is_current);
        modelled.is_some_and(|modelled| modelled.set(missing.slot, vector))
    }

    /// Returns documents without a vector of the model, at most `most`.
    pub fn without_vector(&self, most: usize) -> Vec<MissingVector> {
        let slots = self.slots.read();
        let Some(modelled) = &slots.modelled else {
            return Vec::new();
        };
        let missing = slots.by_key.iter().filter(|(_, slot)| !modelled.is_set(**slot));
        let missing = missing.map(|(key, slot)| MissingVector {
            key: key.clone(),
            slot: *slot,
        });
        missing.take(most).collect()
    }

    /// Returns true if the vectors of the model are there for nearly every document.
    pub fn is_modelled(&self) -> bool {
        let slots = self.slots.read();
        let Some(modelled) = &slots.modelled else {
            return false;
        };
        let there = slots.by_key.values().filter(|slot| modelled.is_set(**slot)).count();
        // Vectors of two kinds cannot be compared, so a search with the model's would leave out every
        // document that has none yet. A few may be missing, since new documents always are for a
        // moment.
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
        let searcher = self.reader.searcher();
        // Words first: they read the slots that their documents were given, all of which exist already.
        let words = parsed(&query.text, &self.fields);
        let by_words = match (&words, query.mode) {
            (Some(words), SearchMode::Keyword | SearchMode::Auto) => Some(searcher.search(words, &MatchCollector)?),
            _ => None,
        };
        let vector = match query.mode {
            SearchMode::Semantic | SearchMode::Auto if words.is_some() => match &query.vector {
                Some(vector) => Some(vector.clone()),
                None => Some(self.vector(&query.text, &searcher)),
            },
            _ => None,
        };
        let slots = self.slots.read();
        let (vectors, weight) = match &slots.modelled {
            Some(modelled) if query.vector.is_some() => (modelled, MODEL_WEIGHT),
            _ => (&slots.vectors, HEURISTIC_WEIGHT),
        };
        let mut counter = FacetCounter::new(&query.filter, now);
        let live = |slot: usize| slots.entries.get(slot).is_some_and(|entry| entry.is_live);
        // Without words every document matches, and the order below puts the newest first.
        let ranked: Vec<(usize, f32)> = if words.is_none() {
            let all = slots.by_key.values();
            all.map(|slot| (*slot, 0.0)).collect()
        } else {
            let by_words = by_words.map(|mut found| {
                found.retain(|(slot, _)| live(*slot));
                found
            });
            // Candidates satisfy the conditions but for one, so that every facet can be counted.
            match query.mode {
                SearchMode::Keyword => by_words.unwrap_or_default(),
                SearchMode::Semantic => {
                    let vector = vector.unwrap_or_default();
                    vectors.nearest(&vector, MIN_COSINE, MAX_RANKED_HITS, live)
                }
                SearchMode::Auto => {
                    let passes = |slot: &usize| {
                        let entry = &slots.entries[*slot];
                        query.filter.is_satisfied(&entry.key, &entry.facts)
                    };
                    let vector = vector.unwrap_or_default();
                    // Filtered before the cut to the best hundred: with a narrow filter, all hundred
                    // could fail it.
                    let near = vectors.nearest(&vector, MIN_COSINE, FUSED_HITS, |slot| live(slot) && passes(&slot));
                    let mut words = by_words.unwrap_or_default();
                    words.retain(|(slot, _)| passes(slot));
                    best(&mut words, FUSED_HITS);
                    fused(&words, &near, weight)
                }
            }
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
            is_exact: words.is_none() || query.mode == SearchMode::Keyword,
            facets: counter.counted(),
        })
    }

    /// Returns the vector of a query, in which rare words weigh more.
    #[expect(clippy::cast_precision_loss, reason = "a logarithm needs few digits")]
    fn vector(&self, text: &str, searcher: &Searcher) -> Vec<f32> {
        let documents = searcher.num_docs().max(1) as f32;
        let idf = |word: &str| {
            let of_field = |field| searcher.doc_freq(&Term::from_field_text(field, word)).unwrap_or(0);
            let found = of_field(self.fields.body)
                .max(of_field(self.fields.title))
                .max(of_field(self.fields.code));
            // Bounded, since a word that no document has would drown the others of the query.
            (1.0 + documents / (found.max(1) as f32)).ln().min(MAX_WORD_WEIGHT)
        };
        HashingEmbedder::query(text, &idf)
    }
}

impl DocumentSlots {
    fn remove(&mut self, key: &DocumentKey) {
        if let Some(slot) = self.by_key.remove(key) {
            self.entries[slot].is_live = false;
        }
    }
}

/// Sums the reciprocal ranks of two orders. `weight` is that of the vectors beside the words.
#[expect(clippy::cast_precision_loss, reason = "ranks are small")]
fn fused(words: &[(usize, f32)], near: &[(usize, f32)], weight: f32) -> Vec<(usize, f32)> {
    let mut sums: HashMap<usize, f32> = HashMap::new();
    for (hits, weight) in [(words, 1.0), (near, weight)] {
        for (rank, (slot, _)) in hits.iter().enumerate() {
            // Ranks are fused and not scores: those of words and cosines have no common measure.
            *sums.entry(*slot).or_default() += weight / (RANK_OFFSET + rank as f32 + 1.0);
        }
    }
    sums.into_iter().collect()
}

/// Collects every match with its slot and score.
#[derive(Debug)]
struct MatchCollector;

struct SegmentMatches {
    slots: Column<u64>,
    found: Vec<(usize, f32)>,
}

impl Collector for MatchCollector {
    type Fruit = Vec<(usize, f32)>;
    type Child = SegmentMatches;

    fn for_segment(&self, _: SegmentOrdinal, segment: &SegmentReader) -> tantivy::Result<SegmentMatches> {
        Ok(SegmentMatches {
            slots: segment.fast_fields().u64("slot")?,
            found: Vec::new(),
        })
    }

    fn requires_scoring(&self) -> bool {
        true
    }

    fn merge_fruits(&self, found: Vec<Vec<(usize, f32)>>) -> tantivy::Result<Vec<(usize, f32)>> {
        Ok(found.concat())
    }
}

impl SegmentCollector for SegmentMatches {
    type Fruit = Vec<(usize, f32)>;

    fn collect(&mut self, document: DocId, score: Score) {
        if let Some(slot) = self.slots.first(document) {
            self.found.push((usize::try_from(slot).unwrap_or(usize::MAX), score));
        }
    }

    fn harvest(self) -> Vec<(usize, f32)> {
        self.found
    }
}

#[cfg(test)]
mod tests;
