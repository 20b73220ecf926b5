//! The owner's handle on a table: the one through which it grows.
//!
//! Invariant: a merge that returned is durable, is in the log once, and is seen by every reader in this process.

use std::sync::Arc;

use types::key::Known;
use types::{AgentId, Clock, Contract, ContributionId, Timestamp, Version};

use crate::blocking::carry;
use crate::commit::{self, Tried};
use crate::compaction::{self, Compacted, Compacting, Compaction};
use crate::staged::{Staged, Stager};
use crate::state::{Follower, State, When, Witness};
use crate::tables::Tables;
use crate::{Agreement, Error, KnownHead, Merge, MergeOutcome, Proposal, StagedOutcome, history};

/// Begins to stage uploads for a table.
#[derive(Clone, Debug)]
pub struct Stagers {
    state: Arc<State>,
    contract: Arc<Contract>,
}

impl Stagers {
    /// Begins to stage an upload: its rows are written beside the table. `least` is how many bytes they are known to be.
    ///
    /// # Errors
    /// [`Error::NoRoom`], as from [`Stager::push`], where the disk has too little room.
    pub async fn stage(&self, contribution: ContributionId, agent: AgentId, least: u64) -> Result<Stager, Error> {
        let store = &self.state.store;
        store.room_for(least)?;
        let scratch = store.scratch()?;
        let known = Witness::new(&self.state).await?;
        Ok(Stager::new(scratch, &self.contract, contribution, agent, known))
    }
}

/// The table of a dataset, open for merges.
///
/// Two handles on one table, in one process or in two, are safe: they race for every commit, and the loser reads what
/// the winner did and starts over. One handle per table is fast. [`Self::close`] it when there is nothing to merge for a
/// while: what this process knows of a table stays in memory for as long as somebody holds it.
#[derive(Debug)]
pub struct Table {
    state: Arc<State>,
    known: Arc<Follower>,
    contract: Arc<Contract>,
    clock: Arc<dyn Clock>,
    tables: Arc<Tables>,
    tried: Tried,
    pub(crate) compacting: Option<Arc<Compacting>>,
}

impl Table {
    pub(crate) async fn open(
        state: Arc<State>,
        contract: &Arc<Contract>,
        clock: Arc<dyn Clock>,
        tables: Arc<Tables>,
    ) -> Result<Self, Error> {
        state.refresh().await?;
        if state.contract().is_some_and(|found| found != *contract) {
            return Err(Error::ContractMismatch { dataset: state.dataset });
        }
        Ok(Self {
            known: Arc::new(Follower::new(&state).await?),
            state,
            contract: Arc::clone(contract),
            clock,
            tables,
            tried: Tried::default(),
            compacting: None,
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
    ///
    /// # Errors
    /// [`Error::HistoryLost`] where that commit is gone and so is the last.
    pub async fn find(&self, contribution: ContributionId) -> Result<Option<Merge>, Error> {
        match self.state.find(contribution).await {
            Err(error @ Error::Gap { .. }) => {
                self.state.confirm().await?;
                Err(error)
            }
            found => found,
        }
    }

    /// Compares the table with a version known from outside the table. Reads newer commits if this process does not
    /// know the version.
    pub async fn compare(&self, known: KnownHead) -> Result<Agreement, Error> {
        history::compare(&self.state, known).await
    }

    /// Verifies that the log still has the last commit that this process knows.
    ///
    /// # Errors
    /// [`Error::HistoryLost`] where it does not; every later merge fails so, and the table is to be opened again.
    pub async fn confirm(&self) -> Result<(), Error> {
        self.state.confirm().await
    }

    /// Returns true once the log lacks a commit that this handle knows.
    pub fn is_lost(&self) -> bool {
        self.state.is_lost()
    }

    /// The latest version known to this process, with its content root.
    pub fn known_head(&self) -> KnownHead {
        let base = self.state.base();
        KnownHead {
            version: base.version,
            root: base.root,
        }
    }

    /// Which records the table has, for looking before the merge does; follows the merges.
    pub fn known(&self) -> Arc<dyn Known> {
        Arc::clone(&self.known) as Arc<dyn Known>
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
        let (state, contract) = (Arc::clone(&self.state), Arc::clone(&self.contract));
        let (now, mut tried) = (self.clock.now(), std::mem::take(&mut self.tried));
        let merging = async move {
            // Why also where it exists: another owner may have created it meanwhile, with another contract.
            let merged = match commit::create(&state, &contract, now).await {
                Ok(()) => commit::merge(&state, proposal, &mut tried).await,
                Err(error) => Err(error),
            };
            (merged, tried)
        };
        // Why: there a merge is little else than waiting for the disk. What it tried is forgotten where it panics, which
        // leaves a file behind that nobody reads.
        let (merged, tried) = if self.state.blocks() {
            carry(merging).await.map_err(Error::Stopped)?
        } else {
            merging.await
        };
        self.tried = tried;
        let outcome = merged?;
        self.make_room().await?;
        Ok(outcome)
    }

    /// What is to be compacted next; none where nothing is, or the catalog does not compact.
    pub fn compaction(&self) -> Option<Compaction> {
        compaction::due(&self.state, self.compacting.as_ref()?)
    }

    /// Puts what was built in the place of the parts that it was built of. `false` where another owner replaced one of
    /// them meanwhile; then the built part is a file that no commit names.
    ///
    /// # Errors
    /// After an error nothing, or the whole compaction, is in the log; no version is touched by either.
    pub async fn adopt(&mut self, compacted: Compacted) -> Result<bool, Error> {
        compaction::commit(&self.state, compacted, self.clock.now()).await
    }

    /// What begins to stage uploads for the table, while the table goes on growing.
    pub fn stagers(&self) -> Stagers {
        Stagers {
            state: Arc::clone(&self.state),
            contract: Arc::clone(&self.contract),
        }
    }

    /// Merges a staged upload as the next version, without the rows that the table got meanwhile; creates the table
    /// first if it does not exist. A contribution that was merged before is adopted. `notes` is what the caller wants to
    /// find again in the commit, told how many rows were left out here.
    ///
    /// # Errors
    /// After an error nothing, or the whole version, is in the log; asking again with the same upload finds out.
    pub async fn merge_staged(
        &mut self,
        staged: &mut Staged,
        at: Timestamp,
        notes: &(dyn Fn(u64) -> serde_json::Value + Sync),
    ) -> Result<StagedOutcome, Error> {
        if **staged.contract() != *self.contract {
            return Err(Error::ContractMismatch {
                dataset: self.state.dataset,
            });
        }
        commit::create(&self.state, &self.contract, self.clock.now()).await?;
        let outcome = commit::staged::merge(&self.state, staged, at, notes, &mut self.tried).await?;
        self.make_room().await?;
        Ok(outcome)
    }

    /// Stores keys of the table that has most of them in memory only, when all tables together have too many.
    async fn make_room(&self) -> Result<(), Error> {
        if self.state.store.is_crowded()
            && let Some(fullest) = self.tables.fullest()
        {
            fullest.save(When::Closing).await?;
        }
        Ok(())
    }

    /// Ends the work on the table, and stores what spares the next opening much reading. What fails is only logged: a
    /// table can be dropped at any time without losing anything.
    pub async fn close(self) {
        if let Err(error) = self.state.save(When::Closing).await {
            tracing::warn!(
                dataset = %self.state.dataset, %error,
                "closed a table without storing its record keys; the next opening reads them from the parts"
            );
        }
    }
}
