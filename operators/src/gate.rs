//! The traits of operators.
//!
//! Invariant: an operator answers for every row it receives and changes none of them.

use std::fmt::Debug;

use async_trait::async_trait;
use types::Batch;

use crate::Verdicts;

/// An operator that needs only the rows: synchronous, infallible, deterministic, without I/O.
pub trait Gate: Debug + Send {
    /// Returns the name in reasons and tallies, such as `contract`.
    fn name(&self) -> &'static str;

    /// Returns one verdict per row of `rows`. The answer depends on the rows only, never on batches judged before.
    // Mutable for buffers only. State from batch to batch would make a verdict depend on the order in
    // which batches arrive, and a redelivery would get another one.
    fn judge(&mut self, rows: &Batch) -> Verdicts;
}

/// An operator that needs I/O, such as a model. If it cannot get an answer it holds the rows; it never fails.
#[async_trait]
pub trait Stage: Debug + Send + Sync {
    /// Returns the name in reasons and tallies, such as `screen`.
    fn name(&self) -> &'static str;

    /// Returns one verdict per row of `rows`.
    async fn judge(&self, rows: &Batch) -> Verdicts;
}
