//! The owner's handle on a table, through which the table grows.
//!
//! Invariant: when a merge has returned, its version is durable, is in the log once, and is visible to every reader in
//! this process.

use std::sync::Arc;

use serde_json::Value;
use types::key::KeyLookup;
use types::{AgentId, Clock, Contract, ContributionId, Timestamp, Version};

use crate::commit::{self, Notes, OrphanTracker};
use crate::compaction::{self, BuiltPart, CompactionState, DueCompaction};
use crate::prepare::{LateDuplicates, PreparedVersion, Stager};
use crate::state::{LiveLookup, SnapshotLookup, TableState, WriteOccasion};
use crate::tables::Tables;
use crate::{Agreement, CommitOutcome, Error, KnownHead, Merge, history, log};

/// Starts the staging of uploads for one table.
#[derive(Clone, Debug)]
pub struct Stagers {
    state: Arc<TableState>,
    contract: Arc<Contract>,
}

impl Stagers {
    /// Returns true if the table was deleted, so that nothing is to be staged any more.
    pub async fn was_deleted(&self) -> Result<bool, Error> {
        log::was_deleted(&self.state.objects, self.state.dataset).await
    }

    /// Starts to stage an upload: its rows are written to scratch files beside the table. `least` is a lower bound of
    /// their size in bytes.
    ///
    /// # Errors
    /// [`Error::NoRoom`] if the disk has too little free space, also from [`Stager::push`].
    pub async fn stage(&self, contribution: ContributionId, agent: AgentId, least: u64) -> Result<Stager, Error> {
        let store = &self.state.store;
        store.room_for(least)?;
        let scratch = store.scratch()?;
        let known = SnapshotLookup::new(&self.state).await?;
        Ok(Stager::new(scratch, &self.contract, contribution, agent, known))
    }
}

/// The table of a dataset, open for merges.
///
/// Two handles on one table are safe, in one process or in two: they race for every commit, and the loser reads the
/// winner's commit and starts over. One handle per table is fast. [`Self::close`] the handle when there is nothing to
/// merge for a while, because the state of a table stays in memory while a handle exists.
#[derive(Debug)]
pub struct Table {
    state: Arc<TableState>,
    known: Arc<LiveLookup>,
    contract: Arc<Contract>,
    clock: Arc<dyn Clock>,
    tables: Arc<Tables>,
    orphans: OrphanTracker,
    pub(crate) compacting: Option<Arc<CompactionState>>,
}

impl Table {
    pub(crate) async fn open(
        state: Arc<TableState>,
        contract: &Arc<Contract>,
        clock: Arc<dyn Clock>,
        tables: Arc<Tables>,
    ) -> Result<Self, Error> {
        state.refresh().await?;
        if state.contract().is_some_and(|found| found != *contract) {
            return Err(Error::ContractMismatch { dataset: state.dataset });
        }
        Ok(Self {
            known: Arc::new(LiveLookup::new(&state).await?),
            state,
            contract: Arc::clone(contract),
            clock,
            tables,
            orphans: OrphanTracker::default(),
            compacting: None,
        })
    }

    /// Returns the contract of the records.
    pub const fn contract(&self) -> &Arc<Contract> {
        &self.contract
    }

    /// Returns the latest version that this process knows.
    pub fn head(&self) -> Version {
        self.state.head()
    }

    /// Returns the number of rows of the latest known version.
    pub fn record_count(&self) -> u64 {
        self.state.base().rows
    }

    /// Returns the version that a contribution became, read from its commit. Returns `None` if no commit known to this
    /// process names the contribution.
    ///
    /// # Errors
    /// [`Error::HistoryLost`] if both that commit and the last one are gone, [`Error::Gap`] if only that commit is.
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
    /// [`Error::HistoryLost`] if it does not. Every later merge then fails too, and the table must be opened again.
    pub async fn confirm(&self) -> Result<(), Error> {
        self.state.confirm().await
    }

    /// Returns true once the log lacks a commit that this handle knows.
    pub fn is_lost(&self) -> bool {
        self.state.is_lost()
    }

    /// Returns the latest version known to this process, with its content root.
    pub fn known_head(&self) -> KnownHead {
        let base = self.state.base();
        KnownHead {
            version: base.version,
            root: base.root,
        }
    }

    /// Returns a live lookup of the table's record keys, for the dedup gate. The lookup follows the merges.
    pub fn known(&self) -> Arc<dyn KeyLookup> {
        Arc::clone(&self.known) as Arc<dyn KeyLookup>
    }

