//! The part version index: parts, versions and contributions of a table, in memory, as the commits state them.
//!
//! Invariants: the version index is a prefix of the log and grows only by the next commit, so a version keeps its rows
//! for ever. A compaction adds an alternative way to read rows and removes none. Every version is read from the largest
//! parts that end with it or earlier; the parts that merges added always remain available.

mod codec;
mod latest;
mod levels;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use types::{Contract, ContributionId, Version};

pub(crate) use self::latest::LatestState;
use self::levels::{CompactedPart, Levels};
use crate::log::{CommitContent, PartRewrite};
use crate::part::{PartInfo, PartLink};
use crate::{Error, Root};

/// The parts of a table in the order of its rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct VersionIndex {
    contract: Option<Arc<Contract>>,
    /// Parts that merges added.
    parts: Vec<VersionPart>,
    levels: Levels,
    by_contribution: HashMap<ContributionId, Version>,
    /// Number of commits in the version index, and of the next commit.
    commits: u64,
    /// Time of the last commit after the creation, in milliseconds since the epoch.
    at: i64,
}

#[derive(Clone, Debug)]
struct VersionPart {
    part: PartInfo,
    /// Number of rows of the table up to the end of this part.
    end: u64,
    /// Content root of the version that the part belongs to.
    root: Root,
    /// Number of the commit that added the part.
    commit: u64,
    /// Time of that commit, in milliseconds since the epoch.
    at: i64,
}

/// A part in a layout of the table.
#[derive(Clone, Debug)]
pub(crate) struct PartRange<'a> {
    pub(crate) part: &'a PartInfo,
    /// Number of times that the rows were rewritten by compactions.
    pub(crate) level: usize,
    merged_parts: Range<usize>,
}

#[cfg(test)]
impl<'a> PartRange<'a> {
    /// Creates a piece that belongs to no table.
    pub(crate) const fn of(part: &'a PartInfo, level: usize) -> Self {
        Self {
            part,
            level,
            merged_parts: 0..0,
        }
    }
}

/// A range of rows of one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartSlice {
    pub(crate) part: PartInfo,
    /// Row indexes within the part.
    pub(crate) rows: Range<u64>,
}

impl VersionIndex {
    /// Returns the contract, or `None` before the table exists.
    pub(crate) fn contract(&self) -> Option<&Arc<Contract>> {
        self.contract.as_ref()
    }

    /// Returns the latest version.
    pub(crate) fn head(&self) -> Version {
        self.parts.last().map_or(Version::EMPTY, |entry| entry.part.version)
    }

    /// Returns the content root of the latest version.
    pub(crate) fn root(&self) -> Root {
        self.parts.last().map_or(Root::EMPTY, |entry| entry.root)
    }

    /// Returns the content root of a version, or the empty root if the version is not known.
    pub(crate) fn root_at(&self, version: Version) -> Root {
        let last = self.parts_at(version).checked_sub(1);
        last.map_or(Root::EMPTY, |last| self.parts[last].root)
    }

    /// Returns the version that a contribution became.
    pub(crate) fn find(&self, contribution: ContributionId) -> Option<Version> {
        self.by_contribution.get(&contribution).copied()
    }

    /// Returns the number of the next commit.
    pub(crate) const fn next_commit(&self) -> u64 {
        self.commits
    }

    /// Returns the commit number of a version, if the version index has the version.
    pub(crate) fn commit_of(&self, version: Version) -> Option<u64> {
        let last = self.parts_at(version).checked_sub(1)?;
        let entry = self.parts.get(last).filter(|entry| entry.part.version == version);
        entry.map(|entry| entry.commit)
    }

    /// Returns true if `commit` is the last commit of the version index. A creation never counts.
    pub(crate) fn ends_with(&self, commit: &CommitContent) -> bool {
        let last = self.commits.checked_sub(1);
        match commit {
            CommitContent::Created(_) => false,
            CommitContent::Merged(merge, parts) => self.parts.last().is_some_and(|entry| {
                Some(entry.commit) == last
                    // Number, parts, row count and root must be equal, so another history is recognised.
                    && self.parts_between(Version(merge.version.0.saturating_sub(1)), self.head()) == *parts
                    && (entry.end, entry.root.to_string()) == (merge.record_count, merge.root.clone())
            }),
            CommitContent::Compacted(rewrite, _) => self
                .levels
                .iter()
                .any(|(_, compacted)| Some(compacted.commit) == last && compacted.part.name() == rewrite.name()),
        }
    }

