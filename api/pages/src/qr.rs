//! QR codes of addresses (ISO/IEC 18004): bytes, level M, up to version 10.
//!
//! Invariant: a code is computed from its text alone, so the same text is always drawn the same.

/// Versions, from 1: all codewords of a code, blocks, and error correction codewords of a block, at level M.
const VERSIONS: [(usize, usize, usize); 10] = [
    (26, 1, 10),
    (44, 1, 16),
    (70, 1, 26),
    (100, 2, 18),
    (134, 2, 24),
    (172, 4, 16),
    (196, 4, 18),
    (242, 4, 22),
    (292, 5, 22),
    (346, 5, 26),
];
/// Places of the alignment patterns of each version, in both directions.
const ALIGNMENTS: [&[usize]; 10] = [
    &[],
    &[6, 18],
    &[6, 22],
    &[6, 26],
    &[6, 30],
    &[6, 34],
    &[6, 22, 38],
    &[6, 24, 42],
    &[6, 26, 46],
    &[6, 28, 50],
];
/// Number of masks.
const MASKS: usize = 8;

/// QR code: a square of modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QrCode {
    size: usize,
    dark: Vec<bool>,
}

impl QrCode {
    /// Returns the code of a text; `None` for one of more than 213 bytes.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let codes = (0..MASKS).map(|mask| Self::masked(text.as_bytes(), mask));
        codes.collect::<Option<Vec<_>>>()?.into_iter().min_by_key(Self::penalty)
    }

    /// Returns the code with a mask.
    fn masked(bytes: &[u8], mask: usize) -> Option<Self> {
        let version = (1..=VERSIONS.len()).find(|version| fits(bytes.len(), *version))?;
        let mut drawing = Drawing::new(version);
        drawing.write_format(mask);
        drawing.write_codewords(&interleaved(&data(bytes, version), version));
        drawing.apply(mask);
        Some(Self {
            size: drawing.size,
            dark: drawing.dark,
        })
    }

    /// Returns the number of modules of a side.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    fn is_dark(&self, x: usize, y: usize) -> bool {
        self.dark.get(y * self.size + x).copied().unwrap_or_default()
    }

    /// Returns the dark modules as the path of a drawing in which a module is a unit.
    pub(crate) fn path(&self) -> String {
        let mut runs = Vec::new();
        for y in 0..self.size {
            let mut x = 0;
            while x < self.size {
                let run = (x..self.size).take_while(|x| self.is_dark(*x, y)).count();
                if run > 0 {
                    runs.push(format!("M{x} {y}h{run}v1h-{run}z"));
                }
                x += run.max(1);
            }
        }
        runs.concat()
    }

    /// Returns how hard the code is to read, by the rules of section 7.8.3.
    fn penalty(&self) -> usize {
        let lines = (0..self.size).flat_map(|a| {
            let row = (0..self.size).map(|b| self.is_dark(b, a)).collect::<Vec<_>>();
            let column = (0..self.size).map(|b| self.is_dark(a, b)).collect::<Vec<_>>();
            [row, column]
        });
        let mut penalty: usize = lines.map(|line| line_penalty(&line)).sum();
        for y in 1..self.size {
            for x in 1..self.size {
                let corner = self.is_dark(x, y);
                if [(x - 1, y), (x, y - 1), (x - 1, y - 1)]
                    .iter()
                    .all(|(x, y)| self.is_dark(*x, *y) == corner)
                {
                    penalty += 3;
                }
            }
        }
        let all = self.dark.len();
        let dark = self.dark.iter().filter(|dark| **dark).count();
        // In steps of 5 % away from the half.
        penalty + (dark * 20).abs_diff(all * 10) / all * 10
    }
}

/// Returns the penalty of a row or a column: for long runs, and for what resembles a finder.
fn line_penalty(line: &[bool]) -> usize {
    const FINDER: [bool; 7] = [true, false, true, true, true, false, true];
    let runs = line.chunk_by(|a, b| a == b).map(<[bool]>::len).filter(|run| *run >= 5);
    let long: usize = runs.map(|run| run - 2).sum();
    let is_light = |modules: &[bool]| modules.iter().all(|dark| !dark);
    let finders = line.windows(11).filter(|part| {
        let (first, last) = (part.split_at(4), part.split_at(7));
        (is_light(first.0) && first.1 == FINDER) || (last.0 == FINDER && is_light(last.1))
    });
    long + finders.count() * 40
}

/// Returns the number of data codewords of a version.
fn capacity(version: usize) -> usize {
    VERSIONS
        .get(version - 1)
        .map_or(0, |(all, blocks, correction)| all - blocks * correction)
}

/// Returns the bits that the number of bytes takes in a version.
const fn count_bits(version: usize) -> usize {
    if version < 10 { 8 } else { 16 }
}

fn fits(bytes: usize, version: usize) -> bool {
    4 + count_bits(version) + bytes * 8 <= capacity(version) * 8
}

