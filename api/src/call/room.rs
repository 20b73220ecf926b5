//! Room of an answer: a model reads an answer of a tool whole, and clients cut off what is longer than they take. So a
//! page of a tool ends by its size, and says where it goes on.
//!
//! Invariants:
//! - What does not fit is whole on the next page: nothing is lost between two pages, and nothing is on both.
//! - The first item of a page always fits, so that each page goes on from the one before.
//! - Outside of MCP there is no bound, and nothing is measured.

use std::io;

use serde::Serialize;

use crate::call::caller::Transport;
use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::state::page_size::PageSize;

/// Bytes of the JSON of an answer over MCP: about 8,000 tokens.
pub(crate) const ANSWER_BYTES: usize = 32_000;
/// Bytes that are kept for the members beside the items.
const FRAME_BYTES: usize = 1_000;
/// Bytes of a text that a part of it has at least.
const LEAST_PART_BYTES: usize = 4_000;

/// Bytes that are left for the items of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageRoom {
    /// Bytes left; `None` where there is no bound.
    left: Option<usize>,
    is_empty: bool,
}

/// Part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TextPart {
    pub(crate) text: String,
    /// Code points of the text before the next part; `None` after the last.
    pub(crate) next_offset: Option<u64>,
}

impl PageRoom {
    /// Returns the room of the answer to a call.
    pub(crate) fn of(cx: &Cx) -> Self {
        match cx.door {
            Transport::Mcp(_) => Self::of_tools(),
            Transport::Rest | Transport::Console(_) => Self::bounded(None),
        }
    }

    /// Returns the room of an answer over MCP.
    pub(crate) const fn of_tools() -> Self {
        Self::bounded(Some(ANSWER_BYTES - FRAME_BYTES))
    }

    const fn bounded(left: Option<usize>) -> Self {
        Self { left, is_empty: true }
    }

    /// Returns a room with this share of the bytes.
    pub(crate) fn share(self, parts: usize) -> Self {
        Self::bounded(self.left.map(|left| left / parts))
    }

    /// Returns the size of a page of records.
    pub(crate) fn page_size(self) -> PageSize {
        self.left
            .map_or(PageSize::LARGE, |most| PageSize { most, is_strict: true })
    }

    /// Returns true if there is a bound.
    pub(crate) const fn is_bounded(self) -> bool {
        self.left.is_some()
    }

    /// Returns true if a text of `bytes` fits.
    pub(crate) fn holds(self, bytes: usize) -> bool {
        self.left.is_none_or(|left| bytes <= left)
    }

