//! The network: embeddings of tokens, filters over two, three and five tokens, their sum, and a residual network on it.
//!
//! Invariant: the values are those of the published implementation, but for the rounding of vectors to whole steps.

use crate::file::{EncoderError, ModelFile, words};
use crate::matrix::{Instructions, Matrix, StepRows};
use crate::number::{length, normalise, tanh};
use crate::{ENCODED_DIMENSIONS, tokens};

/// Numbers of the embedding of a token.
const EMBEDDING: usize = 512;
/// Numbers of a token in a filter.
const FILTER: usize = 256;
/// Numbers of a token in the three filters.
const FILTERS: usize = 3 * FILTER;
/// Numbers of a token behind the filters.
const FEATURES: usize = EMBEDDING + FILTERS;
/// Numbers of the inner layers.
const INNER: usize = 320;
/// Tokens that a filter looks at, and how many of them stand before its own.
const ORDERS: [(usize, usize); 3] = [(2, 0), (3, 1), (5, 2)];
/// Blocks of the table; a piece is in the block of its id modulo their number.
const BLOCKS: usize = 17;
/// Rows of a block.
const ROWS: usize = 7_530;
const _: () = assert!(BLOCKS * ROWS >= tokens::VOCABULARY, "each token has a row");
/// Epsilon of the norms: added to a variance, and to the square of a length, so that neither is divided by 0.
const NORM_EPSILON: f32 = 1e-12;
/// The tokens at both ends.
const FIRST_TOKEN: u32 = 1;
const LAST_TOKEN: u32 = 2;

/// Weights of one filter: two layers with their biases.
#[derive(Debug)]
struct Filter {
    weights: [Matrix; 2],
    biases: [Vec<f32>; 2],
}

/// The weights of the network.
#[derive(Debug)]
pub(crate) struct Layers {
    table: Vec<u8>,
    /// Step and lowest value of each block.
    steps: Vec<f32>,
    lows: Vec<f32>,
    projections: [Matrix; 3],
    projection_bias: Vec<f32>,
    first_gain: Vec<f32>,
    first_offset: Vec<f32>,
    filters: [Filter; 3],
    second_gain: Vec<f32>,
    second_offset: Vec<f32>,
    output: Matrix,
    output_bias: Vec<f32>,
    /// Of the residual network in order of use: `d0`, `p1`, `d1`, `d2`, `p3`, `d3` of the published implementation.
    residual: [Matrix; 6],
}

/// Takes numbers from the front of a list.
struct Taking<'a>(&'a [f32]);

impl Taking<'_> {
    fn take(&mut self, count: usize) -> Option<Vec<f32>> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken.to_vec())
    }
}

impl Layers {
    pub(crate) fn of(file: ModelFile) -> Result<Self, EncoderError> {
        Self::read(file).ok_or(EncoderError::Layout { part: "weights" })
    }

