//! The latest keys of an upload in little memory, up to 88 MiB: a list of them, and a table of their places in the
//! list.
//!
//! Why not a table of a library: a look into one waits for memory, as keys are anywhere in it, and how many of these
//! waits overlap is what an upload's duplicates cost. Here the slots of many keys are looked at before the first of
//! them is needed, which took half the time.
//!
//! Invariant: the table has the place of every key of the list, once. It is never copied to grow, but given up and made
//! anew, so that there are never two.

use std::hash::BuildHasher as _;
use std::hint::black_box;

use types::RecordKey;
use types::key::BuildMapHasher;

/// For how many keys there is room at first.
const FIRST_KEY_CAPACITY: usize = 1 << 15;
/// Minimum number of slots.
const MIN_SLOTS: usize = 8;
/// A slot without a place.
const FREE_SLOT: u64 = u64::MAX;

/// Number of keys that are looked for ahead: about as many waits for memory as a processor can overlap.
pub(super) const KEYS_LOOKED_AHEAD: usize = 64;

/// A set of keys.
#[derive(Debug)]
pub(super) struct Recent {
    room: usize,
    keys: Vec<RecordKey>,
    /// Half a hash and a place each, the place in the lower half; a power of two of them. A key is in the first that
    /// was free from the one on that the high bits of its hash name.
    slots: Vec<u64>,
    hash: BuildMapHasher,
}

impl Recent {
    /// Creates a set without keys, with room for `room`.
    pub(super) fn new(room: u32) -> Self {
        Self {
            room: room as usize,
            keys: Vec::new(),
            slots: vec![FREE_SLOT; MIN_SLOTS],
            hash: BuildMapHasher::default(),
        }
    }

    /// Returns true if there is no more room.
    pub(super) const fn is_full(&self) -> bool {
        self.keys.len() >= self.room
    }

    /// The keys, in the order of their insertion.
    pub(super) fn keys(&self) -> &[RecordKey] {
        &self.keys
    }

    /// Looks at where these keys would be, so that they are found sooner; of use for up to [`KEYS_LOOKED_AHEAD`] of them.
    pub(super) fn look_ahead(&self, keys: &[RecordKey]) {
        let slots = keys.iter().map(|key| self.slots[self.slot(self.hash.hash_one(key))]);
        black_box(slots.fold(0, |seen, slot| seen | slot));
    }

    /// Returns true if the key is in the set.
    pub(super) fn contains(&self, key: &RecordKey) -> bool {
        self.find(key, self.hash.hash_one(key)).is_ok()
    }

    /// Adds a key while there is room; `false` where it is there already.
    pub(super) fn insert(&mut self, key: RecordKey) -> bool {
        if self.keys.len() >= capacity(self.slots.len()) {
            let most = if self.keys.len() < FIRST_KEY_CAPACITY {
                FIRST_KEY_CAPACITY
            } else {
                self.room
            };
            self.make_room(most.max(self.keys.len() + 1));
        }
        let hash = self.hash.hash_one(key);
        match self.find(&key, hash) {
            Ok(()) => false,
            Err(free) => {
                self.slots[free] = filled(hash, self.keys.len());
                self.keys.push(key);
                true
            }
        }
    }

    /// Hands the keys over, ascending, and is empty then.
    pub(super) fn empty<T>(&mut self, into: impl FnOnce(&[RecordKey]) -> T) -> T {
        self.slots.fill(FREE_SLOT);
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

    /// Looks for a key with this hash; where it is not, the slot that it would be in.
    fn find(&self, key: &RecordKey, hash: u64) -> Result<(), usize> {
        let mut at = self.slot(hash);
        loop {
            let found = self.slots[at];
            if found == FREE_SLOT {
                return Err(at);
            }
            if is_of(found, hash) && self.keys[place(found)] == *key {
                return Ok(());
            }
            at = self.after(at);
        }
    }

    /// Makes the table anew, for this many keys.
    fn make_room(&mut self, most: usize) {
        self.slots = Vec::new();
        self.slots = vec![FREE_SLOT; slots_for(most)];
        self.keys.reserve_exact(most.saturating_sub(self.keys.len()));
        for (number, key) in self.keys.iter().enumerate() {
            let hash = self.hash.hash_one(key);
            let mut at = self.slot(hash);
            while self.slots[at] != FREE_SLOT {
                at = self.after(at);
            }
            self.slots[at] = filled(hash, number);
        }
    }

    /// The slot that a hash names.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "as many bits as number the slots are left"
    )]
    const fn slot(&self, hash: u64) -> usize {
        (hash >> (u64::BITS - self.slots.len().ilog2())) as usize
    }

    const fn after(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }
}

/// Number of slots for a number of keys: an eighth is always free, so that every search ends.
fn slots_for(keys: usize) -> usize {
    (keys + keys.div_ceil(7)).next_power_of_two().max(MIN_SLOTS)
}

/// Number of keys that a number of slots takes.
const fn capacity(slots: usize) -> usize {
    slots / 8 * 7
}

const fn filled(hash: u64, place: usize) -> u64 {
    hash << 32 | place as u64
}

/// Returns true if a filled slot is of a key with this hash, as far as half a hash tells.
const fn is_of(filled: u64, hash: u64) -> bool {
    filled >> 32 == hash & 0xffff_ffff
}

const fn place(filled: u64) -> usize {
    (filled & 0xffff_ffff) as usize
}
