//! The published versions by their prints: finds the copies of a text among them, by its words, and by its facts and its
//! meaning.
//!
//! Invariant: a version is never compared with its own chain.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use types::{OperatorId, UnitId};
use xxhash_rust::xxh3::xxh3_64;

use super::NearestUnit;
use super::chunk_vectors::ChunkVectors;
use super::facts::{RARE_FACT_WEIGHT, SharedFacts, TextFact, compare_facts};
use super::fingerprint::{Fingerprint, QuantisedVector, SIGNATURE, Signature};

/// The bands of a signature.
const BANDS: usize = 32;
/// The bins of a band.
const ROWS: usize = SIGNATURE / BANDS;
/// The equal bins from which a text is a copy: 0.78 of them.
const NEAR_BINS: usize = 200;
/// The same for a text with few shingles: 0.90.
const NEAR_BINS_OF_FEW: usize = 231;
/// The number of shingles below which a text has few.
const FEW_SHINGLES: usize = 50;
/// The largest share of new quantities and identifiers in a near copy. Reports of one template have their words in common,
/// and their figures apart.
const MAX_NEW_DETAILS_OF_COPY: f32 = 0.2;
/// The least characters of known paragraphs that make a copy.
const PARTS: u32 = 300;
/// The share of known paragraphs that makes a copy, in percent.
const PARTS_PERCENT: u64 = 60;
/// The operators whose texts make a fact one that tells nothing.
const OPERATORS_OF_COMMON_FACT: usize = 3;
/// The versions that are remembered by a fact; others share other facts too.
const MAX_VERSIONS_OF_FACT: usize = 64;
/// Rare facts from which a version is compared fact by fact.
const MIN_SHARED_FACTS: usize = 2;
/// The versions that are compared fact by fact: those with the most shared facts.
const MAX_COMPARED_VERSIONS: usize = 32;
/// The cosine from which a text with the facts of a version is a copy of it. A paraphrase or a translation has 0.78 to 0.91
/// (`use-m3-1`), texts without a common subject up to 0.6.
const COPY_COSINE: f32 = 0.65;
/// The cosine from which a text is near whose few facts are those of a version.
const NEAR_FACTS_COSINE: f32 = 0.50;
/// The cosine from which a text without common facts is near.
const NEAR_COSINE: f32 = 0.90;
/// The versions with the nearest vectors to one of a text that are compared with it.
const NEAREST_VERSIONS: usize = 16;
/// The end of a list of slots.
const NONE: u32 = u32::MAX;

/// Hashes and vector of a published version, for comparisons.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedUnit {
    /// Id of the published version.
    pub unit: UnitId,
    /// Chain of the version.
    pub chain: UnitId,
    /// Seller of the version, if known. A fact that several sellers use tells nothing.
    pub operator: Option<OperatorId>,
    /// Hash of its text.
    pub text_hash: [u8; 32],
    /// Hashes of its long paragraphs.
    pub paragraphs: Vec<u64>,
    /// Signature, unless it was erased.
    pub signature: Option<Signature>,
    /// Hashes of its quantities and identifiers.
    pub details: Vec<u32>,
    /// Figures and names with their places; none if they were erased or are not made yet.
    pub facts: Vec<TextFact>,
    /// Vectors of its title and of parts; none if they were erased or another embedder made them.
    pub vectors: Vec<QuantisedVector>,
}

/// A text that is a copy of published text.
#[derive(Clone, Debug, PartialEq)]
pub enum CopiedText {
    /// The normal form is that of a unit.
    Exact(UnitId),
    /// Most of the text is that of a unit; the share from 0 to 1.
    Nearly(UnitId, f64),
    /// Most paragraphs are in published units; the share from 0 to 1, and one of the units.
    Parts(UnitId, f64),
}

/// The nearest published version by meaning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// Id of the published version.
    pub unit: UnitId,
    /// Mean over the parts of the text of the best cosine with a part of the version, from 0 to 1.
    pub cosine: f32,
    /// Rare facts that both texts have.
    pub shared_facts: usize,
    /// How alike the two are.
    pub likeness: Likeness,
}

