//! The lines that carry records from the log through the gates into the tables.
//!
//! # Exactly once
//!
//! 1. A submission reaches a [`Worker`] at least once: the log redelivers from the low-water mark, and the marketplace
//!    appends a submission again for as long as it has no terminal outcome.
//! 2. Everything that changes a table goes through that table's one [lane](lane), in the order of delivery.
//! 3. The contribution's id is the guard: a table names it in the commit that holds its rows, so a submission that
//!    comes again adopts the version it already has.
//! 4. The outcome is appended after the commit, and the position is marked done after the outcome. A death between
//!    any two of these steps repeats only steps that find their work done.
//! 5. What already has a terminal outcome is not judged again ([`finished`]): a model may answer differently the
//!    second time. Its outcome is told again (`settled`): the log may have lost it since.
//! 6. A version is told after all before it, whoever merged them (`telling`), so a list of versions has no gap.
//!
//! # Isolation
//!
//! A lane is slow alone: lanes share the reader, and the reader never waits for a lane. What a full lane cannot take
//! is left to the marketplace to append again ([`lanes`]). Judging takes turns among the lanes on threads that serve
//! nothing else (`places`).
//!
//! An upload is staged off the lane and takes it for one step only ([`staging`]).
//!
//! No message can be tried for ever: what cannot pass goes to the dead letters, and what is too large to be said is
//! said with fewer words (`emit`). What may have ended a process is tried out in a child process first ([`isolation`]),
//! and what ends two of them goes to the dead letters, too.

pub mod finished;
mod history;
pub mod isolation;
pub mod knowledge;
pub mod lane;
pub mod lanes;
pub mod message;
pub mod progress;
pub mod staging;

mod compactor;
mod conclude;
mod emit;
mod faults;
mod judge;
mod memory;
mod places;
mod settled;
mod telling;
mod trace;
mod worker;

pub use worker::{Config, Error, Worker};
