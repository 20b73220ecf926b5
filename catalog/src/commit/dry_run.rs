//! A commit that keeps nothing, for a process that tries a batch out.

use serde_json::Value;
use types::{DatasetId, Timestamp};

use super::{Merge, encode, merge_of};
use crate::Error;
use crate::prepare::PreparedVersion;
use crate::state::CommitBase;

impl PreparedVersion {
    /// Encodes the rows and their commit as the first version of a table, and keeps neither. Blocks.
    pub fn dry_run(&self, dataset: DatasetId, at: Timestamp, notes: Value) -> Result<Merge, Error> {
        let new = self.as_first_version()?;
        let merge = merge_of(self, CommitBase::CREATED, &new, at, notes);
        encode(dataset, &merge, &new.parts)?;
        Ok(merge)
    }
}
