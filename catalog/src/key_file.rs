//! Record keys in a file: sorted, in pages with checksums, the first key of each page in memory.
//!
//! Invariants: the keys of a file are distinct and ascending. A lookup reads one page. A damaged page is an error, and
//! is never taken for a missing key.
//!
//! ```text
//! page     up to 255 keys of 16 bytes (all pages but the last are full); then XXH3-128 of the keys, seeded with the
//!          number of the page
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

/// Size in bytes of a key, and of a checksum.
const KEY_BYTES: usize = 16;
/// Size of a page in bytes, with its checksum.
const PAGE_BYTES: usize = 4_096;
/// Maximum number of keys in a page.
const PAGE_KEYS: usize = PAGE_BYTES / KEY_BYTES - 1;
/// Size in bytes of a write, and of a read of the iterator.
const BUFFER_BYTES: usize = 64 * PAGE_BYTES;

/// An open file of record keys.
#[derive(Debug)]
pub(crate) struct KeyFile {
    file: File,
    keys: usize,
    /// First key of each page.
    fences: Vec<RecordKey>,
}

impl KeyFile {
    /// Writes sorted, distinct keys into a new file at `path`. Does not sync it.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the keys are not sorted. The incomplete file stays.
    pub(crate) fn write(path: &Path, keys: impl Iterator<Item = io::Result<RecordKey>>) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, &file);
        let (mut count, mut fences, mut last) = (0, Vec::new(), None);
        let mut page = Vec::with_capacity(PAGE_BYTES);
        for key in keys {
            let key = key?;
            if last.replace(key) >= Some(key) {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "the record keys are not sorted",
                ));
            }
            if page.is_empty() {
                fences.push(key);
            }
            page.extend_from_slice(key.as_bytes());
            count += 1;
            if page.len() == PAGE_KEYS * KEY_BYTES {
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

    /// Opens the file at `path`, reads all of it and calls `each` with every key in order.
    ///
    /// # Errors
    /// [`is_damage`] is true of the error if the file differs from the one that was written, or does not have `keys`
    /// keys.
    pub(crate) fn open(path: &Path, keys: u64, mut each: impl FnMut(RecordKey)) -> io::Result<Self> {
        let file = File::open(path)?;
        let keys = usize::try_from(keys).map_err(io::Error::other)?;
        // The exact size is known from the number of keys, so a truncated file is found before it is read.
        let expected = keys.saturating_add(keys.div_ceil(PAGE_KEYS)).saturating_mul(KEY_BYTES);
        if file.metadata()?.len() != expected as u64 {
            return Err(damaged());
        }
        let mut fences = Vec::with_capacity(keys.div_ceil(PAGE_KEYS));
        // The first keys of the pages are collected during the read below.
        let mut opened = Self {
            file,
            keys,
            fences: Vec::new(),
        };
        let mut last = None;
        for (number, key) in opened.iter().enumerate() {
            let key = key?;
            if last.replace(key) >= Some(key) {
                return Err(damaged());
            }
            if number % PAGE_KEYS == 0 {
                fences.push(key);
            }
            each(key);
        }
        opened.fences = fences;
        Ok(opened)
    }

    /// Makes the content durable. The caller syncs the directory.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Returns the number of keys.
    pub(crate) const fn len(&self) -> usize {
        self.keys
    }

    /// Returns the memory use in bytes.
    pub(crate) const fn bytes(&self) -> usize {
        self.fences.capacity() * size_of::<RecordKey>()
    }

    /// Returns true if the file has the key. Reads one page.
    pub(crate) fn contains(&self, key: &RecordKey) -> io::Result<bool> {
        // The page of a key is the last one whose first key is not greater.
        let after = self.fences.partition_point(|fence| fence <= key);
        let Some(page) = after.checked_sub(1) else {
            return Ok(false);
        };
        // A page fits on the stack, so a lookup allocates nothing.
        let mut bytes = [0; PAGE_BYTES];
        let bytes = &mut bytes[..self.size_of(page)];
        self.file.read_exact_at(bytes, (page * PAGE_BYTES) as u64)?;
        let (keys, _) = check(page, bytes)?.as_chunks::<KEY_BYTES>();
        Ok(keys.binary_search(key.as_bytes()).is_ok())
    }

    /// Iterates over all keys in ascending order.
    pub(crate) const fn iter(&self) -> KeyFileIter<'_> {
        KeyFileIter {
            file: self,
            chunk: Vec::new(),
            pages: 0,
            at: 0,
        }
    }

    /// Returns the size of a page in bytes.
    fn size_of(&self, page: usize) -> usize {
        PAGE_BYTES.min((self.keys - page * PAGE_KEYS + 1) * KEY_BYTES)
    }
}

