//! Gates over batches of records, and the chain that composes them.
//!
//! A [`Gate`] judges every row of a [`types::Batch`] by one rule, such as the contract, duplicates or personal data. It
//! returns [`Verdicts`], exactly one per row: *pass*, *drop* (a duplicate: the row is left out and the batch
//! continues), *refuse* (the row rejects its batch) or *hold* (the row cannot be judged now). A gate never moves,
//! changes or counts rows, does no I/O, cannot fail and gives the same answer for the same rows. A row that it cannot
//! read is refused, and one that it cannot judge is held. A judge that needs I/O, such as a model, is a [`Stage`].
//! Write a gate unless you need one.
//!
//! Invariant (the conservation law): rows in = passed + dropped + refused + held, for the chain and for each operator
//! in it. It holds by construction, because only [`GateChain`] moves rows, in one function.
//!
//! A row that one operator refuses, drops or holds is not judged by the later ones. Rows that pass are judged by all
//! operators even when the batch is already lost, so that every offending row is reported at once. [`Decision::of`]
//! applies the policy of the batch: any refused row rejects it, or with [`OnRefused::Drop`](types::vocabulary::OnRefused)
//! more than half of them do; else any held row holds it, else a batch without new rows is rejected, else it merges.
//!
//! [`standard_chain`] is the one chain that merges, dry runs and collectors use. Every gate runs
//! `conformance::check_gate` (feature `testing`) in its tests.
//!
//! Apart from the gates, [`profile`] says what is in the rows of a version.

pub mod chain;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
mod decision;
pub mod gate;
pub mod gates;
pub mod knowledge;
pub mod profile;
pub mod screen;
pub mod summary;
mod text;
pub mod verdict;
mod visitor;

pub use chain::{GateChain, Judged, MAX_VERDICT_BYTES, Tally, standard_chain};
pub use decision::{Decision, Numbering, Totals, nothing_new, summary_of};
pub use gate::{Gate, GateName, Stage};
pub use text::is_invisible;
pub use verdict::{MAX_REASONS, Reason, RowVerdict, Verdict, Verdicts};
