//! The distinct values of a column: a hint for people, and never a rule.
//!
//! Invariant: they are few, short, and of all columns together at most
//! [`MAX_KEPT_BYTES`](super::profile::MAX_KEPT_BYTES).

use super::answer::{MAX_DISTINCT_VALUES, MAX_EXAMPLES, MAX_SHOWN_CHARACTERS, shown};

/// Slots for the places of distinct values: a power of two, and more than twice as many as there are values.
const DISTINCT_SLOTS: usize = 128;
/// The most bytes of a value that is kept.
const MAX_KEPT_VALUE_BYTES: usize = 4 * MAX_SHOWN_CHARACTERS;

/// Distinct values of a column, as long as they are few and short.
#[derive(Clone, Debug, Default)]
pub(super) struct DistinctValues {
    /// The values in the order in which they came.
    order: Vec<Box<[u8]>>,
    /// Places in `order`, plus one, by hash; the next free slot is taken. Empty before the first value, and when no
    /// more values are kept.
    slots: Vec<u8>,
    /// Place of the value that came last: equal values often follow each other.
    last: usize,
    pub(super) is_incomplete: bool,
}

impl DistinctValues {
    pub(super) fn add(&mut self, value: &[u8], budget: &mut usize) {
        if self.is_incomplete && (self.order.len() >= MAX_EXAMPLES || self.slots.is_empty())
            || self.order.get(self.last).is_some_and(|last| **last == *value)
        {
            return;
        }
        if self.slots.is_empty() {
            self.slots = vec![0; DISTINCT_SLOTS];
        }
        let value = if value.len() > MAX_KEPT_VALUE_BYTES {
            self.is_incomplete = true;
            &value[..MAX_KEPT_VALUE_BYTES]
        } else {
            value
        };
        let mut slot = hash_value(value);
        while let Some(place) = self
            .slots
            .get(slot)
            .and_then(|place| usize::from(*place).checked_sub(1))
        {
            if self.order.get(place).is_some_and(|known| **known == *value) {
                self.last = place;
                return;
            }
            slot = (slot + 1) % DISTINCT_SLOTS;
        }
        let most = if self.is_incomplete {
            MAX_EXAMPLES
        } else {
            MAX_DISTINCT_VALUES
        };
        if self.order.len() >= most || *budget < value.len() {
            self.is_incomplete = true;
            self.slots = Vec::new();
            return;
        }
        *budget -= value.len();
        self.last = self.order.len();
        self.order.push(value.into());
        self.slots[slot] = u8::try_from(self.order.len()).unwrap_or(u8::MAX);
    }

    /// Returns the values that are none of the words, in the order in which they came.
    pub(super) fn values(&self, but: &[&[u8]]) -> Vec<String> {
        let kept = self.order.iter().filter(|value| !but.contains(&value.trim_ascii()));
        kept.map(|value| shown(&String::from_utf8_lossy(value))).collect()
    }
}

/// Returns the first slot of a value. Values that are made to share one cost a column no more than its few values.
fn hash_value(value: &[u8]) -> usize {
    let word = |bytes: &[u8]| bytes.iter().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
    let (begin, end) = (value.len().min(8), value.len().saturating_sub(8));
    let mixed = word(&value[..begin]).wrapping_add(word(&value[end..]).rotate_left(29)) ^ value.len() as u64;
    // Fibonacci hashing (Knuth 6.4): the upper bits depend on all of them.
    usize::try_from(mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57).unwrap_or(0) % DISTINCT_SLOTS
}

#[cfg(test)]
mod tests {
    use super::super::profile::MAX_KEPT_BYTES;
    use super::*;

    #[test]
    fn distinct_values_are_kept_as_long_as_they_are_few() {
        let (mut values, mut budget) = (DistinctValues::default(), MAX_KEPT_BYTES);
        for number in 0..200 {
            values.add((number % 50).to_string().as_bytes(), &mut budget);
        }
        assert!(!values.is_incomplete);
        assert_eq!(values.values(&[b"7"]).len(), 49);
        values.add(b"one more", &mut budget);
        assert!(values.is_incomplete);
        let (mut values, mut budget) = (DistinctValues::default(), MAX_KEPT_BYTES);
        values.add("é".repeat(1_000).as_bytes(), &mut budget);
        assert_eq!(values.values(&[])[0].chars().count(), MAX_SHOWN_CHARACTERS + 1);
        assert!(values.is_incomplete);
        let mut none = 0;
        let mut values = DistinctValues::default();
        values.add(b"x", &mut none);
        assert!(values.values(&[]).is_empty() && values.is_incomplete);
    }
}
