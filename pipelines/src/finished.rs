//! The submissions that already have a terminal outcome.
//!
//! Invariant: within its window, a submission of a generation that was decided is never judged again. The window is
//! bounded: outside it the table's guard still keeps a merged submission from merging twice.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use types::ContributionId;

/// How many decided submissions are remembered.
const WINDOW: usize = 65_536;

/// Remembers the latest decided submissions of a worker.
#[derive(Debug, Default)]
pub struct Finished {
    window: Mutex<Window>,
}

#[derive(Debug, Default)]
struct Window {
    known: HashSet<(ContributionId, u32)>,
    order: VecDeque<(ContributionId, u32)>,
}

impl Finished {
    /// Remembers that this generation of the contribution is decided.
    pub fn insert(&self, contribution: ContributionId, generation: u32) {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let decided = (contribution, generation);
        if window.known.insert(decided) {
            window.order.push_back(decided);
            if window.order.len() > WINDOW
                && let Some(oldest) = window.order.pop_front()
            {
                window.known.remove(&oldest);
            }
        }
    }

    /// Whether this generation of the contribution is known to be decided.
    pub fn contains(&self, contribution: ContributionId, generation: u32) -> bool {
        self.window
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .known
            .contains(&(contribution, generation))
    }
}
