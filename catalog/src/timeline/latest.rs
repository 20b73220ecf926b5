//! What the log amounts to at its last commit.
//!
//! Invariant: whatever was ever a part of the table is in it once: among those that a reader of the last commit reads, or,
//! if that is not too long ago, among those that were replaced.

use types::Version;

use super::Timeline;
use crate::part::PartInfo;

/// The table at its last commit. Instants are milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Latest {
    /// The number of the commit.
    pub(crate) commit: u64,
    /// The latest version, with when it was merged.
    pub(crate) merged: (Version, i64),
    /// The parts in the order of the rows, each with when it was added.
    pub(crate) live: Vec<(PartInfo, i64)>,
    /// The parts that others are in the place of, each with when it was replaced, as far back as was asked.
    pub(crate) replaced: Vec<(PartInfo, i64)>,
}

impl Timeline {
    /// What the log amounts to, with what was replaced less than `retention` milliseconds before its last commit; `None`
    /// before the first version.
    pub(crate) fn latest(&self, retention: i64) -> Option<Latest> {
        let last = self.parts.last()?;
        // Why not the time of who asks: the same log would amount to several things.
        let since = self.at.saturating_sub(retention);
        let mut live: Vec<_> = self.parts.iter().map(|entry| Some((&entry.part, entry.at))).collect();
        let mut replaced = Vec::new();
        // Why in this order: what a layer replaced is below it, so it is here before it.
        for (_, layer) in self.layers.iter() {
            for place in &mut live[layer.covers.clone()] {
                let gone = place.take().filter(|_| layer.at >= since);
                replaced.extend(gone.map(|(part, _)| (part.clone(), layer.at)));
            }
            live[layer.covers.start] = Some((&layer.part, layer.at));
        }
        let live = live.into_iter().flatten();
        Some(Latest {
            commit: self.commits.checked_sub(1)?,
            merged: (last.part.version, last.at),
            live: live.map(|(part, at)| (part.clone(), at)).collect(),
            replaced,
        })
    }
}
