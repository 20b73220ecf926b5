//! Gates over batches of records, and the chain that composes them.
//!
//! A [`Gate`] answers one question about every row of a [`types::Batch`]: does it satisfy the contract, is it new, does
//! it hold personal data. It says so in [`Verdicts`], exactly one per row: *pass*, *drop* (a duplicate: the row is left
//! out and the batch goes on), *refuse* (the row rejects its batch) or *hold* (it cannot be judged now). A gate never
//! moves, changes or counts rows, does no I/O, cannot fail and gives the same answer for the same rows; what it cannot
//! read it refuses, and what it cannot judge it holds. A judge that asks the outside world is a [`Stage`]. Write a gate
//! unless you cannot.
//!
//! Invariant (the conservation law): rows in = passed + dropped + refused + held, for the chain and for each operator
//! in it. It holds by construction and not by discipline, because only [`Chain`] moves rows, in one function.
//!
//! A row that is refused, dropped or held by one operator is not judged by the later ones; the rows that pass are
//! judged by all of them even when the batch is already lost, so that every offending row is named at once.
//! [`Judged::decision`] applies the policy of the batch: any refused row rejects it, else any held row holds it, else a
//! batch of nothing new is rejected, else it merges.
//!
//! The one chain that merges, dry runs and collectors use is [`standard_chain`]. Every gate runs
//! `conformance::check_gate` (feature `testing`) in its tests.

pub mod chain;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
pub mod gate;
pub mod gates;
mod leaves;
pub mod screen;
mod text;
pub mod verdict;

pub use chain::{Chain, Decision, Judged, MAX_VERDICT_BYTES, Tally, standard_chain};
pub use gate::{Gate, Stage};
pub use verdict::{MAX_REASONS, Reason, RowVerdict, Verdict, Verdicts};
