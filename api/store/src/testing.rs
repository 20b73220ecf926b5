//! What tests need of the outside world: a `PostgreSQL` server that can be stopped, an authority whose certificates
//! servers show, and a proxy that loses answers.
//!
//! Invariant: everything listens on the loopback address, keeps its files in a temporary folder, and ends with the
//! process that started it, however that ends.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "only tests use it")]

mod authority;
mod postgres;
mod proxy;

pub use authority::Authority;
pub use postgres::{Postgres, Stop};
pub use proxy::{Mode, Proxy};
