//! The products with AVX2: eight outputs in the lanes of a register, two inputs in a step.
//!
//! Invariant: the numbers of 16 bits are multiplied and added to sums of 32 bits, which nothing overflows.

use std::arch::x86_64::__m256i;
use std::ops::Range;

use pulp::x86::V3;
use pulp::{NullaryFnOnce, cast};

use super::{InputPair, LANES, Matrix, StepRows, WeightUnit};

/// The vectors that one reading of the weights serves.
const ROWS: usize = 4;
/// The lanes' worth of outputs that one reading of a vector serves.
const BLOCKS: usize = 2;

pub(super) fn multiply(simd: V3, matrix: &Matrix, inputs: Range<usize>, rows: &StepRows, products: &mut [i32]) {
    simd.vectorize(Multiplication {
        simd,
        matrix,
        inputs,
        rows,
        products,
    });
}

struct Multiplication<'a> {
    simd: V3,
    matrix: &'a Matrix,
    inputs: Range<usize>,
    rows: &'a StepRows,
    products: &'a mut [i32],
}

impl NullaryFnOnce for Multiplication<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for AVX2")]
    #[inline(always)]
    fn call(self) {
        let Self {
            simd,
            matrix,
            inputs,
            rows,
            products,
        } = self;
        let (outputs, row_pairs) = (matrix.outputs, rows.width);
        for (block, units) in matrix.units.chunks_exact(BLOCKS * matrix.width).enumerate() {
            let (one, other) = units.split_at(matrix.width);
            let units = [&one[inputs.clone()], &other[inputs.clone()]];
            let first = block * BLOCKS * LANES;
            let groups = rows.pairs.chunks(ROWS * row_pairs);
            for (pairs, products) in groups.zip(products.chunks_mut(ROWS * outputs)) {
                let row = |at: usize| &pairs[at * row_pairs..(at + 1) * row_pairs];
                let mut out = Out {
                    products,
                    outputs,
                    first,
                };
                match pairs.len() / row_pairs {
                    1 => out.write(&sums(simd, units, [row(0)])),
                    2 => out.write(&sums(simd, units, [row(0), row(1)])),
                    3 => out.write(&sums(simd, units, [row(0), row(1), row(2)])),
                    _ => out.write(&sums(simd, units, [row(0), row(1), row(2), row(3)])),
                }
            }
        }
    }
}

/// The place for the products of some vectors with some outputs.
struct Out<'a> {
    products: &'a mut [i32],
    outputs: usize,
    first: usize,
}

impl Out<'_> {
    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for AVX2")]
    #[inline(always)]
    fn write<const R: usize>(&mut self, sums: &[[__m256i; BLOCKS]; R]) {
        for (row, sums) in self.products.chunks_exact_mut(self.outputs).zip(sums) {
            let sums: [[i32; LANES]; BLOCKS] = [cast(sums[0]), cast(sums[1])];
            row[self.first..self.first + BLOCKS * LANES].copy_from_slice(sums.as_flattened());
        }
    }
}

#[expect(clippy::inline_always, reason = "only what is inlined is compiled for AVX2")]
#[inline(always)]
fn sums<const R: usize>(simd: V3, units: [&[WeightUnit]; BLOCKS], rows: [&[InputPair]; R]) -> [[__m256i; BLOCKS]; R] {
    let V3 { avx, avx2, .. } = simd;
    let length = units[0].len();
    // Lengths that are seen to be equal need no check of each place.
    let (one, other) = (&units[0][..length], &units[1][..length]);
    let rows = rows.map(|row| &row[..length]);
    let mut sums = [[avx._mm256_setzero_si256(); BLOCKS]; R];
    for at in 0..length {
        let weights = [
            avx2._mm256_cvtepi8_epi16(cast(one[at])),
            avx2._mm256_cvtepi8_epi16(cast(other[at])),
        ];
        for (sums, row) in sums.iter_mut().zip(rows) {
            let pair = avx._mm256_set1_epi32(cast(row[at]));
            for (sum, weights) in sums.iter_mut().zip(weights) {
                *sum = avx2._mm256_add_epi32(*sum, avx2._mm256_madd_epi16(pair, weights));
            }
        }
    }
    sums
}
