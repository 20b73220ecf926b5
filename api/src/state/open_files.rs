//! State of the open files of this process, for the probes.
//!
//! Invariant: the state is what the last look found. Without a look, files are there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Flag of a process that can open no more files. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct OpenFiles {
    have_run_out: Arc<AtomicBool>,
}

impl OpenFiles {
    /// Notes what a look found, and returns true if that is news.
    pub fn note(&self, have_run_out: bool) -> bool {
        self.have_run_out.swap(have_run_out, Ordering::AcqRel) != have_run_out
    }

    /// Returns true if no more files could be opened at the last look.
    pub fn have_run_out(&self) -> bool {
        self.have_run_out.load(Ordering::Acquire)
    }

    /// Returns the word of the probes.
    pub(crate) fn word(&self) -> &'static str {
        if self.have_run_out() { "down" } else { "ok" }
    }
}
