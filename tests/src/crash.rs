//! Kills the real process at its crash points, with work in flight, and lets it recover.
//!
//! Invariant: a recovery is never given new work before it is judged, so that a lost acknowledgement cannot be covered
//! up by a later one; what stays from one kill stays in the way of the next.

mod load;
mod made;
mod site;

use std::collections::BTreeMap;
use std::time::Instant;

pub use site::{Fault, Site, Verdict};

/// How often each thing happened that a run must have seen.
#[derive(Clone, Debug, Default)]
pub struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// Adds `count` to `name`.
    pub fn add(&mut self, name: &str, count: u64) {
        *self.0.entry(name.to_owned()).or_default() += count;
    }

    /// Adds the milliseconds since `begun` to what was spent on `what`.
    pub fn spend(&mut self, what: &str, begun: Instant) {
        let spent = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.add(&format!("milliseconds {what}"), spent);
    }

    /// How often `name` happened.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Adds another run's.
    pub fn absorb(&mut self, other: &Self) {
        for (name, count) in &other.0 {
            self.add(name, *count);
        }
    }

    /// One line per counter.
    pub fn lines(&self) -> String {
        let lines: Vec<_> = self
            .0
            .iter()
            .map(|(name, count)| format!("  {name:<36} {count}"))
            .collect();
        lines.join("\n")
    }
}
