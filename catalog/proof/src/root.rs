//! The content root: a hash over every row of a version and of all versions before it.
//!
//! Invariant: the root depends on the canonical rows and their order only, never on their layout in files.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use types::Version;

use crate::codes::coded;

/// Domain separation for content roots (BLAKE3 `derive_key` context).
pub(crate) const ROOT_CONTEXT: &str = "sluice 2026-11 content root v1";
/// The bytes that are hashed at a time. BLAKE3 is several times faster on long inputs than on many short ones.
const HASHED_BYTES: usize = 64 << 10;

/// A version of a table with its content root, known from outside the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownHead {
    /// Number of the version.
    pub version: Version,
    /// Content root of the version.
    pub root: Root,
}

/// The content root of a version: BLAKE3 over the root before it (32 bytes), then for each new row its canonical
/// form, preceded by its length as 4 bytes, little endian. As text, 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Root([u8; 32]);

coded!(Root, HEXLOWER, "64 lower-case hexadecimal digits");

impl Root {
    /// The root of version 0, which has no rows.
    pub const EMPTY: Self = Self([0; 32]);

    /// Creates a root from its bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes of the root.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the root after appending `rows`, each in its canonical form.
    #[must_use]
    pub fn extend<'a>(&self, rows: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut extension = self.extension();
        for row in rows {
            extension.push(|out| out.extend_from_slice(row));
        }
        extension.finish()
    }

    /// Starts a new version, to which rows are appended one at a time.
    pub fn extension(&self) -> Extension {
        let mut hasher = blake3::Hasher::new_derive_key(ROOT_CONTEXT);
        hasher.update(&self.0);
        Extension {
            hasher,
            buffer: Vec::with_capacity(HASHED_BYTES),
        }
    }
}

/// A root to which the rows of one version are being appended.
#[derive(Clone, Debug)]
pub struct Extension {
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
}

impl Extension {
    /// Appends a row. `write` appends its canonical form to the buffer, and changes nothing before it.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.buffer.len() + 4;
        // The length comes first, so four bytes are reserved until it is known.
        self.buffer.extend_from_slice(&[0; 4]);
        write(&mut self.buffer);
        let length = u32::try_from(self.buffer.len() - start).unwrap_or(u32::MAX);
        self.buffer[start - 4..start].copy_from_slice(&length.to_le_bytes());
        // Many small rows are hashed in one call.
        if self.buffer.len() >= HASHED_BYTES {
            self.hasher.update(&self.buffer);
            self.buffer.clear();
        }
    }

    /// Returns the root with the rows appended.
    pub fn finish(mut self) -> Root {
        self.hasher.update(&self.buffer);
        Root(*self.hasher.finalize().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frozen: roots are published.
    #[test]
    fn golden_vector() {
        let root = Root::EMPTY.extend([br#"{"name":"a"}"#.as_slice(), b"{}"]);
        assert_eq!(root.to_string(), GOLDEN);
        assert_eq!(GOLDEN.parse(), Ok(root));
    }

    const GOLDEN: &str = "118ef873924853efecaf484efb694b6842482b8869b645086a43193ab20e20a6";

    #[test]
    fn where_rows_end_matters() {
        let rows = |parts: &[&'static [u8]]| Root::EMPTY.extend(parts.iter().copied());
        assert_ne!(rows(&[b"ab", b"c"]), rows(&[b"a", b"bc"]));
        assert_ne!(rows(&[b"a", b"b"]), rows(&[b"b", b"a"]));
        assert_ne!(rows(&[b""]), rows(&[]));
        assert_ne!(rows(&[]), Root::EMPTY);
    }

    #[test]
    fn long_rows_are_hashed_whole() {
        let long = vec![7_u8; HASHED_BYTES + 1];
        let mut input = vec![0; 32];
        input.extend_from_slice(&(65_537_u32).to_le_bytes());
        input.extend_from_slice(&long);
        let expected = blake3::derive_key(ROOT_CONTEXT, &input);
        assert_eq!(Root::EMPTY.extend([long.as_slice()]).as_bytes(), &expected);
    }
}
