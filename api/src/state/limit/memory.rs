//! Counters in the memory of this process.
//!
//! Invariant: the tables contain at most a fixed number of addresses, of the current window and the previous one only.

use std::collections::HashMap;

use async_trait::async_trait;
use parking_lot::Mutex;
use types::Timestamp;

use super::window::LimitWindow;
use super::{CountersUnavailable, LimitCounters, LimitDecision, LimitSource, RateRule};

/// Addresses that are counted in one window.
///
/// A caller with more addresses than this cannot be stopped by a limit per address. So addresses beyond it are
/// admitted, and nobody else is refused because of them.
const MAX_SOURCES: usize = 1 << 18;

/// Counters in memory. They begin at zero with the process.
#[derive(Debug, Default)]
pub struct MemoryCounters {
    tables: Mutex<HashMap<&'static str, RuleCounts>>,
}

/// Counts of one rule.
#[derive(Debug, Default)]
struct RuleCounts {
    number: i64,
    counts: HashMap<LimitSource, u32>,
    before: HashMap<LimitSource, u32>,
}

impl MemoryCounters {
    /// Counts one event unless the limit is reached.
    pub fn count(&self, rule: RateRule, source: LimitSource, now: Timestamp) -> LimitDecision {
        let window = LimitWindow::at(rule, now);
        // A panic elsewhere leaves valid counts, so a lock without poisoning is enough.
        let mut tables = self.tables.lock();
        let table = tables.entry(rule.name).or_default();
        table.turn(window.number);
        // A full table admits new addresses, see [`MAX_SOURCES`].
        if table.counts.len() >= MAX_SOURCES && !table.counts.contains_key(&source) {
            return LimitDecision::Allow;
        }
        let before = table.before.get(&source).copied().unwrap_or(0);
        let count = table.counts.entry(source).or_insert(0);
        let decision = window.admit(rule.limit, *count, before);
        if decision == LimitDecision::Allow {
            *count += 1;
        }
        decision
    }
}

impl RuleCounts {
    /// Moves on to the window of this number. The counts of the window before it are kept, older ones are dropped.
    ///
    /// A call that read the clock just before the turn and arrives after it counts in the window that has begun. A
    /// clock that was set back by more than a window begins with empty tables, since the window would otherwise not end
    /// for that long.
    fn turn(&mut self, number: i64) {
        if self.number != number && self.number != number.saturating_add(1) {
            let counts = std::mem::take(&mut self.counts);
            // Only the previous window contributes. The counts of an older one are dropped.
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
impl LimitCounters for MemoryCounters {
    async fn take(
        &self,
        rule: RateRule,
        source: LimitSource,
        now: Timestamp,
    ) -> Result<LimitDecision, CountersUnavailable> {
        Ok(self.count(rule, source, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::limit::conformance;

    #[tokio::test]
    async fn counters_in_memory_keep_the_rules() {
        conformance::all(|| async { MemoryCounters::default() }).await;
    }
}
