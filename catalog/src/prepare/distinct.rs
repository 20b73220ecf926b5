//! The keys of the records of a file that is judged where no table is.
//!
//! Invariant: nothing has a name on the disk for longer than it takes to write it, so an ended process leaves nothing.

use std::path::Path;

use types::RecordKey;

use super::files::failed;
use super::runs::KeyRuns;
use crate::Error;

/// The record keys of one file: finds records that come twice, exactly, in bounded memory. Beyond that they are in files.
#[derive(Debug)]
pub struct DistinctKeys {
    runs: KeyRuns,
}

impl DistinctKeys {
    /// Begins without keys. Files are written in `folder`, which exists.
    pub fn new(folder: &Path) -> Self {
        Self {
            runs: KeyRuns::unnamed(folder),
        }
    }

    /// Adds keys. Returns true for each that was not there before. Blocks.
    pub fn insert_all(&mut self, keys: &[RecordKey]) -> Result<Vec<bool>, Error> {
        self.runs.insert_all(keys).map_err(failed)
    }

    /// Adds a key; `false` where it was there before. Blocks.
    pub fn insert(&mut self, key: RecordKey) -> Result<bool, Error> {
        self.runs.insert(key).map_err(failed)
    }
}
