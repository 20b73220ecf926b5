//! What tests of this and of other packages inject faults with, and the real brokers they run against.
//!
//! Invariant: nothing is left behind: what is started is stopped by its process id, also when the test that started it
//! is killed.

#[cfg(feature = "kafka")]
mod broker;
#[cfg(feature = "kafka")]
mod hand;
mod proxy;

#[cfg(feature = "kafka")]
pub use broker::Broker;
pub use proxy::{Counts, Fault, Proxy};
