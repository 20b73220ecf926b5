//! The table line over the embedded log and local tables.
//!
//! Invariant: everything is asserted through the log and the catalog; nothing looks inside a worker.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::tests_outside_test_module,
    reason = "an integration test is a test module"
)]

mod children;
mod deleted;
mod faulty;
mod history;
mod isolation;
mod knowledge;
mod left_out;
mod lines;
mod poison;
mod readings;
mod slow_units;
mod trials;
mod trouble;
mod uploads;
mod world;
