//! Folders and files of the data directory.
//!
//! Invariant: a path is spelt here and nowhere else.

use std::path::{Path, PathBuf};

/// Paths in a data directory.
#[derive(Clone, Debug)]
pub struct DataLayout {
    root: PathBuf,
}

impl DataLayout {
    /// Returns the layout of the directory at `root`. Creates nothing.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Returns the folder of the embedded event log.
    pub fn log(&self) -> PathBuf {
        self.root.join("log")
    }

    /// Returns the file of the embedded metadata database.
    pub fn database(&self) -> PathBuf {
        self.root.join("sluice.db")
    }

    /// Returns the folder of the tables, which has one folder per dataset.
    pub fn tables(&self) -> PathBuf {
        self.root.join("tables")
    }

    /// Returns the folder of the archived months of the ledger.
    pub fn ledger(&self) -> PathBuf {
        self.root.join("ledger")
    }

    /// Returns the folder of upload parts, which are kept until their contribution is decided.
    pub fn uploads(&self) -> PathBuf {
        self.root.join("uploads")
    }

    /// Returns the folder of the key indexes, which are derived from the tables.
    pub fn index(&self) -> PathBuf {
        self.root.join("index")
    }

    /// Returns the folder of the indexes of the search, which are derived from the database.
    pub fn search(&self) -> PathBuf {
        self.root.join("search")
    }

    /// Returns the folder of the letters while there is no mail server.
    pub fn mail(&self) -> PathBuf {
        self.root.join("mail")
    }

    /// Returns the file of the key that signs payouts.
    pub fn treasury(&self) -> PathBuf {
        self.root.join("keys/treasury")
    }

    /// Returns the folder of the copies of parts that queries read while the tables are in a bucket.
    pub fn parts(&self) -> PathBuf {
        self.root.join("parts")
    }
}