    fn read(file: ModelFile) -> Option<Self> {
        let numbers = words(&file.small, f32::from_le_bytes);
        let mut small = Taking(&numbers);
        let (steps, lows) = (small.take(BLOCKS)?, small.take(BLOCKS)?);
        let mut scales = small.take(16)?.into_iter();
        let mut dense = file.dense.as_slice();
        let mut matrix = |inputs: usize, outputs: usize| {
            let (bytes, rest) = dense.split_at_checked(inputs * outputs)?;
            dense = rest;
            Matrix::of(bytes, inputs, outputs, scales.next()?)
        };
        let projections = [
            matrix(EMBEDDING, FILTER)?,
            matrix(EMBEDDING, FILTER)?,
            matrix(EMBEDDING, FILTER)?,
        ];
        let projection_bias = small.take(FILTERS)?;
        let (first_gain, first_offset) = (small.take(FILTERS)?, small.take(FILTERS)?);
        let mut filter = |tokens: usize| {
            Some(Filter {
                weights: [matrix(tokens * FILTER, FILTER)?, matrix(tokens * FILTER, FILTER)?],
                biases: [small.take(FILTER)?, small.take(FILTER)?],
            })
        };
        let filters = [filter(ORDERS[0].0)?, filter(ORDERS[1].0)?, filter(ORDERS[2].0)?];
        let layers = Self {
            steps,
            lows,
            projections,
            projection_bias,
            first_gain,
            first_offset,
            filters,
            second_gain: small.take(FEATURES)?,
            second_offset: small.take(FEATURES)?,
            output: matrix(FEATURES, ENCODED_DIMENSIONS)?,
            output_bias: small.take(ENCODED_DIMENSIONS)?,
            residual: [
                matrix(ENCODED_DIMENSIONS, INNER)?,
                matrix(ENCODED_DIMENSIONS, INNER)?,
                matrix(INNER, INNER)?,
                matrix(INNER, ENCODED_DIMENSIONS)?,
                matrix(INNER, ENCODED_DIMENSIONS)?,
                matrix(ENCODED_DIMENSIONS, ENCODED_DIMENSIONS)?,
            ],
            table: file.table,
        };
        let is_read = dense.is_empty() && small.0.is_empty() && layers.table.len() == BLOCKS * ROWS * EMBEDDING;
        is_read.then_some(layers)
    }

    /// Returns the vector of some tokens.
    pub(crate) fn vector(&self, instructions: Instructions, ids: &[u32]) -> Vec<f32> {
        let ends = [FIRST_TOKEN, LAST_TOKEN];
        let ids = ends[..1].iter().chain(ids).chain(&ends[1..]);
        let mut pass = Pass {
            instructions,
            products: Vec::new(),
        };
        let (mut features, mut filtered) = (Vec::new(), Vec::new());
        self.embed(ids, &mut pass, &mut features, &mut filtered);
        for (order, (filter, (_, before))) in self.filters.iter().zip(ORDERS).enumerate() {
            let place = order * FILTER..(order + 1) * FILTER;
            let mut values: Vec<f32> = Vec::with_capacity(filtered.len() / 3);
            for row in filtered.chunks_exact(FILTERS) {
                values.extend_from_slice(&row[place.clone()]);
            }
            for (weights, bias) in filter.weights.iter().zip(&filter.biases) {
                pass.filter(weights, bias, before, &mut values);
            }
            for (row, values) in features.chunks_exact_mut(FEATURES).zip(values.chunks_exact(FILTER)) {
                row[EMBEDDING + place.start..EMBEDDING + place.end].copy_from_slice(values);
            }
        }
        let mut sum = vec![0.0; FEATURES];
        for row in features.chunks_exact_mut(FEATURES) {
            normalise(row, &self.second_gain, &self.second_offset, NORM_EPSILON);
            add(&mut sum, row);
        }
        #[expect(clippy::cast_precision_loss, reason = "a text has some hundred tokens at most")]
        let count = (features.len() / FEATURES) as f32;
        let mut text = pass.product(&self.output, &sum);
        for (value, bias) in text.iter_mut().zip(&self.output_bias) {
            *value = (*value + count * bias) / count.sqrt();
        }
        let mut vector = self.residual(&mut pass, &text);
        for value in &mut vector {
            *value = tanh(*value);
        }
        let length = length(&vector).max(NORM_EPSILON.sqrt());
        for value in &mut vector {
            *value /= length;
        }
        vector
    }

