//! Hashing of a version's rows before the root they extend is known.
//!
//! Invariant: [`Suffix::after`] equals the result of [`Root::extend`] for the same rows. BLAKE3 is a tree over chunks
//! of 1,024 bytes, and the previous root is in the first chunk only, so all other chunks can be hashed as they come
//! (BLAKE3 specification, section 2.1). The first chunk is kept as bytes, followed by one hash for each complete
//! subtree of 1, 2, 4, 8, … chunks.

use blake3::hazmat::{
    ChainingValue, ContextKey, HasherExt as _, Mode, hash_derive_key_context, merge_subtrees_non_root,
    merge_subtrees_root,
};
use blake3::{CHUNK_LEN, Hasher};

use crate::Root;
use crate::root::ROOT_CONTEXT;

/// The bytes of the first chunk after the previous root.
const FIRST_CHUNK_BYTES: usize = CHUNK_LEN - 32;
/// The bytes that are hashed at a time. BLAKE3 is several times faster on long inputs than on many short ones.
const HASHED_BYTES: usize = 64 << 10;

/// The rows of a version, to which any previous root can be applied.
#[derive(Clone, Debug)]
pub struct Suffix {
    context: ContextKey,
    /// The first chunk without the root.
    head: Vec<u8>,
    /// The hashes of the complete subtrees that are followed by another.
    complete: Vec<ChainingValue>,
    /// The subtree that is being hashed. It holds at most as many chunks as all before it.
    open: Hasher,
    /// The number of bytes in `open`.
    filled: u64,
    buffer: Vec<u8>,
}

impl Suffix {
    /// Creates a suffix without rows.
    pub fn new() -> Self {
        let context = hash_derive_key_context(ROOT_CONTEXT);
        Self {
            open: subtree(&context, 0),
            context,
            head: Vec::with_capacity(FIRST_CHUNK_BYTES),
            complete: Vec::new(),
            filled: 0,
            buffer: Vec::with_capacity(2 * HASHED_BYTES),
        }
    }

    /// Appends a row in its canonical form.
    pub fn push(&mut self, row: &[u8]) {
        let length = u32::try_from(row.len()).unwrap_or(u32::MAX);
        self.buffer.extend_from_slice(&length.to_le_bytes());
        self.buffer.extend_from_slice(row);
        if self.buffer.len() >= HASHED_BYTES {
            self.hash();
        }
    }

    /// Returns the root after appending the rows to `root`.
    pub fn after(&self, root: &Root) -> Root {
        // A copy is finished, so the suffix can be applied to another root later.
        let mut whole = self.clone();
        whole.hash();
        let Self {
            context,
            head,
            complete,
            open,
            filled,
            ..
        } = whole;
        let mut first = Hasher::new_from_context_key(&context);
        first.update(root.as_bytes()).update(&head);
        // All rows fit into the first chunk, which is then the whole tree.
        if filled == 0 {
            return Root::from_bytes(*first.finalize().as_bytes());
        }
        let mode = Mode::DeriveKeyMaterial(&context);
        let left = complete.iter().fold(first.finalize_non_root(), |left, right| {
            merge_subtrees_non_root(&left, right, mode)
        });
        Root::from_bytes(*merge_subtrees_root(&left, &open.finalize_non_root(), mode).as_bytes())
    }

    /// Hashes the buffered bytes.
    fn hash(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        let (head, mut rest) = buffer.split_at(buffer.len().min(FIRST_CHUNK_BYTES - self.head.len()));
        self.head.extend_from_slice(head);
        while !rest.is_empty() {
            let size = size_of_subtree(self.complete.len());
            // A full subtree is closed only when more bytes follow: the last subtree is the
            // right child of the root, complete or not.
            if self.filled == size {
                self.complete.push(self.open.finalize_non_root());
                self.open = subtree(&self.context, self.complete.len());
                self.filled = 0;
                continue;
            }
            let room = usize::try_from(size - self.filled).unwrap_or(usize::MAX);
            let (taken, left) = rest.split_at(rest.len().min(room));
            self.open.update(taken);
            self.filled += taken.len() as u64;
            rest = left;
        }
        self.buffer = buffer;
        self.buffer.clear();
    }
}

impl Default for Suffix {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the size of a subtree in bytes, by its number from 0: as much as all before it.
const fn size_of_subtree(number: usize) -> u64 {
    (CHUNK_LEN as u64) << number
}

fn subtree(context: &ContextKey, number: usize) -> Hasher {
    let mut hasher = Hasher::new_from_context_key(context);
    hasher.set_input_offset(size_of_subtree(number));
    hasher
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of this many bytes, all different.
    fn rows(sizes: &[usize]) -> Vec<Vec<u8>> {
        let row = |(number, size): (usize, &usize)| {
            let byte = |at: usize| u8::try_from((at * 31 + number * 7) % 251).unwrap();
            (0..*size).map(byte).collect()
        };
        sizes.iter().enumerate().map(row).collect()
    }

    fn agree(sizes: &[usize]) {
        let rows = rows(sizes);
        let mut suffix = Suffix::new();
        for row in &rows {
            suffix.push(row);
        }
        for root in [Root::EMPTY, Root::from_bytes([7; 32])] {
            let expected = root.extend(rows.iter().map(Vec::as_slice));
            assert_eq!(suffix.after(&root), expected, "{sizes:?}");
        }
    }

    #[test]
    fn it_is_the_root_whatever_the_length() {
        // A row adds its length, 4 bytes, and the root before it 32: every edge of the tree is met within a byte.
        for chunks in [1_usize, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 64, 65, 128, 129, 1_000] {
            for off in [-2_isize, -1, 0, 1, 2] {
                agree(&[(chunks * CHUNK_LEN - 36).saturating_add_signed(off)]);
            }
        }
        agree(&[]);
        agree(&[0]);
    }

    #[test]
    fn it_is_the_root_however_the_rows_are_cut() {
        agree(&vec![100; 5_000]);
        agree(&[3, 70_000, 1, 0, 65_536, 987, 988, 989, 200_000]);
    }

    #[test]
    fn rows_may_be_added_after_a_root_was_read() {
        let rows = rows(&[2_000; 90]);
        let mut suffix = Suffix::new();
        for (count, row) in rows.iter().enumerate() {
            assert_eq!(
                suffix.after(&Root::EMPTY),
                Root::EMPTY.extend(rows[..count].iter().map(Vec::as_slice))
            );
            suffix.push(row);
        }
    }
}
