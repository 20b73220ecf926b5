//! Bloom filter in front of the stored keys: a new key is recognised without a read from disk.
//!
//! Invariant: [`KeyFilter::might_contain`] returns true for every inserted key.

use types::RecordKey;

/// Bits per key in a full generation. With seven probes the false positive rate is about 1 in 150.
const BITS_PER_KEY: usize = 12;
const PROBES_PER_KEY: u32 = 7;
/// Capacity of the first generation, in keys.
const FIRST_GENERATION_KEYS: usize = 64 << 10;

/// Block of 512 bits. That is one cache line, and a lookup touches one block per generation.
type Block = [u64; 8];

/// Blocked Bloom filters in generations of at least doubling size. The filter grows without hashing a key again.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyFilter {
    generations: Vec<Generation>,
}

#[derive(Clone, Debug)]
struct Generation {
    blocks: Vec<Block>,
    capacity: usize,
    keys: usize,
}

impl KeyFilter {
    /// Creates a filter whose first generation holds `keys` keys.
    pub(crate) fn with_capacity(keys: usize) -> Self {
        Self {
            generations: vec![Generation::new(keys.max(FIRST_GENERATION_KEYS))],
        }
    }

    pub(crate) fn insert(&mut self, key: &RecordKey) {
        // A filter without a generation counts as full.
        let full = self.generations.last().is_none_or(|last| last.keys >= last.capacity);
        if full {
            let capacity = self
                .generations
                .last()
                .map_or(FIRST_GENERATION_KEYS, |last| last.capacity * 2);
            // A full generation stays as it is, so no key is hashed again.
            self.generations.push(Generation::new(capacity));
        }
        if let Some(last) = self.generations.last_mut() {
            last.insert(key);
        }
    }

    /// Returns a separate filter for `keys` keys, which [`Self::absorb`] adds later. Returns `None` if the keys are too
    /// few for a generation of their own; the caller inserts them instead. A lookup touches every generation, so each
    /// generation has at least twice the capacity of the one before.
    pub(crate) fn apart(&self, keys: usize) -> Option<Self> {
        let last = self.generations.last().map_or(0, |last| last.capacity);
        (keys >= last.saturating_mul(2)).then(|| Self::with_capacity(keys))
    }

    /// Appends the generations of another filter.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.generations.extend(other.generations);
    }

    /// Returns the memory use in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let blocks = self.generations.iter().map(|generation| generation.blocks.len());
        blocks.sum::<usize>() * size_of::<Block>()
    }

    /// Returns false only if the key was never inserted.
    pub(crate) fn might_contain(&self, key: &RecordKey) -> bool {
        // The last generations are the largest and have most of the known keys, so they are probed first.
        self.generations
            .iter()
            .rev()
            .any(|generation| generation.might_contain(key))
    }
}

impl Generation {
    fn new(capacity: usize) -> Self {
        // At least one block, so that every key has a place.
        let blocks = (capacity * BITS_PER_KEY).div_ceil(512).max(1);
        Self {
            blocks: vec![[0; 8]; blocks],
            capacity,
            keys: 0,
        }
    }

    fn insert(&mut self, key: &RecordKey) {
        let (block, bits) = self.place(key);
        for bit in probes(bits) {
            self.blocks[block][bit >> 6] |= 1 << (bit & 63);
        }
        self.keys += 1;
    }

    fn might_contain(&self, key: &RecordKey) -> bool {
        let (block, bits) = self.place(key);
        let block = &self.blocks[block];
        // Every probe is evaluated, although the first may decide. A branch per probe cannot be predicted and costs
        // more than the probes.
        let missing = probes(bits).fold(0, |missing, bit| missing | !block[bit >> 6] >> (bit & 63));
        missing & 1 == 0
    }

    /// Returns the index of the key's block, and the bits that choose within the block. A key is a hash, so its two
    /// halves are independent. Blocks are in the order of keys, so lookups of sorted keys touch memory in order.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the high half of a product with the length is below it"
    )]
    fn place(&self, key: &RecordKey) -> (usize, u64) {
        let bytes = u128::from_be_bytes(*key.as_bytes());
        let (high, low) = ((bytes >> 64) as u64, bytes as u64);
        (((u128::from(high) * self.blocks.len() as u128) >> 64) as usize, low)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "nine bits")]
fn probes(bits: u64) -> impl Iterator<Item = usize> {
    (0..PROBES_PER_KEY).map(move |probe| (bits >> (probe * 9)) as usize & 511)
}

#[cfg(test)]
mod tests {
    use types::key::KeyHasher;

    use super::*;

    fn keys(range: std::ops::Range<u32>) -> Vec<RecordKey> {
        let mut hasher = KeyHasher::new();
        range.map(|number| hasher.key(&number.to_le_bytes())).collect()
    }

    #[test]
    fn every_inserted_key_is_found_across_generations() {
        let mut filter = KeyFilter::default();
        let known = keys(0..300_000);
        for key in &known {
            filter.insert(key);
        }
        assert!(known.iter().all(|key| filter.might_contain(key)));
        assert_eq!(filter.generations.len(), 3);
    }

    #[test]
    fn few_new_keys_look_known() {
        let mut filter = KeyFilter::with_capacity(100_000);
        for key in &keys(0..100_000) {
            filter.insert(key);
        }
        let wrong = keys(1_000_000..1_100_000)
            .iter()
            .filter(|key| filter.might_contain(key))
            .count();
        assert!(wrong < 1_500, "{wrong} of 100,000");
    }

    #[test]
    fn generations_are_few_however_keys_come() {
        let mut filter = KeyFilter::default();
        let mut added = 0;
        for many in [
            1_000, 200_000, 1_000, 100_000, 100_000, 100_000, 600_000, 70_000, 70_000, 70_000,
        ] {
            let more = keys(added..added + many);
            let mut apart = filter.apart(more.len());
            for key in &more {
                apart.as_mut().unwrap_or(&mut filter).insert(key);
            }
            if let Some(apart) = apart {
                filter.absorb(apart);
            }
            added += many;
        }
        assert!(keys(0..added).iter().all(|key| filter.might_contain(key)));
        let sizes: Vec<_> = filter
            .generations
            .iter()
            .map(|generation| generation.capacity)
            .collect();
        assert!(sizes.windows(2).all(|sizes| sizes[1] >= 2 * sizes[0]), "{sizes:?}");
    }

    #[test]
    fn an_empty_filter_knows_nothing() {
        assert!(!KeyFilter::default().might_contain(&keys(0..1)[0]));
    }
}
