//! The classification of bytes with AVX2.
//!
//! Invariant: a class of bytes is a set of high halves combined with a set of low halves, so a byte is in it exactly if
//! the tables of both halves contain it.

use std::arch::x86_64::__m256i;

use arrow::array::StringArray;
use pulp::x86::V3;
use pulp::{NullaryFnOnce, cast};

use super::{ByteClassifier, CHUNK, Seen, Words, is_suspect};

/// Returns the rows that may need a scan, or `None` if the machine lacks AVX2.
pub(super) fn candidates(column: &StringArray) -> Option<Vec<usize>> {
    let simd = V3::try_new()?;
    Some(simd.vectorize(CandidateSearch { simd, column }))
}

struct CandidateSearch<'a> {
    simd: V3,
    column: &'a StringArray,
}

impl NullaryFnOnce for CandidateSearch<'_> {
    type Output = Vec<usize>;

    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for AVX2")]
    #[inline(always)]
    fn call(self) -> Vec<usize> {
        let Self { simd, column } = self;
        let buffer = column.value_data();
        let place = |offset: i32| usize::try_from(offset).unwrap_or(0);
        let mut rows = Vec::new();
        for (row, ends) in column.value_offsets().windows(2).enumerate() {
            if is_suspect(simd, buffer, place(ends[0]), place(ends[1])) {
                rows.push(row);
            }
        }
        rows
    }
}

const DIGIT: u8 = 1;
const JOINT: u8 = 1 << 1;
/// Every other class is of marks.
const NO_MARKS: u8 = DIGIT | JOINT;

/// The classes by their bit, high halves and low halves.
const CLASSES: [(u8, &[u8], &[u8]); 8] = [
    (DIGIT, &[0x3], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    // All bytes with this high half are included, because the others are rare in text.
    (
        JOINT,
        &[0x0, 0x2],
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    ),
    // `%`, `&` and `(`, `<`, `@`, `[` and `{`.
    (1 << 2, &[0x2], &[0x5, 0x6, 0x8]),
    (1 << 3, &[0x3], &[0xC]),
    (1 << 4, &[0x4], &[0x0]),
    (1 << 5, &[0x5, 0x7], &[0xB]),
    // The first byte of characters that may fold to ASCII, and F1 and FF.
    (1 << 6, &[0xD], &[0x9, 0xB, 0xF]),
    (1 << 7, &[0xE, 0xF], &[0x0, 0x1, 0xF]),
];

/// The classes of each half of a byte, once for each half of a register.
const HIGH: [u8; CHUNK] = table(true);
const LOW: [u8; CHUNK] = table(false);

const fn table(high: bool) -> [u8; CHUNK] {
    let mut table = [0; CHUNK];
    let mut class = 0;
    while class < CLASSES.len() {
        let (bit, highs, lows) = CLASSES[class];
        let halves = if high { highs } else { lows };
        let mut index = 0;
        while index < halves.len() {
            table[halves[index] as usize] |= bit;
            table[16 + halves[index] as usize] |= bit;
            index += 1;
        }
        class += 1;
    }
    table
}

impl ByteClassifier for V3 {
    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for AVX2")]
    #[inline(always)]
    fn classify(self, bytes: &[u8; CHUNK]) -> Seen<u32> {
        let Self { avx, avx2, .. } = self;
        let bytes: __m256i = cast(*bytes);
        let half = avx._mm256_set1_epi8(0xF);
        let low = avx2._mm256_and_si256(bytes, half);
        let high = avx2._mm256_and_si256(avx2._mm256_srli_epi16::<4>(bytes), half);
        let classes = avx2._mm256_and_si256(
            avx2._mm256_shuffle_epi8(cast(LOW), low),
            avx2._mm256_shuffle_epi8(cast(HIGH), high),
        );
        let bits = |bytes| avx2._mm256_movemask_epi8(bytes).cast_unsigned();
        let digits = bits(avx2._mm256_slli_epi16::<7>(classes));
        let marks = avx2._mm256_andnot_si256(avx._mm256_set1_epi8(NO_MARKS.cast_signed()), classes);
        Seen {
            digits,
            joints: digits | bits(avx2._mm256_slli_epi16::<6>(classes)),
            marks: !bits(avx2._mm256_cmpeq_epi8(marks, avx._mm256_setzero_si256())),
            beyond: bits(bytes),
        }
    }

    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for AVX2")]
    #[inline(always)]
    fn words(self, bytes: &[u8; CHUNK]) -> Words<u32> {
        let Self { avx, avx2, .. } = self;
        let bytes: __m256i = cast(*bytes);
        let all = |byte: u8| avx._mm256_set1_epi8(byte.cast_signed());
        let bits = |bytes| avx2._mm256_movemask_epi8(bytes).cast_unsigned();
        // How far it is from an `a`, in either case.
        let far = avx2._mm256_sub_epi8(avx2._mm256_or_si256(bytes, all(0x20)), all(b'a'));
        Words {
            letters: bits(avx2._mm256_cmpeq_epi8(avx2._mm256_min_epu8(far, all(25)), far)),
            lines: bits(avx2._mm256_cmpeq_epi8(bytes, all(b'_'))),
        }
    }
}