/// Returns the data codewords of bytes: mode, number, bytes, and padding.
fn data(bytes: &[u8], version: usize) -> Vec<u8> {
    let mut bits: Vec<bool> = vec![false, true, false, false];
    let mut push = |value: usize, length: usize| bits.extend((0..length).rev().map(|bit| (value >> bit) & 1 == 1));
    push(bytes.len(), count_bits(version));
    for byte in bytes {
        push(usize::from(*byte), 8);
    }
    // The end is four bits, or fewer where there is no room.
    let most = capacity(version) * 8;
    bits.resize(most.min(bits.len() + 4), false);
    bits.resize(bits.len().next_multiple_of(8), false);
    let codewords = bits
        .chunks(8)
        .map(|bits| bits.iter().fold(0, |byte, bit| (byte << 1) | u8::from(*bit)));
    let padding = [0xec, 0x11].into_iter().cycle();
    codewords.chain(padding).take(capacity(version)).collect()
}

/// Returns the product in the field of 256 elements modulo x⁸ + x⁴ + x³ + x² + 1.
fn product(a: u8, b: u8) -> u8 {
    (0..8).rev().fold(0, |sum: u8, bit| {
        let doubled = (sum << 1) ^ if sum & 0x80 == 0 { 0 } else { 0x1d };
        if (b >> bit) & 1 == 1 { doubled ^ a } else { doubled }
    })
}

/// Returns the coefficients of the generator polynomial below its highest power.
fn generator(degree: usize) -> Vec<u8> {
    let mut coefficients = vec![0; degree];
    if let Some(last) = coefficients.last_mut() {
        *last = 1;
    }
    let mut root = 1;
    for _ in 0..degree {
        for at in 0..degree {
            coefficients[at] = product(coefficients[at], root);
            if at + 1 < degree {
                coefficients[at] ^= coefficients[at + 1];
            }
        }
        root = product(root, 2);
    }
    coefficients
}

/// Returns the error correction codewords of a block.
fn correction(block: &[u8], generator: &[u8]) -> Vec<u8> {
    let mut rest = vec![0; generator.len()];
    for byte in block {
        let factor = byte ^ rest.remove(0);
        rest.push(0);
        for (rest, coefficient) in rest.iter_mut().zip(generator) {
            *rest ^= product(*coefficient, factor);
        }
    }
    rest
}

/// Returns the codewords in the order in which they are placed: those of the blocks by turns, then their corrections.
fn interleaved(data: &[u8], version: usize) -> Vec<u8> {
    let Some(&(all, blocks, length)) = VERSIONS.get(version - 1) else {
        return Vec::new();
    };
    let generator = generator(length);
    // The first blocks are the short ones.
    let short = blocks - all % blocks;
    let mut rest = data;
    let mut parts = Vec::with_capacity(blocks);
    for number in 0..blocks {
        let (block, later) = rest.split_at(all / blocks - length + usize::from(number >= short));
        parts.push((block, correction(block, &generator)));
        rest = later;
    }
    let longest = parts.iter().map(|(block, _)| block.len()).max().unwrap_or_default();
    let by_turns = (0..longest).flat_map(|at| parts.iter().filter_map(move |(block, _)| block.get(at)));
    let corrections = (0..length).flat_map(|at| parts.iter().filter_map(move |(_, correction)| correction.get(at)));
    by_turns.chain(corrections).copied().collect()
}

/// A code while it is drawn.
struct Drawing {
    version: usize,
    size: usize,
    dark: Vec<bool>,
    /// Modules that are no data.
    fixed: Vec<bool>,
}

impl Drawing {
    /// Draws the patterns of a version, and keeps the room of its format.
    fn new(version: usize) -> Self {
        let size = version * 4 + 17;
        let mut drawing = Self {
            version,
            size,
            dark: vec![false; size * size],
            fixed: vec![false; size * size],
        };
        for at in 0..size {
            drawing.fix(6, at, at.is_multiple_of(2));
            drawing.fix(at, 6, at.is_multiple_of(2));
        }
        for (x, y) in [(3, 3), (size - 4, 3), (3, size - 4)] {
            drawing.square(x, y, 4, &[2, 4]);
        }
        let places = ALIGNMENTS.get(version - 1).copied().unwrap_or_default();
        let last = places.last().copied().unwrap_or_default();
        for x in places {
            for y in places {
                // Not over the finders.
                let is_corner = [(6, 6), (6, last), (last, 6)].contains(&(*x, *y));
                if !is_corner {
                    drawing.square(*x, *y, 2, &[1]);
                }
            }
        }
        drawing.write_format(0);
        drawing.write_version();
        drawing
    }

    fn fix(&mut self, x: usize, y: usize, dark: bool) {
        let at = y * self.size + x;
        if let (Some(module), Some(fixed)) = (self.dark.get_mut(at), self.fixed.get_mut(at)) {
            (*module, *fixed) = (dark, true);
        }
    }

    /// Draws rings around a place, up to `radius`, of which those in `light` are light.
    fn square(&mut self, x: usize, y: usize, radius: usize, light: &[usize]) {
        for row in y.saturating_sub(radius)..=(y + radius).min(self.size - 1) {
            for column in x.saturating_sub(radius)..=(x + radius).min(self.size - 1) {
                let ring = row.abs_diff(y).max(column.abs_diff(x));
                self.fix(column, row, !light.contains(&ring));
            }
        }
    }

