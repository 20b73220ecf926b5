//! Compacted parts over the parts that merges added.
//!
//! Invariant: two compacted parts are disjoint or one contains the other, because each replaced whole parts of the
//! layout of its time. So every version has one best layout: the largest parts that end with the version or earlier.

use std::ops::Range;

use crate::part::PartInfo;

/// The compacted parts of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Layers {
    /// Layers by height minus one. The height is the number of rewrites. Layers of one height are disjoint and sorted.
    by_height: Vec<Vec<Layer>>,
}

/// A compacted part and the merged parts that it covers.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) part: PartInfo,
    /// Indexes of the merged parts whose rows this part has.
    pub(super) covers: Range<usize>,
    /// Number of its commit.
    pub(super) commit: u64,
    /// Time of its commit, in milliseconds since the epoch.
    pub(super) at: i64,
}

impl Layers {
    /// Returns the largest compacted part that has the rows of merged part `index` and no row of part `end` or later.
    /// Returns its height too.
    pub(super) fn covering(&self, index: usize, end: usize) -> Option<(usize, &Layer)> {
        // The highest layer covers the most parts, so it comes first.
        self.by_height.iter().enumerate().rev().find_map(|(below, layers)| {
            let upto = layers.partition_point(|layer| layer.covers.start <= index);
            let layer = layers[..upto].last()?;
            (index < layer.covers.end && layer.covers.end <= end).then_some((below + 1, layer))
        })
    }

    /// Inserts a layer. `height` is at least 1.
    pub(super) fn insert(&mut self, height: usize, layer: Layer) {
        if self.by_height.len() < height {
            self.by_height.resize_with(height, Vec::new);
        }
        let layers = &mut self.by_height[height - 1];
        let place = layers.partition_point(|other| other.covers.start < layer.covers.start);
        layers.insert(place, layer);
    }

    /// Returns all layers with their heights, the lowest height first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Layer)> {
        let by_height = self.by_height.iter().zip(1..);
        by_height.flat_map(|(layers, height)| layers.iter().map(move |layer| (height, layer)))
    }
}
