//! Vectors of documents, scanned exactly.
//!
//! Invariant: row `n` belongs to slot `n`. A vector has length 1, but for the rounding to bytes.

use operators::knowledge::QuantisedVector;

/// Rows of bytes, one for each slot.
#[derive(Clone, Debug)]
pub(crate) struct Vectors {
    dimensions: usize,
    bytes: Vec<i8>,
    scales: Vec<f32>,
}

impl Vectors {
    pub(crate) const fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            bytes: Vec::new(),
            scales: Vec::new(),
        }
    }

    /// Adds the vector of the next slot. One of other dimensions is kept as zeros, which are near to nothing.
    pub(crate) fn push(&mut self, vector: &QuantisedVector) {
        if vector.bytes.len() == self.dimensions {
            self.bytes.extend_from_slice(&vector.bytes);
            self.scales.push(vector.scale);
        } else {
            // A row is added in any case, because the number of the row is the slot.
            self.bytes.resize(self.bytes.len() + self.dimensions, 0);
            self.scales.push(0.0);
        }
    }

    /// Replaces the vector of a slot. Returns false if it has other dimensions, or the slot does not exist.
    pub(crate) fn set(&mut self, slot: usize, vector: &QuantisedVector) -> bool {
        let start = slot.saturating_mul(self.dimensions);
        let (Some(scale), Some(row)) = (
            self.scales.get_mut(slot),
            self.bytes.get_mut(start..start.saturating_add(self.dimensions)),
        ) else {
            return false;
        };
        if vector.bytes.len() != self.dimensions {
            return false;
        }
        row.copy_from_slice(&vector.bytes);
        *scale = vector.scale;
        true
    }

    /// Returns true if the slot has a vector that can be near to something.
    pub(crate) fn is_set(&self, slot: usize) -> bool {
        self.scales.get(slot).is_some_and(|scale| *scale > 0.0)
    }

    /// Returns the slots whose cosine with `query` is at least `floor`, the nearest first, at most `most`.
    #[expect(clippy::cast_precision_loss, reason = "a cosine needs few digits")]
    pub(crate) fn nearest(
        &self,
        query: &[f32],
        floor: f32,
        most: usize,
        keeps: impl Fn(usize) -> bool,
    ) -> Vec<(usize, f32)> {
        let query = QuantisedVector::of(query);
        if query.bytes.len() != self.dimensions {
            return Vec::new();
        }
        let wide: Vec<i16> = query.bytes.iter().map(|byte| i16::from(*byte)).collect();
        let mut products = vec![0; self.scales.len()];
        let rows = &self.bytes;
        pulp::Arch::new().dispatch(|| products_of(&wide, rows, &mut products));
        let scored = products.iter().zip(&self.scales).enumerate();
        let mut found: Vec<(usize, f32)> = scored
            .map(|(slot, (product, scale))| (slot, *product as f32 * scale * query.scale))
            .filter(|(slot, cosine)| *cosine >= floor && keeps(*slot))
            .collect();
        best(&mut found, most);
        found
    }
}

/// Keeps the best `most` hits, the best first.
pub(crate) fn best(hits: &mut Vec<(usize, f32)>, most: usize) {
    // The slot decides between equal scores, so that the same query cuts at the same place each time.
    let better = |one: &(usize, f32), other: &(usize, f32)| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0));
    if hits.len() > most {
        hits.select_nth_unstable_by(most, better);
        hits.truncate(most);
    }
    hits.sort_unstable_by(better);
}

/// Computes the product of `query` with each row. The loop has no branch, so it compiles to vector instructions.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for AVX2")]
#[inline(always)]
fn products_of(query: &[i16], rows: &[i8], products: &mut [i32]) {
    for (row, product) in rows.chunks_exact(query.len()).zip(products) {
        let pairs = query.iter().zip(row);
        *product = pairs.map(|(one, other)| i32::from(*one) * i32::from(*other)).sum();
    }
}
