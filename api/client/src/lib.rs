//! A light HTTP client of the service: typed calls, typed errors, and patience where the service asks for it.
//!
//! Invariants:
//! - A call is sent again only when doing it twice is the same as doing it once: it reads, or it carries an
//!   `Idempotency-Key`.
//! - Waiting is bounded: [`Patience`] caps both the number of tries and the sum of the pauses.
//! - Records and texts that come back are data of other agents; nothing here interprets them.

mod call;
mod client;
mod error;
pub mod model;
mod patience;

pub use client::Client;
pub use error::{Error, Problem};
pub use patience::Patience;
