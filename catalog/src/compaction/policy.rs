//! Selection of the parts to compact.
//!
//! Invariant: a row is rewritten at most once per level, and a part of at least `target / fan_in` bytes is never
//! rewritten. So the number of rewrites of a row is at most the logarithm, to base `fan_in`, of the number of parts.

use std::ops::Range;

use crate::version_index::PartRange;

/// Policy of compaction: `fan_in` adjacent parts of equal level become one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Number of parts that become one; at least 2.
    fan_in: usize,
    /// Size in bytes from which a part is never compacted.
    enough: u64,
    /// Maximum size in bytes of the parts that are combined before a part that stays.
    target: u64,
}

impl Policy {
    /// Creates a policy that combines `fan_in` parts (at least 2) into parts of about `target` bytes.
    pub fn new(fan_in: usize, target: u64) -> Self {
        let fan_in = fan_in.max(2);
        Self {
            fan_in,
            enough: target / u64::try_from(fan_in).unwrap_or(u64::MAX),
            target,
        }
    }

    /// Returns the range of the next parts to combine.
    pub(super) fn choose(&self, layout: &[PartRange<'_>]) -> Option<Range<usize>> {
        let mut start = 0;
        while start < layout.len() {
            let stays = (start..layout.len()).find(|&index| self.stays(layout, index));
            let end = stays.unwrap_or(layout.len());
            let run = &layout[start..end];
            // Parts of equal level come first. A closed run is combined only if there are none.
            let chosen = self.equals(run).or_else(|| stays.and_then(|_| self.closed(run)));
            if let Some(chosen) = chosen {
                return Some(start + chosen.start..start + chosen.end);
            }
            // The next run begins after the part that stays.
            start = end + 1;
        }
        None
    }

    /// Returns true if a part is not compacted: it is large, or a neighbour has rows of the same version.
    fn stays(&self, layout: &[PartRange<'_>], index: usize) -> bool {
        let part = layout[index].part;
        let before = index.checked_sub(1).map(|before| layout[before].part.version);
        let after = layout.get(index + 1).map(|after| after.part.first_version());
        // A compacted part must have whole versions, so the parts of an upload are never combined.
        part.bytes >= self.enough || before == Some(part.first_version()) || after == Some(part.version)
    }

    /// Returns the first `fan_in` adjacent parts of one level.
    fn equals(&self, run: &[PartRange<'_>]) -> Option<Range<usize>> {
        let mut start = 0;
        for equal in run.chunk_by(|left, right| left.level == right.level) {
            if equal.len() >= self.fan_in {
                return Some(start..start + self.fan_in);
            }
            start += equal.len();
        }
        None
    }

    /// Returns the first parts of a run before a part that stays, up to `target` bytes. Such a run never grows, so it
    /// is not worth waiting for more parts.
    fn closed(&self, run: &[PartRange<'_>]) -> Option<Range<usize>> {
        let mut bytes = 0;
        let fits = run.iter().take_while(|range| {
            bytes += range.part.bytes;
            bytes <= self.target
        });
        let fits = fits.count();
        (fits > 1).then_some(0..fits)
    }
}

#[cfg(test)]
mod tests;
