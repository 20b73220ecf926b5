//! The owner's handle on a table: the one through which it grows.
//!
//! Invariant: a merge that returned is durable, is in the log once, and is seen by every reader in this process.

use std::sync::Arc;

use types::key::Known;
use types::{Clock, Contract, ContributionId, Version};

use crate::commit;
use crate::keys::KeyIndex;
use crate::state::State;
use crate::{Error, Merge, MergeOutcome, Proposal};

/// The table of a dataset, open for merges.
///
/// Two handles on one table, in one process or in two, are safe: they race for every commit, and the loser reads what
/// the winner did and starts over. One handle per table is fast.
#[derive(Debug)]
pub struct Table {
    state: Arc<State>,
    index: Arc<KeyIndex>,
    contract: Arc<Contract>,
    clock: Arc<dyn Clock>,
}

impl Table {
    pub(crate) async fn open(
        state: Arc<State>,
        contract: &Arc<Contract>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        state.refresh().await?;
        if state.contract().is_some_and(|found| found != *contract) {
            return Err(Error::ContractMismatch { dataset: state.dataset });
        }
        let index = Arc::clone(state.index().await?);
        Ok(Self {
            state,
            index,
            contract: Arc::clone(contract),
            clock,
        })
    }

    /// The contract of the records.
    pub const fn contract(&self) -> &Arc<Contract> {
        &self.contract
    }

    /// The latest version known to this process.
    pub fn head(&self) -> Version {
        self.state.head()
    }

    /// How many rows the latest version has.
    pub fn record_count(&self) -> u64 {
        self.state.base().rows
    }

    /// The version that a contribution became, as far as this process knows; reads its commit.
    pub async fn find(&self, contribution: ContributionId) -> Result<Option<Merge>, Error> {
        self.state.find(contribution).await
    }

    /// Which records the table has, for looking before the merge does; follows the merges.
    pub fn known(&self) -> Arc<dyn Known> {
        Arc::clone(&self.index) as Arc<dyn Known>
    }

    /// Merges the rows of a proposal that the table does not have, as the next version; creates the table first if it
    /// does not exist. A contribution that was merged before is adopted, whatever its rows.
    ///
    /// # Errors
    /// After an error nothing, or the whole version, is in the log; asking again finds out.
    pub async fn merge(&mut self, proposal: Proposal) -> Result<MergeOutcome, Error> {
        let contract = proposal.batch.contract();
        if !Arc::ptr_eq(contract, &self.contract) && *contract != self.contract {
            return Err(Error::ContractMismatch {
                dataset: self.state.dataset,
            });
        }
        if self.state.contract().is_none() {
            commit::create(&self.state, &self.contract, self.clock.now()).await?;
        }
        commit::merge(&self.state, proposal).await
    }

    /// Writes what makes opening the table again quick: the derived file when the table has outgrown it, and the keys
    /// that are in memory only. For when the table has nothing to merge, and before it is closed.
    pub async fn maintain(&self) -> Result<(), Error> {
        self.state.derive_if_due().await;
        let base = self.state.base();
        self.state.flush(base.version, base.root).await
    }
}
