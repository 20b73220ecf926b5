//! Record keys as a file: ascending, in pages with checksums, the first key of each page in memory.
//!
//! Invariants: the keys of a file are distinct and ascending. A look-up reads one page. A page that is not as it was
//! written is an error, never a key that is missing.
//!
//! ```text
//! page     up to 255 keys of 16 bytes, all pages but the last as many; their XXH3-128, seeded with the number of the page
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use types::RecordKey;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// The bytes of a key, and of a checksum.
const KEY: usize = 16;
/// The bytes of a page.
const PAGE: usize = 4_096;
/// How many keys a page has at most.
const PAGE_KEYS: usize = PAGE / KEY - 1;
/// How much is written at once, and read by who reads everything.
const CHUNK: usize = 64 * PAGE;

/// Keys in a file.
#[derive(Debug)]
pub(crate) struct KeyFile {
    file: File,
    keys: usize,
    /// The first key of each page.
    fences: Vec<RecordKey>,
}

impl KeyFile {
    /// Writes keys, ascending and distinct, into the file at `path`. It is not synced.
    pub(crate) fn write(path: &Path, keys: impl Iterator<Item = io::Result<RecordKey>>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).open(path)?;
        let mut out = BufWriter::with_capacity(CHUNK, &file);
        let (mut count, mut fences) = (0, Vec::new());
        let mut page = Vec::with_capacity(PAGE);
        for key in keys {
            let key = key?;
            if page.is_empty() {
                fences.push(key);
            }
            page.extend_from_slice(key.as_bytes());
            count += 1;
            if page.len() == PAGE_KEYS * KEY {
                end(&mut out, fences.len() - 1, &mut page)?;
            }
        }
        if !page.is_empty() {
            end(&mut out, fences.len() - 1, &mut page)?;
        }
        out.flush()?;
        drop(out);
        Ok(Self {
            file,
            keys: count,
            fences,
        })
    }

    /// Opens the file at `path`, of `keys` keys, and reads all of it.
    ///
    /// # Errors
    /// Also where it is not what was written.
    pub(crate) fn open(path: &Path, keys: u64) -> io::Result<Self> {
        let file = File::open(path)?;
        let keys = usize::try_from(keys).map_err(io::Error::other)?;
        let expected = keys.saturating_add(keys.div_ceil(PAGE_KEYS)).saturating_mul(KEY);
        if file.metadata()?.len() != expected as u64 {
            return Err(damaged());
        }
        let mut opened = Self {
            file,
            keys,
            fences: Vec::with_capacity(keys.div_ceil(PAGE_KEYS)),
        };
        let (mut fences, mut last) = (Vec::with_capacity(keys.div_ceil(PAGE_KEYS)), None);
        for (number, key) in opened.iter().enumerate() {
            let key = key?;
            if last >= Some(key) {
                return Err(damaged());
            }
            if number % PAGE_KEYS == 0 {
                fences.push(key);
            }
            last = Some(key);
        }
        opened.fences = fences;
        Ok(opened)
    }

    /// Makes what was written durable; its name is its folder's.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// How many keys there are.
    pub(crate) const fn len(&self) -> usize {
        self.keys
    }

    /// The memory it takes.
    pub(crate) const fn bytes(&self) -> usize {
        self.fences.capacity() * size_of::<RecordKey>()
    }

    /// Whether the key is there.
    pub(crate) fn contains(&self, key: &RecordKey) -> io::Result<bool> {
        let after = self.fences.partition_point(|fence| fence <= key);
        let Some(page) = after.checked_sub(1) else {
            return Ok(false);
        };
        let mut bytes = [0; PAGE];
        let bytes = &mut bytes[..self.size_of(page)];
        self.file.read_exact_at(bytes, (page * PAGE) as u64)?;
        let (keys, _) = check(page, bytes)?.as_chunks::<KEY>();
        Ok(keys.binary_search(key.as_bytes()).is_ok())
    }

    /// Every key, ascending.
    pub(crate) const fn iter(&self) -> Iter<'_> {
        Iter {
            file: self,
            chunk: Vec::new(),
            pages: 0,
            at: 0,
        }
    }

    /// The bytes of a page.
    fn size_of(&self, page: usize) -> usize {
        PAGE.min((self.keys - page * PAGE_KEYS + 1) * KEY)
    }
}

