//! Compaction: many small parts become few large ones, and no version changes.
//!
//! Invariants:
//! - A compacted part has the rows of the parts that it replaces, all columns, in the same order; so content roots stay.
//! - Its commit is put only by one who has seen every commit before and found the replaced parts in the latest layout.
//!   Two owners who compact the same parts race for one commit, and the loser finds its parts gone.
//! - The files of replaced parts stay. A version that ends within a compacted part is read from them for ever.
//!
//! What is to be done follows from the latest layout alone ([`Policy`]), so a crash loses nothing but the work. Building
//! is done beside the merges, one part at a time in a process; only the commit is a step of the table's owner.

mod build;
mod commit;
mod gather;
mod policy;

use std::sync::Arc;

use tokio::sync::Semaphore;
use types::{Contract, Proof, Version};

pub(crate) use self::commit::commit;
pub use self::policy::Policy;
use crate::log::Rewrite;
use crate::part::PartInfo;
use crate::state::State;

/// What the compactions of a process share.
#[derive(Debug)]
pub(crate) struct Compacting {
    policy: Policy,
    /// Who builds.
    turn: Arc<Semaphore>,
}

impl Compacting {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            policy,
            turn: Arc::new(Semaphore::new(1)),
        }
    }
}

/// Adjacent parts that are to be one.
#[must_use = "it is to be built"]
#[derive(Debug)]
pub struct Compaction {
    state: Arc<State>,
    contract: Arc<Contract>,
    inputs: Vec<PartInfo>,
    turn: Arc<Semaphore>,
}

/// A part that can take the place of others. Dropping it leaves a file that nobody names.
#[must_use = "it is to be adopted by its table"]
#[derive(Debug)]
pub struct Compacted {
    rewrite: Rewrite,
    /// Of its part, if that is large.
    proof: Option<Proof>,
    inputs: Vec<PartInfo>,
}

impl Compaction {
    /// The version of the first row and that of the last.
    pub fn versions(&self) -> (Version, Version) {
        let first = self.inputs.first().map_or(Version::EMPTY, PartInfo::first_version);
        (first, self.inputs.last().map_or(Version::EMPTY, |part| part.version))
    }
}

/// What is to be compacted next in a table.
pub(crate) fn due(state: &Arc<State>, compacting: &Compacting) -> Option<Compaction> {
    let timeline = state.timeline();
    let layout: Vec<_> = timeline.layout(timeline.head()).collect();
    let chosen = compacting.policy.choose(&layout)?;
    Some(Compaction {
        contract: Arc::clone(timeline.contract()?),
        inputs: layout[chosen].iter().map(|piece| piece.part.clone()).collect(),
        state: Arc::clone(state),
        turn: Arc::clone(&compacting.turn),
    })
}
