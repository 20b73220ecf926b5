//! The published versions by their prints: finds the copies of a text among them.
//!
//! Invariant: a version is never compared with its own chain.

use std::collections::{HashMap, HashSet};

use types::UnitId;
use xxhash_rust::xxh3::xxh3_64;

use super::NearestUnit;
use super::fingerprint::{Fingerprint, QuantisedVector, SIGNATURE, Signature, cosine};

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
/// The end of a list of slots.
const NONE: u32 = u32::MAX;

/// Hashes and vector of a published version, for comparisons.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedUnit {
    /// Id of the published version.
    pub unit: UnitId,
    /// Chain of the version.
    pub chain: UnitId,
    /// Hash of its text.
    pub text_hash: [u8; 32],
    /// Hashes of its long paragraphs.
    pub paragraphs: Vec<u64>,
    /// Signature, unless it was erased.
    pub signature: Option<Signature>,
    /// Hashes of its quantities and identifiers.
    pub details: Vec<u32>,
    /// Vector, unless it was erased or another embedder made it.
    pub vector: Option<QuantisedVector>,
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
    /// Cosine of the vectors.
    pub cosine: f32,
    /// Share of equal bins of the signatures, from 0 to 1.
    pub shingles: f32,
    /// Share of the quantities and identifiers of the text that the version lacks, from 0 to 1.
    pub new_details: f32,
}

impl Neighbour {
    /// Returns the facts of the neighbour that a scorer gets.
    pub const fn near(self) -> NearestUnit {
        NearestUnit {
            unit: Some(self.unit),
            cosine: self.cosine,
            shingles: self.shingles,
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
    known: HashSet<UnitId>,
    by_hash: HashMap<[u8; 32], [u32; 2]>,
    by_paragraph: HashMap<u64, [u32; 2]>,
    /// The newest slot of each band.
    by_band: HashMap<u64, u32>,
    /// For each slot and band, the slot before it with the same band.
    before: Vec<[u32; BANDS]>,
    dimensions: usize,
    vectors: Vec<i8>,
}

#[derive(Debug)]
struct Slot {
    unit: UnitId,
    chain: UnitId,
    details: Vec<u32>,
    signature: Option<Signature>,
    /// The place of the vector, and its length.
    vector: Option<(usize, f32)>,
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
        self.known.contains(&unit)
    }

    /// Adds a version. Does nothing if it is known.
    pub fn add(&mut self, unit: PublishedUnit) {
        let Ok(slot) = u32::try_from(self.units.len()) else {
            return;
        };
        if !self.known.insert(unit.unit) {
            return;
        }
        if let Some(signature) = &unit.signature {
            self.add_bands(slot, signature);
        }
        let vector = unit.vector.and_then(|vector| self.add_vector(&vector));
        self.units.push(Slot {
            unit: unit.unit,
            chain: unit.chain,
            details: unit.details,
            signature: unit.signature,
            vector,
        });
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

    fn add_vector(&mut self, vector: &QuantisedVector) -> Option<(usize, f32)> {
        if self.dimensions == 0 {
            self.dimensions = vector.bytes.len();
        }
        // Vectors of one embedder have one number of dimensions.
        (vector.bytes.len() == self.dimensions).then(|| {
            let place = self.vectors.len();
            self.vectors.extend_from_slice(&vector.bytes);
            (place, vector.norm())
        })
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

    /// Returns the nearest version of another chain by meaning.
    pub fn nearest(&self, chain: UnitId, print: &Fingerprint, vector: &QuantisedVector) -> Option<Neighbour> {
        self.nearest_since(chain, print, vector, 0)
    }

    /// Does the same among the versions from the slot `since` on.
    pub fn nearest_since(
        &self,
        chain: UnitId,
        print: &Fingerprint,
        vector: &QuantisedVector,
        since: usize,
    ) -> Option<Neighbour> {
        let norm = vector.norm();
        let mut best: Option<(&Slot, f32)> = None;
        for unit in self.units.iter().skip(since).filter(|unit| unit.chain != chain) {
            let Some((place, known)) = unit.vector else { continue };
            let found = cosine(
                &vector.bytes,
                norm,
                &self.vectors[place..place + self.dimensions],
                known,
            );
            if best.is_none_or(|(_, most)| found > most) {
                best = Some((unit, found));
            }
        }
        let (unit, cosine) = best?;
        Some(Neighbour {
            unit: unit.unit,
            cosine,
            shingles: ratio(unit.equal_bins(&print.signature), SIGNATURE),
            new_details: unit.new_details(&print.details),
        })
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