/// Ends the page with this number.
fn end(out: &mut impl Write, number: usize, page: &mut Vec<u8>) -> io::Result<()> {
    page.extend_from_slice(&checksum(number, page));
    out.write_all(page)?;
    page.clear();
    Ok(())
}

/// Why no cryptographic hash: it is against damage, in a folder of this process, and a look-up is one page.
fn checksum(page: usize, keys: &[u8]) -> [u8; KEY] {
    xxh3_128_with_seed(keys, page as u64).to_le_bytes()
}

/// The keys of a page.
fn check(number: usize, page: &[u8]) -> io::Result<&[u8]> {
    match page.split_last_chunk::<KEY>() {
        Some((keys, found)) if *found == checksum(number, keys) => Ok(keys),
        _ => Err(damaged()),
    }
}

fn damaged() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "a file of record keys is not as it was written",
    )
}

/// Every key of a [`KeyFile`], ascending; ends with the first error.
#[derive(Debug)]
pub(crate) struct Iter<'a> {
    file: &'a KeyFile,
    /// Keys that were read.
    chunk: Vec<u8>,
    /// How many pages were read.
    pages: usize,
    /// Where the next key is in the chunk.
    at: usize,
}

impl Iter<'_> {
    /// Reads the next pages; whether there are any.
    fn read(&mut self) -> io::Result<bool> {
        self.chunk.clear();
        self.at = 0;
        let first = self.pages;
        let left = self.file.keys - (first * PAGE_KEYS).min(self.file.keys);
        let pages = left.div_ceil(PAGE_KEYS).min(CHUNK / PAGE);
        if pages == 0 {
            return Ok(false);
        }
        self.pages += pages;
        let mut bytes = vec![0; (pages - 1) * PAGE + self.file.size_of(first + pages - 1)];
        self.file.file.read_exact_at(&mut bytes, (first * PAGE) as u64)?;
        for (number, page) in (first..).zip(bytes.chunks(PAGE)) {
            self.chunk.extend_from_slice(check(number, page)?);
        }
        Ok(true)
    }
}

impl Iterator for Iter<'_> {
    type Item = io::Result<RecordKey>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.chunk.len() {
            match self.read() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    // Nothing comes after it.
                    (self.pages, self.at) = (self.file.fences.len().max(self.file.keys), self.chunk.len());
                    return Some(Err(error));
                }
            }
        }
        let key = self.chunk[self.at..].first_chunk::<KEY>()?;
        self.at += KEY;
        Some(Ok(RecordKey::from_bytes(*key)))
    }
}

/// Keys that ascend.
pub(crate) type Source<'a> = Box<dyn Iterator<Item = io::Result<RecordKey>> + 'a>;

/// The keys of several sources, which have none in common, ascending.
pub(crate) struct Ascending<'a> {
    sources: Vec<Source<'a>>,
    heads: BinaryHeap<Reverse<(RecordKey, usize)>>,
}

impl<'a> Ascending<'a> {
    /// The keys of these sources.
    pub(crate) fn of(mut sources: Vec<Source<'a>>) -> io::Result<Self> {
        let mut heads = BinaryHeap::with_capacity(sources.len());
        for (index, source) in sources.iter_mut().enumerate() {
            if let Some(key) = source.next().transpose()? {
                heads.push(Reverse((key, index)));
            }
        }
        Ok(Self { sources, heads })
    }
}

