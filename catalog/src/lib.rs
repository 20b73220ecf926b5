//! One append-only Delta table per dataset: direct commits, the guard against merging twice, versions and their pages.
//!
//! Invariants:
//! - Version N of a dataset is its N-th merge: one commit of its Delta log, put once and never changed. Commit numbers
//!   have no gaps. The commits between merges are compactions, which change no version.
//! - A contribution is merged at most once. Its commit names it, and the owner knows every earlier commit before it
//!   puts the next one.
//! - A table that was deleted takes no commit any more. Two commits stay of it, which say so.
//! - No two rows of a table have the same record key.
//! - A part is durable before the commit that names it, and a commit is durable before its merge returns.
//! - The log is the only truth. The key index, the part version index and checkpoints are derived from it and can be
//!   deleted at any time.
//!
//! A merge lists no directory and reads no earlier commit than the last (except once per checkpoint: the first). So a
//! merge costs the same at version 10 and at version 10,000. The last commit is read to confirm that it still exists.
//!
//! ```text
//! <dataset>/_delta_log/00000000000000000000.json   protocol, metadata, contract
//! <dataset>/_delta_log/0000000000000000000N.json   commitInfo (the merge), txn, add
//!                                                  or commitInfo (the compaction), remove …, add
//!                                                  or commitInfo (the deletion): the last commit, and then also commit 0
//! <dataset>/_delta_log/0000000000000000000N.checkpoint.parquet     derived, for other readers: sum of commits 0 to N
//! <dataset>/_delta_log/_last_checkpoint            derived: number of the newest checkpoint
//! <dataset>/part-<version>-<contribution>.parquet                  of an upload also …-<attempt>-<index>.parquet
//! <dataset>/part-<first version>-<last version>-<hash>.parquet     a compacted part
//! <dataset>/_sluice/losses                         versions that were lost, where an administrator accepted it
//! <dataset>/_sluice/timeline                       derived: replaces reading the commits when a table is opened
//! <dataset>/_sluice/keys-<first>-<last>            derived: record keys of these versions, for a new owner
//! <dataset>/_sluice/profile-1-<part>               derived: figures of the rows of a large part, which somebody puts
//! <dataset>/_sluice/prints-<unit>-<hash>           of published units only: see [`platform`]
//! ```

mod action;
mod blocking;
mod bloom;
mod catalog;
pub mod check;
mod commit;
mod compaction;
mod deletion;
pub mod disk;
mod download;
mod error;
#[cfg(feature = "faults")]
mod faults;
pub mod history;
mod key_file;
mod key_store;
mod keys;
mod log;
mod parquet_export;
mod part;
mod part_cache;
pub mod platform;
mod prepare;
mod sketches;
mod snapshot;
mod state;
pub mod storage;
mod table;
mod tables;
mod version_index;

pub use catalog::Catalog;
pub use commit::{CommitOutcome, Merge};
pub use compaction::{BuiltPart, DueCompaction, Policy};
pub use disk::Reserve;
pub use error::Error;
pub use history::{Agreement, KnownHead};
pub use parquet_export::parquet_file;
pub use part::{HIDDEN_COLUMNS, PartInfo, PartLink};
pub use part_cache::{CacheError, HeldParts, PartCache};
pub use prepare::{DistinctKeys, DryRunStager, LateDuplicates, PreparedVersion, Stager};
pub use proof::Root;
pub use snapshot::{Columns, Snapshot};
pub use table::{Stagers, Table};

#[cfg(test)]
mod tests;