/// Appends the checksum to a page and writes it.
fn end(out: &mut impl Write, number: usize, page: &mut Vec<u8>) -> io::Result<()> {
    page.extend_from_slice(&checksum(number, page));
    out.write_all(page)?;
    page.clear();
    Ok(())
}

/// Returns the checksum of a page. It protects against damage only, so it need not be cryptographic: the file is
/// private to the process, and a fast hash matters to a lookup, which reads one page.
fn checksum(page: usize, keys: &[u8]) -> [u8; KEY_BYTES] {
    xxh3_128_with_seed(keys, page as u64).to_le_bytes()
}

/// Verifies the checksum of a page and returns its keys.
fn check(number: usize, page: &[u8]) -> io::Result<&[u8]> {
    match page.split_last_chunk::<KEY_BYTES>() {
        Some((keys, found)) if *found == checksum(number, keys) => Ok(keys),
        _ => Err(damaged()),
    }
}

/// Returns true if an error means that a file is damaged or missing. Any other error may be transient.
pub(crate) fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
    matches!(error.kind(), InvalidData | NotFound | UnexpectedEof)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a file of record keys is damaged")
}

/// Iterator over the keys of a [`KeyFile`] in ascending order. It ends after the first error.
#[derive(Debug)]
pub(crate) struct KeyFileIter<'a> {
    file: &'a KeyFile,
    /// Keys that were read and not all returned yet.
    chunk: Vec<u8>,
    /// Number of pages that were read.
    pages: usize,
    /// Position of the next key in the chunk, in bytes.
    at: usize,
}

impl KeyFileIter<'_> {
    /// Reads the next pages. Returns false at the end of the file.
    fn read(&mut self) -> io::Result<bool> {
        self.chunk.clear();
        self.at = 0;
        let first = self.pages;
        // After an error `pages` is at least the number of pages, so nothing is left.
        let left = self.file.keys - (first * PAGE_KEYS).min(self.file.keys);
        let pages = left.div_ceil(PAGE_KEYS).min(BUFFER_BYTES / PAGE_BYTES);
        if pages == 0 {
            return Ok(false);
        }
        self.pages += pages;
        // Only the last page of the file may be shorter.
        let mut bytes = vec![0; (pages - 1) * PAGE_BYTES + self.file.size_of(first + pages - 1)];
        self.file.file.read_exact_at(&mut bytes, (first * PAGE_BYTES) as u64)?;
        for (number, page) in (first..).zip(bytes.chunks(PAGE_BYTES)) {
            self.chunk.extend_from_slice(check(number, page)?);
        }
        Ok(true)
    }
}

impl Iterator for KeyFileIter<'_> {
    type Item = io::Result<RecordKey>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.chunk.len() {
            match self.read() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    // The error is the last item.
                    (self.pages, self.at) = (self.file.keys, self.chunk.len());
                    return Some(Err(error));
                }
            }
        }
        let key = self.chunk[self.at..].first_chunk::<KEY_BYTES>()?;
        self.at += KEY_BYTES;
        Some(Ok(RecordKey::from_bytes(*key)))
    }
}

/// Iterator over ascending keys.
pub(crate) type Source<'a> = Box<dyn Iterator<Item = io::Result<RecordKey>> + 'a>;

/// Merges several disjoint ascending sources into one ascending sequence. It ends after the first error.
pub(crate) struct KWayMerge<'a> {
    sources: Vec<Source<'a>>,
    heads: BinaryHeap<Reverse<(RecordKey, usize)>>,
}