/// How alike a text and a published version are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Likeness {
    /// Not more than any two texts.
    Distinct,
    /// Near in meaning, or with the facts of one whose meaning is not known yet. It is marked, and no more.
    Near,
    /// It has the facts of the other, and the meaning is alike.
    Copy,
}

impl Neighbour {
    /// Returns the facts of the neighbour that a scorer gets.
    pub const fn near(self) -> NearestUnit {
        NearestUnit {
            unit: Some(self.unit),
            cosine: self.cosine,
        }
    }
}

/// Result of a search for copies of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct CopySearch {
    /// The copy that the text is.
    pub copy: Option<CopiedText>,
    /// The largest share of equal bins among the candidates, from 0 to 1.
    pub share: f64,
}

/// All published versions, also those that are no longer shown.
#[derive(Debug, Default)]
pub struct PublishedUnits {
    units: Vec<Slot>,
    slots: HashMap<UnitId, u32>,
    by_hash: HashMap<[u8; 32], [u32; 2]>,
    by_paragraph: HashMap<u64, [u32; 2]>,
    /// The newest slot of each band.
    by_band: HashMap<u64, u32>,
    /// For each slot and band, the slot before it with the same band.
    before: Vec<[u32; BANDS]>,
    by_fact: HashMap<u32, FactPostings>,
    vectors: ChunkVectors,
    /// Slots without vectors whose text was not erased.
    without_vectors: usize,
}

/// The vectors of a text that are compared.
const MAX_COMPARED_VECTORS: usize = 8;

/// The best cosine of each vector of a text with any of a version.
#[derive(Clone, Debug)]
struct PieceCosines(Vec<f32>);

impl PieceCosines {
    fn of(vectors: &[QuantisedVector], best: impl Fn(&QuantisedVector) -> f32) -> Self {
        Self(vectors.iter().map(best).collect())
    }

    /// Returns the best, rounded: the last bits of a sum decide nothing.
    fn best(&self) -> f32 {
        rounded(self.0.iter().copied().fold(0.0, f32::max))
    }

    /// Returns the mean, rounded.
    fn mean(&self) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "there are at most eight")]
        let mean = self.0.iter().sum::<f32>() / self.0.len().max(1) as f32;
        rounded(mean)
    }
}

fn rounded(cosine: f32) -> f32 {
    (cosine * 100.0).round() / 100.0
}

/// Returns the vectors that stand for the body: the first of several is that of the title, and titles are often alike.
const fn of_body(vectors: &[QuantisedVector]) -> &[QuantisedVector] {
    match vectors {
        [_, rest @ ..] if !rest.is_empty() => rest,
        all => all,
    }
}

/// The versions with a fact.
#[derive(Debug, Default)]
struct FactPostings {
    slots: Vec<u32>,
    /// Different operators, up to [`OPERATORS_OF_COMMON_FACT`].
    operators: Vec<OperatorId>,
}

impl FactPostings {
    const fn is_common(&self) -> bool {
        self.operators.len() >= OPERATORS_OF_COMMON_FACT
    }
}

#[derive(Debug)]
struct Slot {
    unit: UnitId,
    chain: UnitId,
    operator: Option<OperatorId>,
    details: Vec<u32>,
    facts: Vec<TextFact>,
    signature: Option<Signature>,
    /// Rows of its vectors.
    rows: Range<usize>,
}

/// The published versions that are nearest to a text by its shingles.
#[derive(Debug, Default)]
struct NearestByShingles {
    /// The most equal bins of any.
    equal: usize,
    /// The nearest that has most of the details of the text too, with its equal bins.
    with_details: Option<(UnitId, usize)>,
}

impl Slot {
    fn equal_bins(&self, signature: &Signature) -> usize {
        self.signature.as_ref().map_or(0, |known| {
            let pairs = known.iter().zip(signature.iter());
            pairs.filter(|(one, other)| one == other).count()
        })
    }

    /// Returns the share of these details that the version lacks, from 0 to 1; 0 of none.
    fn new_details(&self, details: &[u32]) -> f32 {
        let is_new = |detail: &&u32| self.details.binary_search(detail).is_err();
        ratio(details.iter().filter(is_new).count(), details.len())
    }
}

impl PublishedUnits {
    /// Returns the number of versions.
    pub const fn len(&self) -> usize {
        self.units.len()
    }

