//! Products of vectors with the matrices of the model, in whole numbers.
//!
//! A weight is a signed byte. A vector has steps of at most 8,191 and one scale, so a sum of 1,280 products is less
//! than 2^31: no sum is rounded or overflows. Instructions for vectors multiply numbers of 16 bits, so more steps than
//! 127 cost nothing.
//!
//! Invariant: a product is exact, so it does not depend on the order of its sums or on the instructions.

#[cfg(target_arch = "x86_64")]
mod avx2;

use std::ops::Range;

/// The steps on each side of zero.
const STEPS: f32 = 8_191.0;
/// The most terms of a sum.
const MAX_INPUTS: usize = 1_280;
const _: () = assert!(
    MAX_INPUTS as u64 * 128 * 8_191 < 1 << 31,
    "a sum of products fits 32 bits"
);

/// The outputs whose sums run beside each other.
const LANES: usize = 8;

/// The instructions that products are computed with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Instructions {
    /// Scalar instructions, which every machine has.
    Plain,
    /// Vector instructions of x86-64-v3 (AVX2).
    #[cfg(target_arch = "x86_64")]
    Avx2(pulp::x86::V3),
}

impl Instructions {
    /// Returns the fastest that this machine has.
    pub(crate) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            return Self::Avx2(simd);
        }
        Self::Plain
    }
}

/// Two numbers of a vector.
type InputPair = [i16; 2];
/// Weights of eight outputs for two inputs.
type WeightUnit = [i8; 2 * LANES];

/// Vectors of whole steps.
#[derive(Clone, Debug)]
pub(crate) struct StepRows {
    /// Pairs of a vector.
    width: usize,
    pairs: Vec<InputPair>,
    /// For each vector the size of a step.
    pub(crate) scales: Vec<f32>,
}

impl StepRows {
    /// An empty list of vectors of `inputs` numbers.
    pub(crate) fn new(inputs: usize) -> Self {
        Self {
            width: inputs / 2,
            pairs: Vec::new(),
            scales: Vec::new(),
        }
    }

    /// Adds a vector of whole numbers.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        let pairs = bytes.as_chunks::<2>().0;
        self.pairs.extend(pairs.iter().map(|pair| pair.map(i16::from)));
        self.scales.push(1.0);
    }

    /// Adds a vector, rounded to steps of its own size.
    pub(crate) fn push(&mut self, values: &[f32]) {
        /// From here to its double, floats are the whole numbers, so the lowest bits of one are those of the number.
        const WHOLE: f32 = 12_582_912.0;
        let most = values.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        let inverse = if most > 0.0 { STEPS / most } else { 0.0 };
        let step = |value: f32| {
            #[expect(clippy::cast_possible_truncation, reason = "the lower half is the step")]
            let step = (value * inverse + WHOLE).to_bits() as u16;
            step.cast_signed()
        };
        let pairs = values.as_chunks::<2>().0;
        self.pairs.extend(pairs.iter().map(|pair| pair.map(step)));
        self.scales.push(most / STEPS);
    }

    fn rows(&self) -> std::slice::ChunksExact<'_, InputPair> {
        self.pairs.chunks_exact(self.width)
    }
}

/// Weights with one scale.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    outputs: usize,
    /// Pairs of inputs.
    width: usize,
    pub(crate) scale: f32,
    /// By eight outputs, then by pairs of inputs.
    units: Vec<WeightUnit>,
    /// For each output the sum of its weights.
    pub(crate) sums: Vec<f32>,
}

impl Matrix {
    /// Reads a matrix, which is stored output by output. Returns `None` if its bytes are too few.
    pub(crate) fn of(bytes: &[u8], inputs: usize, outputs: usize, scale: f32) -> Option<Self> {
        let is_whole = inputs.is_multiple_of(2) && outputs.is_multiple_of(2 * LANES);
        if bytes.len() != inputs * outputs || inputs > MAX_INPUTS || !is_whole {
            return None;
        }
        let mut units = Vec::with_capacity(bytes.len() / (2 * LANES));
        for block in bytes.chunks_exact(inputs * LANES) {
            for pair in 0..inputs / 2 {
                let mut unit = [0; 2 * LANES];
                for (lane, weights) in block.chunks_exact(inputs).enumerate() {
                    unit[2 * lane] = weights[2 * pair].cast_signed();
                    unit[2 * lane + 1] = weights[2 * pair + 1].cast_signed();
                }
                units.push(unit);
            }
        }
        let sum = |weights: &[u8]| weights.iter().map(|weight| f32::from(weight.cast_signed())).sum();
        Some(Self {
            outputs,
            width: inputs / 2,
            scale,
            units,
            sums: bytes.chunks_exact(inputs).map(sum).collect(),
        })
    }

    /// Returns the number of inputs.
    pub(crate) const fn inputs(&self) -> usize {
        2 * self.width
    }

    /// Computes the products of each vector with the inputs from `first` on; a vector has as many numbers as the
    /// inputs, or fewer. The result has a row for each vector and is written over `products`.
    pub(crate) fn multiply(&self, instructions: Instructions, first: usize, rows: &StepRows, products: &mut Vec<i32>) {
        products.clear();
        products.resize(rows.scales.len() * self.outputs, 0);
        let inputs = first / 2..first / 2 + rows.width;
        match instructions {
            Instructions::Plain => self.multiply_plainly(inputs, rows, products),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2(simd) => avx2::multiply(simd, self, inputs, rows, products),
        }
    }

    fn multiply_plainly(&self, inputs: Range<usize>, rows: &StepRows, products: &mut [i32]) {
        let mut wide = Vec::with_capacity(inputs.len());
        for (block, units) in self.units.chunks_exact(self.width).enumerate() {
            // Once for all rows: compilers make vectors of loops over lanes that stand side by side.
            wide.clear();
            wide.extend(units[inputs.clone()].iter().map(side_by_side));
            for (row, products) in rows.rows().zip(products.chunks_exact_mut(self.outputs)) {
                let mut sums = [0_i32; LANES];
                // No sum overflows; a check of each would keep the loop from being one of vectors.
                for ([ones, others], [one, other]) in wide.iter().zip(row) {
                    for (sum, weight) in sums.iter_mut().zip(ones) {
                        *sum = i32::wrapping_add(*sum, i32::from(*one) * i32::from(*weight));
                    }
                    for (sum, weight) in sums.iter_mut().zip(others) {
                        *sum = i32::wrapping_add(*sum, i32::from(*other) * i32::from(*weight));
                    }
                }
                products[block * LANES..(block + 1) * LANES].copy_from_slice(&sums);
            }
        }
    }
}

/// Returns the weights of the first input, and of the second.
fn side_by_side(unit: &WeightUnit) -> [[i16; LANES]; 2] {
    let mut wide = [[0; LANES]; 2];
    for (lane, [one, other]) in unit.as_chunks().0.iter().enumerate() {
        wide[0][lane] = i16::from(*one);
        wide[1][lane] = i16::from(*other);
    }
    wide
}
