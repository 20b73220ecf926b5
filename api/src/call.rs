//! Calls: what a transport hands in, the table of operations, and what an operation answers.
//!
//! Invariant: nothing here decides. It describes, and the rules and the dispatcher read it.

pub mod answer;
pub mod caller;
pub mod cx;
mod meters;
pub mod operation;
mod problem;
pub(crate) mod rendered;
pub(crate) mod repeats;
pub(crate) mod room;
pub mod schema;
pub mod spec;
pub(crate) mod view;
pub mod visit;
pub(crate) mod wire;
