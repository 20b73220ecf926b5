//! The content root: one hash that stands for every row of a version and of all versions before it.
//!
//! Invariant: the root depends on the canonical rows and their order only, never on how files lay them out.

use std::fmt;
use std::str::FromStr;

/// Domain separation for content roots (BLAKE3 `derive_key` context).
const CONTEXT: &str = "sluice 2026-11 content root v1";

/// The content root of a version: BLAKE3 over the root before it (32 bytes), then for each new row its canonical
/// form, preceded by its length as 4 bytes, little endian.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Root([u8; 32]);

impl Root {
    /// The root of version 0, which has no rows.
    pub const EMPTY: Self = Self([0; 32]);

    /// The root with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes of the root.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The root after appending `rows`, each in its canonical form.
    #[must_use]
    pub fn extend<'a>(&self, rows: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        hasher.update(&self.0);
        // Why: BLAKE3 is several times faster on long inputs than on many short ones.
        let mut buffer = Vec::with_capacity(BUFFER);
        for row in rows {
            buffer.extend_from_slice(&u32::try_from(row.len()).unwrap_or(u32::MAX).to_le_bytes());
            buffer.extend_from_slice(row);
            if buffer.len() >= BUFFER {
                hasher.update(&buffer);
                buffer.clear();
            }
        }
        hasher.update(&buffer);
        Self(*hasher.finalize().as_bytes())
    }
}

const BUFFER: usize = 64 << 10;

/// 64 lower-case hexadecimal digits.
impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not 64 lower-case hexadecimal digits")]
pub struct ParseRootError;

impl FromStr for Root {
    type Err = ParseRootError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = data_encoding::HEXLOWER.decode(text.as_bytes()).unwrap_or_default();
        Ok(Self(bytes.try_into().map_err(|_wrong: Vec<u8>| ParseRootError)?))
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
        let long = vec![7_u8; BUFFER + 1];
        let mut input = vec![0; 32];
        input.extend_from_slice(&(65_537_u32).to_le_bytes());
        input.extend_from_slice(&long);
        let expected = blake3::derive_key(CONTEXT, &input);
        assert_eq!(Root::EMPTY.extend([long.as_slice()]).as_bytes(), &expected);
    }
}
