//! Processes of this program behind a fence, for work on what strangers send: queries, and files.
//!
//! Invariants:
//! - A process gets one job of one caller and ends. It has no environment, no secrets, no file system, no network and
//!   cannot start a process. It can read the open files that it is sent, and answer.
//! - Nothing of a job is read before the fence is closed. The caller can distinguish all ways in which the process ends.
//! - A process never outlives its handle. It is killed.
//!
//! ```text
//! caller                              child (the same program, started with a hidden argument)
//! setup: protocol, limits        ──▶  warm up, limits, fence, "ready"
//! job, bytes or descriptors      ──▶  work
//! answer                         ◀──  end
//! ```

pub mod child;
mod fence;
mod process;
mod wire;

use serde::{Deserialize, Serialize};

pub use process::{ChildEnd, ChildProcess, ChildProgram, Error};
pub use wire::{ChildChannel, FILES_AT_ONCE, ServiceChannel};

/// First message to a child, which has nothing of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChildSetup {
    /// Version of the messages. Both sides must be of the same build.
    pub protocol: String,
    /// Limit of the address space, in bytes.
    pub memory: u64,
    /// Limit of the processor time, in seconds.
    pub processor: u64,
    /// Number of threads of the work.
    pub threads: usize,
}

/// Answer to a [`ChildSetup`].
#[derive(Debug, Serialize, Deserialize)]
enum ChildReadiness {
    /// The fence is closed.
    Ready,
    /// The preparation failed, with a description.
    Unfit(String),
}
