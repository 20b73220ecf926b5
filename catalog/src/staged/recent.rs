//! The latest keys of an upload in little memory: a list of them, and a table of their places in the list.
//!
//! Invariant: the table has the place of every key of the list, once. It is never copied to grow, but given up and made
//! anew, so that there are never two.

use std::hash::BuildHasher as _;

use hashbrown::HashTable;
use types::RecordKey;
use types::key::Places;

/// For how many keys there is room at first.
const FEW: usize = 1 << 15;

/// A set of keys.
#[derive(Debug)]
pub(super) struct Recent {
    room: usize,
    keys: Vec<RecordKey>,
    places: HashTable<u32>,
    hash: Places,
}

impl Recent {
    /// No keys, and room for so many.
    pub(super) fn new(room: u32) -> Self {
        Self {
            room: room as usize,
            keys: Vec::new(),
            places: HashTable::new(),
            hash: Places::default(),
        }
    }

    /// Whether there is no more room.
    pub(super) const fn is_full(&self) -> bool {
        self.keys.len() >= self.room
    }

    /// The keys.
    pub(super) fn keys(&self) -> &[RecordKey] {
        &self.keys
    }

    /// Whether the key is there.
    pub(super) fn contains(&self, key: &RecordKey) -> bool {
        let is_it = |place: &u32| self.keys[*place as usize] == *key;
        self.places.find(self.hash.hash_one(key), is_it).is_some()
    }

    /// Adds a key while there is room; `false` where it is there already.
    pub(super) fn insert(&mut self, key: RecordKey) -> bool {
        if self.contains(&key) {
            return false;
        }
        if self.places.len() == self.places.capacity() {
            let most = if self.keys.len() < FEW { FEW } else { self.room };
            self.make_room(most);
        }
        let place = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        self.keys.push(key);
        self.place(place);
        true
    }

    /// Hands the keys over, ascending, and is empty then.
    pub(super) fn empty<T>(&mut self, into: impl FnOnce(&[RecordKey]) -> T) -> T {
        self.places.clear();
        self.keys.sort_unstable();
        let taken = into(&self.keys);
        self.keys.clear();
        taken
    }

    /// Gives back the room that the keys do not need.
    pub(super) fn shrink_to_fit(&mut self) {
        self.keys.shrink_to_fit();
        self.make_room(self.keys.len());
    }

    /// Makes the table anew, for this many keys.
    fn make_room(&mut self, most: usize) {
        self.places = HashTable::new();
        self.places = HashTable::with_capacity(most);
        self.keys.reserve_exact(most.saturating_sub(self.keys.len()));
        for place in (0..).take(self.keys.len()) {
            self.place(place);
        }
    }

    /// Puts the place of a key into the table, which has room for it.
    fn place(&mut self, place: u32) {
        let hash = |place: &u32| self.hash.hash_one(self.keys[*place as usize]);
        self.places.insert_unique(hash(&place), place, hash);
    }
}
