//! The harness of the integration tests, the crash tests and the benches.
//!
//! Invariant: the service is only reached as its users reach it: a process, its command line, its HTTP interface and
//! the files it leaves. [`checker`] shares no code with it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a harness fails by panicking and says what it did"
)]

pub mod agents;
pub mod apps;
pub mod browser;
pub mod checker;
pub mod crash;
pub mod history;
pub mod http;
pub mod letters;
pub mod models;
pub mod random;
pub mod server;
pub mod tls;
#[cfg(all(feature = "kafka", feature = "postgres", feature = "redis", feature = "s3"))]
pub mod topology;
pub mod world;

pub use http::{Answer, Http};
pub use server::{Options, Server};
pub use world::World;
