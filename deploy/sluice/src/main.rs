//! The `sluice` program.

use std::process::ExitCode;

use clap::Parser;
use sluice::{cli::Cli, terminal};

fn main() -> ExitCode {
    sluice::run(Cli::parse()).unwrap_or_else(|error| {
        terminal::note(&format!("sluice: {error:#}"));
        ExitCode::FAILURE
    })
}
