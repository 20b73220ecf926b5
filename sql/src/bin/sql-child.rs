//! The child alone: what the tests and the measurements start.

use std::process::ExitCode;

fn main() -> ExitCode {
    sql::child::run()
}
