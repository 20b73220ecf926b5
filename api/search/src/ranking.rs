//! The documents that a query finds in each way, and the order of all ways together.
//!
//! Invariant: ways are fused by rank. A document that only the words find is never lost to vectors.

use std::collections::{HashMap, HashSet};

use operators::knowledge::keep_best_hits;
use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::Column;
use tantivy::{DocId, Score, Searcher, SegmentOrdinal, SegmentReader};

use crate::Error;
use crate::parts::{PartMatch, part_matches};
use crate::query::{SearchMode, SearchQuery, parsed};
use crate::schema::DocumentFields;

/// Added to ranks before they are fused.
const RANK_OFFSET: f32 = 60.0;
/// The least share of a query's parts in the best hit by words with which words count. Half was proposed, of parts
/// without the frame of a word; a typo spoils more of framed ones.
const MIN_WORD_COVERAGE: f32 = 0.4;
/// Weight of words and parts where no word fits: they only follow the vectors.
const FOLLOWING_WEIGHT: f32 = 0.001;

/// The documents that have words or parts of words of a query.
#[derive(Debug)]
pub(crate) struct QueryMatches {
    words: Vec<(usize, f32)>,
    parts: Vec<PartMatch>,
    /// The documents with all phrases, if the query has phrases.
    phrases: Option<HashSet<usize>>,
}

impl QueryMatches {
    /// Reads what matches a query; `None` if it has no word. `has_vectors` says that vectors can be compared.
    pub(crate) fn read(
        query: &SearchQuery,
        has_vectors: bool,
        fields: &DocumentFields,
        searcher: &Searcher,
    ) -> Result<Option<Self>, Error> {
        let Some(parsed) = parsed(&query.text, fields) else {
            return Ok(None);
        };
        let is_lexical = query.mode != SearchMode::Semantic || !has_vectors;
        let mut words = Vec::new();
        if is_lexical || parsed.has_phrases {
            words = searcher.search(&parsed.words, &MatchCollector)?;
        }
        if let (true, true, Some(common)) = (is_lexical, words.is_empty(), &parsed.common) {
            words = searcher.search(common, &MatchCollector)?;
        }
        let phrases: Option<HashSet<usize>> = parsed
            .has_phrases
            .then(|| words.iter().map(|(slot, _)| *slot).collect());
        let mut matches = Self {
            words,
            parts: if is_lexical {
                part_matches(&query.text, fields, searcher)?
            } else {
                Vec::new()
            },
            phrases,
        };
        if let Some(phrases) = &matches.phrases {
            matches.parts.retain(|found| phrases.contains(&found.slot));
        }
        Ok(Some(matches))
    }

    /// Returns true unless the query has a phrase that the document lacks.
    pub(crate) fn allows(&self, slot: usize) -> bool {
        self.phrases.as_ref().is_none_or(|phrases| phrases.contains(&slot))
    }

    pub(crate) fn retain(&mut self, keeps: impl Fn(usize) -> bool) {
        self.words.retain(|(slot, _)| keeps(*slot));
        self.parts.retain(|found| keeps(found.slot));
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = usize> {
        let words = self.words.iter().map(|(slot, _)| *slot);
        words.chain(self.parts.iter().map(|found| found.slot))
    }

    /// Sums the reciprocal ranks of the best `most` by words, by parts, and of those that are near by vectors.
    pub(crate) fn fused(self, near: Option<Vec<(usize, f32)>>, most: usize) -> Vec<(usize, f32)> {
        let Self {
            mut words,
            parts,
            phrases,
        } = self;
        let mut by_parts: Vec<(usize, f32)> = parts.iter().map(|found| (found.slot, found.score)).collect();
        keep_best_hits(&mut words, most);
        keep_best_hits(&mut by_parts, most);
        let is_best = |slot: usize| {
            [&words, &by_parts]
                .iter()
                .any(|hits| hits.first().is_some_and(|hit| hit.0 == slot))
        };
        let of_best = parts.iter().filter(|found| is_best(found.slot));
        let coverage = of_best.map(|found| found.coverage).fold(0.0, f32::max);
        // Where no word fits, as across languages, the ranks of words are chance and would spoil those of vectors.
        let fits = near.is_none() || phrases.is_some() || coverage >= MIN_WORD_COVERAGE;
        let weight = if fits { 1.0 } else { FOLLOWING_WEIGHT };
        let mut sums: HashMap<usize, f32> = HashMap::new();
        for (hits, weight) in [(words, weight), (by_parts, weight), (near.unwrap_or_default(), 1.0)] {
            for (rank, (slot, _)) in hits.into_iter().enumerate() {
                // Ranks are fused and not scores: those of words and cosines have no common measure.
                #[expect(clippy::cast_precision_loss, reason = "ranks are small")]
                let share = weight / (RANK_OFFSET + rank as f32 + 1.0);
                *sums.entry(slot).or_default() += share;
            }
        }
        sums.into_iter().collect()
    }
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
