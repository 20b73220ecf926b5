//! Instrumented wrappers of the event log and the store of the tables.
//!
//! Invariant: a wrapper behaves like the inner implementation and returns the same results.

mod log;
mod objects;

pub use log::MeteredLog;
pub use objects::MeteredObjects;
