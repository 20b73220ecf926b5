//! Servers for tests: a `PostgreSQL` server that can be stopped, a certificate authority, and a proxy that loses
//! answers.
//!
//! Invariant: everything listens on the loopback address, keeps its files in a temporary folder, and ends with the
//! process that started it, even after a crash.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "only tests use it")]

mod authority;
mod postgres;
mod proxy;

pub use authority::Authority;
pub use postgres::{Postgres, Stop};
pub use proxy::{Mode, Proxy};
