//! A filter in front of the stored keys: "surely new" without a look at the disk.
//!
//! Invariant: a key that was inserted is never said to be surely new.

use types::RecordKey;

/// Bits per key that a full generation has; with seven probes about one new key in a hundred and fifty looks known.
const BITS_PER_KEY: usize = 12;
const PROBES: u32 = 7;
/// How many keys the first generation holds.
const FIRST: usize = 64 << 10;

/// 512 bits: one cache line, all that one look-up touches in a generation.
type Block = [u64; 8];

/// Blocked Bloom filters in generations that double, so that growing never hashes a key again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    generations: Vec<Generation>,
}

#[derive(Clone, Debug)]
struct Generation {
    blocks: Vec<Block>,
    capacity: usize,
    keys: usize,
}

impl Filter {
    /// A filter that takes `keys` keys into its first generation.
    pub(crate) fn with_capacity(keys: usize) -> Self {
        Self {
            generations: vec![Generation::new(keys.max(FIRST))],
        }
    }

    /// Adds a key.
    pub(crate) fn insert(&mut self, key: &RecordKey) {
        let full = self.generations.last().is_none_or(|last| last.keys >= last.capacity);
        if full {
            let capacity = self.generations.last().map_or(FIRST, |last| last.capacity * 2);
            self.generations.push(Generation::new(capacity));
        }
        if let Some(last) = self.generations.last_mut() {
            last.insert(key);
        }
    }

    /// A filter for so many keys, to be [absorbed](Self::absorb); none where they are too few for one of their own, and
    /// are to be inserted. A look-up touches every generation, so each has at least twice the keys of the one before.
    pub(crate) fn apart(&self, keys: usize) -> Option<Self> {
        let last = self.generations.last().map_or(0, |last| last.capacity);
        (keys >= last.saturating_mul(2)).then(|| Self::with_capacity(keys))
    }

    /// Takes the keys of another filter over.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.generations.extend(other.generations);
    }

    /// The memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        let blocks = self.generations.iter().map(|generation| generation.blocks.len());
        blocks.sum::<usize>() * size_of::<Block>()
    }

    /// Whether the key may have been added; `false` is certain.
    pub(crate) fn may_contain(&self, key: &RecordKey) -> bool {
        // Why: the last generations are the largest, so most of the keys that are known are in them.
        self.generations
            .iter()
            .rev()
            .any(|generation| generation.may_contain(key))
    }
}

impl Generation {
    fn new(capacity: usize) -> Self {
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

    fn may_contain(&self, key: &RecordKey) -> bool {
        let (block, bits) = self.place(key);
        let block = &self.blocks[block];
        // Why every probe although the first may tell: which one does cannot be foreseen, and that costs more.
        let missing = probes(bits).fold(0, |missing, bit| missing | !block[bit >> 6] >> (bit & 63));
        missing & 1 == 0
    }

    /// The block of a key and the bits that choose within it. A key is a hash already: its halves are independent. Blocks
    /// are in the order of keys, so that many keys in order touch one after the other.
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
    (0..PROBES).map(move |probe| (bits >> (probe * 9)) as usize & 511)
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
        let mut filter = Filter::default();
        let known = keys(0..300_000);
        for key in &known {
            filter.insert(key);
        }
        assert!(known.iter().all(|key| filter.may_contain(key)));
        assert_eq!(filter.generations.len(), 3);
    }

    #[test]
    fn few_new_keys_look_known() {
        let mut filter = Filter::with_capacity(100_000);
        for key in &keys(0..100_000) {
            filter.insert(key);
        }
        let wrong = keys(1_000_000..1_100_000)
            .iter()
            .filter(|key| filter.may_contain(key))
            .count();
        assert!(wrong < 1_500, "{wrong} of 100,000");
    }

    #[test]
    fn generations_are_few_however_keys_come() {
        let mut filter = Filter::default();
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
        assert!(keys(0..added).iter().all(|key| filter.may_contain(key)));
        let sizes: Vec<_> = filter
            .generations
            .iter()
            .map(|generation| generation.capacity)
            .collect();
        assert!(sizes.windows(2).all(|sizes| sizes[1] >= 2 * sizes[0]), "{sizes:?}");
    }

    #[test]
    fn an_empty_filter_knows_nothing() {
        assert!(!Filter::default().may_contain(&keys(0..1)[0]));
    }
}