    /// Returns the number of the last commit, and a text that this commit contains and no other commit of the same
    /// number would. The text is empty for the creation.
    pub(crate) fn last_commit(&self) -> Option<(u64, String)> {
        let last = self.commits.checked_sub(1)?;
        let merged = self.parts.last().filter(|entry| entry.commit == last);
        let text = if let Some(entry) = merged {
            entry.root.to_string()
        } else {
            let compacted = self.levels.iter().find(|(_, compacted)| compacted.commit == last);
            compacted
                .map(|(_, compacted)| compacted.part.name())
                .unwrap_or_default()
        };
        Some((last, text))
    }

    /// Returns the number of the commit that adds a part.
    pub(crate) fn commit_adding(&self, part: &PartInfo) -> Option<u64> {
        if part.compacted.is_none() {
            return self.commit_of(part.version);
        }
        let mut levels = self.levels.iter().map(|(_, compacted)| compacted);
        levels
            .find(|compacted| compacted.part == *part)
            .map(|compacted| compacted.commit)
    }

    /// Returns the part with this file name, also one that a compaction replaced.
    pub(crate) fn part_named(&self, name: &str) -> Option<&PartInfo> {
        // A name begins with the version of the first row, which limits the search to few parts.
        let first: u64 = name.strip_prefix("part-")?.get(..20)?.parse().ok()?;
        let before = self.parts_at(Version(first.checked_sub(1)?));
        let merged = self.parts[before..self.parts_at(Version(first))]
            .iter()
            .map(|entry| &entry.part);
        let compacted = self.levels.iter().map(|(_, compacted)| &compacted.part);
        let mut parts = merged.chain(compacted.filter(|part| part.compacted == Some(Version(first))));
        parts.find(|part| part.name() == name)
    }

    /// Returns the number of parts of the table at `version`.
    fn parts_at(&self, version: Version) -> usize {
        self.parts.partition_point(|entry| entry.part.version <= version)
    }

    /// Returns the number of rows of the table at `version`.
    pub(crate) fn rows_at(&self, version: Version) -> u64 {
        self.parts_at(version)
            .checked_sub(1)
            .map_or(0, |last| self.parts[last].end)
    }

    /// Returns the parts that merges added in the versions after `after`, up to and including `upto`.
    pub(crate) fn parts_between(&self, after: Version, upto: Version) -> Vec<PartInfo> {
        let (start, end) = (self.parts_at(after), self.parts_at(upto));
        self.parts[start.min(end)..end]
            .iter()
            .map(|entry| entry.part.clone())
            .collect()
    }

