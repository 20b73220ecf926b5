//! The part timeline: what the commits of a table said, in memory.
//!
//! Invariant: it is a prefix of the log. It only ever grows, by the next commit, so a version that was found once is
//! found for ever with the same parts.

mod codec;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use types::{Contract, ContributionId, Version};

use crate::log::Commit;
use crate::part::{Link, PartInfo};
use crate::{Error, Root};

/// The parts of a table in the order of its rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    contract: Option<Arc<Contract>>,
    parts: Vec<Entry>,
    by_contribution: HashMap<ContributionId, Version>,
}

#[derive(Clone, Debug)]
struct Entry {
    part: PartInfo,
    /// How many rows the table has with this part.
    end: u64,
    /// The content root of the version that this part is of.
    root: Root,
}

/// Rows of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) part: PartInfo,
    /// Indexes of rows within the part.
    pub(crate) rows: Range<u64>,
}

impl Timeline {
    /// The contract; none before the table exists.
    pub(crate) fn contract(&self) -> Option<&Arc<Contract>> {
        self.contract.as_ref()
    }

    /// The latest version.
    pub(crate) fn head(&self) -> Version {
        self.parts.last().map_or(Version::EMPTY, |entry| entry.part.version)
    }

    /// The content root of the latest version.
    pub(crate) fn root(&self) -> Root {
        self.parts.last().map_or(Root::EMPTY, |entry| entry.root)
    }

    /// The version that a contribution became.
    pub(crate) fn find(&self, contribution: ContributionId) -> Option<Version> {
        self.by_contribution.get(&contribution).copied()
    }

    /// The number of the commit to come.
    pub(crate) fn next_commit(&self) -> u64 {
        if self.contract.is_none() { 0 } else { self.head().0 + 1 }
    }

    /// How many parts the table has at `version`.
    fn parts_at(&self, version: Version) -> usize {
        self.parts.partition_point(|entry| entry.part.version <= version)
    }

    /// How many rows the table has at `version`.
    pub(crate) fn rows_at(&self, version: Version) -> u64 {
        self.parts_at(version)
            .checked_sub(1)
            .map_or(0, |last| self.parts[last].end)
    }

    /// The parts of the versions after `after` up to `upto`.
    pub(crate) fn parts_between(&self, after: Version, upto: Version) -> Vec<PartInfo> {
        let (start, end) = (self.parts_at(after), self.parts_at(upto));
        self.parts[start.min(end)..end]
            .iter()
            .map(|entry| entry.part.clone())
            .collect()
    }

    /// The parts up to `version`, each with the content root after it.
    pub(crate) fn chain(&self, version: Version) -> Vec<Link> {
        let links = self.parts[..self.parts_at(version)].iter();
        links
            .map(|entry| Link {
                part: entry.part.clone(),
                root: entry.root,
            })
            .collect()
    }

    /// Where the rows with these indexes in the table are.
    pub(crate) fn locate(&self, rows: Range<u64>) -> Vec<Slice> {
        let mut slices = Vec::new();
        let first = self.parts.partition_point(|entry| entry.end <= rows.start);
        for Entry { part, end, .. } in &self.parts[first..] {
            let start = end - part.rows;
            if start >= rows.end {
                break;
            }
            let within = rows.start.max(start) - start..rows.end.min(*end) - start;
            slices.push(Slice {
                part: part.clone(),
                rows: within,
            });
        }
        slices
    }

    /// Adds the next commit; one that it has already is left out. `path` names the commit in errors.
    pub(crate) fn apply(&mut self, commit: Commit, path: impl FnOnce() -> String) -> Result<(), Error> {
        let fail = |problem: &str| {
            Err(Error::Corrupt {
                path: path(),
                problem: problem.to_owned(),
            })
        };
        match commit {
            Commit::Created(contract) => {
                self.contract.get_or_insert(contract);
            }
            Commit::Merged(merge, _) if merge.version <= self.head() => {}
            Commit::Merged(merge, parts) => {
                if self.contract.is_none() || merge.version != self.head().next() {
                    return fail("it does not follow the commit before it");
                }
                let before = self.rows_at(self.head());
                if merge.record_count != before + merge.accepted {
                    return fail("its record count does not follow from the commit before it");
                }
                let Ok(root) = merge.root.parse() else {
                    return fail("its root is not a content root");
                };
                for part in parts {
                    self.push(part, root);
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, part: PartInfo, root: Root) {
        // Why: should a contribution be in two versions, the first is its version; a check reports the second.
        self.by_contribution.entry(part.contribution).or_insert(part.version);
        let end = self.rows_at(self.head()) + part.rows;
        self.parts.push(Entry { part, end, root });
    }
}

#[cfg(test)]
mod tests;
