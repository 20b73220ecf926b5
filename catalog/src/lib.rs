//! One append-only Delta table per dataset: direct commits, the guard against merging twice, versions and their pages.
//!
//! Invariants:
//! - Version N of a dataset is its N-th merge: one commit of its Delta log, put once and never changed. Commits have no
//!   gaps; those between merges are compactions, which change no version.
//! - A contribution is merged at most once: the commit names it, and every commit is known before the next is put.
//! - No two rows of a table have the same record key.
//! - Whatever a commit names is durable before the commit is, and the commit before the merge returns.
//! - The log is the only truth. The key index, the part timeline and checkpoints are derived from it and can be deleted at
//!   any time.
//!
//! Nothing on the path of a merge lists a directory or reads an earlier commit than the last (but for a checkpoint the
//! first), so a merge costs the same at version 10 and at version 10,000. The last is read to see that it is still there.
//!
//! ```text
//! <dataset>/_delta_log/00000000000000000000.json   protocol, metadata, contract
//! <dataset>/_delta_log/0000000000000000000N.json   commitInfo (the merge), txn, add
//!                                                  or commitInfo (the compaction), remove …, add
//! <dataset>/_delta_log/0000000000000000000N.checkpoint.parquet     derived, for other readers: what commits 0 to N amount to
//! <dataset>/_delta_log/_last_checkpoint            derived: the newest of these
//! <dataset>/part-<version>-<contribution>.parquet                  of an upload also …-<attempt>-<index>.parquet
//! <dataset>/part-<first version>-<last version>-<hash>.parquet
//! <dataset>/_sluice/losses                         versions that were lost, where an administrator accepted it
//! <dataset>/_sluice/timeline                       derived: what opening would read from the commits
//! <dataset>/_sluice/keys-<first>-<last>            derived: the keys of these versions, for the key index of a new owner
//! ```

mod action;
mod blocking;
mod bloom;
mod catalog;
pub mod check;
mod commit;
mod compaction;
pub mod disk;
mod download;
mod error;
pub mod history;
mod key_file;
mod key_store;
mod keys;
mod log;
mod merge;
mod part;
mod part_cache;
mod snapshot;
mod staged;
mod state;
pub mod storage;
mod table;
mod tables;
mod timeline;

pub use catalog::Catalog;
pub use compaction::{Compacted, Compaction, Policy};
pub use disk::Reserve;
pub use error::Error;
pub use history::{Agreement, KnownHead};
pub use merge::{Merge, MergeOutcome, Proposal, StagedOutcome};
pub use part::{HIDDEN, Link, PartInfo};
pub use part_cache::{CacheError, Held, PartCache};
pub use proof::Root;
pub use snapshot::{Columns, Snapshot};
pub use staged::{Staged, Stager};
pub use table::{Stagers, Table};

#[cfg(test)]
mod tests;
