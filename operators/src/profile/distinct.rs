//! The number of different values of a column, and its frequent texts.
//!
//! Invariant: both depend on the set of values alone. The smallest hashes of a union are among the smallest of its parts,
//! and a table that is too small for a part is too small for the whole.

use std::collections::HashMap;

use datasketches::hash::value::raw_bytes;
use datasketches::theta::{CompactThetaSketch, ThetaSketch, ThetaSketchBuilder, ThetaUnionBuilder};

use super::codec::{SketchReader, SketchWriter};
use super::{MAX_FREQUENT_BYTES, SketchDamaged};

/// Logarithm of the number of hashes that are kept: 1,024, for a standard error of 3 %.
const LOG_HASHES: u8 = 10;
/// The most different texts of a table of frequent values.
const MAX_FREQUENT_TEXTS: usize = 768;

/// The smallest hashes of the values of a column.
#[derive(Debug)]
pub(super) struct DistinctHashes {
    /// Values that were added one by one.
    added: ThetaSketch,
    /// Values of sketches that were merged.
    merged: Option<CompactThetaSketch>,
}

impl DistinctHashes {
    #[expect(clippy::expect_used, reason = "only a size outside of 5 to 26 fails")]
    pub(super) fn new() -> Self {
        let added = ThetaSketchBuilder::default().lg_k(LOG_HASHES).build();
        Self {
            added: added.expect("the size is within the bounds"),
            merged: None,
        }
    }

    /// Adds the keyed hash of a value.
    #[inline]
    pub(super) fn add(&mut self, hash: u64) {
        self.added.update(raw_bytes::from_slice(&hash.to_le_bytes()));
    }

    /// Adds the values of another column.
    pub(super) fn merge(&mut self, other: &Self) {
        let both = union(self.sketches().chain(other.sketches()));
        *self = Self::new();
        self.merged = Some(both);
    }

    /// Returns the number of different values if it is known, else an estimate, and whether it is known.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a conversion of a positive double saturates"
    )]
    pub(super) fn count(&self) -> (u64, bool) {
        let all = union(self.sketches());
        (all.estimate().round() as u64, !all.is_estimation_mode())
    }

    pub(super) fn encode(&self, out: &mut SketchWriter) {
        out.block(&union(self.sketches()).serialize_compressed());
    }

    pub(super) fn decode(bytes: &mut SketchReader<'_>) -> Result<Self, SketchDamaged> {
        let merged = CompactThetaSketch::deserialize(bytes.block()?).map_err(|_error| SketchDamaged {
            problem: "hashes of values are no sketch",
        })?;
        Ok(Self {
            merged: Some(merged),
            ..Self::new()
        })
    }

    /// Returns the sketches whose union has all values.
    fn sketches(&self) -> impl Iterator<Item = CompactThetaSketch> {
        let added = (!self.added.is_empty()).then(|| self.added.compact(false));
        added.into_iter().chain(self.merged.clone())
    }
}

/// Returns the union of sketches, trimmed to its smallest hashes.
#[expect(
    clippy::expect_used,
    reason = "only a size outside of 5 to 26 fails, or a seed, and all sketches have the default one"
)]
fn union(sketches: impl Iterator<Item = CompactThetaSketch>) -> CompactThetaSketch {
    let union = ThetaUnionBuilder::default().lg_k(LOG_HASHES).build();
    let mut union = union.expect("the size is within the bounds");
    for sketch in sketches {
        union.update(&sketch).expect("the seeds are equal");
    }
    union.to_sketch(true)
}

/// The rows of each text of a column, as long as they are of few different texts.
#[derive(Clone, Debug)]
pub(super) struct FrequentTexts {
    /// Rows of the texts of at most [`MAX_FREQUENT_BYTES`]; none once there were too many.
    counts: Option<HashMap<Box<str>, u64>>,
}

impl FrequentTexts {
    pub(super) fn new() -> Self {
        Self {
            counts: Some(HashMap::new()),
        }
    }

    /// Counts a row, and returns true if an earlier one had the same text.
    pub(super) fn add(&mut self, text: &str) -> bool {
        let Some(counts) = &mut self.counts else {
            return false;
        };
        if text.len() > MAX_FREQUENT_BYTES {
            return false;
        }
        if let Some(count) = counts.get_mut(text) {
            *count += 1;
            return true;
        }
        if counts.len() < MAX_FREQUENT_TEXTS {
            counts.insert(text.into(), 1);
        } else {
            self.counts = None;
        }
        false
    }

