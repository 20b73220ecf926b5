//! State of the table at its last commit, for a Delta checkpoint.
//!
//! Invariant: every part that was ever added appears once: as live, or, if its removal is recent enough, as replaced.

use types::Version;

use super::VersionIndex;
use crate::part::PartInfo;

/// State of the table at its last commit. Times are milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LatestState {
    /// Number of the commit.
    pub(crate) commit: u64,
    /// Latest version, and the time of its merge.
    pub(crate) merged: (Version, i64),
    /// Parts in the order of the rows, each with the time of its addition.
    pub(crate) live: Vec<(PartInfo, i64)>,
    /// Replaced parts, each with the time of its removal, as far back as the retention.
    pub(crate) replaced: Vec<(PartInfo, i64)>,
}

impl VersionIndex {
    /// Computes the state at the last commit. `replaced` has the parts that were removed less than `retention`
    /// milliseconds before that commit. Returns `None` before the first version.
    pub(crate) fn latest(&self, retention: i64) -> Option<LatestState> {
        let last = self.parts.last()?;
        // The retention is counted from the last commit and not from now. Otherwise the same log would give checkpoints
        // with different bytes.
        let since = self.at.saturating_sub(retention);
        // Begins with the parts of the merges; each level then replaces a range of them.
        let mut live: Vec<_> = self.parts.iter().map(|entry| Some((&entry.part, entry.at))).collect();
        let mut replaced = Vec::new();
        // Levels come in order of level, so the parts that a level replaced are already in place.
        for (_, compacted) in self.levels.iter() {
            for place in &mut live[compacted.merged_parts.clone()] {
                let gone = place.take().filter(|_| compacted.at >= since);
                replaced.extend(gone.map(|(part, _)| (part.clone(), compacted.at)));
            }
            // The compacted part takes the place of the first part that it replaced.
            live[compacted.merged_parts.start] = Some((&compacted.part, compacted.at));
        }
        let live = live.into_iter().flatten();
        Some(LatestState {
            commit: self.commits.checked_sub(1)?,
            merged: (last.part.version, last.at),
            live: live.map(|(part, at)| (part.clone(), at)).collect(),
            replaced,
        })
    }
}