impl<'a> KWayMerge<'a> {
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

impl Iterator for KWayMerge<'_> {
    type Item = io::Result<RecordKey>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut head = self.heads.peek_mut()?;
        let Reverse((key, index)) = *head;
        match self.sources[index].next() {
            Some(Ok(next)) => *head = Reverse((next, index)),
            Some(Err(error)) => {
                drop(head);
                // An error ends the iteration.
                self.heads.clear();
                return Some(Err(error));
            }
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

    fn opened(path: &Path, keys: u64) -> io::Result<KeyFile> {
        KeyFile::open(path, keys, |_| {})
    }

    #[test]
    fn what_was_written_is_found_now_and_when_it_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        // Around every edge of a page, and over more than is read at once.
        for count in [0, 1, 2, 254, 255, 256, 510, 511, 20_000] {
            let path = folder.path().join(count.to_string());
            let keys = sorted(0..count);
            let file = written(&path, &keys);
            let mut read = Vec::new();
            let again = KeyFile::open(&path, u64::from(count), |key| read.push(key)).unwrap();
            assert_eq!(read, keys);
            for file in [file, again] {
                assert_eq!(file.len(), keys.len());
                assert!(file.iter().map(Result::unwrap).eq(keys.iter().copied()), "{count}");
                assert!(keys.iter().all(|key| file.contains(key).unwrap()), "{count}");
                assert!((count..count + 500).all(|other| !file.contains(&key(other)).unwrap()));
            }
        }
    }

    #[test]
    fn keys_that_do_not_ascend_are_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let keys = sorted(0..3);
        for (name, order) in [("twice", [0, 1, 1]), ("back", [0, 2, 1])] {
            let tried = KeyFile::write(&folder.path().join(name), order.iter().map(|at| Ok(keys[*at])));
            assert_eq!(tried.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        // Nor over a file that is there.
        let again = KeyFile::write(&folder.path().join("back"), std::iter::empty());
        assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_file_that_is_not_as_it_was_written_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        // More pages than are read at once.
        let keys = sorted(0..20_000);
        let file = written(&path, &keys);
        let whole = fs::read(&path).unwrap();
        assert_eq!(whole.len(), (20_000 + 79) * KEY_BYTES);
        for at in [0, 15, 4_080, 4_095, 4_096, 70 * PAGE_BYTES, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
            assert!(is_damage(&opened(&path, 20_000).unwrap_err()), "{at}");
            // A reader that has the file open finds the damage in the page.
            let damaged = at / PAGE_BYTES * PAGE_KEYS;
            assert!(is_damage(&file.contains(&keys[damaged]).unwrap_err()), "{at}");
            let mut read = file.iter();
            let end = read.by_ref().position(|key| key.is_err()).unwrap();
            assert!(end <= damaged && read.next().is_none(), "{at}");
        }
        // Pages that are whole, but of another place, and fewer or more than there should be.
        let swapped = [
            &whole[PAGE_BYTES..2 * PAGE_BYTES],
            &whole[..PAGE_BYTES],
            &whole[2 * PAGE_BYTES..],
        ]
        .concat();
        let longer = [&whole[..], &whole[..PAGE_BYTES]].concat();
        for bytes in [&swapped[..], &whole[..2 * PAGE_BYTES], &[], &longer] {
            fs::write(&path, bytes).unwrap();
            assert!(is_damage(&opened(&path, 20_000).unwrap_err()));
        }
        fs::write(&path, &whole).unwrap();
        assert!(opened(&path, 19_999).is_err());
        assert!(opened(&path, 20_000).is_ok());
    }

    #[test]
    fn sources_are_merged_and_an_error_of_one_ends_them() {
        let folder = tempfile::tempdir().unwrap();
        let parts = [sorted(0..300), sorted(300..301), sorted(301..40_000), Vec::new()];
        let files: Vec<_> = (0..)
            .zip(&parts)
            .map(|(number, keys)| written(&folder.path().join(format!("{number}")), keys))
            .collect();
        let sources = || -> Vec<Source<'_>> { files.iter().map(|file| Box::new(file.iter()) as Source<'_>).collect() };
        let merged: Vec<_> = KWayMerge::of(sources()).unwrap().map(Result::unwrap).collect();
        assert_eq!(merged, sorted(0..40_000));
        assert_eq!(KWayMerge::of(Vec::new()).unwrap().count(), 0);
        let large = folder.path().join("2");
        let mut bytes = fs::read(&large).unwrap();
        bytes[100 * PAGE_BYTES] ^= 1;
        fs::write(&large, bytes).unwrap();
        let mut tried = KWayMerge::of(sources()).unwrap();
        let end = tried.by_ref().position(|key| key.is_err()).unwrap();
        assert!(0 < end && end < 40_000);
        assert!(tried.next().is_none());
    }
}