    /// Returns true if nothing is published.
    pub const fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Returns true if the version is published.
    pub fn contains(&self, unit: UnitId) -> bool {
        self.slots.contains_key(&unit)
    }

    /// Adds a version. Does nothing if it is known.
    pub fn add(&mut self, unit: PublishedUnit) {
        let Ok(slot) = u32::try_from(self.units.len()) else {
            return;
        };
        if self.slots.contains_key(&unit.unit) {
            return;
        }
        if let Some(signature) = &unit.signature {
            self.add_bands(slot, signature);
        }
        self.without_vectors += usize::from(unit.signature.is_some());
        self.units.push(Slot {
            unit: unit.unit,
            chain: unit.chain,
            operator: unit.operator,
            details: unit.details,
            facts: Vec::new(),
            signature: unit.signature,
            rows: 0..0,
        });
        self.slots.insert(unit.unit, slot);
        self.set_facts(slot, unit.facts);
        self.set_vectors(slot, &unit.vectors);
        let units = &self.units;
        let chain_of = |slot: u32| units.get(slot as usize).map(|slot| slot.chain);
        remember(self.by_hash.entry(unit.text_hash).or_insert([NONE; 2]), slot, chain_of);
        for paragraph in unit.paragraphs {
            remember(self.by_paragraph.entry(paragraph).or_insert([NONE; 2]), slot, chain_of);
        }
    }

    fn add_bands(&mut self, slot: u32, signature: &Signature) {
        let mut before = [NONE; BANDS];
        for (before, band) in before.iter_mut().zip(bands(signature)) {
            *before = self.by_band.insert(band, slot).unwrap_or(NONE);
        }
        // Slots without a signature get an empty row, because the list is indexed by slot.
        self.before.resize(slot as usize, [NONE; BANDS]);
        self.before.push(before);
    }

    /// Gives a version facts or vectors that were made later. Does nothing where it has some, or is not known.
    pub fn supply(&mut self, unit: UnitId, facts: Vec<TextFact>, vectors: &[QuantisedVector]) {
        let Some(slot) = self.slots.get(&unit).copied() else {
            return;
        };
        let Some(known) = self.units.get(slot as usize) else {
            return;
        };
        let (has_facts, has_vectors) = (!known.facts.is_empty(), !known.rows.is_empty());
        if !has_facts {
            self.set_facts(slot, facts);
        }
        if !has_vectors {
            self.set_vectors(slot, vectors);
        }
    }

    /// Returns the number of versions whose vectors are not made yet. They are compared by their words and facts only. One
    /// whose prints were erased is none of them: it will never have any.
    pub const fn count_without_vectors(&self) -> usize {
        self.without_vectors
    }

    fn set_facts(&mut self, slot: u32, facts: Vec<TextFact>) {
        let Some(unit) = self.units.get_mut(slot as usize) else {
            return;
        };
        let mut last = None;
        for fact in &facts {
            if fact.weight < RARE_FACT_WEIGHT || last.replace(fact.hash) == Some(fact.hash) {
                continue;
            }
            let postings = self.by_fact.entry(fact.hash).or_default();
            if postings.is_common() {
                continue;
            }
            postings
                .operators
                .extend(unit.operator.filter(|operator| !postings.operators.contains(operator)));
            if postings.is_common() {
                // It tells nothing any more.
                postings.slots = Vec::new();
            } else if postings.slots.len() < MAX_VERSIONS_OF_FACT {
                postings.slots.push(slot);
            }
        }
        unit.facts = facts;
    }

    fn set_vectors(&mut self, slot: u32, vectors: &[QuantisedVector]) {
        let Some(unit) = self.units.get_mut(slot as usize) else {
            return;
        };
        let vectors = of_body(vectors);
        if self.vectors.is_empty() {
            self.vectors = ChunkVectors::new(vectors.first().map_or(0, |vector| vector.bytes.len()));
        }
        // Vectors of one embedder have one number of dimensions.
        let first = self.vectors.len();
        if !vectors.is_empty() && self.vectors.add(slot as usize, vectors) {
            unit.rows = first..self.vectors.len();
            self.without_vectors -= usize::from(unit.signature.is_some());
        }
    }

