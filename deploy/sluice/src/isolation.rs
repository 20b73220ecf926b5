//! Trials of messages in child processes of this program.

use std::process::ExitCode;
use std::sync::Arc;

use pipelines::isolation::{Isolation, ProbeChildren, ProbeSettings, child};

use crate::config::Config;
use crate::judges;
use crate::sandbox::program;

/// Hidden command-line argument that makes the program a child.
pub use pipelines::isolation::ARGUMENT;

/// Runs the child.
pub fn run() -> ExitCode {
    match judges::of_units() {
        Ok(judges) => child::run(judges),
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "the child cannot judge");
            ExitCode::FAILURE
        }
    }
}

/// Returns the means to try messages out, unless the configuration wants none.
pub(crate) fn of(config: &Config) -> anyhow::Result<Option<Arc<dyn Isolation>>> {
    let (timeout, max_crashes) = (config.worker.isolation_timeout.0, config.worker.max_strikes);
    if max_crashes == 0 {
        return Ok(None);
    }
    let settings = ProbeSettings::new(program()?, timeout, max_crashes);
    Ok(Some(Arc::new(ProbeChildren::new(settings))))
}
