//! The index: slots with facts, words in tantivy, vectors beside them.
//!
//! Invariant: a key has at most one live slot. A slot that is no longer live is in no answer, from the moment of its
//! removal and before the words are committed.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

use operators::knowledge::{ChunkVectors, QuantisedVector};
use parking_lot::{Mutex, RwLock};
use tantivy::schema::Value as _;
use tantivy::{IndexReader, IndexWriter, ReloadPolicy, TantivyDocument, Term};
use types::Timestamp;

use crate::Error;
use crate::document::{Document, DocumentFacts, DocumentKey};
use crate::facets::{Facet, FacetCount, FacetCounter};
use crate::folder::MirroredFolder;
use crate::kept_facts;
use crate::query::{SearchMode, SearchOrder, SearchQuery};
use crate::ranking::QueryMatches;
use crate::schema::{DocumentFields, register_tokenizers, schema};

/// Begins the note of each commit. It changes with the fields, the tokens and the facts: an index of another format is
/// built anew.
const INDEX_FORMAT: &str = "2\n";
/// Memory of the writer of words.
const WRITER_BYTES: usize = 128 << 20;
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
    is_kept: Arc<AtomicBool>,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Index").finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct DocumentSlots {
    /// The document of each slot, while it is live.
    entries: Vec<Option<IndexedDocument>>,
    by_key: HashMap<DocumentKey, usize>,
    /// Vectors of a model, which arrive later than the documents.
    vectors: Option<ChunkVectors>,
}

#[derive(Debug)]
struct IndexedDocument {
    key: DocumentKey,
    facts: DocumentFacts,
    has_vectors: bool,
}

impl Index {
    /// Creates an empty index in memory.
    pub fn new() -> Result<Self, Error> {
        Self::with_model(None)
    }

    /// Creates an empty index in memory that takes model vectors of length `dimensions`, if set.
    pub fn with_model(dimensions: Option<usize>) -> Result<Self, Error> {
        let (schema, _) = schema();
        let is_kept = Arc::new(AtomicBool::new(false));
        Self::over(&tantivy::Index::create_in_ram(schema), is_kept, dimensions)
    }

    /// Creates an empty index that is kept in a folder too, which is new or empty. No other process may use the folder.
    pub fn create(folder: &Path, dimensions: Option<usize>) -> Result<Self, Error> {
        let (schema, _) = schema();
        let files = MirroredFolder::create(folder)?;
        let is_whole = files.is_whole();
        let words = tantivy::Index::create(files, schema, tantivy::IndexSettings::default())?;
        Self::over(&words, is_whole, dimensions)
    }

    /// Opens the index of a folder as it was at its last commit, without vectors, and returns it with the note of that
    /// commit.
    ///
    /// # Errors
    /// A folder that is damaged, unfinished or of another format: it is of no more use.
    pub fn open(folder: &Path, dimensions: Option<usize>) -> Result<(Self, String), Error> {
        let files = MirroredFolder::open(folder)?;
        let is_whole = files.is_whole();
        let words = tantivy::Index::open(files)?;
        if words.schema() != schema().0 {
            return Err(Error::Unusable("it has other fields"));
        }
        if !words.validate_checksum()?.is_empty() {
            return Err(Error::Unusable("a file is damaged"));
        }
        let note = words
            .load_metas()?
            .payload
            .ok_or(Error::Unusable("it was never committed"))?;
        let note = note
            .strip_prefix(INDEX_FORMAT)
            .ok_or(Error::Unusable("it has another format"))?
            .to_owned();
        let index = Self::over(&words, is_whole, dimensions)?;
        index.read_slots()?;
        Ok((index, note))
    }

    fn over(words: &tantivy::Index, is_kept: Arc<AtomicBool>, dimensions: Option<usize>) -> Result<Self, Error> {
        let (_, fields) = schema();
        register_tokenizers(words);
        Ok(Self {
            fields,
            slots: RwLock::new(DocumentSlots {
                entries: Vec::new(),
                by_key: HashMap::new(),
                vectors: dimensions.map(ChunkVectors::new),
            }),
            is_kept,
            writer: Mutex::new(words.writer(WRITER_BYTES)?),
            reader: words.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?,
        })
    }

    /// Makes the slots of the documents in the index of words.
    fn read_slots(&self) -> Result<(), Error> {
        let searcher = self.reader.searcher();
        let documents = searcher.num_docs();
        let most = usize::try_from(documents).unwrap_or(usize::MAX).saturating_mul(2) + 2 * MIN_DEAD_SLOTS;
        let mut slots = self.slots.write();
        for segment in searcher.segment_readers() {
            let numbers = segment.fast_fields().u64("slot")?;
            let store = segment.get_store_reader(1).map_err(tantivy::TantivyError::from)?;
            for document in segment.doc_ids_alive() {
                let kept: TantivyDocument = store.get(document)?;
                let facts = kept.get_first(self.fields.facts).and_then(|facts| facts.as_str());
                let slot = numbers.first(document).and_then(|slot| usize::try_from(slot).ok());
                let (Some((key, facts)), Some(slot)) = (facts.and_then(kept_facts::decoded), slot) else {
                    return Err(Error::Unusable("a document has no facts"));
                };
                if slot >= most {
                    return Err(Error::Unusable("its documents are far apart"));
                }
                if slot >= slots.entries.len() {
                    slots.entries.resize_with(slot + 1, || None);
                }
                slots.by_key.insert(key.clone(), slot);
                slots.entries[slot] = Some(IndexedDocument {
                    key,
                    facts,
                    has_vectors: false,
                });
            }
        }
        let live = slots.entries.iter().flatten().count();
        // Two live documents of one key, or two of one slot, come from no run of this program.
        if live != slots.by_key.len() || live as u64 != documents {
            return Err(Error::Unusable("its documents contradict each other"));
        }
        Ok(())
    }

