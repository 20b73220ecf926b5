//! Counters of this process.
//!
//! Invariant: the tables never hold more than a fixed number of addresses, and only those of the current window and of
//! the one before.

use std::collections::HashMap;

use async_trait::async_trait;
use parking_lot::Mutex;
use types::Timestamp;

use super::window::Window;
use super::{Counters, Rule, Source, Taken, Unavailable};

/// The most addresses that are counted in one window.
///
/// Why: who comes from more addresses than this within a window is not stopped by a limit per address, so the
/// addresses beyond it are admitted, and nobody innocent is refused for them.
const CAPACITY: usize = 1 << 18;

/// Counts in memory; begins at nothing when the process does.
#[derive(Debug, Default)]
pub struct Memory {
    tables: Mutex<HashMap<&'static str, Table>>,
}

/// The counts of one rule.
#[derive(Debug, Default)]
struct Table {
    number: i64,
    counts: HashMap<Source, u32>,
    before: HashMap<Source, u32>,
}

impl Memory {
    /// Counts one, unless the limit is reached.
    pub fn count(&self, rule: Rule, source: Source, now: Timestamp) -> Taken {
        let window = Window::at(rule, now);
        // Why: counts stay usable whatever a panicking holder did to them.
        let mut tables = self.tables.lock();
        let table = tables.entry(rule.name).or_default();
        table.turn(window.number);
        if table.counts.len() >= CAPACITY && !table.counts.contains_key(&source) {
            return Taken::Admitted;
        }
        let before = table.before.get(&source).copied().unwrap_or(0);
        let count = table.counts.entry(source).or_insert(0);
        let taken = window.admit(rule.limit, *count, before);
        if taken == Taken::Admitted {
            *count += 1;
        }
        taken
    }
}

impl Table {
    /// Begins the window of this number with nothing counted but what the window before had.
    ///
    /// Whoever looked at the clock just before the turn and comes after it counts in the window that has begun: what was
    /// counted stays so. A clock that was set back by more begins anew, or its windows would not end for that long.
    fn turn(&mut self, number: i64) {
        if self.number != number && self.number != number.saturating_add(1) {
            let counts = std::mem::take(&mut self.counts);
            let follows = self.number == number - 1;
            *self = Self {
                before: if follows { counts } else { HashMap::new() },
                counts: HashMap::new(),
                number,
            };
        }
    }
}

#[async_trait]
impl Counters for Memory {
    async fn take(&self, rule: Rule, source: Source, now: Timestamp) -> Result<Taken, Unavailable> {
        Ok(self.count(rule, source, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::conformance;

    #[tokio::test]
    async fn counters_in_memory_keep_the_rules() {
        conformance::all(|| async { Memory::default() }).await;
    }
}
