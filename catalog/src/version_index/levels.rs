//! Compacted parts over the parts that merges added.
//!
//! Invariant: two compacted parts are disjoint or one contains the other, because each replaced whole parts of the
//! layout of its time. So every version has one best layout: the largest parts that end with the version or earlier.

use std::ops::Range;

use crate::part::PartInfo;

/// The compacted parts of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Levels {
    /// Compacted parts by level minus one. The level is the number of rewrites. Parts of one level are disjoint and
    /// sorted.
    by_level: Vec<Vec<CompactedPart>>,
}

/// A compacted part and the merged parts that it covers.
#[derive(Clone, Debug)]
pub(super) struct CompactedPart {
    pub(super) part: PartInfo,
    /// Indexes of the merged parts whose rows this part has.
    pub(super) merged_parts: Range<usize>,
    /// Number of its commit.
    pub(super) commit: u64,
    /// Time of its commit, in milliseconds since the epoch.
    pub(super) at: i64,
}

impl Levels {
    /// Returns the largest compacted part that has the rows of merged part `index` and no row of part `end` or later.
    /// Returns its level too.
    pub(super) fn largest_containing(&self, index: usize, end: usize) -> Option<(usize, &CompactedPart)> {
        // The highest level covers the most parts, so it comes first.
        self.by_level.iter().enumerate().rev().find_map(|(below, levels)| {
            let upto = levels.partition_point(|compacted| compacted.merged_parts.start <= index);
            let compacted = levels[..upto].last()?;
            (index < compacted.merged_parts.end && compacted.merged_parts.end <= end).then_some((below + 1, compacted))
        })
    }

    /// Inserts a compacted part. `level` is at least 1.
    pub(super) fn insert(&mut self, level: usize, compacted: CompactedPart) {
        if self.by_level.len() < level {
            self.by_level.resize_with(level, Vec::new);
        }
        let levels = &mut self.by_level[level - 1];
        let place = levels.partition_point(|other| other.merged_parts.start < compacted.merged_parts.start);
        levels.insert(place, compacted);
    }

    /// Returns all compacted parts with their levels, the lowest level first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &CompactedPart)> {
        let by_level = self.by_level.iter().zip(1..);
        by_level.flat_map(|(levels, level)| levels.iter().map(move |compacted| (level, compacted)))
    }
}