    /// Returns the largest parts that contain the rows of the merged parts `first..end` and no later row. The first
    /// returned part may begin earlier.
    fn ranges(&self, first: usize, end: usize) -> impl Iterator<Item = PartRange<'_>> {
        let mut next = first;
        std::iter::from_fn(move || {
            let range = (next < end).then(|| match self.levels.largest_containing(next, end) {
                Some((level, compacted)) => PartRange {
                    part: &compacted.part,
                    level,
                    merged_parts: compacted.merged_parts.clone(),
                },
                None => PartRange {
                    part: &self.parts[next].part,
                    level: 0,
                    merged_parts: next..next + 1,
                },
            })?;
            next = range.merged_parts.end;
            Some(range)
        })
    }

    /// Returns the parts to read a version from, in the order of its rows.
    pub(crate) fn layout(&self, version: Version) -> impl Iterator<Item = PartRange<'_>> {
        self.ranges(0, self.parts_at(version))
    }

    /// Returns the same parts, each with the content root after its last row.
    pub(crate) fn chain(&self, version: Version) -> Vec<PartLink> {
        let link = |range: PartRange<'_>| PartLink {
            part: range.part.clone(),
            root: self.parts[range.merged_parts.end - 1].root,
        };
        self.layout(version).map(link).collect()
    }

    /// Returns the parts, with row ranges, that contain these row indexes of a version.
    pub(crate) fn locate(&self, version: Version, rows: Range<u64>) -> Vec<PartSlice> {
        let mut slices = Vec::new();
        let end = self.parts_at(version);
        // Row counts are cumulative, so a binary search finds the first part with a wanted row.
        let first = self.parts[..end].partition_point(|entry| entry.end <= rows.start);
        for PartRange { part, merged_parts, .. } in self.ranges(first, end) {
            let (start, end) = self.rows_of(&merged_parts);
            if start >= rows.end {
                break;
            }
            let within = rows.start.max(start) - start..rows.end.min(end) - start;
            slices.push(PartSlice {
                part: part.clone(),
                rows: within,
            });
        }
        slices
    }

    /// Returns the index of the first row of these parts, and the index after the last row.
    fn rows_of(&self, merged_parts: &Range<usize>) -> (u64, u64) {
        let first = &self.parts[merged_parts.start];
        (first.end - first.part.rows, self.parts[merged_parts.end - 1].end)
    }

    /// Returns the merged parts that a compaction covers, and its level. Returns `None` unless the replaced parts are
    /// adjacent in the latest layout, cover whole versions, and have as many rows as the new part.
    pub(crate) fn admits(&self, rewrite: &PartRewrite) -> Option<(Range<usize>, usize)> {
        // Version 0 has no rows, so a valid compaction begins at version 1 or later.
        let merged_parts = self.parts_at(Version(rewrite.first.0.checked_sub(1)?))..self.parts_at(rewrite.last);
        let ranges: Vec<_> = self
            .ranges(merged_parts.start, self.parts.len())
            .take_while(|range| range.merged_parts.start < merged_parts.end)
            .collect();
        let (first, last) = (ranges.first()?, ranges.last()?);
        let whole = first.merged_parts.start == merged_parts.start && last.merged_parts.end == merged_parts.end;
        let versions = (first.part.first_version(), last.part.version) == (rewrite.first, rewrite.last);
        let named = ranges
            .iter()
            .map(|range| range.part.name())
            .eq(rewrite.replaces.iter().cloned());
        let rows: u64 = ranges.iter().map(|range| range.part.rows).sum();
        let level = ranges.iter().map(|range| range.level + 1).max()?;
        (whole && versions && named && ranges.len() > 1 && rows == rewrite.rows).then_some((merged_parts, level))
    }

    /// Returns true if the version index has the compaction.
    pub(crate) fn has(&self, rewrite: &PartRewrite) -> bool {
        self.levels
            .iter()
            .any(|(_, compacted)| compacted.part.name() == rewrite.name())
    }

    /// Applies commit `number`. Ignores a commit that the version index already has. `path` names the commit in errors.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the commit does not continue the version index.
    pub(crate) fn apply(
        &mut self,
        number: u64,
        commit: CommitContent,
        path: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        // Two callers may read the same commit. The second application changes nothing.
        if number < self.commits {
            return Ok(());
        }
        let fail = |problem: &str| Err(Error::corrupt(&path(), problem));
        // Commit 0, and no other, creates the table.
        if number > self.commits || matches!(commit, CommitContent::Created(_)) != (number == 0) {
            return fail("it does not follow the commit before it");
        }
        match commit {
            CommitContent::Created(contract) => self.contract = Some(contract),
            CommitContent::Merged(merge, parts) => {
                if merge.version != self.head().next() {
                    return fail("its version does not follow the one before it");
                }
                // Row counts must continue those before, or row indexes of pages would shift.
                let before = self.rows_at(self.head());
                if merge.record_count != before + merge.accepted {
                    return fail("its record count is not that of the commit before it plus its rows");
                }
                let Ok(root) = merge.root.parse() else {
                    return fail("its root is not a content root");
                };
                self.at = merge.at.millis();
                for part in parts {
                    self.push(part, root, number, self.at);
                }
            }
            CommitContent::Compacted(rewrite, at) => {
                let Some((merged_parts, level)) = self.admits(&rewrite) else {
                    return fail("it does not replace parts of the table by one with their rows");
                };
                self.at = at.millis();
                self.add_compacted(level, merged_parts, (number, self.at), (rewrite.bytes, rewrite.sha256));
            }
        }
        self.commits = number + 1;
        Ok(())
    }

    /// Adds a compacted part over the merged parts `merged_parts`.
    fn add_compacted(
        &mut self,
        level: usize,
        merged_parts: Range<usize>,
        (commit, at): (u64, i64),
        (bytes, sha256): (u64, [u8; 32]),
    ) {
        let (start, end) = self.rows_of(&merged_parts);
        let last = &self.parts[merged_parts.end - 1].part;
        let part = PartInfo {
            version: last.version,
            compacted: Some(self.parts[merged_parts.start].part.version),
            contribution: last.contribution,
            index: 0,
            attempt: 0,
            rows: end - start,
            bytes,
            sha256,
        };
        let compacted = CompactedPart {
            part,
            merged_parts,
            commit,
            at,
        };
        self.levels.insert(level, compacted);
    }

    fn push(&mut self, part: PartInfo, root: Root, commit: u64, at: i64) {
        // If a contribution is damaged into two versions, the first one counts. `check` reports the second.
        self.by_contribution.entry(part.contribution).or_insert(part.version);
        let end = self.rows_at(self.head()) + part.rows;
        self.parts.push(VersionPart {
            part,
            end,
            root,
            commit,
            at,
        });
    }
}

#[cfg(test)]
mod tests;
