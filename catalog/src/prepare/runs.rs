//! A set of record keys of any size in bounded memory: the latest in memory, the others in sorted runs on disk.
//!
//! Invariant: a key is in at most one place.

use std::path::{Path, PathBuf};
use std::{fs, io, process};

use types::RecordKey;

use super::recent::{KEYS_LOOKED_AHEAD, Recent};
use crate::bloom::KeyFilter;
use crate::key_file::{KWayMerge, KeyFile, Source};

/// Maximum number of keys in memory: as many as a table of 2^22 places holds.
const MAX_KEYS_IN_MEMORY: u32 = (1 << 22) / 8 * 7;

/// The keys of one upload.
#[derive(Debug)]
pub(crate) struct KeyRuns {
    directory: PathBuf,
    /// True if a run has no name once it is written.
    is_unnamed: bool,
    recent: Recent,
    filter: KeyFilter,
    spilled: Vec<KeyFile>,
}

impl KeyRuns {
    /// No keys; runs are written in `directory`, which exists.
    pub(crate) fn new(directory: &Path) -> Self {
        Self::with_room(directory, MAX_KEYS_IN_MEMORY)
    }

    /// No keys, with half of the memory; runs in `directory` lose their names at once, so nothing of them is left when the
    /// process ends.
    pub(crate) fn unnamed(directory: &Path) -> Self {
        Self {
            is_unnamed: true,
            ..Self::with_room(directory, MAX_KEYS_IN_MEMORY / 2)
        }
    }

    fn with_room(directory: &Path, room: u32) -> Self {
        Self {
            directory: directory.to_owned(),
            is_unnamed: false,
            recent: Recent::new(room),
            filter: KeyFilter::default(),
            spilled: Vec::new(),
        }
    }

    /// Adds a key; `false` where it is there already.
    pub(crate) fn insert(&mut self, key: RecordKey) -> io::Result<bool> {
        if self.on_disk(&key)? || !self.recent.insert(key) {
            return Ok(false);
        }
        if self.recent.is_full() {
            self.spill()?;
        }
        Ok(true)
    }

    /// Adds keys; the answer has an entry for each: `false` where it was there already.
    pub(crate) fn insert_all(&mut self, keys: &[RecordKey]) -> io::Result<Vec<bool>> {
        let mut new = Vec::with_capacity(keys.len());
        for some in keys.chunks(KEYS_LOOKED_AHEAD) {
            self.recent.look_ahead(some);
            for key in some {
                new.push(self.insert(*key)?);
            }
        }
        Ok(new)
    }

    /// Returns true if the key is in the set.
    pub(crate) fn contains(&self, key: &RecordKey) -> io::Result<bool> {
        Ok(self.recent.contains(key) || self.on_disk(key)?)
    }

    fn on_disk(&self, key: &RecordKey) -> io::Result<bool> {
        if self.spilled.is_empty() || !self.filter.might_contain(key) {
            return Ok(false);
        }
        for run in &self.spilled {
            if run.contains(key)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes what is in memory as a run.
    fn spill(&mut self) -> io::Result<()> {
        let number = self.spilled.len();
        let path = if self.is_unnamed {
            // Another process may write there too.
            self.directory.join(format!("keys-{}-{number}", process::id()))
        } else {
            self.directory.join(format!("keys-{number}"))
        };
        if self.spilled.is_empty() {
            self.filter = KeyFilter::with_capacity(self.recent.keys().len());
        }
        let run = self.recent.empty(|keys| {
            KeyFile::write(
                &path,
                keys.iter().map(|key| {
                    self.filter.insert(key);
                    Ok(*key)
                }),
            )
        });
        self.spilled.push(run?);
        if self.is_unnamed {
            // It stays open.
            fs::remove_file(&path)?;
        }
        Ok(())
    }

    /// Gives back the memory that the keys do not need, as no more come.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.recent.shrink_to_fit();
    }

    /// Every key once, ascending.
    pub(crate) fn ascending(&self) -> io::Result<KWayMerge<'_>> {
        let mut recent: Vec<RecordKey> = self.recent.keys().to_vec();
        recent.sort_unstable();
        let recent = Box::new(recent.into_iter().map(Ok)) as Source<'_>;
        let spilled = self.spilled.iter().map(|run| Box::new(run.iter()) as Source<'_>);
        KWayMerge::of(std::iter::once(recent).chain(spilled).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::keys::tests::key;

    #[test]
    fn keys_are_found_wherever_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let mut runs = KeyRuns::with_room(directory.path(), 1_000);
        let mut expected = BTreeSet::new();
        // Every number comes twice, some while the first is in memory, most when it is on disk.
        for number in (0..4_321).chain(4_000..4_500).chain(0..4_400) {
            let new = expected.insert(key(number));
            assert_eq!(runs.insert(key(number)).unwrap(), new, "{number}");
        }
        // Many at once, some of them twice, across another spill.
        let keys: Vec<u32> = (4_400..4_700).chain(4_300..4_900).collect();
        let new = runs.insert_all(&keys.iter().map(|number| key(*number)).collect::<Vec<_>>());
        let wanted: Vec<bool> = keys.iter().map(|number| expected.insert(key(*number))).collect();
        assert_eq!(new.unwrap(), wanted);
        assert_eq!(runs.spilled.len(), 4);
        for number in 0..5_000 {
            let there = expected.contains(&key(number));
            assert_eq!(runs.contains(&key(number)).unwrap(), there, "{number}");
        }
        let found: Vec<RecordKey> = runs.ascending().unwrap().map(Result::unwrap).collect();
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn keys_are_found_however_many_are_in_memory() {
        let directory = tempfile::tempdir().unwrap();
        let mut runs = KeyRuns::with_room(directory.path(), 80_000);
        let insert = |runs: &mut KeyRuns, number| runs.insert(key(number)).unwrap();
        // Through the growth of its table, then through a spill.
        for number in 0..75_000 {
            assert!(insert(&mut runs, number), "{number}");
        }
        assert!((0..75_000).all(|number| !insert(&mut runs, number)));
        runs.shrink_to_fit();
        for number in 60_000..100_000 {
            assert_eq!(insert(&mut runs, number), number >= 75_000, "{number}");
        }
        assert_eq!(runs.spilled.len(), 1);
        assert!((0..100_000).all(|number| runs.contains(&key(number)).unwrap()));
        assert!(!runs.contains(&key(100_000)).unwrap());
        assert_eq!(runs.ascending().unwrap().count(), 100_000);
    }

    #[test]
    fn runs_without_a_name_keep_their_keys() {
        let directory = tempfile::tempdir().unwrap();
        let mut runs = KeyRuns {
            is_unnamed: true,
            ..KeyRuns::with_room(directory.path(), 1_000)
        };
        for number in (0..2_500).chain(0..2_500) {
            runs.insert(key(number)).unwrap();
        }
        assert_eq!((runs.spilled.len(), runs.ascending().unwrap().count()), (2, 2_500));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn no_keys_are_no_keys() {
        let directory = tempfile::tempdir().unwrap();
        let runs = KeyRuns::new(directory.path());
        assert!(!runs.contains(&key(1)).unwrap());
        assert!(runs.ascending().unwrap().next().is_none());
    }
}
