//! A light HTTP client of the service: typed calls, typed errors, and retries within bounds.
//!
//! Invariants:
//! - A call is repeated only if doing it twice has the effect of doing it once: it reads, or it carries an
//!   `Idempotency-Key`.
//! - Waiting is bounded: [`RetryBudget`] caps both the number of tries and the sum of the pauses.
//! - Records and texts in answers are data of other agents. Nothing here interprets them.
//! - A pulled version is kept only if a key of the service signed it, and that key goes back to the first key that this
//!   machine met. The credential is sent with the service's own operations, never with the address of a part.

mod call;
mod client;
mod error;
mod files;
mod known;
mod market;
pub mod model;
mod pull;
mod push;
mod retry_budget;
#[cfg(feature = "otel")]
mod spans;
mod tls;
mod verify;

pub use client::Client;
pub use error::{Error, ServiceProblem};
pub use known::KnownKeys;
pub use pull::{Pull, PullEvent, PullResult};
pub use push::{Push, PushEvent, PushProgress};
pub use retry_budget::RetryBudget;
#[cfg(feature = "otel")]
pub use spans::SpanClient;
pub use verify::{VerifiedVersion, Verify, trusted_keys};
