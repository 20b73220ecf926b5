//! A SIMD prefilter for the rows of a text column. It checks 32 bytes at a time.
//!
//! It pays off because ids are full of digits: without it, most rows of most id columns would meet every rule for
//! numbers.
//!
//! Invariant: the scan of a row that is left out finds nothing, whatever its field is called. If the machine lacks
//! AVX2, no row is left out.

use arrow::array::{Array as _, StringArray};

#[cfg(target_arch = "x86_64")]
mod classes;

use super::scan::FEWEST_DIGITS;

/// The number of bytes that are checked at a time.
const CHUNK: usize = 32;
/// The longest text in which the positions of digits are checked, and not only their number.
const WORD: usize = u64::BITS as usize;

/// Returns the rows whose text needs a scan, in their order.
pub(super) fn suspects(column: &StringArray) -> Vec<usize> {
    let mut rows = candidates(column);
    rows.retain(|row| column.is_valid(*row));
    rows
}

#[cfg(target_arch = "x86_64")]
fn candidates(column: &StringArray) -> Vec<usize> {
    classes::candidates(column).unwrap_or_else(|| (0..column.len()).collect())
}

#[cfg(not(target_arch = "x86_64"))]
fn candidates(column: &StringArray) -> Vec<usize> {
    (0..column.len()).collect()
}

/// Byte classes of a text: a bit per byte, the lowest bit for the first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen<Bits> {
    /// ASCII digits.
    digits: Bits,
    /// Digits, and every byte that may separate two groups of one number: from the space to the slash, tabs and ends of
    /// lines.
    joints: Bits,
    /// Bytes that need a scan by themselves: they may be an `@`, encode or mask one, begin a zone of a passport or fold
    /// to ASCII.
    marks: Bits,
    /// Bytes beyond ASCII.
    beyond: Bits,
}

/// The words of a text: a bit for each byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Words<Bits> {
    /// ASCII letters.
    letters: Bits,
    /// Underscores.
    lines: Bits,
}

/// A classifier of bytes.
trait ByteClassifier: Copy {
    fn classify(self, bytes: &[u8; CHUNK]) -> Seen<u32>;

    fn words(self, bytes: &[u8; CHUNK]) -> Words<u32>;
}

/// Returns the bytes from `at`, with zeros past the end of the buffer.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for AVX2")]
#[inline(always)]
fn chunk(buffer: &[u8], at: usize) -> [u8; CHUNK] {
    let rest = buffer.get(at..).unwrap_or_default();
    if let Some(whole) = rest.first_chunk() {
        return *whole;
    }
    let mut padded = [0; CHUNK];
    padded[..rest.len()].copy_from_slice(rest);
    padded
}

/// Returns true if the text from `start` to `end` of a buffer needs a scan.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for AVX2")]
#[inline(always)]
fn is_suspect(classifier: impl ByteClassifier, buffer: &[u8], start: usize, end: usize) -> bool {
    let mut digits = 0;
    let mut at = start;
    while at < end {
        // Masks the bits of the next 64 bytes that belong to this text.
        let mine = u64::MAX >> (WORD - (end - at).min(WORD));
        let low = classifier.classify(&chunk(buffer, at));
        let high = if end - at > CHUNK {
            classifier.classify(&chunk(buffer, at + CHUNK))
        } else {
            Seen::default()
        };
        if both(low.marks, high.marks) & mine != 0 {
            return true;
        }
        let seen = both(low.digits, high.digits) & mine;
        digits += seen.count_ones() as usize;
        if digits >= FEWEST_DIGITS {
            if end - start > WORD || both(low.beyond, high.beyond) & mine != 0 {
                return true;
            }
            let joints = both(low.joints, high.joints) & mine;
            return might_be_number(classifier, &buffer[start..end], seen, joints);
        }
        at += WORD;
    }
    false
}

/// Returns true if ASCII text of at most 64 bytes without marks may contain a person's number.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for AVX2")]
#[inline(always)]
fn might_be_number(classifier: impl ByteClassifier, text: &[u8], digits: u64, joints: u64) -> bool {
    let gaps = joints & !digits;
    // The carry of each gap after a digit comes out behind the gap. From here on every group of digits is a number by
    // itself, and there are none to close up.
    if gaps.wrapping_add(gaps & (digits << 1)) & digits != 0 {
        return true;
    }
    let (low, high) = (classifier.words(&chunk(text, 0)), classifier.words(&chunk(text, CHUNK)));
    let letters = both(low.letters, high.letters);
    let words = letters | digits | both(low.lines, high.lines);
    let starts = digits & !(digits << 1);
    // Two digits after the two letters that a word begins with may be an IBAN's, after six an Italian tax code's.
    let two = letters << 1 & letters << 2;
    let six = two & two << 2 & two << 4;
    let lettered = (two & !(words << 3)) | (six & !(words << 7));
    if starts & digits >> 1 & lettered != 0 {
        return true;
    }
    let four = digits & digits >> 1 & digits >> 2 & digits >> 3;
    let mut long = starts & four & four >> 2;
    while long != 0 {
        let start = long.trailing_zeros();
        let end = start + (!(digits >> start)).trailing_zeros();
        if might_be_lone_number(text, start as usize, end as usize) {
            return true;
        }
        long &= long - 1;
    }
    false
}

/// Returns true if a group of six digits or more, alone between `start` and `end`, may be a person's number.
fn might_be_lone_number(text: &[u8], start: usize, end: usize) -> bool {
    let (before, after) = (text[..start].last(), text.get(end));
    let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphabetic);
    let within_a_word = is_letter(before) && is_letter(after);
    match end - start {
        // A UK national insurance number: letters before, one from A to D after.
        6 => {
            before.is_some_and(|byte| byte.is_ascii_uppercase() || matches!(byte, b' ' | b'-'))
                && after.is_some_and(|byte| matches!(byte, b'A'..=b'D' | b' ' | b'-'))
        }
        // A Spanish NIE begins with one of three letters.
        7 => !within_a_word || before.is_some_and(|byte| matches!(byte, b'X'..=b'Z' | b'x'..=b'z')),
        _ => !within_a_word,
    }
}

/// Joins the bits of two chunks.
const fn both(low: u32, high: u32) -> u64 {
    (high as u64) << u32::BITS | low as u64
}

#[cfg(test)]
mod tests;