    /// Looks for a copy of a text among the versions of other chains than `chain`.
    pub fn find_copy(&self, chain: UnitId, print: &Fingerprint) -> CopySearch {
        let other = |slots: &[u32; 2]| {
            let mut known = slots.iter().filter_map(|slot| self.units.get(*slot as usize));
            known.find(|unit| unit.chain != chain).map(|unit| unit.unit)
        };
        if let Some(unit) = self.by_hash.get(&print.text_hash).and_then(other) {
            return CopySearch {
                copy: Some(CopiedText::Exact(unit)),
                share: 1.0,
            };
        }
        let by_shingles = self.nearest_by_shingles(chain, &print.signature, &print.details);
        let share = share_of(by_shingles.equal);
        let needed = if print.shingles < FEW_SHINGLES {
            NEAR_BINS_OF_FEW
        } else {
            NEAR_BINS
        };
        // Texts with few shingles share many of them by chance, so more of the bins must be equal.
        if let Some((unit, equal)) = by_shingles.with_details.filter(|(_, equal)| *equal >= needed) {
            return CopySearch {
                copy: Some(CopiedText::Nearly(unit, share_of(equal))),
                share,
            };
        }
        let mut known = 0_u32;
        let mut named = None;
        for (hash, characters) in &print.paragraphs {
            if let Some(unit) = self.by_paragraph.get(hash).and_then(other) {
                // The same paragraph twice in a text counts twice: both are copied.
                known = known.saturating_add(*characters);
                named.get_or_insert(unit);
            }
        }
        let covers = u64::from(known) * 100 >= u64::from(print.characters) * PARTS_PERCENT;
        let copy = named
            .filter(|_| covers && known >= PARTS)
            .map(|unit| CopiedText::Parts(unit, f64::from(known) / f64::from(print.characters.max(1))));
        CopySearch { copy, share }
    }

    /// Returns the versions with the most equal bins among those that share a band.
    fn nearest_by_shingles(&self, chain: UnitId, signature: &Signature, details: &[u32]) -> NearestByShingles {
        let mut best = NearestByShingles::default();
        let mut seen = HashSet::new();
        for (index, band) in bands(signature).enumerate() {
            let mut slot = self.by_band.get(&band).copied().unwrap_or(NONE);
            // A list of slots goes from the newest to the oldest.
            while slot != NONE {
                if let Some(unit) = self.units.get(slot as usize)
                    && unit.chain != chain
                    && seen.insert(slot)
                {
                    let equal = unit.equal_bins(signature);
                    best.equal = best.equal.max(equal);
                    if best.with_details.is_none_or(|(_, most)| equal > most)
                        && unit.new_details(details) <= MAX_NEW_DETAILS_OF_COPY
                    {
                        best.with_details = Some((unit.unit, equal));
                    }
                }
                slot = self.before.get(slot as usize).map_or(NONE, |before| before[index]);
            }
        }
        best
    }

    /// Returns the version of another chain that is most alike: the one of which the text is a copy by its facts, else the
    /// nearest by meaning.
    pub fn nearest(&self, chain: UnitId, print: &Fingerprint, vectors: &[QuantisedVector]) -> Option<Neighbour> {
        self.nearest_since(chain, print, vectors, 0)
    }

