//! Readers of files of strangers. Pure; no runtime.
//!
//! ```text
//! bytes ── detect ──► a reading ── decode ──► UTF-8 ── frame ──► records with their lines ── translate ──► JSON lines
//! ```
//!
//! Invariant: what a reader cannot make sense of is an error with its line, never another value, and memory is bounded
//! whatever the file says.

mod buffer;
pub mod csv;
pub mod decode;
pub mod detect;
#[cfg(feature = "files")]
pub mod files;
pub mod fit;
pub mod frame;
pub mod infer;
pub mod names;
pub mod reading;
pub mod translate;
pub mod values;
