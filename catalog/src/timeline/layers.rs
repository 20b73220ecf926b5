//! Compacted parts over the parts that merges added.
//!
//! Invariant: two of them are disjoint or one is within the other, because each replaced whole parts of the table as it
//! was then. So for every version there is one best layout: the largest that end with it or before.

use std::ops::Range;

use crate::part::PartInfo;

/// The compacted parts of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Layers {
    /// By height less one: how many times its rows were rewritten. Those of one height are disjoint, in order.
    by_height: Vec<Vec<Layer>>,
}

/// One compacted part.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) part: PartInfo,
    /// Which of the parts that merges added it has the rows of.
    pub(super) covers: Range<usize>,
    /// The number of its commit.
    pub(super) commit: u64,
    /// When that was made; milliseconds since the epoch.
    pub(super) at: i64,
}

impl Layers {
    /// The largest that has the rows of part `index` and none from part `end` on, with its height.
    pub(super) fn covering(&self, index: usize, end: usize) -> Option<(usize, &Layer)> {
        self.by_height.iter().enumerate().rev().find_map(|(below, layers)| {
            let upto = layers.partition_point(|layer| layer.covers.start <= index);
            let layer = layers[..upto].last()?;
            (index < layer.covers.end && layer.covers.end <= end).then_some((below + 1, layer))
        })
    }

    /// Adds one of this height, from 1.
    pub(super) fn insert(&mut self, height: usize, layer: Layer) {
        if self.by_height.len() < height {
            self.by_height.resize_with(height, Vec::new);
        }
        let layers = &mut self.by_height[height - 1];
        let place = layers.partition_point(|other| other.covers.start < layer.covers.start);
        layers.insert(place, layer);
    }

    /// All of them, lower ones first, with their heights.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Layer)> {
        let by_height = self.by_height.iter().zip(1..);
        by_height.flat_map(|(layers, height)| layers.iter().map(move |layer| (height, layer)))
    }
}
