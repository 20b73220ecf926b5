//! What a judge of rows is.
//!
//! Invariant: a judge answers for every row it is given and changes none of them.

use std::fmt::Debug;

use async_trait::async_trait;
use types::Batch;

use crate::Verdicts;

/// A judge that needs nothing but the rows: synchronous, infallible, deterministic, without I/O.
pub trait Gate: Debug + Send {
    /// The name in reasons and tallies, such as `contract`.
    fn name(&self) -> &'static str;

    /// One verdict per row of `rows`. The answer depends on the rows only, never on batches judged before.
    fn judge(&mut self, rows: &Batch) -> Verdicts;
}

/// A judge that asks the outside world, such as a model. What it cannot find out is a hold, never an error.
#[async_trait]
pub trait Stage: Debug + Send + Sync {
    /// The name in reasons and tallies, such as `screen`.
    fn name(&self) -> &'static str;

    /// One verdict per row of `rows`.
    async fn judge(&self, rows: &Batch) -> Verdicts;
}
