//! A map with a bound on the weight of its values, which forgets those that were not used for longest.
//!
//! Invariant: the values weigh no more together than the bound, whatever callers ask for.

use std::collections::HashMap;
use std::hash::Hash;

/// A map in two halves. What is used moves to the young half. When that is full, it becomes the old one, and what was
/// in the old one is forgotten. So keeping order costs nothing per use.
#[derive(Debug)]
pub(super) struct BoundedMap<K, V> {
    half: usize,
    young: MapHalf<K, V>,
    old: MapHalf<K, V>,
}

#[derive(Debug)]
struct MapHalf<K, V> {
    entries: HashMap<K, (V, usize)>,
    weight: usize,
}

impl<K, V> Default for MapHalf<K, V> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            weight: 0,
        }
    }
}

impl<K: Eq + Hash + Clone, V: Clone> BoundedMap<K, V> {
    /// Creates an empty map whose values may weigh `most` together. With 0 it keeps nothing.
    pub(super) fn new(most: usize) -> Self {
        Self {
            half: most / 2,
            young: MapHalf::default(),
            old: MapHalf::default(),
        }
    }

    /// Returns the value of a key.
    pub(super) fn get(&mut self, key: &K) -> Option<V> {
        if let Some((value, _)) = self.young.entries.get(key) {
            return Some(value.clone());
        }
        // It is used, so it outlives those beside it that are not.
        let (value, weight) = self.old.take(key)?;
        self.insert(key.clone(), value.clone(), weight);
        Some(value)
    }

    /// Puts a value in the place of the one that the key has. A value heavier than half the bound is not kept.
    pub(super) fn insert(&mut self, key: K, value: V, weight: usize) {
        // Removed first, so that the weight of the value before is not counted beside that of the new
        // one.
        self.remove(&key);
        if weight > self.half {
            return;
        }
        // Each half has half of the bound, so both together never exceed it.
        if self.young.weight + weight > self.half {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.weight += weight;
        self.young.entries.insert(key, (value, weight));
    }

    /// Forgets the value of a key.
    pub(super) fn remove(&mut self, key: &K) {
        self.young.take(key);
        self.old.take(key);
    }

    /// Forgets the values of all keys but those that `keep` is true of.
    pub(super) fn retain(&mut self, keep: impl Fn(&K) -> bool) {
        for half in [&mut self.young, &mut self.old] {
            let weight = &mut half.weight;
            half.entries.retain(|key, (_, of_one)| {
                let kept = keep(key);
                if !kept {
                    *weight -= *of_one;
                }
                kept
            });
        }
    }

    /// Returns the weight of all values.
    #[cfg(test)]
    pub(super) const fn weight(&self) -> usize {
        self.young.weight + self.old.weight
    }
}

impl<K: Eq + Hash, V> MapHalf<K, V> {
    fn take(&mut self, key: &K) -> Option<(V, usize)> {
        let (value, weight) = self.entries.remove(key)?;
        self.weight -= weight;
        Some((value, weight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_values_never_weigh_more_than_the_bound() {
        let mut map = BoundedMap::new(100);
        for key in 0..10_000_usize {
            map.insert(key, key, key % 40);
            assert!(map.weight() <= 100, "{key}");
            assert_eq!(map.get(&key), Some(key), "the newest value is kept");
        }
        let kept = map.young.entries.len() + map.old.entries.len();
        assert!(kept < 100, "{kept}");
    }

    #[test]
    fn a_value_that_is_used_outlives_those_that_are_not() {
        let mut map = BoundedMap::new(10);
        map.insert(0, "used", 1);
        map.insert(1, "idle", 1);
        for key in 2..1_000 {
            map.insert(key, "other", 1);
            assert_eq!(map.get(&0), Some("used"), "{key}");
        }
        assert_eq!(map.get(&1), None);
    }

    #[test]
    fn a_value_that_is_replaced_too_heavy_or_removed_is_gone() {
        let mut map = BoundedMap::new(10);
        map.insert("a", 1, 3);
        map.insert("a", 2, 4);
        assert_eq!((map.get(&"a"), map.weight()), (Some(2), 4));
        map.insert("a", 3, 6);
        assert_eq!((map.get(&"a"), map.weight()), (None, 0));
        map.insert("b", 1, 5);
        map.remove(&"b");
        assert_eq!((map.get(&"b"), map.weight()), (None, 0));
        map.insert("c", 1, 2);
        map.insert("d", 1, 3);
        map.retain(|key| *key == "d");
        assert_eq!((map.get(&"c"), map.get(&"d"), map.weight()), (None, Some(1), 3));
        map.remove(&"d");
        let mut none = BoundedMap::new(0);
        none.insert("a", 1, 1);
        assert_eq!(none.get(&"a"), None);
    }
}