    /// Does the same among the versions from the slot `since` on.
    pub fn nearest_since(
        &self,
        chain: UnitId,
        print: &Fingerprint,
        vectors: &[QuantisedVector],
        since: usize,
    ) -> Option<Neighbour> {
        let is_other = |slot: usize| slot >= since && self.units.get(slot).is_some_and(|unit| unit.chain != chain);
        let vectors = of_body(vectors);
        let vectors = &vectors[..vectors.len().min(MAX_COMPARED_VECTORS)];
        let by_facts = self.by_shared_facts(print, is_other).into_iter().filter_map(|slot| {
            let facts = compare_facts(&print.facts, &self.units.get(slot)?.facts, |fact| self.is_rare(fact));
            Some((slot, facts))
        });
        let near = vectors
            .iter()
            .flat_map(|vector| self.vectors.nearest(vector, 0.0, NEAREST_VERSIONS, is_other))
            .map(|(slot, _)| (slot, SharedFacts::default()));
        let candidates = by_facts.chain(near).filter_map(|(slot, facts)| {
            let unit = self.units.get(slot)?;
            let pieces = PieceCosines::of(vectors, |vector| self.vectors.best_of_rows(vector, unit.rows.clone()));
            let has_vectors = !unit.rows.is_empty();
            let cosine = pieces.mean();
            let likeness = match facts.is_strong {
                true if has_vectors && pieces.best() >= COPY_COSINE => Likeness::Copy,
                // The meaning is not known, or a translation whose parts the encoder finds apart.
                true => Likeness::Near,
                false if facts.is_most && cosine >= NEAR_FACTS_COSINE => Likeness::Near,
                _ if cosine >= NEAR_COSINE => Likeness::Near,
                _ => Likeness::Distinct,
            };
            let neighbour = Neighbour {
                unit: unit.unit,
                cosine,
                shared_facts: facts.count,
                likeness,
            };
            Some((slot, neighbour))
        });
        let most = candidates.max_by(|(slot, one), (other_slot, other)| {
            let by_likeness = one.likeness.cmp(&other.likeness);
            let by_cosine = by_likeness.then(one.cosine.total_cmp(&other.cosine));
            // Of two that are equal, the older one.
            by_cosine
                .then(one.shared_facts.cmp(&other.shared_facts))
                .then(other_slot.cmp(slot))
        });
        most.map(|(_, neighbour)| neighbour)
    }

    /// Returns the slots that share the most rare facts with a text.
    fn by_shared_facts(&self, print: &Fingerprint, keeps: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut counts: HashMap<usize, usize> = HashMap::new();
        let mut last = None;
        for fact in &print.facts {
            if last.replace(fact.hash) == Some(fact.hash) {
                continue;
            }
            let slots = self.by_fact.get(&fact.hash).map(|postings| &postings.slots);
            let kept = slots
                .into_iter()
                .flatten()
                .map(|slot| *slot as usize)
                .filter(|slot| keeps(*slot));
            for slot in kept {
                *counts.entry(slot).or_default() += 1;
            }
        }
        let mut shared: Vec<(usize, usize)> = counts.into_iter().collect();
        shared.retain(|(_, count)| *count >= MIN_SHARED_FACTS);
        shared.sort_unstable_by_key(|(slot, count)| (std::cmp::Reverse(*count), *slot));
        shared.truncate(MAX_COMPARED_VERSIONS);
        shared.into_iter().map(|(slot, _)| slot).collect()
    }

    /// Returns true if a fact tells texts apart.
    fn is_rare(&self, fact: TextFact) -> bool {
        let is_common = self.by_fact.get(&fact.hash).is_some_and(FactPostings::is_common);
        fact.weight >= RARE_FACT_WEIGHT && !is_common
    }
}

/// Keeps the first slot of each of two chains, which suffices to know a text of another chain than any one.
fn remember(slots: &mut [u32; 2], slot: u32, chain_of: impl Fn(u32) -> Option<UnitId>) {
    if slots[0] == NONE {
        slots[0] = slot;
    } else if slots[1] == NONE && chain_of(slots[0]) != chain_of(slot) {
        slots[1] = slot;
    }
}

/// Returns the hashes of the bands.
fn bands(signature: &Signature) -> impl Iterator<Item = u64> {
    signature.chunks(ROWS).enumerate().map(|(index, rows)| {
        let mut bytes = [0; ROWS * 4 + 1];
        for (bytes, row) in bytes.chunks_mut(4).zip(rows) {
            bytes.copy_from_slice(&row.to_le_bytes());
        }
        bytes[ROWS * 4] = u8::try_from(index).unwrap_or(u8::MAX);
        xxh3_64(&bytes)
    })
}

/// Returns a share of at most 256 details or bins, 0 of none.
#[expect(clippy::cast_precision_loss, reason = "both numbers are at most 256")]
fn ratio(part: usize, whole: usize) -> f32 {
    part as f32 / whole.max(1) as f32
}

fn share_of(equal: usize) -> f64 {
    u32::try_from(equal).map_or(1.0, |equal| f64::from(equal) / 256.0)
}

#[cfg(test)]
mod tests;