    /// Writes the embedding of each token to the front of its features, and its projections for the filters.
    fn embed<'a>(
        &self,
        ids: impl Iterator<Item = &'a u32>,
        pass: &mut Pass,
        features: &mut Vec<f32>,
        filtered: &mut Vec<f32>,
    ) {
        let mut bytes = StepRows::new(EMBEDDING);
        let mut blocks = Vec::new();
        for id in ids {
            let id = usize::try_from(*id).unwrap_or(0);
            let (block, row) = (id % BLOCKS, id / BLOCKS);
            let start = (block * ROWS + row) * EMBEDDING;
            let row = &self.table[start..start + EMBEDDING];
            bytes.push_bytes(row);
            let (step, low) = (self.steps[block], self.lows[block]);
            features.extend(row.iter().map(|byte| f32::from(*byte) * step + low));
            features.resize(features.len() + FILTERS, 0.0);
            blocks.push((step, low));
        }
        filtered.resize(blocks.len() * FILTERS, 0.0);
        for (order, projection) in self.projections.iter().enumerate() {
            projection.multiply(pass.instructions, 0, &bytes, &mut pass.products);
            let products = pass.products.chunks_exact(FILTER);
            for ((row, products), (step, low)) in filtered.chunks_exact_mut(FILTERS).zip(products).zip(&blocks) {
                let row = &mut row[order * FILTER..(order + 1) * FILTER];
                for ((value, product), sum) in row.iter_mut().zip(products).zip(&projection.sums) {
                    *value = (real(*product) * step + sum * low) * projection.scale;
                }
            }
        }
        for row in filtered.chunks_exact_mut(FILTERS) {
            add(row, &self.projection_bias);
            normalise(row, &self.first_gain, &self.first_offset, NORM_EPSILON);
        }
    }

    fn residual(&self, pass: &mut Pass, text: &[f32]) -> Vec<f32> {
        let [first, past_first, second, third, past_third, fourth] = &self.residual;
        let inner = all_positive(pass.product(first, text));
        let mut second = pass.product(second, &inner);
        add(&mut second, &pass.product(past_first, text));
        let second = all_positive(second);
        let third = all_positive(pass.product(third, &second));
        let mut out = pass.product(fourth, &third);
        add(&mut out, &pass.product(past_third, &second));
        out
    }
}

/// Work on one text.
struct Pass {
    instructions: Instructions,
    products: Vec<i32>,
}

impl Pass {
    /// Adds to each row of `values` the positive part of a filter over it and its neighbours. Beyond both ends is zero.
    fn filter(&mut self, weights: &Matrix, bias: &[f32], before: usize, values: &mut [f32]) {
        let mut rows = StepRows::new(FILTER);
        for row in values.chunks_exact(FILTER) {
            rows.push(row);
        }
        let count = rows.scales.len();
        let mut sums: Vec<f32> = bias.iter().copied().cycle().take(values.len()).collect();
        let places = weights.inputs() / FILTER;
        for place in 0..places {
            weights.multiply(self.instructions, place * FILTER, &rows, &mut self.products);
            // The row `n + place - before` is what the filter sees at this place from the row `n`.
            let (to, from) = (before.saturating_sub(place), place.saturating_sub(before));
            let sums = sums.chunks_exact_mut(FILTER).skip(to);
            let products = self.products.chunks_exact(FILTER).zip(&rows.scales).skip(from);
            for (sums, (products, scale)) in sums.zip(products).take(count) {
                let factor = scale * weights.scale;
                for (sum, product) in sums.iter_mut().zip(products) {
                    *sum += real(*product) * factor;
                }
            }
        }
        for (value, sum) in values.iter_mut().zip(sums) {
            *value += positive(sum);
        }
    }

    /// Returns the product of one vector with a matrix.
    fn product(&mut self, weights: &Matrix, values: &[f32]) -> Vec<f32> {
        let mut rows = StepRows::new(values.len());
        rows.push(values);
        weights.multiply(self.instructions, 0, &rows, &mut self.products);
        let factor = rows.scales.first().copied().unwrap_or(0.0) * weights.scale;
        self.products.iter().map(|product| real(*product) * factor).collect()
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "it is rounded as a float is, on every machine"
)]
const fn real(product: i32) -> f32 {
    product as f32
}

fn add(sum: &mut [f32], values: &[f32]) {
    for (sum, value) in sum.iter_mut().zip(values) {
        *sum += value;
    }
}

/// Returns the number if it is positive, or else zero; of the two zeros, always the same one.
const fn positive(number: f32) -> f32 {
    if number > 0.0 { number } else { 0.0 }
}

fn all_positive(mut values: Vec<f32>) -> Vec<f32> {
    for value in &mut values {
        *value = positive(*value);
    }
    values
}
