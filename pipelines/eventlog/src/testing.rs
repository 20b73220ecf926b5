//! Fault injection and real brokers for tests of this and of other packages.
//!
//! Invariant: no process outlives its test. A server is stopped by its process id, also when the test that started it
//! is killed.

#[cfg(feature = "kafka")]
mod admin;
#[cfg(feature = "kafka")]
mod broker;
mod proxy;

#[cfg(feature = "kafka")]
pub use broker::Broker;
pub use proxy::{Counts, Fault, Proxy};
