//! Scheduled sources of public facts.
//!
//! ```text
//! schedule ──▶ lease ──▶ fetch ──▶ decode ──▶ map ──▶ dry run ──▶ submit ──▶ outcome ──▶ cursor, next run
//!                        outbound   records   rows    Intake      Intake                 one transaction
//! ```
//!
//! Invariants:
//! - A collector submits like any agent, through an [`Intake`]. It writes no table and no log.
//! - A source is fetched, decoded and mapped as a whole before its first row is submitted. What is cut off, changed its
//!   form or exceeds a limit submits nothing.
//! - The place in a source moves on only when every row of the run is in the dataset or was refused by a gate. A run that
//!   ends at any step is made up for by the next one, whose known rows the gates drop.

mod bundled;
mod cursor;
mod delta;
mod failure;
mod fetch;
mod format;
mod hosts;
mod intake;
mod mapping;
mod robots;
mod run;
mod schedule;
mod scheduler;
mod source;

pub use bundled::{BUNDLED, SAMPLE};
pub use failure::RunFailure;
pub use fetch::Fetcher;
pub use intake::{Intake, JudgedRecord, SubmitOutcome};
pub use run::{RunReport, collect};
pub use schedule::Schedule;
pub use scheduler::{Scheduler, SchedulerOptions};
pub use source::{CollectorSource, SourceError};