    /// Writes level and mask, twice.
    fn write_format(&mut self, mask: usize) {
        // Level M is 0.
        let rest = (0..10).fold(mask, |rest, _| (rest << 1) ^ ((rest >> 9) * 0x537));
        let bits = ((mask << 10) | rest) ^ 0x5412;
        let bit = |number: usize| (bits >> number) & 1 == 1;
        let size = self.size;
        for number in 0..15 {
            let (x, y) = match number {
                0..=5 => (8, number),
                6 | 7 => (8, number + 1),
                8 => (7, 8),
                _ => (14 - number, 8),
            };
            self.fix(x, y, bit(number));
            let (x, y) = if number < 8 {
                (size - 1 - number, 8)
            } else {
                (8, size - 15 + number)
            };
            self.fix(x, y, bit(number));
        }
        self.fix(8, size - 8, true);
    }

    /// Writes the version, twice, from version 7 on.
    fn write_version(&mut self) {
        let version = self.version;
        if version < 7 {
            return;
        }
        let rest = (0..12).fold(version, |rest, _| (rest << 1) ^ ((rest >> 11) * 0x1f25));
        let bits = (version << 12) | rest;
        for number in 0..18 {
            let (long, short) = (self.size - 11 + number % 3, number / 3);
            let dark = (bits >> number) & 1 == 1;
            self.fix(long, short, dark);
            self.fix(short, long, dark);
        }
    }

    /// Writes codewords in columns of two, from the right, up and down by turns.
    fn write_codewords(&mut self, codewords: &[u8]) {
        let mut bits = codewords
            .iter()
            .flat_map(|byte| (0..8).rev().map(move |bit| (byte >> bit) & 1 == 1));
        let mut goes_up = true;
        let mut right = self.size - 1;
        loop {
            for step in 0..self.size {
                let y = if goes_up { self.size - 1 - step } else { step };
                for x in [right, right - 1] {
                    let at = y * self.size + x;
                    if self.fixed.get(at) == Some(&false)
                        && let Some(module) = self.dark.get_mut(at)
                    {
                        *module = bits.next().unwrap_or_default();
                    }
                }
            }
            goes_up = !goes_up;
            right = match right {
                0..=2 => return,
                // The column of the timing pattern has no data.
                8 => 5,
                _ => right - 2,
            };
        }
    }

    /// Turns the modules of data over where the mask says so.
    fn apply(&mut self, mask: usize) {
        for y in 0..self.size {
            for x in 0..self.size {
                let turns = match mask {
                    0 => (x + y).is_multiple_of(2),
                    1 => y.is_multiple_of(2),
                    2 => x.is_multiple_of(3),
                    3 => (x + y).is_multiple_of(3),
                    4 => (x / 3 + y / 2).is_multiple_of(2),
                    5 => (x * y).is_multiple_of(6),
                    6 => (x * y % 2 + x * y % 3).is_multiple_of(2),
                    _ => ((x + y) % 2 + x * y % 3).is_multiple_of(2),
                };
                let at = y * self.size + x;
                if self.fixed.get(at) == Some(&false)
                    && let Some(module) = self.dark.get_mut(at)
                {
                    *module ^= turns;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: &str = "https://sluice.example/paid/credits?operator=019a5f3c-7f00-7c1e-9b62-2f1d0c9a11e4";

    /// Returns a checksum (FNV-1a) of the modules of a text under every mask.
    fn checksum(text: &str) -> u64 {
        let codes = (0..MASKS).map(|mask| QrCode::masked(text.as_bytes(), mask).unwrap());
        let modules = codes.flat_map(|code| code.dark);
        modules.fold(0xcbf2_9ce4_8422_2325, |sum: u64, dark| {
            (sum ^ u64::from(dark)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    #[test]
    fn modules_are_those_of_another_encoder() {
        // Made by the Python package qrcode 7.4.2, at level M.
        for (text, expected) in [
            (ADDRESS.to_owned(), 0xa85c_e5ee_c558_a58a),
            ("a".repeat(10), 0x5015_eca3_07bb_8621),
            ("c".repeat(120), 0xc6d3_1c71_b81f_7de8),
            ("a".repeat(200), 0x3e51_6df9_cf86_d510),
            ("b".repeat(213), 0xd33f_ba21_5b66_4904),
        ] {
            assert_eq!(checksum(&text), expected, "{} bytes", text.len());
        }
    }

    #[test]
    fn a_code_is_drawn_once_a_text_fits_and_not_at_all_beyond() {
        let code = QrCode::of(ADDRESS).unwrap();
        assert_eq!(code.size(), 37);
        assert!(code.path().starts_with("M0 0h7v1h-7z"), "{}", code.path());
        assert_eq!(QrCode::of(ADDRESS), Some(code));
        assert!(QrCode::of(&"a".repeat(213)).is_some() && QrCode::of(&"a".repeat(214)).is_none());
    }
}
