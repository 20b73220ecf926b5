//! Measures of the parts that the service is put together from.
//!
//! Invariant: a metered part does what the part in it does, and answers what that answers.

mod log;
mod objects;

pub use log::Log;
pub use objects::Objects;
