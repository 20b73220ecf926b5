//! The `sluice` program.

use std::process::ExitCode;

use clap::Parser;
use sluice::{cli::Cli, terminal};

fn main() -> ExitCode {
    // This comes before everything else: the process of a query has no configuration, no runtime and no output for
    // people.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == sql::child::ARGUMENT)
    {
        return sql::child::run();
    }
    // The alternate form prints an error with its causes in one line.
    sluice::run(Cli::parse()).unwrap_or_else(|error| {
        terminal::note(&format!("sluice: {error:#}"));
        ExitCode::FAILURE
    })
}
