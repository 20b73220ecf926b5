//! The `sluice` program.

use std::process::ExitCode;

use clap::Parser;
use sluice::{cli::Cli, terminal};

fn main() -> ExitCode {
    // Why before all else: the child of a query has no configuration, no runtime and nothing to say to a person.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == sql::child::ARGUMENT)
    {
        return sql::child::run();
    }
    sluice::run(Cli::parse()).unwrap_or_else(|error| {
        terminal::note(&format!("sluice: {error:#}"));
        ExitCode::FAILURE
    })
}