    /// Adds a document, or replaces the one of its key. Its words are found after [`commit`](Self::commit).
    pub fn put(&self, document: &Document) -> Result<(), Error> {
        let mut words = self.fields.words(document);
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
            slots.entries.push(Some(IndexedDocument {
                key: document.key.clone(),
                facts: document.facts.clone(),
                has_vectors: false,
            }));
            slots.by_key.insert(document.key.clone(), slot);
            slot
        };
        words.add_u64(self.fields.slot, slot as u64);
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
            && let Some(Some(entry)) = slots.entries.get_mut(slot)
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
        let entry = entries.get_mut(missing.slot).filter(|_| is_current);
        let (Some(vectors), Some(Some(entry))) = (vectors, entry) else {
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
        self.commit_with("")
    }

    /// Makes the words of all documents so far findable, and keeps a note beside them that [`open`](Self::open) returns.
    pub fn commit_with(&self, note: &str) -> Result<(), Error> {
        let mut writer = self.writer.lock();
        let mut commit = writer.prepare_commit()?;
        commit.set_payload(&format!("{INDEX_FORMAT}{note}"));
        commit.commit()?;
        self.reader.reload()?;
        Ok(())
    }

    /// Rewrites the words without those of documents that were removed, which stay in the files until then. Changes wait
    /// meanwhile, for seconds where the index is large; searches do not.
    pub fn purge(&self) -> Result<(), Error> {
        let mut writer = self.writer.lock();
        for segment in writer.index().searchable_segment_metas()? {
            // One that is being merged already loses the words by that.
            if segment.num_deleted_docs() > 0 && writer.merge(&[segment.id()]).wait().is_ok() {
                self.reader.reload()?;
            }
        }
        writer.garbage_collect_files().wait()?;
        Ok(())
    }

    /// Returns true if a folder has all that was committed: false in memory, and once the folder could not be written.
    pub fn is_kept(&self) -> bool {
        self.is_kept.load(atomic::Ordering::Relaxed)
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
        let has_vectors = query.vector.is_some() && self.slots.read().vectors.is_some();
        let matches = QueryMatches::read(query, has_vectors, &self.fields, &self.reader.searcher())?;
        let is_exact = query.mode == SearchMode::Keyword || matches.is_none();
        let slots = self.slots.read();
        let mut counter = FacetCounter::new(&query.filter, now);
        let ranked = match matches {
            // Without words every document matches, and the order below puts the newest first.
            None => slots.by_key.values().map(|slot| (*slot, 0.0)).collect(),
            Some(matches) => slots.ranked(matches, query),
        };
        let mut kept: Vec<(&IndexedDocument, f32)> = Vec::with_capacity(ranked.len());
        for (slot, score) in ranked {
            if let Some(entry) = slots
                .live(slot)
                .filter(|entry| counter.passes(&entry.key, &entry.facts))
            {
                kept.push((entry, score * entry.facts.standing.weight()));
            }
        }
        let order = |(first, score): &(&IndexedDocument, f32), (second, other): &(&IndexedDocument, f32)| {
            let asked = match query.order {
                SearchOrder::Best => Ordering::Equal,
                SearchOrder::Newest => second.facts.published_at.cmp(&first.facts.published_at),
                SearchOrder::Cheapest => first.facts.price_micro.cmp(&second.facts.price_micro),
                SearchOrder::Score => second.facts.score.cmp(&first.facts.score),
            };
            asked
                .then_with(|| other.total_cmp(score))
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
            hits: hits.map(|(entry, _)| entry.key.clone()).collect(),
            total,
            is_exact,
            facets: counter.counted(),
        })
    }
}

impl DocumentSlots {
    fn live(&self, slot: usize) -> Option<&IndexedDocument> {
        self.entries.get(slot).and_then(Option::as_ref)
    }

    fn has_vectors(&self, slot: usize) -> bool {
        self.live(slot).is_some_and(|entry| entry.has_vectors)
    }

    fn remove(&mut self, key: &DocumentKey) -> bool {
        let Some(slot) = self.by_key.remove(key) else {
            return false;
        };
        if let Some(entry) = self.entries.get_mut(slot) {
            *entry = None;
        }
        true
    }

    /// Returns the candidates of a query with their scores, in no order.
    fn ranked(&self, mut matches: QueryMatches, query: &SearchQuery) -> Vec<(usize, f32)> {
        let live = |slot: usize| self.live(slot).is_some();
        let passes = |slot: usize| {
            let entry = self.live(slot);
            entry.is_some_and(|entry| query.filter.is_satisfied(&entry.key, &entry.facts))
        };
        let vector = query.vector.as_deref().map(QuantisedVector::of);
        let vectors = self.vectors.as_ref().zip(vector.as_ref());
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
                let mut found: Vec<usize> = matches.slots().collect();
                found.sort_unstable();
                found.dedup();
                // Filtered before the cut to the best: with a narrow filter, all of them could fail it.
                matches.retain(passes);
                let scores: HashMap<usize, f32> = matches.fused(None, MAX_RANKED_HITS).into_iter().collect();
                let scored = |slot: usize| (slot, scores.get(&slot).copied().unwrap_or(0.0));
                found.into_iter().map(scored).collect()
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