    /// Takes the bytes of what stands beside the items.
    pub(crate) fn spend(&mut self, value: &impl Serialize) -> Result<(), ApiError> {
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(bytes_of(value)?);
        }
        Ok(())
    }

    /// Takes the bytes of an item. Returns false if it is for the next page.
    pub(crate) fn takes(&mut self, item: &impl Serialize) -> Result<bool, ApiError> {
        let Some(left) = &mut self.left else {
            return Ok(true);
        };
        // A comma follows it.
        let bytes = bytes_of(item)? + 1;
        let fits = self.is_empty || bytes <= *left;
        if fits {
            *left = left.saturating_sub(bytes);
            self.is_empty = false;
        }
        Ok(fits)
    }

    /// Cuts a list to the items that fit. Returns true if some do not.
    pub(crate) fn keep<T: Serialize>(&mut self, items: &mut Vec<T>) -> Result<bool, ApiError> {
        if self.left.is_none() {
            return Ok(false);
        }
        for index in 0..items.len() {
            if !self.takes(&items[index])? {
                items.truncate(index);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the part of a text that begins after `offset` code points, as long as fits.
    pub(crate) fn part(self, text: String, offset: u64) -> TextPart {
        let most = self.left.map(|left| left.max(LEAST_PART_BYTES));
        if offset == 0 && most.is_none_or(|most| text.len().saturating_mul(LONGEST_ESCAPE) <= most) {
            return TextPart {
                text,
                next_offset: None,
            };
        }
        let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
        let Some((start, _)) = text.char_indices().nth(skipped) else {
            return TextPart {
                text: String::new(),
                next_offset: None,
            };
        };
        let rest = &text[start..];
        let (mut bytes, mut end, mut count) = (0, rest.len(), 0);
        for (index, letter) in rest.char_indices() {
            bytes += escaped(letter);
            if most.is_some_and(|most| bytes > most) {
                end = index;
                break;
            }
            count += 1;
        }
        TextPart {
            next_offset: (end < rest.len()).then_some(offset + count),
            text: rest[..end].to_owned(),
        }
    }
}

/// Bytes of the longest escape of a byte in JSON: `\u0000`.
const LONGEST_ESCAPE: usize = 6;

/// Returns the bytes of a code point inside a JSON text.
const fn escaped(letter: char) -> usize {
    match letter {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => LONGEST_ESCAPE,
        _ => letter.len_utf8(),
    }
}

/// Returns the size of a value as JSON.
fn bytes_of(value: &impl Serialize) -> Result<usize, ApiError> {
    let mut count = ByteCount(0);
    serde_json::to_writer(&mut count, value).map_err(|error| ApiError::internal(format!("answer: {error}")))?;
    Ok(count.0)
}

/// Counts the bytes that are written to it.
struct ByteCount(usize);

impl io::Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::page_size::PageSize;

    /// Reads a text part by part.
    fn parts(text: &str, room: PageRoom) -> Vec<String> {
        let (mut parts, mut next) = (Vec::new(), Some(0));
        while let Some(offset) = next {
            let part = room.part(text.to_owned(), offset);
            parts.push(part.text);
            next = part.next_offset;
        }
        parts
    }

    #[test]
    fn the_parts_of_a_text_are_the_text() {
        let room = PageRoom::bounded(Some(LEAST_PART_BYTES));
        for letters in ["a", "ü", "데", "👩‍💻", "\"", "\n", "\u{1}"] {
            let text = letters.repeat(5_000);
            let parts = parts(&text, room);
            assert_eq!(parts.concat(), text);
            assert!(parts.len() > 1, "{letters:?}");
            for part in parts {
                let bytes = bytes_of(&part).unwrap();
                assert!(bytes <= LEAST_PART_BYTES + 2, "{letters:?}: {bytes}");
            }
        }
        assert_eq!(parts("", room), [""]);
        let behind = room.part("abc".to_owned(), 3);
        assert_eq!((behind.text.as_str(), behind.next_offset), ("", None));
        let unbounded = PageRoom::bounded(None).part("äbc".to_owned(), 1);
        assert_eq!((unbounded.text.as_str(), unbounded.next_offset), ("bc", None));
    }

    #[test]
    fn a_page_has_what_fits_and_at_least_one_item() {
        let mut items: Vec<_> = (0..9).map(|_| json!("12345678")).collect();
        // Ten bytes and a comma each.
        assert!(PageRoom::bounded(Some(34)).keep(&mut items).unwrap());
        assert_eq!(items.len(), 3);
        assert!(!PageRoom::bounded(Some(33)).keep(&mut items).unwrap());
        assert!(PageRoom::bounded(Some(1)).keep(&mut items).unwrap());
        assert_eq!(items.len(), 1);
        assert!(!PageRoom::bounded(None).keep(&mut items).unwrap());
        let mut room = PageRoom::bounded(Some(30));
        room.spend(&json!("12345678")).unwrap();
        assert!(room.holds(20) && !room.holds(21) && !room.share(2).holds(11));
        assert!(PageRoom::bounded(None).share(2).holds(usize::MAX));
    }

    #[test]
    fn a_page_of_records_ends_within_its_size_at_mcp_only() {
        let strict = PageRoom::bounded(Some(10)).page_size();
        assert!(!strict.ends_before(0, 99) && !strict.ends_before(4, 6) && strict.ends_before(4, 7));
        let large = PageRoom::bounded(None).page_size();
        assert_eq!(large, PageSize::LARGE);
        assert!(!large.ends_before((8 << 20) - 1, 99) && large.ends_before(8 << 20, 1));
    }
}
