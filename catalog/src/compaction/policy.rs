//! Which parts are compacted.
//!
//! Invariant: a row is rewritten at most once for every height, and a part of `target / fan_in` or more never, so the
//! number of rewrites of a row is bounded by how often `fan_in` divides the number of parts.

use std::ops::Range;

use crate::timeline::Piece;

/// When parts are compacted: `fan_in` adjacent ones that were rewritten equally often, as soon as there are so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How many parts become one; at least 2.
    fan_in: usize,
    /// From this size on, in bytes, a part is large enough.
    enough: u64,
    /// What a compacted part has at most, in bytes.
    target: u64,
}

impl Policy {
    /// `fan_in` parts become one, or two where it is less, of at most `target` bytes.
    pub fn new(fan_in: usize, target: u64) -> Self {
        let fan_in = fan_in.max(2);
        Self {
            fan_in,
            enough: target / u64::try_from(fan_in).unwrap_or(u64::MAX),
            target,
        }
    }

    /// The next parts of a layout that are to be one.
    pub(super) fn choose(&self, layout: &[Piece<'_>]) -> Option<Range<usize>> {
        let mut start = 0;
        while start < layout.len() {
            let stays = (start..layout.len()).find(|&index| self.stays(layout, index));
            let end = stays.unwrap_or(layout.len());
            let run = &layout[start..end];
            let chosen = self.equals(run).or_else(|| stays.and_then(|_| self.closed(run)));
            if let Some(chosen) = chosen {
                return Some(start + chosen.start..start + chosen.end);
            }
            start = end + 1;
        }
        None
    }

    /// Whether a part is left as it is: it is large, or its neighbour has rows of the same version.
    fn stays(&self, layout: &[Piece<'_>], index: usize) -> bool {
        let part = layout[index].part;
        let before = index.checked_sub(1).map(|before| layout[before].part.version);
        let after = layout.get(index + 1).map(|after| after.part.first_version());
        part.bytes >= self.enough || before == Some(part.first_version()) || after == Some(part.version)
    }

    /// The first `fan_in` adjacent parts of one height.
    fn equals(&self, run: &[Piece<'_>]) -> Option<Range<usize>> {
        let mut start = 0;
        for equal in run.chunk_by(|left, right| left.height == right.height) {
            if equal.len() >= self.fan_in {
                return Some(start..start + self.fan_in);
            }
            start += equal.len();
        }
        None
    }

    /// What stands before a part that stays, and will never be more: as much as a part can have.
    fn closed(&self, run: &[Piece<'_>]) -> Option<Range<usize>> {
        let mut bytes = 0;
        let fits = run.iter().take_while(|piece| {
            bytes += piece.part.bytes;
            bytes <= self.target
        });
        let fits = fits.count();
        (fits > 1).then_some(0..fits)
    }
}

#[cfg(test)]
mod tests;
