//! A set of record keys of any size in bounded memory: the latest in memory, the others in sorted runs on disk.
//!
//! Invariant: a key is in at most one place. A run is a file of distinct keys, ascending, whose every 256th key is in
//! memory, so that a look-up reads one page of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use types::RecordKey;

use super::recent::Recent;
use crate::bloom::Filter;

/// How many keys are in memory at most: what a table of 2^22 places holds.
const ROOM: u32 = (1 << 22) / 8 * 7;
/// The bytes of a key.
const KEY: usize = 16;
/// How many keys a page has.
const PAGE: usize = 256;

/// The keys of one upload.
#[derive(Debug)]
pub(crate) struct Runs {
    directory: PathBuf,
    recent: Recent,
    filter: Filter,
    spilled: Vec<Run>,
}

#[derive(Debug)]
struct Run {
    file: File,
    keys: usize,
    /// The first key of each page.
    fences: Vec<RecordKey>,
}

impl Runs {
    /// No keys; runs are written in `directory`, which exists.
    pub(crate) fn new(directory: &Path) -> Self {
        Self::with_room(directory, ROOM)
    }

    fn with_room(directory: &Path, room: u32) -> Self {
        Self {
            directory: directory.to_owned(),
            recent: Recent::new(room),
            filter: Filter::default(),
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

    /// Whether the key is there.
    pub(crate) fn contains(&self, key: &RecordKey) -> io::Result<bool> {
        Ok(self.recent.contains(key) || self.on_disk(key)?)
    }

    fn on_disk(&self, key: &RecordKey) -> io::Result<bool> {
        if self.spilled.is_empty() || !self.filter.may_contain(key) {
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
        let path = self.directory.join(format!("keys-{}", self.spilled.len()));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        let run = self.recent.empty(|keys| {
            let mut out = BufWriter::with_capacity(1 << 20, &file);
            for key in keys {
                out.write_all(key.as_bytes())?;
                self.filter.insert(key);
            }
            out.flush()?;
            drop(out);
            let fences = keys.iter().step_by(PAGE).copied().collect();
            let keys = keys.len();
            Ok::<_, io::Error>(Run { file, keys, fences })
        });
        self.spilled.push(run?);
        Ok(())
    }

    /// Gives back the memory that the keys do not need, as no more come.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.recent.shrink_to_fit();
    }

    /// Every key once, ascending.
    pub(crate) fn ascending(&self) -> io::Result<Ascending<'_>> {
        let mut recent: Vec<RecordKey> = self.recent.keys().to_vec();
        recent.sort_unstable();
        let mut sources: Vec<Source<'_>> = vec![Source::Memory(recent.into_iter())];
        for run in &self.spilled {
            (&run.file).seek(SeekFrom::Start(0))?;
            sources.push(Source::Disk(BufReader::with_capacity(64 << 10, &run.file), run.keys));
        }
        let mut heads = BinaryHeap::with_capacity(sources.len());
        for (index, source) in sources.iter_mut().enumerate() {
            if let Some(key) = source.next().transpose()? {
                heads.push(Reverse((key, index)));
            }
        }
        Ok(Ascending { sources, heads })
    }
}

impl Run {
    fn contains(&self, key: &RecordKey) -> io::Result<bool> {
        let after = self.fences.partition_point(|fence| fence <= key);
        let Some(page) = after.checked_sub(1) else {
            return Ok(false);
        };
        let first = page * PAGE;
        let count = PAGE.min(self.keys - first);
        let mut bytes = [0; PAGE * KEY];
        let bytes = &mut bytes[..count * KEY];
        self.file.read_exact_at(bytes, (first * KEY) as u64)?;
        let (keys, _) = bytes.as_chunks::<KEY>();
        Ok(keys.binary_search(key.as_bytes()).is_ok())
    }
}

/// Every key of [`Runs`], ascending.
#[derive(Debug)]
pub(crate) struct Ascending<'a> {
    sources: Vec<Source<'a>>,
    heads: BinaryHeap<Reverse<(RecordKey, usize)>>,
}

#[derive(Debug)]
enum Source<'a> {
    Memory(std::vec::IntoIter<RecordKey>),
    /// With how many keys are left.
    Disk(BufReader<&'a File>, usize),
}

impl Iterator for Source<'_> {
    type Item = io::Result<RecordKey>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Memory(keys) => keys.next().map(Ok),
            Self::Disk(_, 0) => None,
            Self::Disk(file, left) => {
                *left -= 1;
                let mut key = [0; KEY];
                Some(file.read_exact(&mut key).map(|()| RecordKey::from_bytes(key)))
            }
        }
    }
}

impl Iterator for Ascending<'_> {
    type Item = io::Result<RecordKey>;

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((key, index)) = self.heads.pop()?;
        match self.sources[index].next() {
            Some(Ok(next)) => self.heads.push(Reverse((next, index))),
            Some(Err(error)) => return Some(Err(error)),
            None => {}
        }
        Some(Ok(key))
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
        let mut runs = Runs::with_room(directory.path(), 1_000);
        let mut expected = BTreeSet::new();
        // Every number comes twice, some while the first is in memory, most when it is on disk.
        for number in (0..4_321).chain(4_000..4_500).chain(0..4_400) {
            let new = expected.insert(key(number));
            assert_eq!(runs.insert(key(number)).unwrap(), new, "{number}");
        }
        assert_eq!(runs.spilled.len(), 4);
        for number in 0..5_000 {
            assert_eq!(runs.contains(&key(number)).unwrap(), number < 4_500, "{number}");
        }
        let found: Vec<RecordKey> = runs.ascending().unwrap().map(Result::unwrap).collect();
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn keys_are_found_however_many_are_in_memory() {
        let directory = tempfile::tempdir().unwrap();
        let mut runs = Runs::with_room(directory.path(), 80_000);
        let insert = |runs: &mut Runs, number| runs.insert(key(number)).unwrap();
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
    fn no_keys_are_no_keys() {
        let directory = tempfile::tempdir().unwrap();
        let runs = Runs::new(directory.path());
        assert!(!runs.contains(&key(1)).unwrap());
        assert!(runs.ascending().unwrap().next().is_none());
    }
}