    /// Adds the rows of another column.
    pub(super) fn merge(&mut self, other: &Self) {
        let (Some(counts), Some(others)) = (&mut self.counts, &other.counts) else {
            self.counts = None;
            return;
        };
        for (text, rows) in others {
            *counts.entry(text.clone()).or_default() += rows;
        }
        if counts.len() > MAX_FREQUENT_TEXTS {
            self.counts = None;
        }
    }

    /// Returns the texts with their rows in ascending order; none if there were too many different ones.
    pub(super) fn counts(&self) -> Option<Vec<(&str, u64)>> {
        let counts = self.counts.as_ref()?.iter();
        let mut counts: Vec<_> = counts.map(|(text, rows)| (&**text, *rows)).collect();
        counts.sort_unstable();
        Some(counts)
    }

    pub(super) fn encode(&self, out: &mut SketchWriter) {
        let Some(counts) = self.counts() else {
            out.count(0);
            return;
        };
        out.count(counts.len() + 1);
        for (text, rows) in counts {
            out.block(text.as_bytes());
            out.number(rows);
        }
    }

    pub(super) fn decode(bytes: &mut SketchReader<'_>) -> Result<Self, SketchDamaged> {
        let Some(count) = bytes.count()?.checked_sub(1) else {
            return Ok(Self { counts: None });
        };
        if count > MAX_FREQUENT_TEXTS {
            return Err(SketchDamaged {
                problem: "it has too many frequent values",
            });
        }
        let mut counts = HashMap::with_capacity(count);
        for _ in 0..count {
            let text = bytes.text()?;
            counts.insert(text.into(), bytes.rows()?);
        }
        Ok(Self { counts: Some(counts) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes as keyed ones are.
    fn hashes(numbers: std::ops::Range<u64>) -> DistinctHashes {
        let mut distinct = DistinctHashes::new();
        for number in numbers {
            distinct.add(xxhash_rust::xxh3::xxh3_64_with_seed(&number.to_le_bytes(), 7));
        }
        distinct
    }

    fn bytes(distinct: &DistinctHashes) -> Vec<u8> {
        let mut out = SketchWriter::default();
        distinct.encode(&mut out);
        out.0
    }

    #[test]
    fn counts_are_exact_up_to_1024_and_near_beyond() {
        for count in [0, 1, 2, 1_023, 1_024] {
            assert_eq!(hashes(0..count).count(), (count, true));
        }
        for count in [1_025, 2_000, 10_000, 100_000] {
            let (about, is_exact) = hashes(0..count).count();
            assert!(
                !is_exact && about.abs_diff(count) * 100 <= count * 10,
                "{about} of {count}"
            );
        }
    }

    #[test]
    fn merges_have_the_bytes_of_the_whole() {
        for (end, cuts) in [
            (0, [0, 0]),
            (900, [0, 450]),
            (1_024, [500, 700]),
            (1_930, [3, 1_100]),
            (40_000, [1_500, 1_600]),
        ] {
            let whole = hashes(0..end);
            // The parts share values, and come in another order.
            let mut merged = hashes(u64::saturating_sub(cuts[1], 100)..end);
            merged.merge(&hashes(cuts[0]..cuts[1]));
            merged.merge(&hashes(0..cuts[0]));
            assert_eq!(bytes(&merged), bytes(&whole), "{end}");
            let whole = bytes(&whole);
            let mut again = DistinctHashes::decode(&mut SketchReader::new(&whole)).unwrap();
            assert_eq!(bytes(&again), whole);
            again.merge(&hashes(0..end));
            assert_eq!(bytes(&again), whole);
        }
    }

    #[test]
    fn a_table_is_dropped_for_good_at_the_769th_text() {
        let table = |numbers: std::ops::Range<u32>| {
            let mut table = FrequentTexts::new();
            numbers.for_each(|number| assert!(!table.add(&number.to_string())));
            table
        };
        let mut full = table(0..768);
        assert!(full.add("5") && !full.add(&"é".repeat(33)) && full.add("767"));
        assert_eq!(full.counts().unwrap().iter().map(|(_, rows)| rows).sum::<u64>(), 770);
        let mut merged = table(0..600);
        merged.merge(&table(300..768));
        assert_eq!(merged.counts().unwrap().len(), 768);
        merged.merge(&table(768..769));
        assert_eq!(merged.counts(), None);
        merged.merge(&table(0..2));
        assert_eq!(merged.counts(), None);
        assert!(!full.add("768") && !full.add("5"));
        assert_eq!(full.counts(), None);
    }
}
