//! The normal form of a text: the rules of `SentencePiece` with the character map of the model (`nmt_nfkc`).
//!
//! Invariant: every byte of a normal form knows the place in the text that it was made of, and work is linear in the
//! text.

use crate::file::words;

/// The sign that stands for a space (U+2581).
pub(crate) const SPACE: &[u8] = "\u{2581}".as_bytes();

/// A map from characters to what replaces them: a double-array trie and the replacements, each ended by a zero.
#[derive(Debug)]
pub(crate) struct CharacterMap {
    units: Vec<u32>,
    replacements: Vec<u8>,
}

/// A normal form.
#[derive(Debug, Default)]
pub(crate) struct NormalText {
    /// Normal form as UTF-8.
    pub(crate) bytes: Vec<u8>,
    /// For each byte, the beginning of what it was made of in the text.
    pub(crate) origins: Vec<u32>,
}

impl NormalText {
    fn push(&mut self, bytes: &[u8], origin: u32) {
        self.bytes.extend_from_slice(bytes);
        self.origins.resize(self.bytes.len(), origin);
    }
}

/// The fields of a unit of the trie: the distance to its children, its label, and a mark that it has a value.
const fn offset(unit: u32) -> u32 {
    (unit >> 10) << ((unit & 0x200) >> 6)
}

impl CharacterMap {
    /// Reads a map: the bytes of the trie (u32), the trie, the replacements.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (trie, replacements) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
        Some(Self {
            units: words(trie, u32::from_le_bytes),
            replacements: replacements.to_vec(),
        })
    }

    fn unit(&self, node: u32) -> Option<u32> {
        self.units.get(usize::try_from(node).ok()?).copied()
    }

    /// Returns what replaces the beginning of a text and how many bytes it replaces: the longest key of the map, or
    /// else the first character as it is. The text is not empty.
    fn first<'a>(&'a self, text: &'a str) -> (&'a [u8], usize) {
        let mut found = None;
        let mut node = self.unit(0).map_or(0, offset);
        for (at, byte) in text.bytes().enumerate() {
            node ^= u32::from(byte);
            let Some(unit) = self.unit(node).filter(|unit| unit & 0x8000_00FF == u32::from(byte)) else {
                break;
            };
            node ^= offset(unit);
            if unit & 0x100 != 0 {
                found = self.unit(node).map(|value| (value & 0x7FFF_FFFF, at + 1));
            }
        }
        let replaced = found.and_then(|(value, bytes)| {
            let rest = self.replacements.get(usize::try_from(value).ok()?..)?;
            Some((rest.split(|byte| *byte == 0).next()?, bytes))
        });
        replaced.unwrap_or_else(|| {
            let bytes = text.chars().next().map_or(text.len(), char::len_utf8);
            (&text.as_bytes()[..bytes], bytes)
        })
    }

    /// Returns the normal form of a text: characters replaced, spaces at both ends dropped, one sign for each run of
    /// spaces, and one before the first word. It is empty if nothing is left.
    pub(crate) fn normal(&self, text: &str) -> NormalText {
        let mut normal = NormalText::default();
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let (first, bytes) = self.first(rest);
            if first != b" " {
                break;
            }
            at += bytes;
        }
        if at == text.len() {
            return normal;
        }
        let origin = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        normal.push(SPACE, origin(at));
        let mut after_space = true;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let (mut first, bytes) = self.first(rest);
            while let (true, Some(shorter)) = (after_space, first.strip_prefix(b" ")) {
                first = shorter;
            }
            for byte in first {
                match byte {
                    b' ' => normal.push(SPACE, origin(at)),
                    byte => normal.push(&[*byte], origin(at)),
                }
            }
            after_space = first.last().map_or(after_space, |last| *last == b' ');
            at += bytes;
        }
        while normal.bytes.ends_with(SPACE) {
            normal.bytes.truncate(normal.bytes.len() - SPACE.len());
        }
        normal.origins.truncate(normal.bytes.len());
        normal
    }
}
