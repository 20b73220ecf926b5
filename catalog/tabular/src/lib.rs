//! Readers of files of strangers. Pure; no runtime.
//!
//! Invariant: what a reader cannot make sense of is an error with its line, never another value, and memory is bounded
//! whatever the file says.

pub mod csv;
#[cfg(feature = "files")]
pub mod files;