impl Iterator for Ascending<'_> {
    type Item = io::Result<RecordKey>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut head = self.heads.peek_mut()?;
        let Reverse((key, index)) = *head;
        match self.sources[index].next() {
            Some(Ok(next)) => *head = Reverse((next, index)),
            Some(Err(error)) => return Some(Err(error)),
            None => {
                PeekMut::pop(head);
            }
        }
        Some(Ok(key))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::keys::tests::key;

    fn sorted(numbers: std::ops::Range<u32>) -> Vec<RecordKey> {
        let mut keys: Vec<_> = numbers.map(key).collect();
        keys.sort_unstable();
        keys
    }

    fn written(path: &Path, keys: &[RecordKey]) -> KeyFile {
        KeyFile::write(path, keys.iter().map(|key| Ok(*key))).unwrap()
    }

    #[test]
    fn what_was_written_is_found_now_and_when_it_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        // Around every edge of a page, and over more than is read at once.
        for count in [0, 1, 2, 254, 255, 256, 510, 511, 20_000] {
            let keys = sorted(0..count);
            let file = written(&path, &keys);
            let again = KeyFile::open(&path, u64::from(count)).unwrap();
            for file in [file, again] {
                assert_eq!(file.len(), keys.len());
                assert!(file.iter().map(Result::unwrap).eq(keys.iter().copied()), "{count}");
                assert!(keys.iter().all(|key| file.contains(key).unwrap()), "{count}");
                assert!((count..count + 500).all(|other| !file.contains(&key(other)).unwrap()));
            }
        }
    }

    #[test]
    fn a_file_that_is_not_as_it_was_written_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let keys = sorted(0..600);
        let file = written(&path, &keys);
        let whole = fs::read(&path).unwrap();
        assert_eq!(whole.len(), 600 * KEY + 3 * KEY);
        for at in [0, 15, 4_080, 4_095, 4_096, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
            assert!(KeyFile::open(&path, 600).is_err(), "{at}");
            // Who has it open learns it from the page.
            let place = keys[at / PAGE * PAGE_KEYS];
            assert!(file.contains(&place).is_err(), "{at}");
            let mut read = file.iter();
            assert!(read.by_ref().any(|key| key.is_err()), "{at}");
            assert!(read.next().is_none(), "{at}");
        }
        // Pages that are whole, but of another place, and fewer or more than there should be.
        let swapped = [&whole[PAGE..2 * PAGE], &whole[..PAGE], &whole[2 * PAGE..]].concat();
        for bytes in [
            &swapped,
            &whole[..2 * PAGE],
            &whole[..0],
            &[&whole[..], &whole[..PAGE]].concat(),
        ] {
            fs::write(&path, bytes).unwrap();
            assert!(KeyFile::open(&path, 600).is_err());
        }
        fs::write(&path, &whole).unwrap();
        assert!(KeyFile::open(&path, 599).is_err());
        assert!(KeyFile::open(&path, 600).is_ok());
    }

    #[test]
    fn sources_are_merged_and_an_error_of_one_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let parts = [sorted(0..300), sorted(300..301), sorted(301..1_000), Vec::new()];
        let files: Vec<_> = (0..)
            .zip(&parts)
            .map(|(number, keys)| written(&folder.path().join(format!("{number}")), keys))
            .collect();
        let sources = || -> Vec<Source<'_>> { files.iter().map(|file| Box::new(file.iter()) as Source<'_>).collect() };
        let merged: Vec<_> = Ascending::of(sources()).unwrap().map(Result::unwrap).collect();
        assert_eq!(merged, sorted(0..1_000));
        assert_eq!(Ascending::of(Vec::new()).unwrap().count(), 0);
        fs::write(folder.path().join("2"), vec![7; 699 * KEY + 3 * KEY]).unwrap();
        let tried = Ascending::of(sources());
        assert!(tried.is_err() || tried.is_ok_and(|mut keys| keys.any(|key| key.is_err())));
    }
}
