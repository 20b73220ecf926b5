//! The part timeline: what the commits of a table said, in memory.
//!
//! Invariant: it is a prefix of the log. It only ever grows, by the next commit, so a version that was found once is
//! found for ever with the same rows. A compaction adds a way to read rows and takes none away: every version is laid
//! out in the largest parts that end with it or before, and those that merges added are always among them.

mod codec;
mod latest;
mod layers;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use types::{Contract, ContributionId, Version};

pub(crate) use self::latest::Latest;
use self::layers::{Layer, Layers};
use crate::log::{Commit, Rewrite};
use crate::part::{Link, PartInfo};
use crate::{Error, Root};

/// The parts of a table in the order of its rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    contract: Option<Arc<Contract>>,
    /// The parts that merges added.
    parts: Vec<Entry>,
    layers: Layers,
    by_contribution: HashMap<ContributionId, Version>,
    /// How many commits it has.
    commits: u64,
    /// When the last of them was made, that of the creation aside; milliseconds since the epoch.
    at: i64,
}

#[derive(Clone, Debug)]
struct Entry {
    part: PartInfo,
    /// How many rows the table has with this part.
    end: u64,
    /// The content root of the version that this part is of.
    root: Root,
    /// The number of its commit.
    commit: u64,
    /// When that was made; milliseconds since the epoch.
    at: i64,
}

/// A part in a layout of the table.
#[derive(Clone, Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) part: &'a PartInfo,
    /// How many times its rows were rewritten.
    pub(crate) height: usize,
    covers: Range<usize>,
}

#[cfg(test)]
impl<'a> Piece<'a> {
    /// A part of no table.
    pub(crate) const fn of(part: &'a PartInfo, height: usize) -> Self {
        Self {
            part,
            height,
            covers: 0..0,
        }
    }
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

    /// The content root of a version; of the empty one where it is not known.
    pub(crate) fn root_at(&self, version: Version) -> Root {
        let last = self.parts_at(version).checked_sub(1);
        last.map_or(Root::EMPTY, |last| self.parts[last].root)
    }

    /// The version that a contribution became.
    pub(crate) fn find(&self, contribution: ContributionId) -> Option<Version> {
        self.by_contribution.get(&contribution).copied()
    }

    /// The number of the commit to come.
    pub(crate) const fn next_commit(&self) -> u64 {
        self.commits
    }

    /// The number of the commit of a version that it has.
    pub(crate) fn commit_of(&self, version: Version) -> Option<u64> {
        let last = self.parts_at(version).checked_sub(1)?;
        let entry = self.parts.get(last).filter(|entry| entry.part.version == version);
        entry.map(|entry| entry.commit)
    }

    /// Whether it ends with this commit.
    pub(crate) fn ends_with(&self, commit: &Commit) -> bool {
        let last = self.commits.checked_sub(1);
        match commit {
            Commit::Created(_) => false,
            Commit::Merged(merge, parts) => self.parts.last().is_some_and(|entry| {
                Some(entry.commit) == last
                    && self.parts_between(Version(merge.version.0.saturating_sub(1)), self.head()) == *parts
                    && (entry.end, entry.root.to_string()) == (merge.record_count, merge.root.clone())
            }),
            Commit::Compacted(rewrite, _) => self
                .layers
                .iter()
                .any(|(_, layer)| Some(layer.commit) == last && layer.part.name() == rewrite.name()),
        }
    }

    /// The number of its last commit, with a text that this commit has and that no other with its number would have;
    /// the text is empty for the creation.
    pub(crate) fn last_commit(&self) -> Option<(u64, String)> {
        let last = self.commits.checked_sub(1)?;
        let merged = self.parts.last().filter(|entry| entry.commit == last);
        let text = if let Some(entry) = merged {
            entry.root.to_string()
        } else {
            let compacted = self.layers.iter().find(|(_, layer)| layer.commit == last);
            compacted.map(|(_, layer)| layer.part.name()).unwrap_or_default()
        };
        Some((last, text))
    }

    /// The number of the commit that adds a part.
    pub(crate) fn commit_adding(&self, part: &PartInfo) -> Option<u64> {
        if part.compacted.is_none() {
            return self.commit_of(part.version);
        }
        let mut layers = self.layers.iter().map(|(_, layer)| layer);
        layers.find(|layer| layer.part == *part).map(|layer| layer.commit)
    }

    /// The part with this name, whether versions are read from it now or not.
    pub(crate) fn part_named(&self, name: &str) -> Option<&PartInfo> {
        // Every name begins with the version of the first row.
        let first: u64 = name.strip_prefix("part-")?.get(..20)?.parse().ok()?;
        let before = self.parts_at(Version(first.checked_sub(1)?));
        let merged = self.parts[before..self.parts_at(Version(first))]
            .iter()
            .map(|entry| &entry.part);
        let compacted = self.layers.iter().map(|(_, layer)| &layer.part);
        let mut parts = merged.chain(compacted.filter(|part| part.compacted == Some(Version(first))));
        parts.find(|part| part.name() == name)
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

    /// The parts that merges added with the versions after `after` up to `upto`.
    pub(crate) fn parts_between(&self, after: Version, upto: Version) -> Vec<PartInfo> {
        let (start, end) = (self.parts_at(after), self.parts_at(upto));
        self.parts[start.min(end)..end]
            .iter()
            .map(|entry| entry.part.clone())
            .collect()
    }

    /// The largest parts that together have the rows of the parts from `first` up to `end` that merges added; the first
    /// may begin earlier.
    fn pieces(&self, first: usize, end: usize) -> impl Iterator<Item = Piece<'_>> {
        let mut next = first;
        std::iter::from_fn(move || {
            let piece = (next < end).then(|| match self.layers.covering(next, end) {
                Some((height, layer)) => Piece {
                    part: &layer.part,
                    height,
                    covers: layer.covers.clone(),
                },
                None => Piece {
                    part: &self.parts[next].part,
                    height: 0,
                    covers: next..next + 1,
                },
            })?;
            next = piece.covers.end;
            Some(piece)
        })
    }

