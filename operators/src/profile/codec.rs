//! The bytes of sketches: whole numbers of seven bits a byte, the least first, and plain bytes.
//!
//! Invariant: a reader never passes its end, and what it reads takes memory in proportion to the bytes.

use super::SketchDamaged;

/// The most rows that a count may say, so that no sum of counts is larger than its type.
const MAX_ROWS: u64 = 1 << 48;
/// The largest sum of lengths, for the same reason.
const MAX_LENGTHS: u128 = 1 << 112;

const CUT: SketchDamaged = SketchDamaged { problem: "it is cut" };
const TOO_LARGE: SketchDamaged = SketchDamaged {
    problem: "a number is too large",
};

/// The bytes of a sketch while they are written.
#[derive(Debug, Default)]
pub(super) struct SketchWriter(pub(super) Vec<u8>);

impl SketchWriter {
    /// Writes bytes as they are.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Writes bytes after their number.
    pub(super) fn block(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.bytes(bytes);
    }

    pub(super) fn wide(&mut self, mut value: u128) {
        while value > 0x7f {
            self.0.push(u8::try_from(value & 0x7f).unwrap_or(0) | 0x80);
            value >>= 7;
        }
        self.0.push(u8::try_from(value).unwrap_or(0));
    }

    pub(super) fn number(&mut self, value: u64) {
        self.wide(value.into());
    }

    pub(super) fn count(&mut self, value: usize) {
        self.wide(u128::try_from(value).unwrap_or(0));
    }

    /// Writes a number with a sign: small ones are short, negative ones too.
    pub(super) fn signed(&mut self, value: i128) {
        self.wide(((value << 1) ^ (value >> 127)).cast_unsigned());
    }
}

/// The bytes of a sketch while they are read.
#[derive(Debug)]
pub(super) struct SketchReader<'a>(&'a [u8]);

impl<'a> SketchReader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], SketchDamaged> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(CUT)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], SketchDamaged> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(CUT)?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub(super) fn double(&mut self) -> Result<f64, SketchDamaged> {
        Ok(f64::from_bits(u64::from_le_bytes(self.array()?)))
    }

    /// Reads bytes that stand after their number.
    pub(super) fn block(&mut self) -> Result<&'a [u8], SketchDamaged> {
        let count = self.count()?;
        self.bytes(count)
    }

    /// Reads a text that stands after its number of bytes.
    pub(super) fn text(&mut self) -> Result<&'a str, SketchDamaged> {
        std::str::from_utf8(self.block()?).map_err(|_error| SketchDamaged {
            problem: "a text is not UTF-8",
        })
    }

    pub(super) fn wide(&mut self) -> Result<u128, SketchDamaged> {
        let mut value = 0_u128;
        for shift in (0..128).step_by(7) {
            let [byte] = self.array()?;
            let bits = u128::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return Err(TOO_LARGE);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(TOO_LARGE)
    }

    pub(super) fn number(&mut self) -> Result<u64, SketchDamaged> {
        u64::try_from(self.wide()?).map_err(|_error| TOO_LARGE)
    }

    /// Reads a number of rows.
    pub(super) fn rows(&mut self) -> Result<u64, SketchDamaged> {
        Some(self.number()?).filter(|rows| *rows <= MAX_ROWS).ok_or(TOO_LARGE)
    }

    /// Reads a sum of lengths.
    pub(super) fn lengths(&mut self) -> Result<u128, SketchDamaged> {
        Some(self.wide()?).filter(|sum| *sum <= MAX_LENGTHS).ok_or(TOO_LARGE)
    }

    pub(super) fn count(&mut self) -> Result<usize, SketchDamaged> {
        usize::try_from(self.wide()?).map_err(|_error| TOO_LARGE)
    }

    /// Reads a number of things that take at least a byte each.
    pub(super) fn length(&mut self) -> Result<usize, SketchDamaged> {
        let count = self.count()?;
        if count > self.0.len() { Err(CUT) } else { Ok(count) }
    }

    pub(super) fn signed(&mut self) -> Result<i128, SketchDamaged> {
        let value = self.wide()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// Fails if bytes are left.
    pub(super) const fn finish(self) -> Result<(), SketchDamaged> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(SketchDamaged {
                problem: "bytes follow its end",
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_is_read(signed in any::<i128>(), number in any::<u64>(), text in ".*") {
            let mut out = SketchWriter::default();
            out.signed(signed);
            out.number(number);
            out.block(text.as_bytes());
            out.signed(i128::MIN);
            let mut bytes = SketchReader::new(&out.0);
            prop_assert_eq!(bytes.signed(), Ok(signed));
            prop_assert_eq!(bytes.number(), Ok(number));
            prop_assert_eq!(bytes.text(), Ok(text.as_str()));
            prop_assert_eq!(bytes.signed(), Ok(i128::MIN));
            prop_assert_eq!(bytes.finish(), Ok(()));
        }

        #[test]
        fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut reader = SketchReader::new(&bytes);
            while reader.wide().is_ok() && reader.block().is_ok() {}
        }
    }
}
