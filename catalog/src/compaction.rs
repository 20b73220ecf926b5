//! Compaction: one large part replaces many small parts, and no version changes.
//!
//! Invariants:
//! - A compacted part has all columns of the rows of the replaced parts, in the same order. So content roots stay the
//!   same.
//! - An owner puts the commit only after it has read every earlier commit and found the replaced parts in the latest
//!   layout. If two owners compact the same parts, they race for one commit, and the loser finds its inputs gone.
//! - The files of replaced parts stay. Versions that end within a compacted part are read from them for ever.
//!
//! Due compactions follow from the latest layout alone ([`Policy`]), so a crash loses only the work. Parts are built
//! beside the merges, one at a time per process. Only the commit is a step of the table's owner.

mod build;
mod commit;
mod input;
mod policy;

use std::sync::Arc;

use tokio::sync::Semaphore;
use types::{Contract, Proof, Version};

pub(crate) use self::commit::commit;
pub use self::policy::Policy;
use crate::log::PartRewrite;
use crate::part::PartInfo;
use crate::state::TableState;

/// Shared state of the compactions of a process.
#[derive(Debug)]
pub(crate) struct CompactionState {
    policy: Policy,
    /// Permit to build: one at a time.
    turn: Arc<Semaphore>,
}

impl CompactionState {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            policy,
            turn: Arc::new(Semaphore::new(1)),
        }
    }
}

/// Adjacent parts that are due to become one part.
#[must_use = "it is to be built"]
#[derive(Debug)]
pub struct DueCompaction {
    state: Arc<TableState>,
    contract: Arc<Contract>,
    inputs: Vec<PartInfo>,
    turn: Arc<Semaphore>,
}

/// A built part that can replace others. Dropping it leaves an orphan.
#[must_use = "it is to be adopted by its table"]
#[derive(Debug)]
pub struct BuiltPart {
    rewrite: PartRewrite,
    /// Proof of the built part, if the part is large.
    proof: Option<Proof>,
    inputs: Vec<PartInfo>,
}

impl DueCompaction {
    /// Returns the versions of the first and the last row.
    pub fn versions(&self) -> (Version, Version) {
        let first = self.inputs.first().map_or(Version::EMPTY, PartInfo::first_version);
        (first, self.inputs.last().map_or(Version::EMPTY, |part| part.version))
    }
}

/// Returns the next due compaction of a table, or `None` if none is due.
pub(crate) fn due(state: &Arc<TableState>, compacting: &CompactionState) -> Option<DueCompaction> {
    let version_index = state.version_index();
    // Only the latest layout is compacted; older versions keep their parts.
    let layout: Vec<_> = version_index.layout(version_index.head()).collect();
    let chosen = compacting.policy.choose(&layout)?;
    Some(DueCompaction {
        contract: Arc::clone(version_index.contract()?),
        inputs: layout[chosen].iter().map(|range| range.part.clone()).collect(),
        state: Arc::clone(state),
        turn: Arc::clone(&compacting.turn),
    })
}
