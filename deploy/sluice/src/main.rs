//! The `sluice` program.

use std::process::ExitCode;

use sluice::{cli, exit, file_child, isolation, terminal};

fn main() -> ExitCode {
    // This comes before everything else: the process of a query, a file or a trial has no configuration, no runtime and no
    // output for people.
    let argument = std::env::args_os().nth(1).unwrap_or_default();
    if argument == sql::child::CHILD_ARGUMENT {
        return sql::child::run();
    }
    if argument == file_child::ARGUMENT {
        return file_child::run();
    }
    if argument == isolation::ARGUMENT {
        return isolation::run();
    }
    // The alternate form prints an error with its causes in one line.
    sluice::run(cli::parse()).unwrap_or_else(|error| {
        let said = format!("sluice: {error:#}");
        // Names of files and texts of the service are in it; some errors have several lines.
        terminal::note(&terminal::plain_lines(said.split('\n')));
        if let Some(remedy) = exit::remedy_of(&error) {
            terminal::note(&remedy);
        }
        exit::code_of(&error).into()
    })
}