    /// Commits the rows that are new to the table as the next version. Creates the table first if it does not exist. A
    /// contribution that was committed before is not committed again, and its earlier version is returned. `notes`
    /// receives the rows that are dropped here and returns the notes to keep in the commit.
    ///
    /// # Errors
    /// After an error the log has either nothing or the whole version. A second call with the same rows finds out.
    pub async fn commit(
        &mut self,
        prepared: &mut PreparedVersion,
        at: Timestamp,
        notes: impl Fn(&LateDuplicates) -> Value + Send + Sync + 'static,
    ) -> Result<CommitOutcome, Error> {
        let notes: Arc<Notes> = Arc::new(notes);
        loop {
            // Without a version to wait for, the first round always has an outcome.
            if let Some(outcome) = self.commit_at(prepared, at, &notes, None).await? {
                return Ok(outcome);
            }
        }
    }

    /// Commits rows that were compared with the version `only`, as the version after it. Returns `None`, and commits
    /// nothing, if the table has a later version: the caller reads it and compares again.
    ///
    /// # Errors
    /// After an error the log has either nothing or the whole version, as with [`Self::commit`].
    pub async fn commit_after(
        &mut self,
        only: Version,
        prepared: &mut PreparedVersion,
        at: Timestamp,
        notes: impl Fn(&LateDuplicates) -> Value + Send + Sync + 'static,
    ) -> Result<Option<CommitOutcome>, Error> {
        let notes: Arc<Notes> = Arc::new(notes);
        self.commit_at(prepared, at, &notes, Some(only)).await
    }

    async fn commit_at(
        &mut self,
        prepared: &mut PreparedVersion,
        at: Timestamp,
        notes: &Arc<Notes>,
        only: Option<Version>,
    ) -> Result<Option<CommitOutcome>, Error> {
        let contract = prepared.contract();
        // Usually both are the same allocation, which spares comparing the fields.
        if !Arc::ptr_eq(contract, &self.contract) && *contract != self.contract {
            return Err(Error::ContractMismatch {
                dataset: self.state.dataset,
            });
        }
        // The table's creation is checked even if the table exists: another owner may have created it meanwhile with
        // another contract.
        let now = self.clock.now();
        let outcome = match prepared.share_batch() {
            // On a store that blocks, the commit of a batch is mostly waiting for the disk, so it runs on one blocking
            // thread.
            Some(mut batch) if self.state.blocks() => {
                let (state, contract, notes) = (Arc::clone(&self.state), Arc::clone(&self.contract), Arc::clone(notes));
                // It moves into the future and back, because another thread runs it. A panic loses the list; the cost is
                // a file that no commit names.
                let mut orphans = std::mem::take(&mut self.orphans);
                let committing = async move {
                    let committed = match commit::create(&state, &contract, now).await {
                        Ok(()) => commit::commit(&state, &mut batch, at, &*notes, only, &mut orphans).await,
                        Err(error) => Err(error),
                    };
                    (committed, orphans)
                };
                let (committed, orphans) = self.state.blocking.run(committing).await.map_err(Error::Stopped)?;
                self.orphans = orphans;
                committed?
            }
            _ => {
                commit::create(&self.state, &self.contract, now).await?;
                commit::commit(&self.state, prepared, at, &**notes, only, &mut self.orphans).await?
            }
        };
        self.make_room().await?;
        Ok(outcome)
    }

    /// Returns the next due compaction. Returns `None` if none is due or the catalog has no compaction policy.
    pub fn compaction(&self) -> Option<DueCompaction> {
        compaction::due(&self.state, self.compacting.as_ref()?)
    }

    /// Commits a built compaction: its part replaces the parts that it was built from. Returns false if another owner
    /// replaced one of them meanwhile. The built part is then an orphan.
    ///
    /// # Errors
    /// After an error the log has either nothing or the whole compaction. Neither changes a version.
    pub async fn install_compaction(&mut self, compacted: BuiltPart) -> Result<bool, Error> {
        compaction::commit(&self.state, compacted, self.clock.now()).await
    }

    /// Returns a handle that stages uploads while the table continues to grow.
    pub fn stagers(&self) -> Stagers {
        Stagers {
            state: Arc::clone(&self.state),
            contract: Arc::clone(&self.contract),
        }
    }

    /// If all tables together have too many keys in memory, stores the keys of the table that has the most.
    async fn make_room(&self) -> Result<(), Error> {
        if self.state.store.is_crowded()
            && let Some(fullest) = self.tables.fullest()
        {
            fullest.save(WriteOccasion::Closing).await?;
        }
        Ok(())
    }

    /// Ends the work on the table. Stores the keys and the files that make the next opening fast. A failure is only
    /// logged, because a table may be dropped at any time without loss.
    pub async fn close(self) {
        if let Err(error) = self.state.save(WriteOccasion::Closing).await {
            tracing::warn!(
                dataset = %self.state.dataset, %error,
                "closed a table without storing its record keys; the next opening reads them from the parts"
            );
        }
    }
}