    /// The parts that a version is read from, in the order of its rows.
    pub(crate) fn layout(&self, version: Version) -> impl Iterator<Item = Piece<'_>> {
        self.pieces(0, self.parts_at(version))
    }

    /// The same, each with the content root after it.
    pub(crate) fn chain(&self, version: Version) -> Vec<Link> {
        let link = |piece: Piece<'_>| Link {
            part: piece.part.clone(),
            root: self.parts[piece.covers.end - 1].root,
        };
        self.layout(version).map(link).collect()
    }

    /// Where the rows of a version with these indexes are.
    pub(crate) fn locate(&self, version: Version, rows: Range<u64>) -> Vec<Slice> {
        let mut slices = Vec::new();
        let end = self.parts_at(version);
        let first = self.parts[..end].partition_point(|entry| entry.end <= rows.start);
        for Piece { part, covers, .. } in self.pieces(first, end) {
            let (start, end) = self.rows_of(&covers);
            if start >= rows.end {
                break;
            }
            let within = rows.start.max(start) - start..rows.end.min(end) - start;
            slices.push(Slice {
                part: part.clone(),
                rows: within,
            });
        }
        slices
    }

    /// The indexes of the first row of these parts and of the row after the last.
    fn rows_of(&self, covers: &Range<usize>) -> (u64, u64) {
        let first = &self.parts[covers.start];
        (first.end - first.part.rows, self.parts[covers.end - 1].end)
    }

    /// What a rewrite covers, with the height it has, if the parts that it replaces are in the table's latest layout, one
    /// after the other, and have whole versions and its rows.
    pub(crate) fn admits(&self, rewrite: &Rewrite) -> Option<(Range<usize>, usize)> {
        let covers = self.parts_at(Version(rewrite.first.0.checked_sub(1)?))..self.parts_at(rewrite.last);
        let pieces: Vec<_> = self
            .pieces(covers.start, self.parts.len())
            .take_while(|piece| piece.covers.start < covers.end)
            .collect();
        let (first, last) = (pieces.first()?, pieces.last()?);
        let whole = first.covers.start == covers.start && last.covers.end == covers.end;
        let versions = (first.part.first_version(), last.part.version) == (rewrite.first, rewrite.last);
        let named = pieces
            .iter()
            .map(|piece| piece.part.name())
            .eq(rewrite.replaces.iter().cloned());
        let rows: u64 = pieces.iter().map(|piece| piece.part.rows).sum();
        let height = pieces.iter().map(|piece| piece.height + 1).max()?;
        (whole && versions && named && pieces.len() > 1 && rows == rewrite.rows).then_some((covers, height))
    }

    /// Whether a rewrite is in the timeline.
    pub(crate) fn has(&self, rewrite: &Rewrite) -> bool {
        self.layers.iter().any(|(_, layer)| layer.part.name() == rewrite.name())
    }

    /// Adds commit `number`, the next; one that it has already is left out. `path` names the commit in errors.
    pub(crate) fn apply(&mut self, number: u64, commit: Commit, path: impl FnOnce() -> String) -> Result<(), Error> {
        if number < self.commits {
            return Ok(());
        }
        let fail = |problem: &str| Err(Error::corrupt(&path(), problem));
        if number > self.commits || matches!(commit, Commit::Created(_)) != (number == 0) {
            return fail("it does not follow the commit before it");
        }
        match commit {
            Commit::Created(contract) => self.contract = Some(contract),
            Commit::Merged(merge, parts) => {
                if merge.version != self.head().next() {
                    return fail("its version does not follow the one before it");
                }
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
            Commit::Compacted(rewrite, at) => {
                let Some((covers, height)) = self.admits(&rewrite) else {
                    return fail("it does not replace parts of the table by one with their rows");
                };
                self.at = at.millis();
                self.cover(height, covers, (number, self.at), (rewrite.bytes, rewrite.sha256));
            }
        }
        self.commits = number + 1;
        Ok(())
    }

    /// Adds a compacted part, of this size and SHA-256, over others; by the commit with this number and time.
    fn cover(
        &mut self,
        height: usize,
        covers: Range<usize>,
        (commit, at): (u64, i64),
        (bytes, sha256): (u64, [u8; 32]),
    ) {
        let (start, end) = self.rows_of(&covers);
        let last = &self.parts[covers.end - 1].part;
        let part = PartInfo {
            version: last.version,
            compacted: Some(self.parts[covers.start].part.version),
            contribution: last.contribution,
            index: 0,
            attempt: 0,
            rows: end - start,
            bytes,
            sha256,
        };
        let layer = Layer {
            part,
            covers,
            commit,
            at,
        };
        self.layers.insert(height, layer);
    }

    fn push(&mut self, part: PartInfo, root: Root, commit: u64, at: i64) {
        // Why: should a contribution be in two versions, the first is its version; a check reports the second.
        self.by_contribution.entry(part.contribution).or_insert(part.version);
        let end = self.rows_at(self.head()) + part.rows;
        self.parts.push(Entry {
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
