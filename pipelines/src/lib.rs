//! The workers that carry records from the log through the gates into the tables.
//!
//! A submission passes, in this order: `consumer`, `dispatcher`, `writer`, `judge`, `writer::commit`, `publish`. Each file
//! uses those after it, and all use `context`.
//!
//! # Exactly once
//!
//! 1. A submission reaches a [`Worker`] at least once: the log redelivers from the low-water mark (`offsets`), and the
//!    marketplace appends a submission again for as long as it has no terminal outcome.
//! 2. Everything that changes a table goes through that table's one `writer`, in the order of delivery.
//! 3. The contribution's id is the guard: a table names it in the commit that holds its rows, so a submission that
//!    comes again adopts the version it already has.
//! 4. The outcome is appended after the commit, and the delivery is acknowledged after the outcome. A death between
//!    any two of these steps repeats only steps that find their work done.
//! 5. What already has a terminal outcome is not judged again (`outcome_cache`): a model may answer differently the
//!    second time. Its outcome is published again (`republish`): the log may have lost it since.
//! 6. A version is published after all before it, whoever merged them (`publish`), so a list of versions has no gap.
//!
//! # Isolation
//!
//! A writer is slow alone: writers share the consumer, and the consumer never waits for a writer. A message that does not
//! fit the queue of its writer is deferred: the marketplace appends it again (`dispatcher`). Judging takes turns among
//! the writers on threads that serve nothing else (`cpu_slots`).
//!
//! An upload is judged beside the batches and takes its writer for one step only (`judge::upload`).
//!
//! No message can be tried for ever: what cannot pass goes to the dead letters, and an outcome that is too large is
//! shortened (`publish`). What may have ended a process is tried out in a child process first ([`isolation`]), and what
//! ends two of them goes to the dead letters, too.

pub mod check;
pub mod file_judge;
pub mod isolation;
pub mod knowledge;
pub mod message;

mod compactor;
mod consumer;
mod context;
mod cpu_slots;
mod dead_letter;
mod delivery;
mod dispatcher;
#[cfg(feature = "faults")]
mod faults;
mod history;
mod judge;
mod offsets;
mod outcome_cache;
mod pieces;
mod publish;
mod recovery;
mod report;
mod republish;
mod step;
mod suspects;
mod trace;
mod writer;

pub use consumer::{Config, Error, Worker};
pub use context::Uploads;
