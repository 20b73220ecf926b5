//! Stamps: counts of the changes of this process, by which a caller recognises that what it remembers is out of date.
//!
//! Invariant: a stamp changes after the commit of a change and before the change is answered. So who gets the answer of
//! a change, and compares stamps, sees the change. Changes of other processes alter no stamp.

use std::sync::atomic::{AtomicU64, Ordering};

use types::DatasetId;

/// Number of counters that the projects share. Two projects with one counter only forget each other's rows.
const PROJECTS: usize = 1 << 10;

/// The rows that a change alters, among those that callers may remember.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    /// Rows that nobody remembers, such as counts and queues.
    Nothing,
    /// These projects and their versions.
    Projects(Vec<DatasetId>),
    /// Any row.
    Everything,
}

/// Counts of the changes that were committed.
#[derive(Debug)]
pub(crate) struct Stamps {
    /// Changes of any kind.
    all: AtomicU64,
    everything: AtomicU64,
    projects: [AtomicU64; PROJECTS],
}

/// A moment in the history of the rows that something was made from. Two equal stamps have no change between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    everything: u64,
    project: u64,
}

impl Default for Stamps {
    fn default() -> Self {
        Self {
            all: AtomicU64::default(),
            everything: AtomicU64::default(),
            projects: [const { AtomicU64::new(0) }; PROJECTS],
        }
    }
}

impl Stamps {
    /// Returns the number of changes of any kind.
    pub(crate) fn changes(&self) -> u64 {
        self.all.load(Ordering::Acquire)
    }

    /// Returns the stamp of a project, or of the rows that belong to none.
    pub(crate) fn of(&self, project: Option<DatasetId>) -> Stamp {
        let counter = project.map(|project| &self.projects[place(project)]);
        Stamp {
            everything: self.everything.load(Ordering::Acquire),
            project: counter.map_or(0, |counter| counter.load(Ordering::Acquire)),
        }
    }

    /// Counts a change that was committed.
    pub(crate) fn count(&self, touched: &Touched) {
        // Counts of uses and queues change at almost every call, and would make everybody forget everything.
        let is_nothing = match touched {
            Touched::Nothing => true,
            Touched::Projects(projects) => projects.is_empty(),
            Touched::Everything => false,
        };
        if is_nothing {
            return;
        }
        // First, so that whoever sees a new stamp sees a new count as well: it must not pass what it read before the
        // change off as what is stamped after it.
        self.all.fetch_add(1, Ordering::AcqRel);
        match touched {
            Touched::Nothing => {}
            Touched::Projects(projects) => {
                for project in projects {
                    self.projects[place(*project)].fetch_add(1, Ordering::AcqRel);
                }
            }
            Touched::Everything => {
                self.everything.fetch_add(1, Ordering::AcqRel);
            }
        }
    }
}

/// Returns the place of a project among the counters. The last bytes of an id are random.
fn place(project: DatasetId) -> usize {
    // The end of an id is random, so projects spread evenly. Two that share a counter forget more than
    // they must, never less.
    let [.., high, low] = *project.as_bytes();
    usize::from(u16::from_be_bytes([high, low])) % PROJECTS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(last: u8) -> DatasetId {
        let mut bytes = [7; 16];
        bytes[15] = last;
        DatasetId::from_bytes(bytes)
    }

    #[test]
    fn a_change_alters_the_stamps_of_what_it_touched_and_of_nothing_else() {
        let stamps = Stamps::default();
        let all = || {
            [
                stamps.of(None),
                stamps.of(Some(project(1))),
                stamps.of(Some(project(2))),
            ]
        };
        let [rest, one, two] = all();
        let changes = stamps.changes();
        for touched in [Touched::Nothing, Touched::Projects(Vec::new())] {
            stamps.count(&touched);
            assert_eq!((all(), stamps.changes()), ([rest, one, two], changes), "{touched:?}");
        }
        stamps.count(&Touched::Projects(vec![project(1)]));
        let after = all();
        assert_eq!((after[0], after[2]), (rest, two));
        assert_ne!(after[1], one);
        assert_ne!(stamps.changes(), changes);
        stamps.count(&Touched::Everything);
        for (new, old) in all().into_iter().zip(after) {
            assert_ne!(new, old);
        }
    }
}
